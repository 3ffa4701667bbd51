"""Devices: memory that is not the host's, whose copies are done later than they are asked for.

A channel needs little of a device, and asks for it through `Device`, so that the same protocol runs on a GPU and, in
tests, on memory that plays one and is late on purpose.

1. A reader opens the sender's memory from its own device and copies it there. One that goes to the sender's device to
   open it holds a context there: some 500 MiB a rank.
2. A copy that was asked for is not yet done. A place may be written again only when the copies out of it are done in
   the order of their streams, and not when they were asked for.

Sources: SGLang 0.5.23, `CudaIpcTensorTransportProxy`; sgl-project/sglang issue 16106, pull requests 22662 and 33949.
"""

import json
from base64 import b64decode, b64encode
from typing import Any, Protocol

import torch


class Copy(Protocol):
    """A copy that was asked for."""

    def is_done(self) -> bool:
        """Whether it is done, and everything that was asked for before it on the same stream."""
        ...

    def wait(self) -> None:
        """Wait until it is done."""
        ...


class Device(Protocol):
    """One process's view of one device."""

    def owns(self, value: Any) -> bool:
        """Whether a value is a tensor on this device."""
        ...

    def form(self, value: Any) -> tuple[str, tuple[int, ...], int]:
        """The name of a tensor's dtype, its shape and its bytes."""
        ...

    def to_host(self, value: Any) -> torch.Tensor:
        """The same tensor on the host."""
        ...

    def allocate(self, size_bytes: int) -> Any:
        """New memory on this device. It goes when nobody holds it any more."""
        ...

    def export(self, memory: Any) -> bytes:
        """What another process needs to open this memory."""
        ...

    def open(self, handle: bytes) -> Any:
        """Memory that another process has exported, seen from this device. Raises RuntimeError when it cannot be."""
        ...

    def copy_in(self, value: Any, memory: Any, first: int) -> Copy:
        """Ask for a copy of a tensor of this device into memory, from byte `first` on."""
        ...

    def copy_out(self, memory: Any, first: int, dtype: str, shape: tuple[int, ...]) -> tuple[Any, Copy]:
        """Ask for a copy of bytes from `first` on: a new tensor on this device, usable on its current stream."""
        ...


class _Recorded:
    """The end of what the current stream has been asked for."""

    def __init__(self) -> None:
        self._event = torch.cuda.current_stream().record_event()

    def is_done(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.synchronize()


class CudaDevice:
    """A GPU: CUDA's, or ROCm's under the same names."""

    def __init__(self, index: int) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU here")
        self._device = torch.device("cuda", index)

    def owns(self, value: Any) -> bool:
        """Whether this is a tensor on this GPU."""
        return isinstance(value, torch.Tensor) and value.device == self._device

    def form(self, value: torch.Tensor) -> tuple[str, tuple[int, ...], int]:
        """The name of its dtype, its shape and its bytes."""
        return str(value.dtype).removeprefix("torch."), tuple(value.shape), value.nbytes

    def to_host(self, value: torch.Tensor) -> torch.Tensor:
        """The tensor on the host; done when this returns."""
        return value.cpu()

    def allocate(self, size_bytes: int) -> torch.Tensor:
        """Bytes on this GPU, in an allocation of their own or a part of one: `export` says where they begin."""
        return torch.empty(size_bytes, dtype=torch.uint8, device=self._device)

    def export(self, memory: torch.Tensor) -> bytes:
        """CUDA's handle of the allocation and where in it the bytes are."""
        parts = memory.untyped_storage()._share_cuda_()  # type: ignore[no-untyped-call]
        return json.dumps([{"b": b64encode(p).decode()} if isinstance(p, bytes) else p for p in parts]).encode()

    def open(self, handle: bytes) -> torch.Tensor:
        """The memory as this GPU sees it: the handle names the sender's, and is told ours instead."""
        parts = [b64decode(p["b"]) if isinstance(p, dict) else p for p in json.loads(handle)]
        with torch.cuda.device(self._device):
            storage = torch.UntypedStorage._new_shared_cuda(self._device.index, *parts[1:])
        return torch.empty(0, dtype=torch.uint8, device=self._device).set_(storage)

    def copy_in(self, value: torch.Tensor, memory: torch.Tensor, first: int) -> _Recorded:
        """Copy on the current stream."""
        with torch.cuda.device(self._device):
            place = memory[first : first + value.nbytes].view(value.dtype).reshape(value.shape)
            place.copy_(value, non_blocking=True)
            return _Recorded()

    def copy_out(self, memory: torch.Tensor, first: int, dtype: str, shape: tuple[int, ...]) -> tuple[torch.Tensor, _Recorded]:
        """Copy on the current stream."""
        with torch.cuda.device(self._device):
            copy = torch.empty(shape, dtype=getattr(torch, dtype), device=self._device)
            place = memory[first : first + copy.nbytes].view(copy.dtype).reshape(shape)
            copy.copy_(place, non_blocking=True)
            return copy, _Recorded()
