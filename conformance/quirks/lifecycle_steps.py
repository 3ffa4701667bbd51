"""Ways in which engines have mixed up the requests of one step."""

from collections.abc import Mapping

import torch

from conformance.quirk import quirk
from conformance.quirks.lifecycle import Answers, in_chunk
from reference.items import Chunk
from reference.lifecycle.requests import LiveRequests


@quirk("a-reply-beside-a-prompt-is-a-prompt", replaces="open_lifecycle", bugs=("K01",), caught_by=("LIFECYCLE-19",))
class MixedStep(LiveRequests):
    """Where a step computes prompts with media and replies, the replies are taken for prompts: their ids begin at the first."""

    def step(self, chunks: Mapping[str, Chunk]) -> Answers:
        mixed = any(id in self._alive and in_chunk(self, id, chunk) for id, chunk in chunks.items())
        replies = [
            id for id, chunk in chunks.items() if id in self._alive and chunk.prefix >= len(self._alive[id].request.input_ids)
        ]
        answers = super().step(chunks)
        for id in replies if mixed else []:
            if id in self._alive and isinstance(answers[id], torch.Tensor):
                answers[id] = self._table[self._alive[id].request.input_ids[: chunks[id].length]]
        return answers


@quirk(
    "buffer-as-long-as-a-request", replaces="open_lifecycle", bugs=("v1-llava-buffer-model-len",), caught_by=("LIFECYCLE-19",)
)
class ShortBuffer(LiveRequests):
    """Media of a step go through a buffer as long as the longest request: of more requests the last ones lose theirs."""

    def step(self, chunks: Mapping[str, Chunk]) -> Answers:
        room = max((self._alive[id].length for id in chunks if id in self._alive), default=0)
        answers = super().step(chunks)
        for id, rows in answers.items():
            if isinstance(rows, torch.Tensor):
                lost = len(rows) - max(room, 0)
                room -= len(rows)
                if lost > 0:
                    answers[id] = torch.cat([rows[: len(rows) - lost], torch.zeros_like(rows[:lost])])
        return answers
