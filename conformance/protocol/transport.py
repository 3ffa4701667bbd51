"""Transport: how features travel from the process that made them to those that read them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch

from conformance import returns as answer
from conformance.returns import Opens, WrongAnswer, returns

TRANSPORTS = ("cuda_ipc", "shared_memory", "inline")
"""The ways from one process to another, from the fastest to the one that is always there."""

Values: TypeAlias = list[Any]
"""Tensors, arrays and None."""


def packets(value: Any) -> tuple[bytes, ...]:
    """A sequence of bytes, none of them empty."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise WrongAnswer("a sequence of packets, each of them bytes")
    return tuple(answer.octets(packet) for packet in value)


def values(value: Any) -> Values:
    """A sequence of tensors, arrays and None; what a device of the suite calls a tensor is one."""
    if not isinstance(value, list | tuple):
        raise WrongAnswer("a list of tensors, arrays and None")
    for one in value:
        is_plain = type(one) in (torch.Tensor, np.ndarray) or one is None
        if not is_plain and not hasattr(one, "on_device"):
            raise WrongAnswer(f"a list of tensors, arrays and None, and no {type(one).__name__} in it")
    return list(value)


def counts(value: Any) -> dict[str, int]:
    """For each way, by its name, how many tensors went by it."""
    if not isinstance(value, Mapping) or not {*value} <= {*TRANSPORTS}:
        raise WrongAnswer(f"how many tensors went by each of {', '.join(TRANSPORTS)}")
    return {kind: answer.integer(value.get(kind, 0)) for kind in TRANSPORTS}


class Copy(Protocol):
    """A copy that a device was asked for."""

    def is_done(self) -> bool:
        """Whether it is done, and all that was asked for before it on its stream."""
        ...

    def wait(self) -> None:
        """Wait until it is done."""
        ...


class Device(Protocol):
    """One process's view of one device, as the suite plays it and as a GPU is. Copies are done later than asked for."""

    def owns(self, value: Any) -> bool:
        """Whether a value is a tensor on this device."""
        ...

    def form(self, value: Any) -> tuple[str, tuple[int, ...], int]:
        """The name of a tensor's dtype as in torch, its shape and its bytes."""
        ...

    def to_host(self, value: Any) -> torch.Tensor:
        """The same tensor on the host; done when this returns."""
        ...

    def allocate(self, size_bytes: int) -> Any:
        """New memory on this device; it goes when nobody holds it any more."""
        ...

    def export(self, memory: Any) -> bytes:
        """ASCII that another process needs to open this memory."""
        ...

    def open(self, handle: bytes) -> Any:
        """Memory that another process has exported, seen from this device. Raises RuntimeError when it cannot be."""
        ...

    def copy_in(self, value: Any, memory: Any, first: int) -> Copy:
        """Ask for a copy of a tensor of this device into memory, from byte `first` on."""
        ...

    def copy_out(self, memory: Any, first: int, dtype: str, shape: tuple[int, ...]) -> tuple[Any, Copy]:
        """Ask for a copy of memory from byte `first` on: a new tensor on this device."""
        ...


class Reader(Protocol):
    """What `join` returns: one reader of a channel, in the process that joined."""

    @returns(values)
    def receive(self, packet: bytes) -> Values:
        """The values of a packet, in the order in which they were sent: tensors as tensors, arrays as arrays, None as None.

        Dtype, shape and bits are those that were sent; they lie dense. They belong to the caller: nobody sees what it
        writes into them, and they stay what they are when channel and reader are closed or the sender is dead.

        Raises an error of its own choice for a packet that is not one of this channel, and for one that was taken back.
        A packet that this reader has received already may be refused, or answered again with the same.
        """

    @returns(answer.nothing)
    def discard(self, packet: bytes) -> None:
        """Do without a packet: its place is free as if this reader had received it and dropped what it got."""

    @returns(answer.nothing)
    def close(self) -> None:
        """Leave the channel; nothing happens the second time. What was received stays, what was not is lost here."""


class Channel(Protocol):
    """What `open_channel` returns: the sender's end."""

    @returns(Opens(Reader, specimen=(0, None)))
    def join(self, reader: int, device: Device | None) -> Reader:
        """The end of reader number `reader`, from 0, in the process that calls this: a fork of the sender, or itself.

        device: where this reader wants what lies on devices, or None. A reader may join before or after something was
        sent. A reader that was closed, or whose process is dead, may be joined again, for what is sent from then on.
        """

    @returns(packets)
    def send(self, values: Sequence[Any], copies: int) -> Sequence[bytes]:
        """So many packets of one list (for as many requests that share it), each for every reader to receive once.

        values: tensors of the host, or of the channel's device, arrays, None, and packets with one tensor or array that this
        channel has sent and nobody has received: each stands for what is in it, and is no more received by itself.
        Lists and tensors are not changed, and may be as soon as this returns.

        Each tensor takes the first of the channel's transports that has room for it; a small one may go inline. Raises an
        error of its own choice when none has, and for values of another kind; nothing of the list is sent or held then.
        """

    @returns(answer.nothing)
    def discard(self, packet: bytes) -> None:
        """Take back a packet that was sent: its place is free, but for readers that have received it."""

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes in shared memory and on the device of what may still be read: not received, or not yet dropped.

        What was dropped counts no more, nor what was sent to readers that died or have left.
        """

    @returns(counts)
    def counts(self) -> Mapping[str, int]:
        """How many tensors and arrays went by each transport since the channel was opened, each packet's list once."""

    @returns(answer.nothing)
    def close(self) -> None:
        """Remove everything that the channel has in shared memory. Nothing happens the second time."""


class Transport(Protocol):
    """How features travel from the process that made them to those that read them."""

    @returns(Opens(Channel, specimen=(("inline",), 1, 1 << 20)))
    def open_channel(self, transports: Sequence[str], readers: int, capacity_bytes: int) -> Channel:
        """A channel for tensors of the host, from this process to so many readers on this host.

        transports: "shared_memory", "inline", or both: what may be used. capacity_bytes: the room in shared memory.

        Whatever dead senders of this engine have left in shared memory is removed first; what belongs to living ones is
        not touched. Any number of channels are open at once, in one process or several. When the channel is closed, or its
        process is dead and another one has opened a channel, nothing of it is left in shared memory.

        Raises ValueError or TypeError for no transport, an unknown one, no reader, and no byte.
        """

    @returns(Opens(Channel, specimen=(("inline",), 1, 1 << 20, None)))
    def open_device_channel(self, transports: Sequence[str], readers: int, capacity_bytes: int, device: Device) -> Channel:
        """A channel as of `open_channel` for tensors of a device, too, each of whose readers may be on another device.

        transports: those of `TRANSPORTS` that may be used. capacity_bytes: the room on the device, and as much in shared
        memory. device: where the sender's tensors lie. It is opened from the readers' own devices and from no other.

        What finds no room on the device is received as a tensor of the host.
        """
