"""Encoder, prefill and decode as instances of their own: who encodes what, and how it arrives.

Two hand-overs. An encoder's rows go to the prefill in *parts*, each of which is some items of a request. What the prefill
computed goes to the decode in a *room*, a number that both know. No object here has a clock or a thread: the time `now` is
given, in seconds, and never goes back, and every transfer is told when it began and when it ended.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from conformance import returns as answer
from conformance.protocol.disaggregation_reading import (
    Handed,
    PartRequest,
    Place,
    handed_or_error_by_room,
    items_or_error_by_id,
    messages,
    part_requests,
    part_to_encode,
    payload,
    place,
)
from conformance.protocol.disaggregation_rooms import DecodeSide, PrefillSide
from conformance.returns import Opens, returns
from reference.items import Item, Request

__all__ = [
    "Disaggregation", "EncoderSide", "Handed", "Instance", "Memory", "PartRequest", "Place", "Rank", "Receiver",
    "handed_or_error_by_room", "messages",
]  # fmt: skip

Rank = Callable[[Mapping[str, Any]], None]
"""A rank of an encoder: it is given each request for a part, and must be given no other."""


class Instance(NamedTuple):
    """What an instance that runs the language model has for media.

    has_tower: whether it has loaded an encoder of its own.
    encoders: how many encoder instances it can reach now.
    may_fall_back: whether its router allows it to encode by itself when it can reach none.
    local_up_to: a request with at most so many media to encode may be encoded by itself even where encoders can be
        reached; 0: none may.
    """

    has_tower: bool
    encoders: int
    may_fall_back: bool = False
    local_up_to: int = 0


class Memory(Protocol):
    """What an encoder's rows lie in while others read them: registered once, and released once."""

    def register(self, id: str, part: int) -> None:
        """Make the rows of this part readable from elsewhere."""

    def release(self, id: str, part: int) -> None:
        """Take that back. It may raise, and is then to be asked again."""


class EncoderSide(Protocol):
    """What `open_encoder_side` returns: an encoder instance with its queue and the rows that wait to be sent.

    A part is queued from `submit`, encoded from `take` to `encoded`, and then staged until it has ended. It ends when each
    of its receivers has been sent what came of it; when a transfer of it has failed; when it was cancelled; or when a
    sweep finds it stale. But nothing ends a part while a transfer of it runs, and a part that is being encoded ends with
    `encoded`. Its memory is released before its rows are given up; where that raises, it has not ended, and the next sweep
    tries again. When it has ended, nothing of it is held.
    """

    @returns(answer.nothing)
    def submit(self, message: Mapping[str, Any], now: float) -> None:
        """Take in a request for a part as it came over the wire, and hand it to all ranks.

        message: "id", the request's, a text that is not empty; "part", its number from 0, and "parts", how many its
        request has, ints; "modality", the number of a `Modality`; "media", a sequence of at least one medium, none of
        them None; "options", a sequence with a mapping for each medium; "receivers", how many will be sent the rows, an
        int of at least 1. Other keys may stand beside them, and are handed on.

        Raises an error for a message in which one of these is missing or of another form, and for a part that has not
        ended. Then no rank has seen it, and nothing is kept of it.
        """

    @returns(part_to_encode)
    def take(self) -> tuple[str, int] | None:
        """The part that is encoded next, request and number, or None if none waits. First come, first served."""

    @returns(answer.nothing)
    def encoded(self, id: str, part: int, made: torch.Tensor | Exception, now: float) -> None:
        """The encoder is done with a part that was taken: its rows [rows, hidden], or the error that it raised."""

    @returns(payload)
    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        """A transfer to a receiver (a number from 0) begins: what it carries, the rows or the error of the encoder.

        Its memory is registered by then, if it carries rows. Raises ValueError for a part that is not staged, or that
        was cancelled or failed and only waits for the end of its transfers; and for a receiver that it has been sent to.
        """

    @returns(answer.nothing)
    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        """A transfer has ended: well, or with an error, which ends its part."""

    @returns(answer.nothing)
    def cancel(self, id: str) -> None:
        """End all parts of a request. Nothing happens to one that has ended, or never was."""

    @returns(answer.nothing)
    def sweep(self, now: float) -> None:
        """End each staged part of which nothing was heard for longer than `stale_after_s`: not from `encoded` on, nor
        `send`, nor `sent`. Try again to release what could not be released. It neither stops at one, nor raises."""

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes of rows of parts that have not ended."""

    @returns(answer.integer)
    def pending(self) -> int:
        """How many parts have not ended."""


class Receiver(Protocol):
    """What `open_receiver` returns: requests in a prefill that wait for the rows of their media.

    A request is expected before any of its parts is asked for, and waits until `poll` gives its outcome. Its id is that of
    no other request, then or later.
    """

    @returns(answer.nothing)
    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        """Wait for a request. Items with an embedding have their rows; those without have nothing, and each is in one part.

        parts: for each part the numbers of its items. Raises ValueError for an id that waits already, for an item without
        an embedding that is in no part or in two, and for one with an embedding that is in a part; it then keeps nothing.
        """

    @returns(answer.nothing)
    def arrive(
        self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Sequence[Mapping[str, Any]]
    ) -> None:
        """A part has arrived, in any order. Nothing happens for a request that does not wait (any more).

        rows: those of its items, one after the other, [rows, hidden], or the error that the encoder raised, which fails
        the request. fields: what the encoder side found out about each of the items (grids, times); may be empty.

        A part fails its request if it is none of its parts, if it counts other parts, if its rows are not as many as its
        items have positions, and if their width or type is not that of the rows of this modality that came before. One
        that has come already is dropped, or fails its request as long as that lacks another: the trait `repeated_parts`.
        """

    @returns(answer.nothing)
    def fail(self, id: str, error: Exception) -> None:
        """Fail a request that waits: its parts could not be asked for."""

    @returns(answer.nothing)
    def cancel(self, id: str) -> None:
        """Forget a request: no poll gives its rows. Nothing happens to one that does not wait."""

    @returns(items_or_error_by_id)
    def poll(self, now: float) -> Mapping[str, Sequence[Item] | Exception]:
        """The outcomes since the last poll: all items with their rows as embeddings, or the exception of a failure.

        The items are those of the request, in its order, with their spans and identities, and with the fields that were
        found out beside their own; the rows are the ones that arrived, bit for bit. A request that has waited for
        longer than `limit_s`, and lacks a part, has failed. Each outcome is given once, and nothing is held of it any more.
        """

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes of rows that have arrived for requests whose outcome has not been given. Those of embeddings that
        came with the request need not count."""


class Carrier(Protocol):
    """What `open_carrier` returns: rows offered in one place and fetched in another.

    An offer is known by its ticket, which travels in messages.
    """

    @returns(answer.octets)
    def offer(self, rows: torch.Tensor) -> bytes:
        """Make a tensor of any shape and type readable, as it is now; returns its ticket, at most 4096 bytes."""

    @returns(answer.anything)
    def fetch(self, ticket: bytes) -> torch.Tensor:
        """The tensor of an offer, bit for bit, in memory of one's own, as often as it is asked for.

        Raises an error for an offer that was withdrawn, and for bytes that are no ticket of an offer.
        """

    @returns(answer.nothing)
    def withdraw(self, ticket: bytes) -> None:
        """Take an offer back. Nothing happens for one that is withdrawn already."""

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes of tensors that are on offer."""

    @returns(answer.nothing)
    def close(self) -> None:
        """Withdraw everything, and leave no thread, socket or segment. It may be asked again."""


class Disaggregation(Protocol):
    """Encoder, prefill and decode as instances of their own: who encodes what, and how it arrives."""

    @returns(place)
    def place_encoding(self, items: Sequence[Item], instance: Instance) -> Place:
        """Where the media of a request are encoded: by "encoders", by the instance itself ("local"), or by "nobody".

        Nobody, if no item has to be encoded: all have embeddings, or there is none. By the instance itself only if it has
        a tower, and then where it can reach no encoder and its router allows that, or where the request has at most
        `local_up_to` items to encode. Otherwise raises an error that says that an encoder is missing, with that word, and
        what would provide one.
        """

    @returns(part_requests)
    def assign_parts(self, items: Sequence[Item], options: Sequence[Mapping[str, Any]], encoders: int) -> Sequence[PartRequest]:
        """Share the items of a request that have to be encoded among encoders: the parts, in the order of their numbers.

        options: for each item what its request says about how it is processed (`max_pixels`, `fps`).
        encoders: how many there are. Raises ValueError for fewer than 1 where something has to be encoded.

        Each part has the number of its encoder, from 0, and those of its items, of one modality, in the order in which
        their rows come; and the options of each of these. Items with embeddings are in no part. A part may have several
        items, or has one: the trait `part_items`.
        """

    @returns(answer.rows)
    def encode_part(
        self,
        items: Sequence[Item],
        load: Callable[[bytes], torch.Tensor | None],
        encode: Callable[[Sequence[Item]], Sequence[torch.Tensor]],
    ) -> torch.Tensor:
        """The rows of a part, one item after the other, on the host: from a cache that encoders share, or encoded.

        load: identity -> rows [token_count, hidden], or None if there are none; it may raise, and what it gives may have
        another number of rows, and is of no use then. It is called once for each identity at most.
        encode: is called once, with exactly the items for which nothing of use was found, in their order, or not at all.
        """

    @returns(Opens(EncoderSide, specimen=((), None, 1.0)))
    def open_encoder_side(self, ranks: Sequence[Rank], memory: Memory, stale_after_s: float) -> EncoderSide:
        """An encoder with nothing to do."""

    @returns(Opens(Receiver, specimen=(1.0,)))
    def open_receiver(self, limit_s: float) -> Receiver:
        """A prefill in which no request waits. limit_s: how long one waits at most for its parts."""

    @returns(Opens(PrefillSide, specimen=(1.0,)))
    def open_prefill_side(self, limit_s: float) -> PrefillSide:
        """A prefill without rooms. limit_s: how long one stays open after `begin` at most."""

    @returns(Opens(DecodeSide, specimen=(1.0,)))
    def open_decode_side(self, limit_s: float) -> DecodeSide:
        """A decode without rooms. limit_s: how long one stays open after `expect` at most."""

    @returns(Opens(Carrier, specimen=("memory",)))
    def open_carrier(self, kind: str) -> Carrier:
        """A carrier of a kind, one of those in the trait `carriers`. Raises an error for any other.

        One whose package is not installed raises an error that says which package it needs.
        """
