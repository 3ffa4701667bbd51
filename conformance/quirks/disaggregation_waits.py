"""Ways in which requests have waited for parts without end, or been told nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance.quirk import quirk
from reference.disaggregation.receiver import Receiver
from reference.items import Item, Request

Outcome = tuple[Item, ...] | Exception
Fields = Sequence[Mapping[str, Any]]


@quirk("error-is-not-passed-on", replaces="open_receiver", bugs=("G01",), caught_by=("DISAGGREGATION-28", "DISAGGREGATION-32"))
class ErrorIsNotPassedOn(Receiver):
    """An encoder's error is logged, and its request waits until its time is up."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        if not isinstance(rows, Exception):
            super().arrive(id, part, parts, rows, fields)


@quirk(
    "waits-for-ever",
    replaces="open_receiver",
    bugs=("G01", "G02"),
    caught_by=("DISAGGREGATION-29", "DISAGGREGATION-50", "DISAGGREGATION-32"),
)
class WaitsForEver(Receiver):
    """A request whose parts do not come waits without end."""

    def poll(self, now: float) -> dict[str, Outcome]:
        return super().poll(min([now, *(one.since for one in self._waiting.values())]))


@quirk("dropped-without-a-word", replaces="open_receiver", bugs=("G02",), caught_by=("DISAGGREGATION-29", "DISAGGREGATION-50"))
class DroppedWithoutAWord(Receiver):
    """A request whose time is up is dropped, and its caller hears nothing."""

    def poll(self, now: float) -> dict[str, Outcome]:
        for id, one in list(self._waiting.items()):
            if one.missing and now - one.since > self._limit_s:
                self.cancel(id)
        return super().poll(now)


@quirk("gives-up-one-poll-early", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-29",))
class GivesUpEarly(Receiver):
    """A request is given up when most of its time is over."""

    def poll(self, now: float) -> dict[str, Outcome]:
        return super().poll(now + 1.5)


@quirk("one-clock-for-all", replaces="open_receiver", bugs=("G02",), caught_by=("DISAGGREGATION-29",))
class OneClockForAll(Receiver):
    """The time of all requests runs from the first that waits."""

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        super().expect(request, parts, min([now, *(one.since for one in self._waiting.values())]))


@quirk("complete-but-late-is-an-error", replaces="open_receiver", bugs=("G02",), caught_by=("DISAGGREGATION-50",))
class CompleteButLateIsAnError(Receiver):
    """A request whose parts have all come is failed if it is looked at after its time."""

    def poll(self, now: float) -> dict[str, Outcome]:
        for id, one in list(self._waiting.items()):
            if now - one.since > self._limit_s:
                self.fail(id, TimeoutError("too late"))
        return super().poll(now)


@quirk("cancelled-goes-on", replaces="open_receiver", bugs=("G04",), caught_by=("DISAGGREGATION-30", "DISAGGREGATION-32"))
class CancelledGoesOn(Receiver):
    """A cancelled request goes on waiting, and has its outcome."""

    def cancel(self, id: str) -> None:
        """The caller has gone, and that is all."""


@quirk("late-part-is-kept", replaces="open_receiver", bugs=("G04",), caught_by=("DISAGGREGATION-32",))
class LatePartIsKept(Receiver):
    """A part that nobody waits for is kept, in case its request comes."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(limit_s)
        self._orphans: list[torch.Tensor] = []

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        if id not in self._waiting and isinstance(rows, torch.Tensor):
            self._orphans.append(rows.clone())
        super().arrive(id, part, parts, rows, fields)

    def held_bytes(self) -> int:
        return super().held_bytes() + sum(rows.nbytes for rows in self._orphans)


@quirk(
    "unknown-part-raises",
    replaces="open_receiver",
    bugs=("G04",),
    caught_by=("DISAGGREGATION-26", "DISAGGREGATION-28", "DISAGGREGATION-29", "DISAGGREGATION-30", "DISAGGREGATION-32"),
)
class UnknownPartRaises(Receiver):
    """A part for a request that was cancelled raises, and ends the loop that receives."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        if id not in self._waiting:
            raise KeyError(id)
        super().arrive(id, part, parts, rows, fields)


@quirk("fields-move-up", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-31",))
class FieldsMoveUp(Receiver):
    """What was found out is joined over the parts that have some, and given to the items from the first on."""

    def poll(self, now: float) -> dict[str, Outcome]:
        for one in self._waiting.values():
            if not one.missing:
                told = [one.fields[number] for number in sorted(one.fields)]
                one.fields = dict(zip(sorted(one.rows), told, strict=False))
        return super().poll(now)


@quirk(
    "fields-dropped",
    replaces="open_receiver",
    bugs=("R06",),
    caught_by=(
        "DISAGGREGATION-23",
        "DISAGGREGATION-24",
        "DISAGGREGATION-25",
        "DISAGGREGATION-26",
        "DISAGGREGATION-27",
        "DISAGGREGATION-28",
        "DISAGGREGATION-29",
        "DISAGGREGATION-50",
        "DISAGGREGATION-30",
        "DISAGGREGATION-31",
        "DISAGGREGATION-34",
    ),
)
class FieldsDropped(Receiver):
    """Rows arrive without the grid that they were made with."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        super().arrive(id, part, parts, rows, ())


@quirk("failed-request-keeps-its-rows", replaces="open_receiver", bugs=("G01",), caught_by=("DISAGGREGATION-32",))
class FailedRequestKeepsItsRows(Receiver):
    """The other parts of a request that has failed stay for ever."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(limit_s)
        self._left = 0

    def fail(self, id: str, error: Exception) -> None:
        if id in self._waiting:
            self._left += sum(rows.nbytes for rows in self._waiting[id].rows.values())
        super().fail(id, error)

    def held_bytes(self) -> int:
        return super().held_bytes() + self._left


@quirk("nothing-to-see", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-33",))
class NothingToSee(Receiver):
    """The rows that wait are in memory that nobody counts."""

    def held_bytes(self) -> int:
        return 0


@quirk("any-parts-will-do", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-34",))
class AnyPartsWillDo(Receiver):
    """Whether the parts are those of the items is not looked at."""

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        right = [[number] for number, item in enumerate(request.items) if item.embedding is None]
        named = sorted(number for part in parts for number in part)
        super().expect(request, parts if [[n] for n in named] == right else right, now)


@quirk("second-request-takes-over", replaces="open_receiver", bugs=(), caught_by=("DISAGGREGATION-34",))
class SecondRequestTakesOver(Receiver):
    """A request with the name of one that waits takes its place."""

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        self._waiting.pop(request.id, None)
        super().expect(request, parts, now)


@quirk(
    "rows-are-a-view",
    replaces="open_receiver",
    bugs=("G12",),
    caught_by=(
        "DISAGGREGATION-23",
        "DISAGGREGATION-26",
        "DISAGGREGATION-50",
        "DISAGGREGATION-30",
        "DISAGGREGATION-31",
        "DISAGGREGATION-35",
    ),
)
class RowsAreAView(Receiver):
    """The rows stay in the buffer in which they came, and the next part is written over them."""

    def arrive(self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Fields = ()) -> None:
        before = set(self._waiting[id].rows) if id in self._waiting else set()
        super().arrive(id, part, parts, rows, fields)
        one = self._waiting.get(id)
        if one is None or isinstance(rows, Exception) or part >= len(one.parts):
            return
        at = 0
        for number in one.parts[part]:
            length = one.request.items[number].token_count
            if number in one.rows and number not in before:
                one.rows[number] = rows[at : at + length]
            at += length


@quirk(
    "rows-in-half-precision",
    replaces="open_receiver",
    bugs=(),
    caught_by=(
        "DISAGGREGATION-23",
        "DISAGGREGATION-24",
        "DISAGGREGATION-25",
        "DISAGGREGATION-26",
        "DISAGGREGATION-27",
        "DISAGGREGATION-28",
        "DISAGGREGATION-29",
        "DISAGGREGATION-50",
        "DISAGGREGATION-30",
        "DISAGGREGATION-31",
        "DISAGGREGATION-34",
        "DISAGGREGATION-35",
    ),
)
class RowsInHalfPrecision(Receiver):
    """Rows are kept in half precision, to save memory."""

    def poll(self, now: float) -> dict[str, Outcome]:
        outcomes = super().poll(now)
        return {id: one if isinstance(one, Exception) else tuple(map(_halved, one)) for id, one in outcomes.items()}


def _halved(item: Item) -> Item:
    rows = item.embedding
    return replace(item, embedding=None if rows is None else rows.half().to(rows.dtype), format=None)
