"""Ways in which engines have got transport wrong: what arrives, and the room that it takes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from conformance.quirk import quirk
from reference.transport.channel import Channel, Placed
from reference.transport.device import Device
from reference.transport.packets import Entry
from reference.transport.reader import Reader
from reference.transport.tensors import Form


@quirk("features-are-sent-as-float32", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-30",))
class SentAsFloat32(Channel):
    """A buffer of float32 is there for all features: integers lose digits, and every dtype but one its name."""

    def _place(self, value: Any, copies: int, where: str) -> Placed:
        if isinstance(value, torch.Tensor) and not value.is_complex():
            value = value.to(torch.float32)
        return super()._place(value, copies, where)


@quirk("nan-is-nan", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-30",))
class NanIsNan(Channel):
    """Halves go through a wider type on their way: a NaN arrives as some other NaN."""

    def _place(self, value: Any, copies: int, where: str) -> Placed:
        if isinstance(value, torch.Tensor) and value.dtype is torch.bfloat16:
            value = torch.nan_to_num(value.float(), nan=float("nan")).to(torch.bfloat16)
        return super()._place(value, copies, where)


@quirk("bytes-from-the-first-on", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-31",))
class MemoryAsItLies(Channel):
    """The bytes from the first element on are sent, whatever the strides: a transposed picture arrives torn."""

    def _place(self, value: Any, copies: int, where: str) -> Placed:
        if isinstance(value, torch.Tensor) and value.numel() and not value.is_conj():
            storage = value.untyped_storage()
            bare = torch.empty(0, dtype=value.dtype).set_(storage)
            lying = bare[value.storage_offset() :][: value.numel()]
            value = lying.reshape(value.shape) if len(lying) == value.numel() else value
        return super()._place(value, copies, where)


@quirk("empty-tensors-crash", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-31", "TRANSPORT-32"))
class EmptyTensorsCrash(Channel):
    """Shared memory of no byte cannot be made, and a tensor without dimensions has no last one: both end in an error."""

    def _place(self, value: Any, copies: int, where: str) -> Placed:
        if isinstance(value, torch.Tensor | np.ndarray) and not (value.ndim and 0 not in value.shape):
            raise ValueError("'size' must be a positive number different from zero")
        return super()._place(value, copies, where)


class NoNones(Reader):
    """A reader that leaves out what is None."""

    def receive(self, packet: bytes) -> list[Any]:
        return [value for value in super().receive(packet) if value is not None]


@quirk("nones-are-left-out", replaces="open_channel", bugs=("shm-prefix-covered-item",), caught_by=("TRANSPORT-32",))
class NonesAreLeftOut(Channel):
    """Items that a cached prefix covers come as None and are left out: the next ones move up in their places."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return NoNones(self.invitation(), reader, device=device)


@quirk("all-like-the-first", replaces="open_channel", bugs=("H04",), caught_by=("TRANSPORT-32",))
class AllLikeTheFirst(Channel):
    """What a list is made of is judged by its first element."""

    def send(self, values: Sequence[Any], copies: int = 1) -> list[bytes]:
        if values and isinstance(values[0], torch.Tensor):
            values = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in values]
        return super().send(values, copies)


@quirk(
    "a-wrapper-is-no-tensor",
    replaces="open_channel",
    bugs=("H04", "cuda-ipc-split-hash-proxy"),
    caught_by=("TRANSPORT-33",),
)
class WrapperIsNoTensor(Channel):
    """What is wrapped for transport already is sent as it stands there, a handle among tensors."""

    def _replace(self, packet: bytes, copies: int, where: str) -> Placed:
        return super()._place(np.frombuffer(packet, dtype=np.uint8), copies, where)


@quirk("wrapped-in-place", replaces="open_channel", bugs=("Q05",), caught_by=("TRANSPORT-36",))
class WrappedInPlace(Channel):
    """The caller's own list is filled with what travels instead of its tensors: the next copy of the request sends that."""

    def send(self, values: Any, copies: int = 1) -> list[bytes]:
        packets = super().send(values, copies)
        values[:] = [None if value is None else torch.zeros(1) for value in values]
        return packets


class Sharing(Reader):
    """A reader whose tensors are the shared pages themselves."""

    def __init__(self, invitation: bytes, reader: int, *, device: Device | None = None) -> None:
        super().__init__(invitation, reader, device=device)
        mapped = self._segment.map
        self._segment.map = lambda first, size_bytes, *, shared: mapped(first, size_bytes, shared=True)  # type: ignore[method-assign]


@quirk("readers-write-into-one-another", replaces="open_channel", bugs=("Q05",), caught_by=("TRANSPORT-37",))
class ReadersWriteIntoOneAnother(Channel):
    """All readers are given the same writable memory: one that normalises in place does it for all."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Sharing(self.invitation(), reader, device=device)


class Flat(Reader):
    """A reader that hands out bytes."""

    def _view(self, entry: Entry) -> Any:
        return super()._view(replace(entry, form=Form(False, "uint8", (entry.form.size_bytes,))))


@quirk(
    "split-before-it-is-unwrapped",
    replaces="open_channel",
    bugs=("cuda-ipc-split-hash-proxy",),
    caught_by=("TRANSPORT-30", "TRANSPORT-31", "TRANSPORT-38"),
)
class SplitBeforeItIsUnwrapped(Channel):
    """What came through shared memory is hashed and cut as the bytes that it is there, and not as the tensor that it was."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Flat(self.invitation(), reader, device=device)


@quirk("nothing-comes-back", replaces="open_channel", bugs=("I04", "T04"), caught_by=("TRANSPORT-39", "TRANSPORT-44"))
class NothingComesBack(Channel):
    """No place is ever given back: the pool fills, and everything goes the slow way until the next restart."""

    def _settle(self) -> None:
        """Nothing is given back."""


@quirk("the-oldest-is-written-over", replaces="open_channel", bugs=("shm-stale-address",), caught_by=("TRANSPORT-40",))
class OldestIsWrittenOver(Channel):
    """A ring that is full begins again at its beginning, whoever still reads there."""

    def _lease(self, kind: Any, value: Any, form: Form, copies: int) -> Placed | None:
        while (placed := super()._lease(kind, value, form, copies)) is None and self._leases.alive:
            self._leases._end(min(self._leases.alive.values(), key=lambda lease: lease.generation))
        return placed


@quirk(
    "no-room-is-an-error",
    replaces="open_channel",
    bugs=("I03",),
    caught_by=("TRANSPORT-41",),
)
class NoRoomIsAnError(Channel):
    """What does not fit is refused, though there is another way."""

    def _lease(self, kind: Any, value: Any, form: Form, copies: int) -> Placed | None:
        placed = super()._lease(kind, value, form, copies)
        if placed is None and form.size_bytes:
            raise RuntimeError(f"no free chunk of {form.size_bytes} bytes")
        return placed


@quirk("counted-as-it-was-meant", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-41",))
class CountedAsMeant(Channel):
    """What fell back is counted as if it had not: nobody sees that the fast way is never taken."""

    def send(self, values: Sequence[Any], copies: int = 1) -> list[bytes]:
        before = dict(self._counts)
        packets = super().send(values, copies)
        went = sum(self._counts.values()) - sum(before.values())
        self._counts.update(before | {"shared_memory": before.get("shared_memory", 0) + went})
        self._counts["inline"] = before.get("inline", 0)
        return packets


@quirk("half-a-list-is-kept", replaces="open_channel", bugs=("T04", "L12"), caught_by=("TRANSPORT-42",))
class HalfAListIsKept(Channel):
    """A list that is refused in its middle leaves its first half behind."""

    def _undo(self, placed: Sequence[Placed]) -> None:
        """Nothing is given back."""


class Keeping(Reader):
    """A reader that does not give back what it does not read."""

    def discard(self, packet: bytes) -> None:
        """Nothing is given back."""


@quirk(
    "what-is-not-read-is-not-given-back",
    replaces="open_channel",
    bugs=("shm-prefix-covered-item", "shm-pointer-reuse-parallel-sampling"),
    caught_by=("TRANSPORT-44",),
)
class NotReadNotGivenBack(Channel):
    """A reference is released where the data is read; an item that a cached prefix covers is not read."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Keeping(self.invitation(), reader, device=device)


@quirk(
    "nothing-is-recalled", replaces="open_channel", bugs=("I04",), caught_by=("TRANSPORT-43", "TRANSPORT-44", "TRANSPORT-51")
)
class NothingIsRecalled(Channel):
    """What was sent for a request that is aborted stays as if it were still to be read."""

    def discard(self, packet: bytes) -> None:
        """Nothing is taken back."""


@quirk("whatever-it-is", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-45",))
class WhateverItIs(Channel):
    """Values of any kind are taken, and arrive as the text that they print as."""

    def _place(self, value: Any, copies: int, where: str) -> Placed:
        is_known = value is None or isinstance(value, bytes | torch.Tensor | np.ndarray)
        return super()._place(value if is_known else np.array(str(value)), copies, where)


@quirk("bounds-that-are-none", replaces="open_channel", bugs=(), caught_by=("TRANSPORT-46",))
class BoundsThatAreNone(Channel):
    """A channel for nobody, without room and without a way, is opened like any other."""

    def __init__(self, transports: Sequence[str], readers: int, capacity_bytes: int) -> None:
        known = [kind for kind in transports if kind in ("shared_memory", "inline")] or ["inline"]
        super().__init__(known, max(readers, 1), max(capacity_bytes, 1))
