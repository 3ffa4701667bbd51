"""The prefill's side of a hand-over: what was computed in a room is kept until the other side has it.

1. A room is a number and nothing else: 0 is one, and 1 is not 10. Numbers may come again, so each life of a room has a
   *mark* on either side, a random word that all its messages bear. What a former life said is recognised, and dropped.
2. The decode speaks first: "ready", with its mark. Nothing is sent before, so that nothing arrives where nobody waits; and
   the decode may be ready before the prefill has begun.
3. Rows and metadata are messages of their own, in any order. What was said to one decode is said again to another that is
   ready in the same room: the first one may have died.
4. A room ends when the decode says that it has everything, when either side aborts, or when its time is up. Then nothing
   is held. Whoever speaks of it afterwards gets no answer but that it is over.

Source: SGLang 0.5.23, `CommonKVManager.update_status`, `MetadataBuffers` and `DecodeTransferQueue`; vLLM 0.33,
`NixlConnector`.
Disagreements: SGLang's metadata has the room 0 for "not yet written", so that a request in room 0 is never handed over;
its decode gets the media from the router and numbers positions anew. vLLM names what it hands over itself.
"""

import secrets
from dataclasses import dataclass, field
from math import inf
from typing import Any

import torch

from reference.disaggregation.wire import BadMessage, pack, pack_prompt, unpack
from reference.items import Request

ROOMS = 1 << 63


class Aborted(RuntimeError):
    """The other side has closed the room."""


class RoomTimeout(TimeoutError):
    """A room was open for too long."""


@dataclass(slots=True, eq=False)
class _Room:
    """computed: how many positions have rows. peers: the marks of decodes that are ready. over: of those that aborted."""

    request: Request
    since: float
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    computed: int = 0
    stored: list[tuple[int, torch.Tensor]] = field(default_factory=list)
    outcome: tuple[int, int] | None = None
    peers: list[str] = field(default_factory=list)
    over: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Heard:
    """What decodes have said of a room that is not open here. is_over: whether it was, and was aborted here.

    since: the first poll after it. Messages bear no time, and a clock may begin anywhere.
    """

    since: float = inf
    ready: list[str] = field(default_factory=list)
    over: set[str] = field(default_factory=set)
    is_over: bool = False


class PrefillSide:
    """Rooms that are open for at most `limit_s` seconds each."""

    def __init__(self, limit_s: float) -> None:
        if not limit_s > 0:
            raise ValueError(f"a room is open for a positive number of seconds, not {limit_s}")
        self._limit_s = limit_s
        self._rooms: dict[int, _Room] = {}
        self._heard: dict[int, _Heard] = {}
        self._closed: dict[int, Exception | None] = {}

    def begin(self, request: Request, room: int, now: float) -> int:
        """Open a room, and return its number. Raises ValueError for one that is open, and for what is no room."""
        check_room(room)
        if room in self._rooms or room in self._closed:
            raise ValueError(f"room {room} is open")
        if unknown := [number for number, item in enumerate(request.items) if item.identity is None]:
            raise ValueError(f"request {request.id}: items {unknown} have no identity, by which the other side knows them")
        heard = self._heard.pop(room, _Heard())
        one = self._rooms[room] = _Room(request, now, over=heard.over)
        for decode in heard.ready:
            self._meet(room, one, decode)
        return room

    def store(self, room: int, first: int, rows: torch.Tensor) -> list[bytes]:
        """Keep the rows of further positions. Raises ValueError as in `conformance.protocol`."""
        one = self._room(room)
        if first != one.computed or first + len(rows) > len(one.request.input_ids):
            raise ValueError(
                f"room {room} goes on at position {one.computed} of {len(one.request.input_ids)}; "
                f"rows of {first} to {first + len(rows) - 1} came"
            )
        if len(rows) == 0:
            return []
        one.stored.append((first, rows.clone()))
        one.computed += len(rows)
        return [_chunk(room, one, decode, *one.stored[-1]) for decode in one.peers]

    def finish(self, room: int, token: int, delta: int) -> list[bytes]:
        """The prompt is computed. Raises ValueError for a room that is not open, or has positions without rows."""
        one = self._room(room)
        if one.computed != len(one.request.input_ids):
            raise ValueError(f"room {room}: {one.computed} of {len(one.request.input_ids)} positions have rows")
        one.outcome = (token, delta)
        return [_metadata(room, one, decode) for decode in one.peers]

    def receive(self, message: Any) -> list[bytes]:
        """What the decode says: "ready", "have" or "abort". Anything else is dropped."""
        try:
            header, _ = unpack(message)
            word, room, decode, mark = (header[name] for name in ("word", "room", "decode", "prefill"))
            check_room(room)
        except (BadMessage, KeyError, ValueError, TypeError):
            return []
        one = self._rooms.get(room)
        if not isinstance(decode, str):
            return []
        if one is None:
            return self._hear(word, room, decode)
        if word == "ready":
            return self._meet(room, one, decode)
        if word == "have" and mark == one.mark and decode in one.peers:
            self._close(room, None)
        if word == "abort":
            self._part(room, one, decode)
        return []

    def abort(self, room: int) -> list[bytes]:
        """Close a room, and tell the decode, now or when it is ready."""
        one = self._rooms.get(room)
        if one is None:
            return []
        self._close(room, Aborted(f"room {room} was aborted here"))
        self._heard[room] = _Heard(is_over=True)
        return [_abort(room, decode) for decode in one.peers]

    def poll(self, now: float) -> dict[int, Exception | None]:
        """The rooms that were closed since the last poll."""
        for room in [room for room, one in self._rooms.items() if now - one.since > self._limit_s]:
            self._close(room, RoomTimeout(f"room {room} was open for {self._limit_s:g} s"))
        for heard in self._heard.values():
            heard.since = min(heard.since, now)
        for room in [room for room, heard in self._heard.items() if now - heard.since > self._limit_s]:
            del self._heard[room]
        closed, self._closed = self._closed, {}
        return closed

    def held_bytes(self) -> int:
        """The bytes of rows in open rooms."""
        return sum(rows.nbytes for one in self._rooms.values() for _, rows in one.stored)

    def _hear(self, word: str, room: int, decode: str) -> list[bytes]:
        """Keep what is said of a room that is not open here, or no longer."""
        heard = self._heard.setdefault(room, _Heard())
        if word == "ready" and heard.is_over:
            return [_abort(room, decode)]
        if word == "ready":
            heard.ready.append(decode)
        if word == "abort":
            heard.over.add(decode)
        return []

    def _meet(self, room: int, one: _Room, decode: str) -> list[bytes]:
        """A decode is ready: all that is there so far is for it."""
        if decode in one.over:
            self._part(room, one, decode)
            return []
        if decode in one.peers:
            return []
        one.peers.append(decode)
        metadata = [] if one.outcome is None else [_metadata(room, one, decode)]
        return [_chunk(room, one, decode, *stored) for stored in one.stored] + metadata

    def _part(self, room: int, one: _Room, decode: str) -> None:
        """A decode has aborted. The room is closed if no other is ready, unless that one was never ready in it."""
        was_ready = decode in one.peers or decode in one.over
        one.peers = [other for other in one.peers if other != decode]
        one.over.add(decode)
        if was_ready and not one.peers:
            self._close(room, Aborted(f"room {room} was aborted by the decode"))

    def _room(self, room: int) -> _Room:
        if room not in self._rooms:
            raise ValueError(f"room {room} is not open; open: {', '.join(map(str, self._rooms)) or 'none'}")
        return self._rooms[room]

    def _close(self, room: int, error: Exception | None) -> None:
        del self._rooms[room]
        self._closed[room] = error


def _chunk(room: int, one: _Room, decode: str, first: int, rows: torch.Tensor) -> bytes:
    return pack({"word": "rows", "room": room, "decode": decode, "prefill": one.mark, "first": first}, [rows])


def _metadata(room: int, one: _Room, decode: str) -> bytes:
    assert one.outcome is not None
    prompt, tensors = pack_prompt(one.request)
    said = {"word": "metadata", "room": room, "decode": decode, "prefill": one.mark}
    return pack({**said, "token": one.outcome[0], "delta": one.outcome[1], "prompt": prompt}, tensors)


def _abort(room: int, decode: str) -> bytes:
    return pack({"word": "abort", "room": room, "decode": decode})


def check_room(room: Any) -> None:
    """Raise ValueError unless this is the number of a room."""
    if not isinstance(room, int) or isinstance(room, bool) or not 0 <= room < ROOMS:
        raise ValueError(f"a room is a number from 0 to {ROOMS - 1}, not {room!r}")
