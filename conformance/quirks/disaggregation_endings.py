"""Ways in which rooms have been closed on one side only, opened again, or never closed."""

from typing import Any

import torch

from conformance.quirk import quirk
from reference.disaggregation.decode_side import DecodeSide, Handed
from reference.disaggregation.prefill_side import PrefillSide
from reference.disaggregation.wire import pack, unpack
from reference.items import Request


@quirk("abort-without-a-word", replaces="open_decode_side", bugs=("G04",), caught_by=("DISAGGREGATION-42", "DISAGGREGATION-45"))
class AbortWithoutAWord(DecodeSide):
    """A decode that aborts tells nobody, and the prefill keeps its rows."""

    def abort(self, room: int) -> list[bytes]:
        super().abort(room)
        return []


@quirk(
    "prefill-aborts-without-a-word",
    replaces="open_prefill_side",
    bugs=("G04",),
    caught_by=("DISAGGREGATION-37", "DISAGGREGATION-42", "DISAGGREGATION-43", "DISAGGREGATION-45"),
)
class PrefillAbortsWithoutAWord(PrefillSide):
    """A prefill that aborts tells nobody, and the decode waits until its time is up."""

    def abort(self, room: int) -> list[bytes]:
        super().abort(room)
        self._heard.pop(room, None)
        return []


@quirk("aborted-room-is-handed-over", replaces="open_decode_side", bugs=("G04",), caught_by=("DISAGGREGATION-42",))
class AbortedRoomStays(DecodeSide):
    """A room that the decode has aborted keeps what has come for it."""

    def abort(self, room: int) -> list[bytes]:
        one = self._rooms.get(room)
        said = super().abort(room)
        if one is not None:
            self._rooms[room] = one
        return said


@quirk(
    "no-limit-for-rooms",
    replaces="open_decode_side",
    bugs=("G01", "G02"),
    caught_by=("DISAGGREGATION-44", "DISAGGREGATION-45", "DISAGGREGATION-46"),
)
class NoLimitForRooms(DecodeSide):
    """A decode waits for a prefill that has died without end."""

    def poll(self, now: float) -> dict[int, Handed | Exception]:
        return super().poll(0.0)


@quirk(
    "no-limit-for-the-prefill",
    replaces="open_prefill_side",
    bugs=("G02",),
    caught_by=("DISAGGREGATION-44", "DISAGGREGATION-45", "DISAGGREGATION-46"),
)
class NoLimitForThePrefill(PrefillSide):
    """A prefill keeps its rows for a decode that never comes."""

    def poll(self, now: float) -> dict[int, Exception | None]:
        return super().poll(0.0)


@quirk(
    "late-message-opens-a-room",
    replaces="open_decode_side",
    bugs=("G04",),
    caught_by=("DISAGGREGATION-36", "DISAGGREGATION-45"),
)
class LateMessageOpensARoom(DecodeSide):
    """A message for a room that was closed opens it again."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(limit_s)
        self._past: dict[int, Any] = {}

    def _close(self, room: int, outcome: Handed | Exception) -> None:
        self._past[room] = self._rooms[room]
        super()._close(room, outcome)

    def receive(self, message: Any) -> list[bytes]:
        header, _ = unpack(message)
        if header["room"] in self._past and header["room"] not in self._rooms:
            self._rooms[header["room"]] = self._past.pop(header["room"])
        return super().receive(message)


@quirk(
    "rooms-known-by-number-alone",
    replaces="open_decode_side",
    bugs=(),
    caught_by=("DISAGGREGATION-41", "DISAGGREGATION-45", "DISAGGREGATION-49"),
)
class RoomsKnownByNumberAlone(DecodeSide):
    """What was said in an earlier life of a room is taken for what is said now."""

    def receive(self, message: Any) -> list[bytes]:
        header, tensors = unpack(message)
        room = self._rooms.get(header["room"])
        if room is not None:
            header = {**header, "decode": room.mark, "prefill": "any"}
            room.request = Request(id="any", input_ids=room.request.input_ids)
        return super().receive(pack(header, tensors))


@quirk(
    "prefill-never-gives-back",
    replaces="open_prefill_side",
    bugs=("G08",),
    caught_by=("DISAGGREGATION-45", "DISAGGREGATION-46"),
)
class PrefillNeverGivesBack(PrefillSide):
    """The rows of a room that was handed over stay with the prefill."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(limit_s)
        self._left = 0

    def _close(self, room: int, error: Exception | None) -> None:
        if error is None:
            self._left += sum(rows.nbytes for _, rows in self._rooms[room].stored)
        super()._close(room, error)

    def held_bytes(self) -> int:
        return super().held_bytes() + self._left


@quirk("given-back-when-sent", replaces="open_prefill_side", bugs=("G12",), caught_by=("DISAGGREGATION-47",))
class GivenBackWhenSent(PrefillSide):
    """A prefill forgets rows as soon as it has sent them, whether they have arrived or not."""

    def store(self, room: int, first: int, rows: torch.Tensor) -> list[bytes]:
        said = super().store(room, first, rows)
        if said:
            self._rooms[room].stored.clear()
        return said


@quirk("chunks-as-they-are", replaces="open_prefill_side", bugs=(), caught_by=("DISAGGREGATION-48",))
class ChunksAsTheyAre(PrefillSide):
    """Where a chunk begins and ends is not looked at."""

    def store(self, room: int, first: int, rows: torch.Tensor) -> list[bytes]:
        one = self._room(room)
        rest = len(one.request.input_ids) - one.computed
        return super().store(room, one.computed, rows[:rest])


@quirk("unfinished-is-finished", replaces="open_prefill_side", bugs=(), caught_by=("DISAGGREGATION-48",))
class UnfinishedIsFinished(PrefillSide):
    """A prompt can be finished before all its positions have rows."""

    def finish(self, room: int, token: int, delta: int) -> list[bytes]:
        one = self._room(room)
        computed, one.computed = one.computed, len(one.request.input_ids)
        said = super().finish(room, token, delta)
        one.computed = computed
        return said


@quirk("second-request-in-a-room", replaces="open_prefill_side", bugs=(), caught_by=("DISAGGREGATION-48",))
class SecondRequestInARoom(PrefillSide):
    """A request for a room that is open takes the place of the first."""

    def begin(self, request: Request, room: int, now: float) -> int:
        self._rooms.pop(room, None)
        return super().begin(request, room, now)


@quirk("second-decode-in-a-room", replaces="open_decode_side", bugs=(), caught_by=("DISAGGREGATION-48",))
class SecondDecodeInARoom(DecodeSide):
    """A second request that expects a room that is open takes the place of the first."""

    def expect(self, request: Request, room: int, now: float) -> list[bytes]:
        self._rooms.pop(room, None)
        return super().expect(request, room, now)
