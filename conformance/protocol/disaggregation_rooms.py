"""From the prefill to the decode: rooms, by which the two halves of a request find each other."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from conformance import returns as answer
from conformance.protocol.disaggregation_reading import Handed, errors_by_room, handed_or_error_by_room, messages
from conformance.returns import returns
from reference.items import Request


class PrefillSide(Protocol):
    """What `open_prefill_side` returns: rooms whose prompts are computed here.

    Each method that speaks to the other side returns the messages for it. They may be delivered in any order, more than
    once, and late; and they may be lost. Their form is the engine's own.
    """

    @returns(answer.integer)
    def begin(self, request: Request, room: int, now: float) -> int:
        """Open a room for a request with identified items, and return its number.

        room: a number from 0 to 2 ** 63 - 1, chosen by the caller; an engine that chooses itself (the trait `rooms`)
        returns another. Raises ValueError for a room that is open. One that was open before is refused, or is as new.
        """

    @returns(messages)
    def store(self, room: int, first: int, rows: torch.Tensor) -> Sequence[Any]:
        """The cache of the positions from `first` on is computed: rows [positions, width], one for each position.

        The positions come in chunks, in ascending order and without a gap. Raises ValueError for a room that is not open,
        for a chunk that leaves some out, and for one that ends behind the prompt.
        """

    @returns(messages)
    def finish(self, room: int, token: int, delta: int) -> Sequence[Any]:
        """The prompt is computed: the first token of the reply, and the M-RoPE delta of the prompt (0 without M-RoPE).

        Raises ValueError for a room that is not open, and for one whose prompt has positions without rows.
        """

    @returns(messages)
    def receive(self, message: Any) -> Sequence[Any]:
        """A message of the other side has come. One for a room that was closed does nothing; none raises.

        The other side may expect a room that is not yet begun here: what it says then is not lost.
        """

    @returns(messages)
    def abort(self, room: int) -> Sequence[Any]:
        """Close a room. Nothing happens to one that is not open."""

    @returns(errors_by_room)
    def poll(self, now: float) -> Mapping[int, Exception | None]:
        """The rooms that were closed since the last poll: None for one that was handed over, else the error.

        A room is handed over when the other side has said that it has everything, and no byte is held for it. One that is
        open for longer than `limit_s` fails.
        """

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes of rows that are held for open rooms."""


class DecodeSide(Protocol):
    """What `open_decode_side` returns: rooms whose replies are generated here. Messages are as those of `PrefillSide`."""

    @returns(messages)
    def expect(self, request: Request, room: int, now: float) -> Sequence[Any]:
        """Wait for what is computed in a room, which may have been begun already or not yet.

        request: the prompt as it is known here: its ids, and its items, with identities and without content; or ids
        alone, where nobody has told its media. Raises ValueError for a room that is open. One that was open before is
        refused, or is as new: no message of its earlier life concerns it.
        """

    @returns(messages)
    def receive(self, message: Any) -> Sequence[Any]:
        """A message of the other side has come. One for a room that was closed does nothing; none raises.

        Where the other side sends before a room is expected here, what it says is not lost.
        """

    @returns(messages)
    def abort(self, room: int) -> Sequence[Any]:
        """Close a room. Nothing happens to one that is not open. No poll hands over what was aborted."""

    @returns(handed_or_error_by_room)
    def poll(self, now: float) -> Mapping[int, Handed | Exception]:
        """What was handed over since the last poll, and the error of each room that failed.

        A room is handed over when everything has come: its ids, the rows of all positions, bit for bit, the first token,
        the delta, and its items with spans, fields and identities, so that keys and positions go on as on the other side.
        It fails where the two sides were given different prompts: other ids, or here items that are other than there. A
        room that is open for longer than `limit_s` fails. Each outcome is given once, and no byte is held of it any more.
        """

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes of rows that have come for rooms whose outcome has not been given."""
