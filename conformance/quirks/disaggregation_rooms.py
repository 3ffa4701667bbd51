"""Ways in which a decode has gone on with something else than the prefill had computed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from conformance.quirk import quirk
from reference.disaggregation.decode_side import DecodeSide, Handed
from reference.disaggregation.prefill_side import PrefillSide
from reference.disaggregation.wire import BadMessage, unpack
from reference.items import Item, Request


class _Changing(DecodeSide):
    """A decode that changes what was handed over."""

    def change(self, handed: Handed) -> Handed:
        raise NotImplementedError

    def poll(self, now: float) -> dict[int, Handed | Exception]:
        outcomes = super().poll(now)
        return {room: one if isinstance(one, Exception) else self.change(one) for room, one in outcomes.items()}


def _with_items(handed: Handed, change: Callable[[Item], Item] | None) -> Handed:
    old = handed.request
    items = () if change is None else tuple(map(change, old.items))
    return handed._replace(request=Request(id=old.id, input_ids=old.input_ids, items=items))


@quirk("rows-as-they-came", replaces="open_decode_side", bugs=(), caught_by=("DISAGGREGATION-36",))
class RowsAsTheyCame(DecodeSide):
    """The chunks of a prompt are joined in the order in which they came."""

    def _hand_over(self, room: int, one: Any, prefill: str) -> list[bytes]:
        told = one.told[prefill]
        answers = super()._hand_over(room, one, prefill)
        if isinstance(handed := self._outcomes.get(room), Handed) and told.chunks:
            self._outcomes[room] = handed._replace(rows=torch.cat(list(told.chunks.values())))
        return answers


@quirk(
    "metadata-is-enough",
    replaces="open_decode_side",
    bugs=(),
    caught_by=("DISAGGREGATION-36", "DISAGGREGATION-37", "DISAGGREGATION-44"),
)
class MetadataIsEnough(DecodeSide):
    """A room is handed over with its metadata, whether all rows have come or not; those that lack are zeros."""

    def _hand_over(self, room: int, one: Any, prefill: str) -> list[bytes]:
        told = one.told[prefill]
        if told.metadata is not None:
            missing = len(told.metadata[0].input_ids) - sum(map(len, told.rows()))
            told.chunks[sum(map(len, told.rows()))] = (
                torch.zeros(missing, 3) if missing else told.chunks.get(-1, torch.zeros(0, 3))
            )
            told.chunks = {first: rows for first, rows in told.chunks.items() if len(rows)}
        return super()._hand_over(room, one, prefill)


@quirk("room-zero-means-nothing", replaces="open_decode_side", bugs=(), caught_by=("DISAGGREGATION-37", "DISAGGREGATION-38"))
class RoomZeroMeansNothing(DecodeSide):
    """The number 0 stands for metadata that have not been written yet, so that room 0 is never handed over."""

    def receive(self, message: Any) -> list[bytes]:
        try:
            header, _ = unpack(message)
        except BadMessage:
            return []
        return super().receive(message) if header.get("room") != 0 or header.get("word") != "metadata" else []


@quirk("rooms-by-prefix", replaces="open_prefill_side", bugs=(), caught_by=("DISAGGREGATION-37", "DISAGGREGATION-46"))
class RoomsByPrefix(PrefillSide):
    """An abort closes every room whose number begins with the one that was given."""

    def abort(self, room: int) -> list[bytes]:
        alike = [other for other in self._rooms if str(other).startswith(str(room))]
        return [message for other in alike for message in super(RoomsByPrefix, self).abort(other)]


@quirk("rooms-of-32-bits", replaces="open_decode_side", bugs=(), caught_by=("DISAGGREGATION-37", "DISAGGREGATION-48"))
class RoomsOf32Bits(DecodeSide):
    """Only the lower half of a room's number is kept."""

    def expect(self, request: Request, room: int, now: float) -> list[bytes]:
        self._rooms.pop(room % 2**32, None)
        return super().expect(request, room % 2**32, now)


@quirk(
    "decode-without-delta",
    replaces="open_decode_side",
    bugs=("R06", "pd-decode-delta-missing"),
    caught_by=("DISAGGREGATION-38",),
)
class DecodeWithoutDelta(_Changing):
    """The decode numbers positions as those of text, since the delta has not come with the rows."""

    def change(self, handed: Handed) -> Handed:
        return handed._replace(delta=0)


@quirk("delta-of-the-last-room", replaces="open_prefill_side", bugs=("R06",), caught_by=("DISAGGREGATION-38",))
class DeltaOfTheLastRoom(PrefillSide):
    """The delta is kept once for all rooms, and each message has that of the room that was finished first."""

    delta: int | None = None

    def finish(self, room: int, token: int, delta: int) -> list[bytes]:
        self.delta = delta if self.delta is None else self.delta
        return super().finish(room, token, self.delta)


@quirk(
    "decode-without-media",
    replaces="open_decode_side",
    bugs=("Z01", "Z02"),
    caught_by=(
        "DISAGGREGATION-36",
        "DISAGGREGATION-37",
        "DISAGGREGATION-39",
        "DISAGGREGATION-40",
        "DISAGGREGATION-45",
        "DISAGGREGATION-49",
    ),
)
class DecodeWithoutMedia(_Changing):
    """The decode has the expanded ids, and no media."""

    def change(self, handed: Handed) -> Handed:
        return _with_items(handed, None)


@quirk(
    "decode-without-grids",
    replaces="open_decode_side",
    bugs=("R06", "Z02"),
    caught_by=("DISAGGREGATION-36", "DISAGGREGATION-37", "DISAGGREGATION-39", "DISAGGREGATION-45", "DISAGGREGATION-49"),
)
class DecodeWithoutGrids(_Changing):
    """The decode has the media without their grids."""

    def change(self, handed: Handed) -> Handed:
        return _with_items(handed, lambda item: replace(item, fields={}))


@quirk(
    "decode-without-identities",
    replaces="open_decode_side",
    bugs=("pd-decode-image-cache-alias",),
    caught_by=(
        "DISAGGREGATION-36",
        "DISAGGREGATION-37",
        "DISAGGREGATION-39",
        "DISAGGREGATION-40",
        "DISAGGREGATION-45",
        "DISAGGREGATION-49",
    ),
)
class DecodeWithoutIdentities(_Changing):
    """The decode knows where pictures stand, and not which; its cache takes one for another."""

    def change(self, handed: Handed) -> Handed:
        return _with_items(handed, lambda item: replace(item, identity=bytes(32)))


@quirk("prompts-are-not-compared", replaces="open_decode_side", bugs=("Z01", "Z02"), caught_by=("DISAGGREGATION-41",))
class PromptsAreNotCompared(DecodeSide):
    """The decode goes on with whatever was computed, whether it is its own prompt or not."""

    def expect(self, request: Request, room: int, now: float) -> list[bytes]:
        said = super().expect(request, room, now)
        self._rooms[room].request = request
        return said

    def _hand_over(self, room: int, one: Any, prefill: str) -> list[bytes]:
        if one.told[prefill].metadata is not None:
            one.request = one.told[prefill].metadata[0]
        return super()._hand_over(room, one, prefill)


@quirk("ids-alone-are-compared", replaces="open_decode_side", bugs=("Z01",), caught_by=("DISAGGREGATION-41",))
class IdsAloneAreCompared(DecodeSide):
    """Two prompts with the same ids are taken for the same, whatever their pictures are."""

    def expect(self, request: Request, room: int, now: float) -> list[bytes]:
        return super().expect(Request(id=request.id, input_ids=request.input_ids), room, now)
