"""Pools: where a sender puts bytes for others to read, on the host or on a device.

A pool is taken once and used again. The first copy into fresh shared memory costs several times as much as one into
pages that were used before: the system clears each page before it hands it out.
"""

import mmap
from typing import Any, Protocol

from reference.transport.device import Device
from reference.transport.ledger import Block
from reference.transport.ranges import FreeRanges
from reference.transport.segment import Segment
from reference.transport.tensors import write

DEVICE_ALIGNMENT_BYTES = 256


class Pool(Protocol):
    """Places for tensors."""

    def put(self, value: Any, size_bytes: int) -> tuple[int, Block] | None:
        """Copy a tensor in. Returns its first byte and its block; None when there is no room for it."""
        ...


class HostPool:
    """The bytes of a segment behind its ledger, `first` to its end."""

    def __init__(self, segment: Segment, first: int) -> None:
        self._segment, self._first = segment, first
        self._ranges = FreeRanges(segment.size_bytes - first, unit_bytes=mmap.PAGESIZE)
        self._bytes = segment.map(first, segment.size_bytes - first, shared=True)

    def put(self, value: Any, size_bytes: int) -> tuple[int, Block] | None:
        """Copy a tensor of the host in."""
        place = self._ranges.take(size_bytes)
        if place is None:
            return None
        try:
            self._segment.reserve(self._first + place + self._ranges.rounded(size_bytes))
            write(value, self._bytes, place)
        except OSError:  # the file system is full: somebody else's segments
            self._ranges.give_back(place, size_bytes)
            return None
        except BaseException:
            self._ranges.give_back(place, size_bytes)
            raise
        return self._first + place, Block(size_bytes, lambda: self._ranges.give_back(place, size_bytes))


class DevicePool:
    """Memory of a device that others may open."""

    def __init__(self, device: Device, size_bytes: int) -> None:
        self._device = device
        self._ranges = FreeRanges(size_bytes, unit_bytes=DEVICE_ALIGNMENT_BYTES)
        self._memory = device.allocate(size_bytes)
        self.handle = device.export(self._memory)

    def put(self, value: Any, size_bytes: int) -> tuple[int, Block] | None:
        """Copy a tensor of the device in, and wait until it is there: readers have no part in our streams."""
        place = self._ranges.take(size_bytes)
        if place is None:
            return None
        try:
            self._device.copy_in(value, self._memory, place).wait()
        except BaseException:
            self._ranges.give_back(place, size_bytes)
            raise
        return place, Block(size_bytes, lambda: self._ranges.give_back(place, size_bytes))
