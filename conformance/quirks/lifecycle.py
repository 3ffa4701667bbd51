"""Ways in which engines have kept too little of a request, or computed it differently the second time."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference.items import Chunk, Request
from reference.lifecycle.requests import LiveRequests, Medium, Owner
from reference.positions import extend_positions

Chunks = Mapping[str, Chunk]
Answers = dict[str, torch.Tensor | Exception]


def in_chunk(requests: LiveRequests, id: str, chunk: Chunk) -> list[Medium]:
    """The media of a request that have a position in the chunk."""
    life = requests._alive[id]
    pairs = zip(life.request.items, life.media, strict=True)
    return [medium for item, medium in pairs if any(s.first < chunk.stop and s.last >= chunk.prefix for s in item.spans)]


def blank(content: Any) -> Any:
    """Content of the same kind, without what was in it."""
    return torch.zeros_like(content)


@quirk("one-buffer-for-all-steps", replaces="open_lifecycle", bugs=("L09",), caught_by=("LIFECYCLE-19",))
class OneBuffer(LiveRequests):
    """What enters the model is written into one buffer, over what another request of the step has not read yet."""

    def step(self, chunks: Chunks) -> Answers:
        made = super().step(chunks)
        longest = max((len(rows) for rows in made.values() if isinstance(rows, torch.Tensor)), default=0)
        buffer = self._table.new_zeros(longest, self._table.shape[1])
        answers: Answers = {}
        for id, rows in made.items():
            if isinstance(rows, torch.Tensor):
                buffer[: len(rows)] = rows
            answers[id] = buffer[: len(rows)] if isinstance(rows, torch.Tensor) else rows
        return answers


@quirk("mask-of-the-step-before", replaces="open_lifecycle", bugs=("L09",), caught_by=("LIFECYCLE-19",))
class MaskOfTheStepBefore(LiveRequests):
    """The mask of media positions is still that of the step before where a step is as long as that."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rows: dict[str, torch.Tensor] = {}

    def step(self, chunks: Chunks) -> Answers:
        answers = super().step(chunks)
        for id, rows in answers.items():
            before = self.rows.get(id)
            if isinstance(rows, torch.Tensor):
                self.rows[id] = rows
                is_media = rows[:, :1] > 0
                if before is not None and before.shape == rows.shape and is_media.any():
                    answers[id] = torch.where(before[:, :1] > 0, rows, self._table[0])
        return answers


@quirk(
    "content-released-after-prefill",
    replaces="open_lifecycle",
    bugs=("L10",),
    caught_by=("LIFECYCLE-20", "LIFECYCLE-21"),
)
class ReleasedAfterPrefill(LiveRequests):
    """Content is given back when its last position is computed, and there is none when the request is retracted."""

    def step(self, chunks: Chunks) -> Answers:
        answers = super().step(chunks)
        for id, chunk in chunks.items():
            if id in self._alive and chunk.stop > max((i.spans[-1].last for i in self._alive[id].request.items), default=0):
                for medium in self._alive[id].media:
                    self._content[medium] = blank(self._content[medium])
        return answers


@quirk("reply-lost-on-retraction", replaces="open_lifecycle", bugs=("L07",), caught_by=("LIFECYCLE-20", "LIFECYCLE-35"))
class ReplyLost(LiveRequests):
    """A retraction clears what was generated, although it was sent already."""

    def retract(self, id: str) -> None:
        super().retract(id)
        self._alive[id].reply.clear()


@quirk("reply-twice-after-retraction", replaces="open_lifecycle", bugs=("L07",), caught_by=("LIFECYCLE-20", "LIFECYCLE-35"))
class ReplyTwice(LiveRequests):
    """A retraction adds the reply to the prompt and does not clear it: it comes twice."""

    def retract(self, id: str) -> None:
        super().retract(id)
        self._alive[id].reply.extend(list(self._alive[id].reply))


@quirk("resumes-where-it-was", replaces="open_lifecycle", bugs=("L07",), caught_by=("LIFECYCLE-20", "LIFECYCLE-22"))
class ResumesWhereItWas(LiveRequests):
    """A retracted request still counts as computed up to where it was."""

    def retract(self, id: str) -> None:
        self._life(id)


@quirk("offloaded-after-it-was-freed", replaces="open_lifecycle", bugs=("L08",), caught_by=("LIFECYCLE-20", "LIFECYCLE-21"))
class OffloadedTooLate(LiveRequests):
    """Content is copied off the device after its memory was given back: the first run is right, and no other is."""

    def step(self, chunks: Chunks) -> Answers:
        used = {medium for id, chunk in chunks.items() if id in self._alive for medium in in_chunk(self, id, chunk)}
        answers = super().step(chunks)
        for medium in used & set(self._content):
            self._content[medium] = blank(self._content[medium])
        return answers


@quirk("trusts-the-cache-to-stay", replaces="open_lifecycle", bugs=("L10",), caught_by=("LIFECYCLE-21",))
class TrustsTheCache(LiveRequests):
    """Content is given back once its rows are in the cache, as if nothing were ever evicted from it."""

    def step(self, chunks: Chunks) -> Answers:
        answers = super().step(chunks)
        cached = set(self._cache._entries)
        for medium in self._content:
            if medium.identity in cached:
                self._content[medium] = blank(self._content[medium])
        return answers


@quirk("prefix-needs-no-content", replaces="open_lifecycle", bugs=("L10",), caught_by=("LIFECYCLE-22",))
class PrefixNeedsNothing(LiveRequests):
    """Media within the cached prefix of a first step are forgotten: it is taken for granted that the prefix stays."""

    def step(self, chunks: Chunks) -> Answers:
        for id, chunk in chunks.items():
            if id in self._alive and self._alive[id].computed is None:
                life = self._alive[id]
                for item, medium in zip(life.request.items, life.media, strict=True):
                    if item.spans[-1].last < chunk.prefix:
                        self._content[medium] = blank(self._content[medium])
        return super().step(chunks)


@quirk(
    "set-changed-on-abort",
    replaces="open_lifecycle",
    bugs=("enc-cache-abort-set-mutation",),
    caught_by=("LIFECYCLE-23", "LIFECYCLE-29"),
)
class SetChangedOnAbort(LiveRequests):
    """An abort walks over the set of a request's media while it takes them out of it."""

    def abort(self, id: str) -> None:
        if id in self._alive and self._alive[id].computed is not None:
            media = set(self._alive[id].media)
            for medium in media:
                media.discard(medium)
        super().abort(id)


@quirk("abort-clears-the-step", replaces="open_lifecycle", bugs=("enc-cache-abort-set-mutation",), caught_by=("LIFECYCLE-23",))
class AbortClearsAll(LiveRequests):
    """An abort of a request that was computed gives back the content of all that are half done."""

    def abort(self, id: str) -> None:
        if id in self._alive and self._alive[id].reply:
            self._content = {medium: blank(content) for medium, content in self._content.items()}
        super().abort(id)


@quirk(
    "first-owner-takes-it-along",
    replaces="open_lifecycle",
    bugs=("L10",),
    caught_by=("LIFECYCLE-24", "LIFECYCLE-23"),
)
class FirstOwnerTakesIt(LiveRequests):
    """Content belongs to the request that brought it first, and goes with it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.brought: dict[Medium, Owner] = {}

    def _own(self, owner: Owner, media: Iterable[Medium]) -> None:
        gone = [medium for medium, first in self.brought.items() if first == owner and medium not in tuple(media)]
        for medium in gone:
            del self.brought[medium]
            if len(self._owners[medium] - {owner}) and owner[0] == "request":
                self._content[medium] = blank(self._content[medium])
        for medium in media:
            self.brought.setdefault(medium, owner)
        super()._own(owner, media)


@quirk(
    "given-back-for-each-place",
    replaces="open_lifecycle",
    bugs=("enc-cache-dup-item-in-request",),
    caught_by=("LIFECYCLE-24",),
)
class GivenBackForEachPlace(LiveRequests):
    """A medium that stands twice in a request is taken once and given back twice."""

    def abort(self, id: str) -> None:
        for medium in self._alive[id].media if id in self._alive else ():
            others = len(self._owners[medium]) - 1
            if 0 < others < self._alive[id].media.count(medium):
                self._content[medium] = blank(self._content[medium])
        super().abort(id)


@quirk("ids-by-their-beginning", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-28",))
class IdsByTheirBeginning(LiveRequests):
    """An abort reaches every request whose id begins with the given one: 1 takes 10 along."""

    def abort(self, id: str) -> None:
        for other in [other for other in self._alive if other.startswith(id)] or [id]:
            super().abort(other)


@quirk("reply-outlives-its-request", replaces="open_lifecycle", bugs=("L07",), caught_by=("LIFECYCLE-28",))
class ReplyOutlivesItsRequest(LiveRequests):
    """What was generated is kept by id, and a further request with that id begins with it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.replies: dict[str, list[int]] = {}

    def admit(self, request: Request, session: str | None = None, triples: NDArray[np.int64] | None = None) -> None:
        super().admit(request, session, triples)
        self._alive[request.id].reply = self.replies.setdefault(request.id, [])


@quirk("one-fault-ends-the-step", replaces="open_lifecycle", bugs=("mm-mismatch-kills-engine", "L01"),
       caught_by=("LIFECYCLE-26", "LIFECYCLE-32"))  # fmt: skip
class OneFaultEndsAll(LiveRequests):
    """What is wrong with one request is raised out of the step, and nobody in it is computed."""

    def step(self, chunks: Chunks) -> Answers:
        answers = super().step(chunks)
        for answer in answers.values():
            if isinstance(answer, Exception):
                raise answer
        return answers


@quirk("a-fault-is-filled-up", replaces="open_lifecycle", bugs=("L01",), caught_by=("LIFECYCLE-37",))
class FilledUp(LiveRequests):
    """An embedding of another length than its item's is cut, or filled up with zeros, and not refused."""

    def admit(self, request: Request, session: str | None = None, triples: NDArray[np.int64] | None = None) -> None:
        def fitted(item: Any) -> Any:
            if item.embedding is None:
                return item
            rows = item.embedding.new_zeros(item.token_count, item.embedding.shape[1])
            rows[: len(item.embedding)] = item.embedding[: len(rows)]
            return replace(item, embedding=rows)

        super().admit(replace(request, items=tuple(map(fitted, request.items))), session, triples)


@quirk("ending-nothing-is-an-error", replaces="open_lifecycle", bugs=("enc-cache-abort-set-mutation",),
       caught_by=("LIFECYCLE-27",))  # fmt: skip
class EndsNothing(LiveRequests):
    """A second abort of a request finds nothing under its id, and raises."""

    def abort(self, id: str) -> None:
        if id not in self._alive:
            raise KeyError(id)
        super().abort(id)


@quirk("second-abort-counts", replaces="open_lifecycle", bugs=("enc-cache-dup-item-in-request",), caught_by=("LIFECYCLE-27",))
class SecondAbortCounts(LiveRequests):
    """A second abort gives back once more what another request has meanwhile got."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ended: dict[str, tuple[Medium, ...]] = {}

    def abort(self, id: str) -> None:
        for medium in self.ended.pop(id, ()):
            if medium in self._content:
                self._content[medium] = blank(self._content[medium])
        if id in self._alive:
            self.ended[id] = self._alive[id].media
        super().abort(id)

    def admit(self, request: Request, session: str | None = None, triples: NDArray[np.int64] | None = None) -> None:
        super().admit(request, session, triples)
        self.ended.pop(request.id, None)


@quirk("positions-of-the-prompt-alone", replaces="open_lifecycle", bugs=("R01",), caught_by=("LIFECYCLE-35",))
class PositionsOfThePrompt(LiveRequests):
    """After a retraction the reply is computed again, and the table of positions still ends with the prompt."""

    def positions(self, id: str) -> NDArray[np.int64]:
        return super().positions(id)[:, : len(self._alive[id].request.input_ids)]


@quirk("positions-grow-with-each-retraction", replaces="open_lifecycle", bugs=("R01",), caught_by=("LIFECYCLE-35",))
class PositionsGrow(LiveRequests):
    """Each time that a request comes back, its whole reply is added to the table of positions once more."""

    def retract(self, id: str) -> None:
        super().retract(id)
        life = self._alive[id]
        if life.triples is not None:
            life.triples = extend_positions(life.triples, life.triples.shape[1] + len(life.reply))

    def positions(self, id: str) -> NDArray[np.int64]:
        table = self._alive[id].triples
        return super().positions(id) if table is None else table


@quirk("reply-behind-the-last-time", replaces="open_lifecycle", bugs=("R02",), caught_by=("LIFECYCLE-35",))
class BehindTheLastTime(LiveRequests):
    """The reply goes on behind the time of the last position, and not behind the largest number on any axis."""

    def positions(self, id: str) -> NDArray[np.int64]:
        right, table = super().positions(id), self._alive[id].triples
        if table is None or table.shape[1] == right.shape[1]:
            return right
        text = np.tile(table[0, -1] + 1 + np.arange(right.shape[1] - table.shape[1]), (3, 1))
        return np.concatenate([table, text], axis=1)


@quirk("steps-from-anywhere", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-38",))
class StepsFromAnywhere(LiveRequests):
    """A step begins wherever it is asked to, and leaves positions out, or computes them twice, in silence."""

    def _check(self, id: str, chunk: Chunk) -> None:
        self._life(id)


@quirk("half-a-step", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-38",))
class HalfAStep(LiveRequests):
    """A step is refused after a part of it was computed, and cannot be asked again."""

    def step(self, chunks: Chunks) -> Answers:
        answers: Answers = {}
        for id, chunk in chunks.items():
            answers |= super().step({id: chunk})
        return answers
