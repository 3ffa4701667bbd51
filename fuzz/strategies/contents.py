"""Contents of items: tensors of any bits, their lists, the fields beside them."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Pair

SIZES = {
    "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "int16": 2, "uint16": 2, "bfloat16": 2, "float16": 2,
    "float32": 4, "int32": 4, "uint32": 4, "float64": 8, "int64": 8, "complex64": 8,
}  # fmt: skip
"""Bytes an element. Every pattern of bits is a value of these dtypes, which is not true of bool."""

ALL_DTYPES = st.sampled_from(sorted(SIZES, key=lambda name: SIZES[name]))
COMMON_DTYPES = st.sampled_from([name for name in sorted(SIZES, key=lambda name: SIZES[name]) if "float8" not in name])
"""Those that every engine should hash; whether it hashes floats of 8 bits, too, is asked by rules of their own."""

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """All dimensions in reverse order."""
    return tensor.permute(tuple(reversed(range(tensor.ndim))))


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "copy": torch.clone,
    "column-major": lambda tensor: transposed(transposed(tensor).contiguous()),
    "every-second": lambda tensor: torch.stack([tensor, tensor + 1], -1)[..., 0],
    "behind-others": lambda tensor: torch.cat([tensor.new_ones(3), tensor.reshape(-1)])[3:].reshape(tensor.shape),
}


class Memory(NamedTuple):
    """A tensor as it is written down: two of these differ exactly when their contents do."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def tensor(self, layout: str = "copy") -> torch.Tensor:
        """The tensor, laid out in memory in one of the `LAYOUTS`."""
        bits = torch.tensor(list(self.data), dtype=torch.uint8).view(INTEGERS[SIZES[self.dtype]]).reshape(self.shape)
        return LAYOUTS[layout](bits).view(getattr(torch, self.dtype))


@st.composite
def memories(draw: st.DrawFn, dtypes: SearchStrategy[str] = ALL_DTYPES) -> Memory:
    """A tensor of up to three dimensions of up to four, empty ones included. Shrinks to a single zero byte."""
    dtype = draw(dtypes)
    shape = draw(st.lists(st.integers(0, 4), max_size=3).map(tuple))
    size = prod(shape) * SIZES[dtype]
    return Memory(dtype, shape, draw(st.binary(min_size=size, max_size=size)))


def two(strategy: SearchStrategy[Any], **options: Any) -> SearchStrategy[Pair]:
    """Two different values."""
    return st.lists(strategy, min_size=2, max_size=2, unique=not options, **options).map(lambda both: Pair(*both))


def trees(leaves: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """A leaf, or nested lists with at least one leaf each. Shrinks to a leaf."""
    return st.recursive(leaves, lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=6)


@st.composite
def reshaped(draw: st.DrawFn) -> Pair:
    """One row of bytes in two shapes. Shrinks to one byte with one dimension and with none."""
    sizes = st.lists(st.integers(1, 3), max_size=3)
    shape = draw(sizes)
    other = draw(st.permutations([*shape, *[1] * draw(st.integers(0, 2))]).filter(lambda other: other != shape))
    data = draw(st.binary(min_size=prod(shape), max_size=prod(shape)))
    return Pair(Memory("uint8", tuple(shape), data), Memory("uint8", tuple(other), data))


@st.composite
def retyped(draw: st.DrawFn) -> Pair:
    """The same bytes and shape in two dtypes. Shrinks to an empty tensor."""
    size = draw(st.sampled_from(sorted(INTEGERS)))
    first, second = draw(two(st.sampled_from([name for name in SIZES if SIZES[name] == size])))
    memory = draw(memories(st.just(first)))
    return Pair(memory, memory._replace(dtype=second))


@st.composite
def rebit(draw: st.DrawFn, dtypes: SearchStrategy[str] = ALL_DTYPES) -> Pair:
    """A tensor with any bits, and the same with other bits in one byte. Shrinks to one zero byte."""
    memory = draw(memories(dtypes).filter(lambda memory: memory.data))
    at, mask = draw(st.integers(0, len(memory.data) - 1)), draw(st.integers(1, 255))
    data = bytearray(memory.data)
    data[at] ^= mask
    return Pair(memory, memory._replace(data=bytes(data)))


@st.composite
def reframed(draw: st.DrawFn) -> Pair:
    """A list of bytes that was cut at two different sets of places. Shrinks to nothing, uncut and cut once."""
    data = draw(st.binary(max_size=8))
    cuts = draw(two(st.lists(st.integers(0, len(data)), max_size=3).map(sorted).map(tuple)))
    return Pair(*([data[a:b] for a, b in zip((0, *cut), (*cut, len(data)), strict=True)] for cut in cuts))


SCALARS = (
    st.booleans() | st.integers() | st.text(max_size=4) | st.integers(-9, 9).map(lambda n: n + 0.5) | st.binary(max_size=4)
)
"""Values of fields. A float is never equal to an integer here: whether 1.0 is another option than 1 is left open."""


def fields() -> SearchStrategy[dict[str, Any]]:
    """Up to three fields: scalars, and lists of up to three scalars. Shrinks to none."""
    return st.dictionaries(st.text(max_size=4), SCALARS | st.lists(SCALARS, max_size=3), max_size=3)


def spelled(fields: dict[str, Any]) -> str:
    """Fields as a text that differs exactly when they do, unlike `==`, for which True is 1."""
    return repr(sorted(fields.items(), key=lambda field: field[0]))
