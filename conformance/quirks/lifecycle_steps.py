"""Ways in which engines have mixed up the requests of one step."""

from collections.abc import Mapping
from typing import Any

import torch

from conformance.quirk import quirk
from conformance.quirks.lifecycle import Answers, in_chunk
from reference.items import Chunk, Request
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


@quirk("rows-by-identity-alone", replaces="open_lifecycle", bugs=("L10",), caught_by=("LIFECYCLE-39",))
class RowsByIdentityAlone(LiveRequests):
    """Who comes with a known identity is given the rows of the first that had it, however many these are."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.counts: dict[Any, int] = {}

    def _entered(self, request: Request, chunk: Chunk, rows: torch.Tensor | Exception) -> torch.Tensor | Exception:
        entered = super()._entered(request, chunk, rows)
        for item in request.items:
            known = self.counts.setdefault(item.identity, item.token_count)
            places = [p - chunk.prefix for span in item.spans for p in range(span.first, span.stop)][known:]
            if isinstance(entered, torch.Tensor):
                entered[[place for place in places if 0 <= place < chunk.length]] = 0
        return entered
