"""What kernels are asked: bytes of any number and layout, ids and sentinels, rows whose values all differ."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch

from conformance.cases import Exact, Pair
from conformance.oracles import kernels as oracle
from reference.items import Chunk, Span

FAR = 2**62 - 7
"""An id such as sentinels have."""


class Ids(NamedTuple):
    """Ids of a chunk, and the sentinels to look for."""

    input_ids: torch.Tensor
    sentinels: torch.Tensor


class Covered(NamedTuple):
    """Spans of a prompt, and a chunk of it."""

    spans: tuple[Span, ...]
    chunk: Chunk


class Scatter(NamedTuple):
    """What `scatter_rows` is asked."""

    destination: torch.Tensor
    mask: torch.Tensor
    rows: torch.Tensor


class Merge(NamedTuple):
    """What `fused_merge` is asked."""

    input_ids: torch.Tensor
    spans: tuple[Span, ...]
    rows: torch.Tensor
    table: torch.Tensor
    chunk: Chunk


@contextmanager
def elsewhere() -> Iterator[None]:
    """The default device is one where nothing can be computed, as another GPU is for what lies on this one.

    Whatever an operation makes without saying where, a buffer or a table, is made there and not where its tensors lie.
    """
    with torch.device("meta"):
        yield


def pattern(count: int) -> torch.Tensor:
    """So many bytes, uint8 [count], none of them like its neighbours."""
    return (torch.arange(count) * 131 + 7).remainder(251).to(torch.uint8)


def numbers(height: int, width: int, dtype: torch.dtype = torch.float32, first: int = 0) -> torch.Tensor:
    """Rows of one dtype whose bytes are those of a pattern; bools are 0 and 1."""
    data = pattern(first + height * width * dtype.itemsize)[first:].clone()
    return (data % 2 if dtype is torch.bool else data).view(dtype).reshape(height, width)


def hashed(data: torch.Tensor) -> Exact:
    """A tensor and its word hash."""
    return Exact(data, oracle.word_hash(oracle.octets(data)))


def digested(data: torch.Tensor) -> Exact:
    """A tensor and its digest."""
    return Exact(data, oracle.digest(oracle.octets(data)))


def swapped(data: torch.Tensor, first: int, second: int, count: int) -> Pair:
    """A tensor, and the same with two runs of `count` elements exchanged."""
    other = data.clone()
    other[first : first + count], other[second : second + count] = data[second : second + count], data[first : first + count]
    return Pair(data, other)


def flipped(count: int, place: int) -> Pair:
    """Bytes, and the same with one bit changed."""
    other = pattern(count)
    other[place] ^= 1
    return Pair(pattern(count), other)


def ids(values: Sequence[int], sentinels: Sequence[int], dtype: torch.dtype = torch.int64) -> Ids:
    """Ids of a dtype and sentinels."""
    return Ids(torch.tensor(values, dtype=dtype), torch.tensor(sentinels, dtype=torch.int64))


def text_with(places: Sequence[int], count: int, id: int = FAR) -> Ids:
    """Text of `count` ids, and one sentinel at these places."""
    values = [n % 1000 for n in range(count)]
    return ids([id if n in places else value for n, value in enumerate(values)], [id])


def scatter(drawing: str, width: int = 3, dtype: torch.dtype = torch.float32) -> Scatter:
    """A mask drawn with `#` where it is True, and as many rows as it wants."""
    mask = torch.tensor([letter == "#" for letter in drawing], dtype=torch.bool)
    return Scatter(numbers(len(drawing), width, dtype), mask, numbers(int(mask.sum()), width, dtype, first=5))


def merge(
    spans: Sequence[tuple[int, int]],
    chunk: Chunk,
    *,
    levels: int = 0,
    width: int = 3,
    dtype: torch.dtype = torch.float32,
    ids: Sequence[int] = (),
    vocabulary: int = 50,
) -> Merge:
    """A merge of text with rows whose values all differ; ids are sentinels at media."""
    covered = oracle.covered([Span(*span) for span in spans], chunk).tolist()
    given = [FAR + n if media else n % vocabulary for n, media in enumerate(covered)]
    rows = numbers(sum(covered), width * (1 + levels), dtype, first=5)
    chosen = torch.tensor([*ids] or given, dtype=torch.int64)
    return Merge(chosen, tuple(Span(*span) for span in spans), rows, numbers(vocabulary, width, dtype), chunk)


DTYPES = {
    "bool": torch.bool, "uint8": torch.uint8, "int64": torch.int64, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "float32": torch.float32, "complex64": torch.complex64, "float8": torch.float8_e4m3fn,
}  # fmt: skip

LAYOUTS = {
    "transposed": numbers(4, 6).T,
    "every-second": pattern(40)[::2],
    "behind-one-byte": pattern(41)[1:],
    "behind-three-bytes": pattern(1030)[3:],
    "repeated": pattern(5).expand(3, 5),
    "one-element": torch.tensor(1.5),
}

NOWHERE = torch.empty(2, 3, device="meta")
"""A tensor whose memory no kernel of this process can read."""

MERGES = {
    "text-only": merge([], Chunk(0, 5)),
    "nothing-but-media": merge([(0, 4)], Chunk(0, 5)),
    "some": merge([(6, 7), (1, 3)], Chunk(0, 9)),
    "side-by-side": merge([(1, 3), (4, 6)], Chunk(0, 9)),
    "from-inside-a-span": merge([(1, 6), (9, 9)], Chunk(4, 7)),
    "to-inside-a-span": merge([(1, 2), (5, 9)], Chunk(0, 7)),
    "between-spans": merge([(1, 2), (9, 9)], Chunk(3, 4)),
    "within-a-span": merge([(1, 9)], Chunk(4, 3)),
    "no-positions": merge([(1, 9)], Chunk(4, 0)),
    "edges-of-a-tile": merge([(7, 8), (15, 16), (31, 32)], Chunk(0, 34), width=129),
    **{name: merge([(1, 3)], Chunk(0, 5), dtype=dtype) for name, dtype in DTYPES.items()},
}
"""By name, what most rules about merging are asked."""
