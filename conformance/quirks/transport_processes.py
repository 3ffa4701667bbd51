"""Ways in which engines have got transport wrong: processes that come late and are killed, and what they leave behind."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from conformance.quirk import quirk
from reference.transport import channel as channels
from reference.transport import owners, segment
from reference.transport import reader as readers
from reference.transport.channel import Channel
from reference.transport.device import Device
from reference.transport.packets import Entry
from reference.transport.reader import ChannelClosed, Reader
from reference.transport.segment import Segment
from reference.transport.tensors import read

ONE_NAME = f"mmproof-features-of-{os.getpid()}"
"""What every channel of these processes is called by those who have one name for all."""


@quirk(
    "left-at-the-end",
    replaces="open_channel",
    bugs=("shm-name-conflict-orphan",),
    caught_by=("TRANSPORT-53", "TRANSPORT-57"),
)
class LeftAtTheEnd(Channel):
    """A channel that is closed leaves its segment where it is."""

    left: ClassVar[list[Channel]] = []

    def close(self) -> None:
        self._closed = True
        self.left.append(self)


@quirk("wiped-at-the-end", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-54",))
class WipedAtTheEnd(Channel):
    """A channel that is closed clears its memory first, under the eyes of those who still read it."""

    def close(self) -> None:
        pool: Any = self._pools.get("shared_memory")
        if pool and not self._closed:
            pool._segment.reserve(pool._segment.size_bytes)
            pool._bytes[:] = bytes(len(pool._bytes))
        super().close()


class Inventing(Reader):
    """A reader that has nothing to say and says so with zeros."""

    def _view(self, entry: Entry) -> Any:
        match = owners.NAME.fullmatch(self._segment.path.name)
        if match and not owners.is_alive(owners.Owner(*map(int, match.groups())).word):
            return read(entry.form, bytearray(entry.form.size_bytes))
        return super()._view(entry)


@quirk("zeros-for-the-dead", replaces="open_channel", bugs=("X02",), caught_by=("TRANSPORT-55",))
class ZerosForTheDead(Channel):
    """Where the sender is gone, a picture of zeros is received, and the model describes it."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Inventing(self.invitation(), reader, device=device)


@quirk("wiped-by-the-next-start", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-56",))
class WipedByTheNextStart(Channel):
    """What the dead have left is cleared before it is removed, under the eyes of those who still read it."""

    def __init__(self, transports: Sequence[str], readers: int, capacity_bytes: int) -> None:
        for path in segment.FOLDER.glob("mmproof-*"):
            match = owners.NAME.fullmatch(path.name)
            if match and not owners.is_alive(owners.Owner(*map(int, match.groups())).word):
                with path.open("r+b") as file:
                    file.seek(1 << 16)
                    file.write(bytes(1 << 20))
        super().__init__(transports, readers, capacity_bytes)


class NoSweep:
    """`reference.transport.owners` to those who remove nothing, or everything."""

    def __init__(self, everything: bool) -> None:
        self.everything = everything

    def sweep(self, folder: Path) -> list[str]:
        """Remove every segment, or none."""
        ours = [path for path in folder.glob("mmproof-*") if owners.NAME.fullmatch(path.name) and self.everything]
        for path in ours:
            path.unlink(missing_ok=True)
        return [path.name for path in ours]


def opened_with(substitute: Any, *arguments: Any) -> Channel:
    """A channel that is opened while a module has a substitute."""
    with patch.object(channels, "owners", substitute):
        return Channel(*arguments)


@quirk("nobody-sweeps", replaces="open_channel", bugs=("T04", "shm-name-conflict-orphan"), caught_by=("TRANSPORT-57",))
def nobody_sweeps(transports: Sequence[str], readers: int, capacity_bytes: int) -> Channel:
    """What a killed process has left stays for ever: after some restarts shared memory is full, and no start succeeds."""
    return opened_with(NoSweep(everything=False), transports, readers, capacity_bytes)


class OneName(Segment):
    """Segments under one name."""

    @classmethod
    def create(cls, folder: Path, size_bytes: int) -> "OneName":
        """The one there is, or a new one."""
        path = folder / ONE_NAME
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(descriptor, max(size_bytes, os.fstat(descriptor).st_size))
        return cls(path, descriptor, size_bytes)


@quirk("one-name-for-all", replaces="open_channel", bugs=("shm-name-conflict-orphan",), caught_by=("TRANSPORT-58",))
def one_name_for_all(transports: Sequence[str], readers: int, capacity_bytes: int) -> Channel:
    """All engines of a host call their segment the same, and write into the one that is there."""
    with patch.object(channels, "Segment", OneName):
        return Channel(transports, readers, capacity_bytes)


@quirk(
    "waits-for-the-dead",
    replaces="open_channel",
    bugs=("T04", "I04", "shm-stale-address"),
    caught_by=("TRANSPORT-59",),
)
class WaitsForTheDead(Channel):
    """A reader that was killed has not said that it is done, and so its places are waited for, for ever."""

    def _settle(self) -> None:
        for seat, word in enumerate(self._leases.ledger.seats if self._segment else ()):
            for lease in self._leases.alive.values():
                lease.seen[seat] = owners.this_process().word if int(word) else 0
        mine, there = owners.this_process().word, self._leases.ledger.seats.copy() if self._segment else None
        if there is not None:
            self._leases.ledger.seats[there != 0] = mine
            self._leases.settle()
            self._leases.ledger.seats[:] = there


@quirk("one-dead-all-dead", replaces="open_channel", bugs=("X02",), caught_by=("TRANSPORT-60", "TRANSPORT-59"))
class OneDeadAllDead(Channel):
    """When one rank is gone, nothing is sent to any of them."""

    def send(self, values: Sequence[Any], copies: int = 1) -> list[bytes]:
        for word in self._leases.ledger.seats if self._segment else ():
            if int(word) and not owners.is_alive(int(word) & ~(1 << 63)):
                raise ChannelClosed("a reader is gone")
        return super().send(values, copies)


class Unguarded(Reader):
    """A reader for which a fork's copy of a tensor is the tensor."""

    def _view(self, entry: Entry) -> Any:
        with patch.object(readers, "_in_this_process", partial):
            return super()._view(entry)


@quirk("given-back-by-a-fork", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-61",))
class GivenBackByAFork(Channel):
    """Whoever has inherited a tensor, and lets go of it, gives its place back for the one who still reads it."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Unguarded(self.invitation(), reader, device=device)
