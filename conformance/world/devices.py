"""Devices that are played: memory whose copies are done late, and that knows who has opened what from where.

A `Machine` has some devices. A process takes its view of one by `device(index)`; it has a stream of its own there. What is
asked for waits in the stream until somebody waits for it or `run` is called: nothing is ever done by itself, so that a rule
decides in which order the streams of a machine run. Memory is shared with forks made after the machine.
"""

import mmap
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch

MOST_DEVICES, ARENA_BYTES = 8, 1 << 22


@dataclass(eq=False)
class DeviceTensor:
    """A tensor on a device: its values are there when the copies that were asked for are done."""

    on_device: int
    values: torch.Tensor

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)


@dataclass(eq=False)
class DeviceMemory:
    """Some bytes of a device's arena, from `first` on, as long as somebody holds them."""

    on_device: int
    first: int
    size_bytes: int


@dataclass(eq=False)
class PlayedCopy:
    """A copy in a stream."""

    stream: list["PlayedCopy"]
    work: Callable[[], None]

    def is_done(self) -> bool:
        """Whether it is no longer in the stream."""
        return self not in self.stream

    def wait(self) -> None:
        """Let the stream run until it is done."""
        while self in self.stream:
            self.stream.pop(0).work()


class Machine:
    """So many devices, with what they hold and who has a context on them, counted over all processes."""

    def __init__(self, devices: int) -> None:
        self.arenas = [mmap.mmap(-1, ARENA_BYTES) for _ in range(devices)]
        self._tops = np.frombuffer(mmap.mmap(-1, 8 * MOST_DEVICES), dtype=np.int64)
        self._used = np.frombuffer(mmap.mmap(-1, 8 * MOST_DEVICES), dtype=np.int64)
        self._contexts = np.frombuffer(mmap.mmap(-1, 8 * MOST_DEVICES), dtype=np.int64)

    def device(self, index: int) -> "PlayedDevice":
        """A view of a device with a stream of its own, as a process that begins to use it has."""
        return PlayedDevice(self, index)

    def used_bytes(self, index: int) -> int:
        """The bytes of a device that somebody holds."""
        return int(self._used[index])

    def contexts(self, index: int) -> int:
        """How many views of a device hold a context on it."""
        return int(self._contexts[index])

    def enter(self, index: int) -> None:
        """Count a context."""
        self._contexts[index] += 1

    def take(self, index: int, size_bytes: int) -> int:
        """Take bytes of a device; they are not given out again."""
        first = int(self._tops[index])
        if first + size_bytes > ARENA_BYTES:
            raise RuntimeError(f"device {index} has no {size_bytes} bytes left")
        self._tops[index] += size_bytes
        self._used[index] += size_bytes
        return first

    def give_back(self, index: int, size_bytes: int) -> None:
        """Hold some bytes of a device no more."""
        self._used[index] -= size_bytes


@dataclass(eq=False)
class PlayedDevice:
    """One process's view of a device, with the methods of `conformance.protocol.transport.Device`."""

    machine: Machine
    index: int
    stream: list[PlayedCopy] = field(default_factory=list)
    has_context: bool = False
    can_open: bool = True

    def tensor(self, values: torch.Tensor) -> DeviceTensor:
        """A tensor on this device."""
        self._enter()
        return DeviceTensor(self.index, values)

    def run(self) -> None:
        """Let everything be done that was asked for."""
        while self.stream:
            self.stream.pop(0).work()

    def owns(self, value: Any) -> bool:
        """Whether a value is a tensor on this device."""
        return isinstance(value, DeviceTensor) and value.on_device == self.index

    def form(self, value: DeviceTensor) -> tuple[str, tuple[int, ...], int]:
        """The name of its dtype, its shape and its bytes."""
        return str(value.values.dtype).removeprefix("torch."), tuple(value.values.shape), value.nbytes

    def to_host(self, value: DeviceTensor) -> torch.Tensor:
        """The tensor on the host, after everything that was asked for before."""
        self.run()
        return value.values.clone()

    def allocate(self, size_bytes: int) -> DeviceMemory:
        """New memory on this device."""
        self._enter()
        memory = DeviceMemory(self.index, self.machine.take(self.index, size_bytes), size_bytes)
        weakref.finalize(memory, self.machine.give_back, self.index, size_bytes)
        return memory

    def export(self, memory: DeviceMemory) -> bytes:
        """The device, the place and the size."""
        return f"{memory.on_device} {memory.first} {memory.size_bytes}".encode()

    def open(self, handle: bytes) -> DeviceMemory:
        """Another device's memory, from this one."""
        self._enter()
        if not self.can_open:
            raise RuntimeError("invalid device pointer")
        return DeviceMemory(*map(int, handle.split()))

    def copy_in(self, value: DeviceTensor, memory: DeviceMemory, first: int) -> PlayedCopy:
        """Ask for a copy into memory."""
        place = memory.first + first
        data = value.values.contiguous().flatten().view(torch.uint8).numpy()

        def work() -> None:
            self.machine.arenas[memory.on_device][place : place + len(data)] = data.tobytes()

        return self._ask(work)

    def copy_out(self, memory: DeviceMemory, first: int, dtype: str, shape: tuple[int, ...]) -> tuple[DeviceTensor, PlayedCopy]:
        """Ask for a copy to a new tensor here; until it is done, that holds other bytes."""
        place = memory.first + first
        kind = getattr(torch, dtype)
        made = DeviceTensor(self.index, torch.full((prod(shape) * kind.itemsize,), 0xEE, dtype=torch.uint8))

        def work() -> None:
            data = bytearray(self.machine.arenas[memory.on_device][place : place + made.nbytes])
            made.values.flatten().view(torch.uint8).copy_(torch.frombuffer(data, dtype=torch.uint8))

        made.values = made.values.view(kind).reshape(shape)
        self.machine.take(self.index, made.nbytes)
        weakref.finalize(made, self.machine.give_back, self.index, made.nbytes)
        return made, self._ask(work)

    def _ask(self, work: Callable[[], None]) -> PlayedCopy:
        copy = PlayedCopy(self.stream, work)
        self.stream.append(copy)
        return copy

    def _enter(self) -> None:
        if not self.has_context:
            self.has_context = True
            self.machine.enter(self.index)
