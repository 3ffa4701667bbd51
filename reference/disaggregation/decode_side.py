"""The decode's side of a hand-over: rows and metadata of a room, put together.

1. A room is handed over when its metadata and the rows of every position have come, whichever came first. Nothing stands
   for "not yet" that could be a value: there is metadata, or there is none.
2. The delta and the identities travel with the metadata. Ids alone do not say how wide a picture was, nor which one: the
   reply would go on at the wrong position, and the cache would take one picture for another.
3. What is known here is compared with what was computed there. Where the two differ, somebody has lost a picture on the
   way, and the answer would be about another prompt.
4. Messages bear the mark of this room's life; see `prefill_side`.
"""

import secrets
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from reference.disaggregation.prefill_side import Aborted, RoomTimeout, check_room
from reference.disaggregation.wire import BadMessage, pack, unpack, unpack_prompt
from reference.items import Item, Request


class OtherPrompt(ValueError):
    """The prefill has computed another prompt than the decode was asked to go on with."""


class Handed(NamedTuple):
    """What the decode goes on with: see `conformance.protocol`."""

    request: Request
    rows: torch.Tensor
    token: int
    delta: int


@dataclass(slots=True, eq=False)
class _Told:
    """What one life of the prefill's room has said. chunks: rows by the position at which they begin."""

    chunks: dict[int, torch.Tensor] = field(default_factory=dict)
    metadata: tuple[Request, int, int] | None = None

    def rows(self) -> list[torch.Tensor]:
        """The rows of the first positions, without a gap."""
        found, at = [], 0
        while at in self.chunks:
            found.append(self.chunks[at])
            at += len(found[-1])
        return found

    def keep(self, first: int, rows: torch.Tensor) -> None:
        """Further rows. Raises BadMessage for what cannot stand beside the others."""
        shapes = {(one.ndim, one.shape[-1], one.dtype) for one in (rows, *self.chunks.values()) if one.ndim}
        if rows.ndim != 2 or len(rows) == 0 or len(shapes) != 1:
            raise BadMessage(f"rows of the shape {list(rows.shape)} do not fit the others")
        self.chunks[first] = rows


@dataclass(slots=True, eq=False)
class _Room:
    """told: what the lives of the prefill's room have said, by their marks."""

    request: Request
    since: float
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    told: dict[str, _Told] = field(default_factory=dict)


class DecodeSide:
    """Rooms that are open for at most `limit_s` seconds each."""

    def __init__(self, limit_s: float) -> None:
        if not limit_s > 0:
            raise ValueError(f"a room is open for a positive number of seconds, not {limit_s}")
        self._limit_s = limit_s
        self._rooms: dict[int, _Room] = {}
        self._outcomes: dict[int, Handed | Exception] = {}

    def expect(self, request: Request, room: int, now: float) -> list[bytes]:
        """Open a room, and say so. Raises ValueError for one that is open, and for what is no room."""
        check_room(room)
        if room in self._rooms or room in self._outcomes:
            raise ValueError(f"room {room} is open")
        one = self._rooms[room] = _Room(request, now)
        return [_answer("ready", room, one)]

    def receive(self, message: Any) -> list[bytes]:
        """What the prefill says: "rows", "metadata" or "abort". Anything else is dropped."""
        try:
            header, tensors = unpack(message)
            one = self._rooms.get(header["room"])
            if one is None or header["decode"] != one.mark:
                return []
            if header["word"] == "abort":
                self._close(header["room"], Aborted(f"room {header['room']} was aborted by the prefill"))
                return []
            told = one.told.setdefault(header["prefill"], _Told())
            if header["word"] == "rows":
                told.keep(header["first"], *tensors)
            else:
                told.metadata = (unpack_prompt(header["prompt"], tensors), int(header["token"]), int(header["delta"]))
        except (BadMessage, KeyError, ValueError, TypeError):
            return []
        return self._hand_over(header["room"], one, header["prefill"])

    def abort(self, room: int) -> list[bytes]:
        """Close a room, and tell the prefill."""
        one = self._rooms.pop(room, None)
        self._outcomes.pop(room, None)
        return [] if one is None else [_answer("abort", room, one)]

    def poll(self, now: float) -> dict[int, Handed | Exception]:
        """What was handed over or has failed since the last poll."""
        for room, one in list(self._rooms.items()):
            if now - one.since > self._limit_s:
                chunks = sum(len(told.chunks) for told in one.told.values())
                self._close(room, RoomTimeout(f"room {room} was open for {self._limit_s:g} s; {chunks} chunks came"))
        outcomes, self._outcomes = self._outcomes, {}
        return outcomes

    def held_bytes(self) -> int:
        """The bytes of rows that have come."""
        handed = [one.rows for one in self._outcomes.values() if isinstance(one, Handed)]
        return sum(rows.nbytes for rows in handed) + sum(
            rows.nbytes for one in self._rooms.values() for told in one.told.values() for rows in told.chunks.values()
        )

    def _hand_over(self, room: int, one: _Room, prefill: str) -> list[bytes]:
        told = one.told[prefill]
        rows = told.rows()
        if told.metadata is None or sum(map(len, rows)) < len(told.metadata[0].input_ids):
            return []
        request, token, delta = told.metadata
        if problem := _difference(one.request, request):
            self._close(room, OtherPrompt(f"room {room}: {problem}"))
            return [_answer("abort", room, one)]
        self._close(room, Handed(request, torch.cat(rows) if rows else torch.empty(0, 0), token, delta))
        return [_answer("have", room, one, prefill)]

    def _close(self, room: int, outcome: Handed | Exception) -> None:
        del self._rooms[room]
        self._outcomes[room] = outcome


def _answer(word: str, room: int, one: _Room, prefill: str | None = None) -> bytes:
    return pack({"word": word, "room": room, "decode": one.mark, "prefill": prefill})


def _difference(here: Request, there: Request) -> str | None:
    """What the two sides were told differently, in words."""
    if here.input_ids.tolist() != there.input_ids.tolist():
        return f"the prefill has computed {len(there.input_ids)} ids, and not the {len(here.input_ids)} of this request"
    if not here.items:
        return None
    if len(here.items) != len(there.items):
        return f"this request has {len(here.items)} items; the prefill has computed one of {len(there.items)}"
    for number, (mine, other) in enumerate(zip(here.items, there.items, strict=True)):
        if _traits(mine) != _traits(other):
            return f"item {number} of this request is not the one that the prefill has computed"
    return None


def _traits(item: Item) -> tuple[Any, ...]:
    return item.modality, item.spans, item.identity
