"""The ledger: who may still read what, in words of shared memory that sender and readers see alike.

    seats        one word a reader: the process that sits there (`owners.Owner.word`); 0 before anyone did
    generations  one word a slot: the generation that lies there; 0 when nothing does
    marks        one word a slot and reader: twice the generation when it was opened, and one more when it is done with

1. Each word has one writer: generations the sender, seats and marks their reader. A word is written in one go, so nobody
   needs a lock, and nobody who is killed leaves one behind.
2. A place is used again when each of its readers is done with it: has said so, or is dead, or has left without opening
   it. What a living reader has opened is never taken from it, however long that takes.
3. Who never came is waited for. Who came and died is not: what is sent while a seat is orphaned waits for nobody there.
4. A generation is given out once. A packet is good for one reading of one generation by each reader; then it is stale.

Sources: SGLang 0.5.23, `StreamOrderedMmFeaturePool` (slots, generations, a word for each consumer); vLLM 0.33.0,
`SingleWriterShmObjectStorage` (readers counted). Disagreements: both wait for ever for a reader that died.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reference.transport.owners import is_alive, this_process
from reference.transport.segment import Segment

WORD_BYTES = 8
LEFT = 1 << 63
"""In the word of a seat: whoever sat there has left, and lives on."""


class StalePacket(ValueError):
    """A packet that was good once: it was received before, or taken back, or nobody waited for it any more."""


class SeatTaken(RuntimeError):
    """Another process, which is alive, is this reader."""


class Ledger:
    """The words of a channel, uint64 in shared memory, for so many readers and slots."""

    def __init__(self, words: NDArray[np.uint64], readers: int, slots: int) -> None:
        self.readers, self.slots = readers, slots
        self.seats = words[:readers]
        self.generations = words[readers : readers + slots]
        self.marks = words[readers + slots :][: readers * slots].reshape(slots, readers)

    @classmethod
    def of(cls, segment: Segment, readers: int, slots: int) -> "Ledger":
        """The ledger at the beginning of a segment."""
        mapping = segment.map(0, cls.size_bytes(readers, slots), shared=True)
        return cls(np.frombuffer(mapping, dtype=np.uint64), readers, slots)

    @staticmethod
    def size_bytes(readers: int, slots: int) -> int:
        """How many bytes of shared memory it takes."""
        return WORD_BYTES * (readers + slots + readers * slots)


class Seat:
    """A reader's side: what this process may open as reader number `reader`."""

    def __init__(self, ledger: Ledger, reader: int) -> None:
        if not 0 <= reader < ledger.readers:
            raise ValueError(f"the readers of this channel are 0 to {ledger.readers - 1}, and not {reader}")
        sitting, me = int(ledger.seats[reader]), this_process().word
        if sitting and not sitting & LEFT and is_alive(sitting):
            raise SeatTaken(f"process {sitting & 0x3FFFFF} is reader {reader} of this channel already, and alive")
        self._ledger, self._reader = ledger, reader
        ledger.seats[reader] = me
        if sitting:
            self._skip_all()  # what was sent to who sat here before was not sent to us

    def open(self, slot: int, generation: int) -> None:
        """Begin to read. Raises StalePacket for what lies there no more, or was opened before."""
        self._check(slot, generation)
        self._ledger.marks[slot, self._reader] = 2 * generation
        if int(self._ledger.generations[slot]) != generation:  # taken back in this moment
            self.done(slot, generation)
            raise StalePacket(f"generation {generation} of slot {slot} was taken back")

    def done(self, slot: int, generation: int) -> None:
        """Have no more need of what this seat has opened."""
        if int(self._ledger.marks[slot, self._reader]) == 2 * generation:
            self._ledger.marks[slot, self._reader] = 2 * generation + 1

    def skip(self, slot: int, generation: int) -> None:
        """Do without what this seat has not opened. Nothing happens to what it has, and to what is stale."""
        if int(self._ledger.marks[slot, self._reader]) < 2 * generation:
            self._ledger.marks[slot, self._reader] = 2 * generation + 1

    def leave(self) -> None:
        """Leave the seat: what was not opened is waited for no more, what was stays until it is done with."""
        self._ledger.seats[self._reader] |= np.uint64(LEFT)

    def _skip_all(self) -> None:
        """Do without everything that lies there and was not opened."""
        for slot in np.flatnonzero(self._ledger.generations):
            self.skip(int(slot), int(self._ledger.generations[slot]))

    def _check(self, slot: int, generation: int) -> None:
        lies_there = int(self._ledger.generations[slot])
        if lies_there != generation:
            raise StalePacket(f"generation {generation} of slot {slot} is gone; there is {lies_there or 'nothing'} now")
        if int(self._ledger.marks[slot, self._reader]) >= 2 * generation:
            raise StalePacket(f"reader {self._reader} has received generation {generation} of slot {slot} before")


@dataclass(slots=True)
class Block:
    """A place in a pool, given back when the last of its leases has ended."""

    size_bytes: int
    give_back: Callable[[], None]
    leases: int = 0


@dataclass(slots=True)
class Lease:
    """One slot in use: a generation of a block, and for each reader the seat's word when it was first seen."""

    slot: int
    generation: int
    block: Block
    seen: list[int] = field(default_factory=list)
    discarded: bool = False


@dataclass(slots=True)
class Leases:
    """The sender's side: which slots are in use, and which of them are not any more."""

    ledger: Ledger
    alive: dict[int, Lease] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    last_generation: int = 0

    def __post_init__(self) -> None:
        self.free = [*reversed(range(self.ledger.slots))]

    def take(self, block: Block, count: int) -> list[Lease]:
        """So many leases of a block that is written already; none when there are not so many slots."""
        if len(self.free) < count:
            return []
        return [self._take(block) for _ in range(count)]

    def find(self, slot: int, generation: int) -> Lease | None:
        """The lease that is alive under this generation."""
        lease = self.alive.get(slot)
        return lease if lease and lease.generation == generation and not lease.discarded else None

    def discard(self, lease: Lease) -> None:
        """Take a lease back: who has not opened it cannot any more. It ends when the next look shows that nobody has."""
        lease.discarded = True
        self.ledger.generations[lease.slot] = 0

    def settle(self) -> None:
        """End every lease that no reader needs any more."""
        living: dict[int, bool] = {}
        for lease in [*self.alive.values()]:
            if all(self._is_done(lease, reader, living) for reader in range(self.ledger.readers)):
                self._end(lease)

    def held_bytes(self) -> int:
        """The bytes of all blocks in use, each counted once."""
        return sum({id(lease.block): lease.block.size_bytes for lease in self.alive.values()}.values())

    def _take(self, block: Block) -> Lease:
        self.last_generation += 1
        slot = self.free.pop()
        lease = Lease(slot, self.last_generation, block)
        block.leases += 1
        self.alive[slot] = lease
        self.ledger.generations[slot] = lease.generation
        lease.seen = [int(word) for word in self.ledger.seats]  # who joined meanwhile may have missed that it is not for him
        return lease

    def _end(self, lease: Lease) -> None:
        self.ledger.generations[lease.slot] = 0
        del self.alive[lease.slot]
        self.free.append(lease.slot)
        lease.block.leases -= 1
        if not lease.block.leases:
            lease.block.give_back()

    def _is_done(self, lease: Lease, reader: int, living: dict[int, bool]) -> bool:
        mark, now = int(self.ledger.marks[lease.slot, reader]), int(self.ledger.seats[reader])
        is_open = mark == 2 * lease.generation
        if mark == 2 * lease.generation + 1 or (lease.discarded and not is_open):
            return True
        lease.seen[reader] = lease.seen[reader] or now
        process = lease.seen[reader] & ~LEFT
        if not process:
            return False
        if process not in living:
            living[process] = is_alive(process)
        has_left = now != lease.seen[reader] or lease.seen[reader] >= LEFT
        return not living[process] or (has_left and not is_open)
