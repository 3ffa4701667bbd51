"""Ways in which rows that came in parts have been put together wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.quirk import quirk
from reference.disaggregation.receiver import Receiver
from reference.items import Item, Request

Outcome = tuple[Item, ...] | Exception
Fields = Sequence[Mapping[str, Any]]


@quirk(
    "rows-in-order-of-arrival",
    replaces="open_receiver",
    bugs=(),
    caught_by=("DISAGGREGATION-23", "DISAGGREGATION-26", "DISAGGREGATION-35"),
)
class RowsInOrderOfArrival(Receiver):
    """The rows of all parts are joined as they come, and cut into items from the beginning."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(limit_s)
        self._came: dict[str, list[torch.Tensor]] = {}

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        before = len(self._waiting[id].arrived) if id in self._waiting else 0
        super().arrive(id, part, parts, rows, fields)
        one = self._waiting.get(id)
        if one is None or len(one.arrived) == before or isinstance(rows, Exception):
            return
        joined = torch.cat([*self._came.get(id, []), rows.clone()])
        self._came[id] = [joined]
        at = 0
        for number in sorted(one.rows):
            length = one.request.items[number].token_count
            one.rows[number] = joined[at : at + length]
            at += length


@quirk(
    "ready-with-the-first-part",
    replaces="open_receiver",
    bugs=("G01",),
    caught_by=("DISAGGREGATION-23", "DISAGGREGATION-26", "DISAGGREGATION-29", "DISAGGREGATION-50", "DISAGGREGATION-35"),
)
class ReadyWithTheFirstPart(Receiver):
    """A request goes on as soon as one part has come, and without what is missing."""

    def poll(self, now: float) -> dict[str, Outcome]:
        for one in self._waiting.values():
            if one.arrived:
                one.arrived.update(range(len(one.parts)))
        return super().poll(now)


@quirk(
    "first-item-of-a-batch-decides",
    replaces="open_receiver",
    bugs=("G05",),
    caught_by=("DISAGGREGATION-24", "DISAGGREGATION-28", "DISAGGREGATION-31", "DISAGGREGATION-35"),
)
class FirstItemOfABatchDecides(Receiver):
    """If the first item of a request has an embedding, all are taken to have one, and no part is waited for."""

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        super().expect(request, parts, now)
        if request.items and request.items[0].embedding is not None:
            self._waiting[request.id].arrived.update(range(len(parts)))


@quirk(
    "embeddings-wait-for-a-part", replaces="open_receiver", bugs=("G05",), caught_by=("DISAGGREGATION-24", "DISAGGREGATION-35")
)
class EmbeddingsWaitForAPart(Receiver):
    """A request of which no part was asked for waits for one until its time is up."""

    def poll(self, now: float) -> dict[str, Outcome]:
        idle = {id: one for id, one in self._waiting.items() if not one.parts and now - one.since <= self._limit_s}
        for id in idle:
            del self._waiting[id]
        outcomes = super().poll(now)
        self._waiting |= idle
        return outcomes


@quirk(
    "embeddings-behind-the-parts", replaces="open_receiver", bugs=("G05",), caught_by=("DISAGGREGATION-24", "DISAGGREGATION-31")
)
class EmbeddingsBehindTheParts(Receiver):
    """The items that were encoded come first, and those that came with embeddings behind them."""

    def poll(self, now: float) -> dict[str, Outcome]:
        encoded = {id: set(one.rows) for id, one in self._waiting.items()}
        outcomes = super().poll(now)
        return {
            id: one
            if isinstance(one, Exception)
            else tuple(sorted(one, key=lambda item: list(one).index(item) not in encoded.get(id, ())))
            for id, one in outcomes.items()
        }


@quirk("cancelled-by-prefix", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-25",))
class CancelledByPrefix(Receiver):
    """A cancellation ends every request whose name begins with the one that was given; no name at all ends all."""

    def cancel(self, id: str) -> None:
        for other in [other for other in (*self._waiting, *self._failed) if other.startswith(id)]:
            super().cancel(other)


@quirk("part-suffix-is-cut", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-25",))
class PartSuffixIsCut(Receiver):
    """What looks like the number of a part is cut off a request's name, though the caller has chosen it."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        super().arrive(id.rsplit("_local_part_", 1)[0], part, parts, rows, fields)


@quirk("repeated-part-counts", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-26",))
class RepeatedPartCounts(Receiver):
    """Parts are counted; one that comes twice stands for one that has not come."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        one = self._waiting.get(id)
        if one is not None and part in one.arrived and one.missing:
            one.arrived.add(one.missing[0])
            return
        super().arrive(id, part, parts, rows, fields)


@quirk("repeated-part-replaces", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-26",))
class RepeatedPartReplaces(Receiver):
    """A part that comes twice replaces the first, whatever it is."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        if id in self._waiting:
            self._waiting[id].arrived.discard(part)
        super().arrive(id, part, parts, rows, fields)


@quirk("short-rows-filled-up", replaces="open_receiver", bugs=("G06",), caught_by=("DISAGGREGATION-27", "DISAGGREGATION-32"))
class ShortRowsFilledUp(Receiver):
    """Rows that are too few are filled up with zeros, and rows that are too many are cut."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        one = self._waiting.get(id)
        if one is not None and part < len(one.parts) and isinstance(rows, torch.Tensor):
            count = sum(one.request.items[number].token_count for number in one.parts[part])
            rows = torch.cat([rows, rows.new_zeros(count, rows.shape[1])])[:count]
        super().arrive(id, part, parts, rows, fields)


@quirk("other-types-are-cast", replaces="open_receiver", bugs=("G13",), caught_by=("DISAGGREGATION-27",))
class OtherTypesAreCast(Receiver):
    """Rows of another type and width are made to look like the others."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        one = self._waiting.get(id)
        if one is not None and one.rows and isinstance(rows, torch.Tensor):
            like = next(iter(one.rows.values()))
            rows = rows.to(like.dtype)[:, : like.shape[1]]
        super().arrive(id, part, parts, rows, fields)


@quirk("number-of-parts-ignored", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-27",))
class NumberOfPartsIgnored(Receiver):
    """How many parts the other side counts is not looked at."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        count = len(self._waiting[id].parts) if id in self._waiting else parts
        super().arrive(id, part, max(count, 1) if part < count else parts, rows, fields)


@quirk(
    "misfit-kills-the-batch",
    replaces="open_receiver",
    bugs=(),
    caught_by=("DISAGGREGATION-27", "DISAGGREGATION-28", "DISAGGREGATION-29", "DISAGGREGATION-50"),
)
class MisfitKillsTheBatch(Receiver):
    """A part that fails its request fails everyone who waits."""

    def fail(self, id: str, error: Exception) -> None:
        for other in list(self._waiting) if id in self._waiting else []:
            super().fail(other, error)
