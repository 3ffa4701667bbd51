"""Collectives: how the ranks of a group speak with one another, and what they say, as plain bytes.

1. Every rank of a group enters the same calls in the same order. A rank that leaves one out, because it has nothing to say or
   because something has failed there, makes all others wait for it. So nothing that can fail stands between two calls,
   unless its failure is caught and becomes a part of what is said next.
2. A message is data and no objects: a header in JSON, then the bytes of its tensors. A reader builds them in its own
   memory. An object that is rebuilt where it was recorded puts the tensors of all ranks on the first one's device.

`Gloo` is such a group on `torch.distributed`; other backends for CPU tensors work alike.

Source: SGLang 0.5.23, `broadcast_pyobj`; vLLM 0.33, `GroupCoordinator.broadcast_object`; both pickle.
"""

import json
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}


class Collectives(Protocol):
    """A group of ranks, as one of them sees it."""

    rank: int
    size: int

    def broadcast(self, data: bytes, source: int) -> bytes:
        """The bytes of rank `source`, on every rank."""
        ...

    def all_gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank by rank, on every rank; they may be of different lengths."""
        ...

    def all_gather_tensor(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensor of every rank by rank, on every rank; all have one shape and one dtype."""
        ...

    def barrier(self) -> None:
        """Nobody goes on before everybody is here."""
        ...

    def split(self, colour: int) -> "Collectives":
        """The ranks that give the same colour, as a group of their own, in the same order."""
        ...


class Gloo:
    """A group of processes on `torch.distributed`, which must be initialised.

    ranks: the global ranks of its members in order; None: everybody.
    """

    def __init__(self, ranks: Sequence[int] | None = None, group: Any = None) -> None:
        self._ranks = list(range(dist.get_world_size())) if ranks is None else list(ranks)
        self._group = group
        self.rank = self._ranks.index(dist.get_rank())
        self.size = len(self._ranks)

    def broadcast(self, data: bytes, source: int) -> bytes:
        """The bytes of rank `source`: their number first, so that all can make room for them."""
        length = torch.tensor([len(data)])
        dist.broadcast(length, self._ranks[source], self._group)
        content = _octets(data) if self.rank == source else torch.empty(int(length), dtype=torch.uint8)
        if len(content):
            dist.broadcast(content, self._ranks[source], self._group)
        return content.numpy().tobytes()

    def all_gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, sent at the length of the longest."""
        lengths = [int(one) for one in self.all_gather_tensor(torch.tensor([len(data)]))]
        padded = _octets(data.ljust(max(lengths), b"\0"))
        sent = self.all_gather_tensor(padded) if max(lengths) else [padded] * self.size
        return [one.numpy().tobytes()[:length] for one, length in zip(sent, lengths, strict=True)]

    def all_gather_tensor(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensor of every rank."""
        room = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(self.size)]
        dist.all_gather(room, tensor.contiguous(), self._group)
        return room

    def barrier(self) -> None:
        """Nobody goes on before everybody is here."""
        dist.barrier(self._group)

    def split(self, colour: int) -> "Gloo":
        """The ranks that give the same colour. Every process makes every group, as `torch.distributed` asks."""
        colours = [int(one) for one in self.all_gather_tensor(torch.tensor([colour]))]
        made = {}
        for one in sorted(set(colours)):
            ranks = [rank for rank, its in zip(self._ranks, colours, strict=True) if its == one]
            made[one] = ranks, dist.new_group(ranks, use_local_synchronization=True) if one == colour else None
        return Gloo(*made[colour])


def pack(header: Any, tensors: Sequence[torch.Tensor] = ()) -> bytes:
    """A header of plain data, and tensors, as bytes. Raises TypeError for a header that JSON does not know."""
    shapes = [[str(one.dtype).removeprefix("torch."), list(one.shape)] for one in tensors]
    head = json.dumps([header, shapes]).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *map(_raw, tensors)])


def unpack(data: bytes) -> tuple[Any, list[torch.Tensor]]:
    """What was packed, in memory of its own."""
    start = 8 + int.from_bytes(data[:8], "little")
    header, shapes = json.loads(data[8:start])
    content, tensors = memoryview(data), []
    for name, shape in shapes:
        dtype = DTYPES[name]
        stop = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        tensors.append(_octets(content[start:stop]).view(dtype).reshape(shape))
        start = stop
    return header, tensors


def _raw(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def _octets(data: bytes | memoryview) -> torch.Tensor:
    """Bytes as a tensor of their own."""
    return torch.from_numpy(np.frombuffer(bytearray(data), dtype=np.uint8))
