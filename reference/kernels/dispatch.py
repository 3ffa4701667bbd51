"""How an operation is computed: decided by where its tensors lie."""

from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import torch

Value = TypeVar("Value")

_MOVED_AS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}
"""By the bytes of an element, the integers as which it is moved; elements of 16 bytes are two of them."""


class Path(StrEnum):
    """A way to compute an operation."""

    CPU = "cpu"
    TRITON = "triton"


class Computed(NamedTuple, Generic[Value]):
    """What an operation gives, and how it was computed."""

    value: Value
    path: Path


def path_of(**tensors: torch.Tensor) -> Path:
    """How an operation on these tensors, each by the name of its argument, is computed.

    Raises TypeError for a tensor without plain memory, and ValueError where they lie on several devices or on one for
    which there is no kernel.
    """
    for name, tensor in tensors.items():
        if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta:
            raise TypeError(f"{name} is a sparse, nested, quantized or meta tensor; kernels read plain memory")
    places = {name: tensor.device for name, tensor in tensors.items()}
    if len({*places.values()}) > 1:
        raise ValueError(f"tensors on several devices: {', '.join(f'{name} on {place}' for name, place in places.items())}")
    (kind,) = {place.type for place in places.values()}
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"{', '.join(tensors)} on {kind}: there are kernels for a CPU and for GPUs of CUDA and ROCm")
    return Path.CPU if kind == "cpu" else Path.TRITON


def octets(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor in the order of its elements: uint8 [bytes], where it lies; a view where that is possible."""
    plain = _resolved(tensor).contiguous()
    flat = plain.as_strided((plain.numel(),), (1,))  # a tensor of one element is contiguous whatever its strides
    return flat.view(torch.uint8)


def movable(rows: torch.Tensor) -> torch.Tensor:
    """Rows [n, columns] as integers of the same bits, each row without gaps; a view where that is possible."""
    plain = _resolved(rows)
    dense = plain if plain.stride(1) == 1 else plain.contiguous()
    if dense.shape[1] == 1 or dense.numel() == 0:
        dense = dense.contiguous().as_strided(dense.shape, (dense.shape[1], 1))
    return dense.view(_MOVED_AS[dense.element_size()])


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg()
