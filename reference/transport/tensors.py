"""Tensors and arrays as bytes: what a packet says about one, and how its bytes are written and read.

1. What travels is the dtype, the shape and the bytes in C order. Strides do not travel: whatever the layout, the values
   arrive dense.
2. Bytes are copied as bytes. A tensor is seen as integers of the same width first, so that no NaN loses its payload and
   no dtype is missing for want of arithmetic; a lazy conjugate is resolved before.
3. An array arrives as an array and a tensor as a tensor.

Known disagreements: SGLang 0.5.23 sends neither empty tensors nor those without dimensions through shared memory (the
first raise a ValueError, the second a RuntimeError).
"""

from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Tensor: TypeAlias = torch.Tensor | NDArray[Any]

SAME_WIDTH = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
"""The dtype through which elements of so many bytes are copied."""

ARRAY_KINDS = "biufcSUmM"
"""numpy's kinds whose values are their bytes: no objects, and no records, whose names are no part of the type string."""


class Form(NamedTuple):
    """What the bytes are: a tensor's dtype by its name in torch, or an array's by numpy's type string; and the shape."""

    is_array: bool
    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """How many bytes there are."""
        return prod(self.shape) * self._item_bytes

    @property
    def _item_bytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize if self.is_array else torch_dtype(self.dtype).itemsize)


def form_of(value: Any) -> Form:
    """What a tensor or an array is. Raises TypeError for what has no bytes of its own, and says what it is."""
    match value:
        case torch.Tensor():
            if value.layout is not torch.strided or value.is_quantized or value.is_meta:
                raise TypeError(f"only dense tensors with values travel, not one of layout {value.layout} on {value.device}")
            return Form(False, str(value.dtype).removeprefix("torch."), tuple(value.shape))
        case np.ma.MaskedArray():
            raise TypeError("a masked array does not travel: its mask would be lost")
        case np.ndarray():
            if value.dtype.kind not in ARRAY_KINDS:
                raise TypeError(f"arrays of {value.dtype} do not travel: numbers, bytes, texts and times do")
            return Form(True, value.dtype.str, value.shape)
    raise TypeError(f"tensors, arrays and None travel, not {type(value).__name__}")


def write(value: Tensor, buffer: Any, first: int = 0) -> None:
    """Write the bytes of a tensor or an array, of whatever layout, into a buffer from byte `first` on."""
    form = form_of(value)
    if isinstance(value, np.ndarray):
        flat = np.frombuffer(buffer, dtype=value.dtype, count=value.size, offset=first)
        flat.reshape(value.shape)[...] = value
        return
    bits = value.detach().resolve_conj().resolve_neg().view(_bits(value.dtype))
    torch.frombuffer(buffer, dtype=bits.dtype, count=value.numel(), offset=first).reshape(form.shape).copy_(bits)


def read(form: Form, buffer: Any, first: int = 0) -> Tensor:
    """The tensor or array over the bytes of a buffer from byte `first` on; it keeps the buffer alive."""
    if form.is_array:
        return np.frombuffer(buffer, dtype=form.dtype, count=prod(form.shape), offset=first).reshape(form.shape)
    dtype = torch_dtype(form.dtype)
    if not form.size_bytes:
        return torch.empty(form.shape, dtype=dtype)
    bits = torch.frombuffer(buffer, dtype=_bits(dtype), count=prod(form.shape), offset=first)
    return bits.view(dtype).reshape(form.shape)


def torch_dtype(name: str) -> torch.dtype:
    """The dtype of this name. Raises TypeError where torch has none."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"torch {torch.__version__} has no dtype {name!r}")
    return dtype


def _bits(dtype: torch.dtype) -> torch.dtype:
    return SAME_WIDTH[dtype.itemsize]
