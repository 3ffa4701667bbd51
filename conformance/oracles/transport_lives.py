"""The life of packets, kept in a dictionary: who may still read what, and what is held for it.

    life(2, "send ab 2", "receive 0 1", "drop 0 1", "skip 1 0", "recall 0", "leave 1", "join 1")

`send` a list, each letter of which is a tensor of its own, in so many copies (1): packets are numbered from 0 in the order
in which they were made. `receive`, `drop` what was received, or `skip` a packet: the reader's number, then the packet's.
`recall`: the sender takes a packet back. `leave` and `join`: a reader.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch

SIZE_BYTES = 1 << 17


class Life(NamedTuple):
    """What happens on a channel with so many readers."""

    readers: int
    events: tuple[str, ...]

    def where(self, number: int) -> str:
        """The n-th event, in words."""
        return f"event {number} ({self.events[number]})" if number < len(self.events) else "the end"


def life(readers: int, *events: str) -> Life:
    """A life."""
    return Life(readers, events)


def drawn(letter: str) -> torch.Tensor:
    """The tensor that a letter stands for."""
    return torch.full((SIZE_BYTES // 8,), ord(letter), dtype=torch.int64)


@dataclass
class State:
    """A packet: its list (one for all copies), which readers may still receive it, which hold
    what they received, and which have received it, and which left without it."""

    letters: str
    list_number: int
    open_to: set[int]
    held_by: set[int]
    received_by: set[int]
    lost_to: set[int]


class PlainChannel:
    """A channel that remembers everything."""

    def __init__(self, readers: int) -> None:
        self.packets: list[State] = []
        self._present, self._absent = set(range(readers)), set[int]()
        self._lists = 0

    def take(self, event: str) -> str:
        """What comes of an event: what is received, "refused", "either" where an engine may answer again; or nothing."""
        word, *rest = event.split()
        if word == "send":
            copies = int(rest[1]) if len(rest) > 1 else 1
            self.packets += [State(rest[0], self._lists, set(self._present), set(), set(), set()) for _ in range(copies)]
            self._lists += 1
            for state in self.packets[-copies:]:
                state.lost_to |= self._absent
            return ""
        if word == "recall":
            self.packets[int(rest[0])].open_to.clear()
            self.packets[int(rest[0])].lost_to.clear()
            return ""
        return self._read(word, int(rest[0]), *map(int, rest[1:]))

    def held_bytes(self) -> tuple[int, int]:
        """The bytes of every list of which some packet may still be received; and beside them of those that are held."""
        waiting = {state.list_number: state.letters for state in self.packets if state.open_to}
        held = {state.list_number: state.letters for state in self.packets if state.held_by}
        least, most = (SIZE_BYTES * sum(map(len, lists.values())) for lists in (waiting, waiting | held))
        return least, most

    def _read(self, word: str, reader: int, number: int = -1) -> str:
        if word in ("leave", "join"):
            {"join": self._present, "leave": self._absent}[word].add(reader)
            {"join": self._absent, "leave": self._present}[word].discard(reader)
            for state in self.packets:
                state.lost_to |= {reader} & state.open_to
                state.open_to.discard(reader)
            return ""
        state = self.packets[number]
        may_receive = reader in state.open_to
        if word == "drop":
            state.held_by.discard(reader)
            return ""
        state.open_to.discard(reader)
        if word == "skip":
            return ""
        if may_receive:
            state.held_by.add(reader)
            state.received_by.add(reader)
            return state.letters
        return "either" if reader in state.received_by | state.lost_to else "refused"
