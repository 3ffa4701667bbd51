"""Ways in which rows have been spoilt between two processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance.quirk import quirk
from reference.disaggregation.carriers import MemoryCarrier
from reference.items import Item

Load = Callable[[bytes], torch.Tensor | None]
Encode = Callable[[Sequence[Item]], Sequence[torch.Tensor]]
Options = Sequence[Mapping[str, Any]]


class _Faulty(MemoryCarrier):
    def __init__(self, kind: str) -> None:
        super().__init__()


@quirk("offer-is-a-view", replaces="open_carrier", bugs=("G12",), caught_by=("DISAGGREGATION-09",))
class OfferIsAView(_Faulty):
    """What is on offer is the caller's own memory, which it goes on to use."""

    def offer(self, rows: torch.Tensor) -> bytes:
        ticket = super().offer(rows)
        self._offers[ticket] = rows
        return ticket


@quirk("fetched-is-a-view", replaces="open_carrier", bugs=(), caught_by=("DISAGGREGATION-09",))
class FetchedIsAView(_Faulty):
    """Who fetches gets the memory of the offer itself, and writes into it."""

    def fetch(self, ticket: bytes) -> torch.Tensor:
        super().fetch(ticket)
        return self._offers[ticket]


@quirk("rows-through-float32", replaces="open_carrier", bugs=(), caught_by=("DISAGGREGATION-09",))
class RowsThroughFloat32(_Faulty):
    """Everything travels as float32, and is brought back to its type."""

    def fetch(self, ticket: bytes) -> torch.Tensor:
        rows = super().fetch(ticket)
        return rows.to(torch.float32).to(rows.dtype)


@quirk("fetched-once", replaces="open_carrier", bugs=("G12",), caught_by=("DISAGGREGATION-09", "DISAGGREGATION-11"))
class FetchedOnce(_Faulty):
    """The first who fetches takes the offer away from its siblings."""

    def fetch(self, ticket: bytes) -> torch.Tensor:
        rows = super().fetch(ticket)
        self.withdraw(ticket)
        return rows

    def held_bytes(self) -> int:
        return 0


@quirk("counted-tickets", replaces="open_carrier", bugs=(), caught_by=("DISAGGREGATION-10", "DISAGGREGATION-11"))
class CountedTickets(_Faulty):
    """A ticket is the number of a place; one that was changed is that of another offer, and one cut short of the first."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._places: list[torch.Tensor] = []

    def offer(self, rows: torch.Tensor) -> bytes:
        self._places.append(rows.clone())
        return bytes([len(self._places) - 1, 0])

    def fetch(self, ticket: bytes) -> torch.Tensor:
        return self._places[(ticket + b"\0")[0] % len(self._places)].clone()

    def held_bytes(self) -> int:
        return sum(rows.nbytes for rows in self._places)


@quirk("withdrawn-late", replaces="open_carrier", bugs=("G08",), caught_by=("DISAGGREGATION-10", "DISAGGREGATION-11"))
class WithdrawnLate(_Faulty):
    """An offer that is withdrawn stays until the carrier is closed."""

    def withdraw(self, ticket: bytes) -> None:
        """Later."""
