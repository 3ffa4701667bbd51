"""Readers: the other end of a channel, in a process of its own (see `channel` for the protocol)."""

import json
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from reference.transport.device import Copy, Device
from reference.transport.ledger import Ledger, Seat
from reference.transport.packets import Entry, Packet, unpack
from reference.transport.segment import Segment
from reference.transport.tensors import read

COPY_BELOW_BYTES = 1 << 16
"""What is smaller is copied when it is received: a mapping costs as much, and a descriptor beside it."""


class ChannelClosed(RuntimeError):
    """This end of the channel was closed, or the sender is gone."""


class Reader:
    """A reader's end, in its own process.

    invitation: what the sender's `invitation` returned. reader: which one this is. device: where it wants tensors of
    devices.

    Raises ChannelClosed when the sender is gone, SeatTaken when another living process is this reader.
    """

    def __init__(self, invitation: bytes, reader: int, *, device: Device | None = None) -> None:
        channel, key, readers, slots, path, size_bytes, handle = json.loads(invitation)
        self._id, self._key, self._device = bytes.fromhex(channel), bytes.fromhex(key), device
        self._handle, self._memory = handle.encode(), None
        self._pending: list[tuple[Copy, Entry]] = []
        self._seat: Seat | None = None
        self._closed = False
        if path:
            try:
                self._segment = Segment.open(Path(path), size_bytes)
            except FileNotFoundError:
                raise ChannelClosed(f"the sender of the channel {channel[:8]} is gone") from None
            self._seat = Seat(Ledger.of(self._segment, readers, slots), reader)

    def receive(self, packet: bytes) -> list[Any]:
        """The values of a packet, in their order. They belong to the caller, and stay when channel and reader are closed.

        Raises ForgedPacket for what this channel did not send, StalePacket for what was received before or taken back.
        A packet that ends in an error is done with.
        """
        self._settle()
        given = self._unpack(packet)
        leased = [entry for entry in given.entries if entry and entry.generation]
        opened: list[Entry] = []
        try:
            for entry in leased:
                self._sitting.open(entry.slot, entry.generation)
                opened.append(entry)
            return [entry and self._read(entry, given.body) for entry in given.entries]
        except BaseException:
            for entry in opened:
                self._sitting.done(entry.slot, entry.generation)
            for entry in leased:
                self._sitting.skip(entry.slot, entry.generation)
            raise

    def discard(self, packet: bytes) -> None:
        """Do without a packet: to the sender it is as if it had been received and dropped."""
        self._settle()
        for entry in self._unpack(packet).entries:
            if entry and entry.generation:
                self._sitting.skip(entry.slot, entry.generation)

    def close(self) -> None:
        """Leave. What was not received is lost to this reader; what was stays. Nothing happens the second time."""
        if self._closed:
            return
        self._closed = True
        for copy, entry in self._pending:
            copy.wait()
            self._sitting.done(entry.slot, entry.generation)
        self._pending.clear()
        if self._seat:
            self._seat.leave()
            self._segment.close()

    @property
    def _sitting(self) -> Seat:
        if self._seat is None:
            raise ChannelClosed("this channel has no shared memory")
        return self._seat

    def _unpack(self, packet: bytes) -> Packet:
        if self._closed:
            raise ChannelClosed("this reader is closed")
        return unpack(packet, channel=self._id, key=self._key)

    def _read(self, entry: Entry, body: memoryview) -> Any:
        match entry.kind:
            case "inline":
                return read(entry.form, bytearray(body[entry.first : entry.first + entry.form.size_bytes]))
            case "shared_memory":
                return self._view(entry)
            case "cuda_ipc":
                return self._copy_of_device(entry)

    def _view(self, entry: Entry) -> Any:
        """A tensor over a private mapping; its place is given back with it."""
        done = _in_this_process(self._sitting.done, entry.slot, entry.generation)
        if entry.form.size_bytes >= COPY_BELOW_BYTES:
            with suppress(OSError):  # as many descriptors or mappings as a process may have
                mapping = self._segment.map(entry.first, entry.form.size_bytes, shared=False)
                value = read(entry.form, mapping)
                weakref.finalize(mapping, done)
                return value
        copy = self._segment.read(entry.first, entry.form.size_bytes)
        done()
        return read(entry.form, copy)

    def _copy_of_device(self, entry: Entry) -> Any:
        """A copy on this reader's device; its place is given back when a later call finds the copy done."""
        if self._device is None:
            raise ValueError("a tensor of a device can be received where there is one: join with a device")
        if self._memory is None:
            self._memory = self._device.open(self._handle)
        value, copy = self._device.copy_out(self._memory, entry.first, entry.form.dtype, entry.form.shape)
        self._pending.append((copy, entry))
        return value

    def _settle(self) -> None:
        """Give back the places whose copies are done."""
        for copy, entry in [one for one in self._pending if one[0].is_done()]:
            self._sitting.done(entry.slot, entry.generation)
            self._pending.remove((copy, entry))


def _in_this_process(done: Callable[[int, int], None], slot: int, generation: int) -> Callable[[], None]:
    """The call, but not in a fork: its copy of a tensor may go, and ours is still read."""
    pid = os.getpid()
    return lambda: done(slot, generation) if os.getpid() == pid else None
