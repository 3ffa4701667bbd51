"""Channels: one sender, a fixed number of readers, and lists of tensors that each of them receives once.

    sender                                     reader 0, 1, … each in a process of its own
    channel = Channel(readers=2)
    invitation = channel.invitation()   ->     reader = Reader(invitation, 0)
    packets = channel.send([…], copies=1)  ->  tensors = reader.receive(packets[0])

How a packet itself travels (a socket, a pipe) is not a matter of channels; it is small, and may be lost.

1. A tensor takes the first way that has room for it: from a device by `cuda_ipc`, from the host by `shared_memory`, and
   `inline`, in the packet. Which one is counted, and makes no difference to the reader. What is smaller than a page goes
   inline: naming it would take more than sending it.
2. What was sent is a snapshot. The caller's list and tensors are not touched, and may change as soon as `send` returns.
3. What is received belongs to the reader: a private view of the shared pages, copied where it is written to. Its place
   is free when the tensor, and all that was made of its memory, is gone. Nothing is copied a second time.
4. `copies` packets of one list, for as many requests that share it, share its bytes, and each is good for one reading.
5. A packet that nobody will read is discarded: by the sender for all readers, or by a reader for itself.
6. A failure is an error of this packet. It gives back what it took; the channel goes on.

Opening a channel first removes what dead channels of this host have left behind.

Known disagreements: SGLang 0.5.23 makes a segment for each tensor and unlinks it at the first reading; vLLM 0.33.0 has
one writer's ring, whose places are free in the order in which they were taken.
"""

import json
import mmap
import os
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes
from typing import Any

from reference.transport import owners
from reference.transport.device import Device
from reference.transport.ledger import Leases, Ledger
from reference.transport.packets import CHANNEL_BYTES, KEY_BYTES, Entry, Kind, pack, unpack
from reference.transport.pools import DevicePool, HostPool, Pool
from reference.transport.reader import ChannelClosed, Reader
from reference.transport.segment import FOLDER, Segment
from reference.transport.tensors import Form, form_of, write

KINDS: tuple[Kind, ...] = ("cuda_ipc", "shared_memory", "inline")


class NoRoom(RuntimeError):
    """None of the ways that a channel has can take a tensor."""


class Placed:
    """A value in its place: an entry for each copy of it (none for None), and its bytes where it is inline."""

    def __init__(self, entries: list[Entry], content: Any = b"", *, is_new: bool = True) -> None:
        self.entries, self.content, self.is_new = entries, content, is_new


class Channel:
    """The sender's end, for one process and one thread at a time.

    transports: the ways that may be used, of `KINDS`. readers: how many there are, from 0. capacity_bytes: the room of each
    pool. device: where tensors of a device lie, for `cuda_ipc`. folder: where shared memory is. slots: the most packets
    with bytes in a pool at a time, times the tensors in each.

    Raises ValueError for no reader, no byte, or no way. Where there is no shared memory, everything goes inline.
    """

    def __init__(
        self,
        transports: Sequence[str] = KINDS,
        readers: int = 1,
        capacity_bytes: int = 1 << 28,
        *,
        device: Device | None = None,
        folder: Path = FOLDER,
        slots: int = 1024,
    ) -> None:
        if unknown := {*transports} - {*KINDS} or not transports:
            raise ValueError(f"a tensor travels by {', '.join(KINDS)}, and not by {unknown if transports else 'nothing'}")
        if readers < 1 or capacity_bytes < 1:
            raise ValueError(f"at least 1 reader and 1 byte are needed, not {readers} and {capacity_bytes}")
        self._transports, self._readers, self._slots, self._device = {*transports}, readers, slots, device
        self._id, self._key = token_bytes(CHANNEL_BYTES), token_bytes(KEY_BYTES)
        self._counts: Counter[Kind] = Counter({kind: 0 for kind in KINDS if kind in transports})
        self._pools: dict[Kind, Pool] = {}
        self._segment: Segment | None = None
        self._handle = b""
        self._closed, self._owner_pid = False, os.getpid()
        if "shared_memory" in transports or (device and "cuda_ipc" in transports):
            with suppress(OSError):  # no shared memory here, or no room in it: what cannot go inline is refused later
                owners.sweep(folder)
                self._open_pools(folder, capacity_bytes)

    def invitation(self) -> bytes:
        """What a reader needs to join, in any process of this host. It holds the key: it goes to readers alone."""
        path = str(self._segment.path) if self._segment else None
        size_bytes = self._segment.size_bytes if self._segment else 0
        return json.dumps(
            [self._id.hex(), self._key.hex(), self._readers, self._slots, path, size_bytes, self._handle.decode()]
        ).encode()

    def join(self, reader: int, device: Device | None = None) -> Reader:
        """`Reader` in a process that has this channel, a fork of the sender's or that itself."""
        return Reader(self.invitation(), reader, device=device)

    def send(self, values: Sequence[Any], copies: int = 1) -> list[bytes]:
        """So many packets of a list, each for every reader to receive once.

        values: tensors of the host or of the channel's device, arrays, None, and packets of one value that this channel
        sent and nobody has received: such a packet is part of the new one and no more by itself.

        Raises TypeError for other values, NoRoom where a value finds none, ChannelClosed. Nothing is left of a refusal.
        """
        self._check_open()
        if copies < 1:
            raise ValueError(f"at least one packet is sent, not {copies}")
        self._settle()
        placed: list[Placed] = []
        try:
            for number, value in enumerate(values):
                placed.append(self._place(value, copies, f"value {number}"))
        except BaseException:
            self._undo(placed)
            raise
        self._counts.update(one.entries[0].kind for one in placed if one.is_new and one.entries)
        return [self._packet(placed, copy) for copy in range(copies)]

    def discard(self, packet: bytes) -> None:
        """Take a packet back: nobody can receive it any more, and who has not has no more part in it."""
        self._check_open()
        for entry in unpack(packet, channel=self._id, key=self._key).entries:
            lease = self._leases.find(entry.slot, entry.generation) if entry and entry.generation else None
            if lease:
                self._leases.discard(lease)
        self._settle()

    def held_bytes(self) -> int:
        """The bytes in pools that some reader may still read."""
        self._settle()
        return self._leases.held_bytes() if self._segment else 0

    def counts(self) -> Mapping[str, int]:
        """How many tensors went by each of the channel's ways."""
        return {str(kind): count for kind, count in self._counts.items()}

    def close(self) -> None:
        """Remove the segment. What was received stays; what was not may be lost. Nothing happens the second time."""
        self._closed = True
        self._pools.clear()
        if self._segment:
            self._segment.remove()

    def _open_pools(self, folder: Path, capacity_bytes: int) -> None:
        ledger_bytes = _pages(Ledger.size_bytes(self._readers, self._slots))
        on_host = capacity_bytes if "shared_memory" in self._transports else 0
        segment = Segment.create(folder, ledger_bytes + _pages(on_host))
        weakref.finalize(self, segment.remove)
        try:
            segment.reserve(ledger_bytes)
            self._leases = Leases(Ledger.of(segment, self._readers, self._slots))
            if self._device and "cuda_ipc" in self._transports:
                pool = DevicePool(self._device, capacity_bytes)
                self._pools["cuda_ipc"], self._handle = pool, pool.handle
            if on_host:
                self._pools["shared_memory"] = HostPool(segment, ledger_bytes)
        except BaseException:
            segment.remove()
            raise
        self._segment = segment

    def _place(self, value: Any, copies: int, where: str) -> Placed:
        """Put a value where it will be read. Raises TypeError and NoRoom, which say which value it is."""
        if value is None:
            return Placed([])
        if isinstance(value, bytes | bytearray):
            return self._replace(bytes(value), copies, where)
        if self._device and self._device.owns(value):
            form = Form(False, *self._device.form(value)[:2])
            if placed := self._lease("cuda_ipc", value, form, copies):
                return placed
            value = self._device.to_host(value)
        try:
            form = form_of(value)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
        is_small = form.size_bytes < mmap.PAGESIZE and "inline" in self._transports
        if not is_small and (placed := self._lease("shared_memory", value, form, copies)):
            return placed
        if "inline" not in self._transports:
            raise NoRoom(f"{where} has {form.size_bytes} bytes, and there is no room for them: {self.held_bytes()} are held")
        content = bytearray(form.size_bytes)
        if content:
            write(value, content)
        return Placed([Entry(form, "inline", 0)] * copies, content)

    def _lease(self, kind: Kind, value: Any, form: Form, copies: int) -> Placed | None:
        """Put a value into a pool and take a lease for each copy; None where there is no room for either."""
        put = self._pools[kind].put(value, form.size_bytes) if kind in self._pools and form.size_bytes else None
        if put is None:
            return None
        first, block = put
        leases = self._leases.take(block, copies)
        if not leases:
            block.give_back()
            return None
        return Placed([Entry(form, kind, first, lease.slot, lease.generation) for lease in leases])

    def _replace(self, packet: bytes, copies: int, where: str) -> Placed:
        """What a packet of one value is as a part of another one."""
        inner = unpack(packet, channel=self._id, key=self._key)
        if len(inner.entries) != 1:
            raise ValueError(f"{where} is a packet of {len(inner.entries)} values, and only one of one value can be a part")
        entry = inner.entries[0]
        if entry is None or not entry.generation:
            return Placed([entry] * copies if entry else [], inner.body, is_new=False)
        lease = self._leases.find(entry.slot, entry.generation)
        if lease is None:
            raise ValueError(f"{where} is a packet that was received or taken back")
        more = self._leases.take(lease.block, copies - 1)
        if len(more) < copies - 1:
            raise NoRoom(f"{where}: {copies} packets are more than there are slots for")
        kept = [Entry(entry.form, entry.kind, entry.first, one.slot, one.generation) for one in more]
        return Placed([entry, *kept], is_new=False)

    def _packet(self, placed: Sequence[Placed], copy: int) -> bytes:
        entries: list[Entry | None] = []
        first = 0
        for one in placed:
            entry = one.entries[copy] if one.entries else None
            is_inline = entry is not None and entry.kind == "inline"
            entries.append(Entry(entry.form, "inline", first) if entry and is_inline else entry)
            first += len(one.content) if is_inline else 0
        return pack(entries, [one.content for one in placed], channel=self._id, key=self._key)

    def _undo(self, placed: Sequence[Placed]) -> None:
        """Give back what a refused list has taken; a packet that was to be a part of it is good again."""
        for entry in (entry for one in placed for entry in one.entries[0 if one.is_new else 1 :]):
            lease = self._leases.find(entry.slot, entry.generation) if entry.generation else None
            if lease:
                self._leases.discard(lease)
        self._settle()

    def _settle(self) -> None:
        if self._segment:
            self._leases.settle()

    def _check_open(self) -> None:
        if self._closed:
            raise ChannelClosed("this channel is closed")
        if os.getpid() != self._owner_pid:
            raise ChannelClosed(f"this channel is process {self._owner_pid}'s, and a fork of it can only join")


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
