"""Which positions hold media: by the ids that stand there, or by the recorded spans.

`span_mask` is what is right: a position is a medium because a span says so (`reference.merging`). `placeholder_mask` is
for what has ids alone, and holds where sentinels lie outside of the vocabulary.

Ids are compared in 64 bits, whatever type they come in. A sentinel of 62 bits that is narrowed to 32 bits is some other
number, and may be a word.

Source: SGLang 0.5.23, `_get_multimodal_mask` (by sentinels, which it narrows to the type of the ids).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from reference.items import Chunk, Span
from reference.kernels.dispatch import Computed, Path, path_of

_ID_TYPES = (torch.int32, torch.int64)


def placeholder_mask(input_ids: torch.Tensor, sentinels: torch.Tensor) -> Computed[torch.Tensor]:
    """Which of `input_ids`, int32 or int64 [n], are one of `sentinels`, int64 [k], ascending: bool [n], where the ids lie.

    Raises TypeError for other types, ValueError for other shapes; whether the sentinels ascend is for the caller to see to.
    """
    path = path_of(input_ids=input_ids, sentinels=sentinels)
    check_ids(input_ids)
    if sentinels.dtype != torch.int64:
        raise TypeError(f"sentinels are {sentinels.dtype}; they have 64 bits")
    if sentinels.ndim != 1:
        raise ValueError(f"sentinels have the shape {list(sentinels.shape)}; they are a list")
    if path is Path.CPU:
        return Computed(_is_one_of(input_ids.to(torch.int64), sentinels), path)
    from reference.kernels.device.masks import mask_sentinels

    return Computed(mask_sentinels(input_ids, sentinels), path)


def span_mask(spans: Iterable[Span], chunk: Chunk, device: torch.device | str = "cpu") -> Computed[torch.Tensor]:
    """Which positions of the chunk lie in a span: bool [chunk.length] on the device. Spans are disjoint, in any order."""
    table = SpansOfChunk.of(spans, chunk).to(device)
    path = path_of(spans=table.firsts)
    if path is Path.CPU:
        inside = torch.zeros(chunk.length, dtype=torch.bool, device=table.firsts.device)
        for first, stop in zip(table.firsts.tolist(), table.stops.tolist(), strict=True):
            inside[first:stop] = True
        return Computed(inside, path)
    from reference.kernels.device.masks import mask_spans

    return Computed(mask_spans(table.firsts, table.stops, chunk.length), path)


class SpansOfChunk(NamedTuple):
    """The spans of a prompt as far as they lie in a chunk, by position; all int64 [spans], counted from the chunk.

    firsts, stops: their first positions, and the ones behind their last. ranks: how many positions of media stand before
    each. total: how many there are in all.
    """

    firsts: torch.Tensor
    stops: torch.Tensor
    ranks: torch.Tensor
    total: int

    @classmethod
    def of(cls, spans: Iterable[Span], chunk: Chunk) -> "SpansOfChunk":
        """Raises ValueError for spans that overlap."""
        edges = np.array(sorted((span.first, span.stop) for span in spans), dtype=np.int64).reshape(-1, 2)
        overlaps = np.flatnonzero(edges[1:, 0] < edges[:-1, 1])
        if overlaps.size:
            raise ValueError(f"two spans overlap at position {edges[overlaps[0] + 1, 0]}: each position is one medium at most")
        inside = np.clip(edges - chunk.prefix, 0, chunk.length)
        firsts, stops = inside[inside[:, 0] < inside[:, 1]].T.copy()
        filled = np.cumsum(stops - firsts)
        total = int(filled[-1]) if len(filled) else 0
        return cls(torch.from_numpy(firsts), torch.from_numpy(stops), torch.from_numpy(filled - (stops - firsts)), total)

    def to(self, device: torch.device | str) -> "SpansOfChunk":
        """The same on a device."""
        return SpansOfChunk(self.firsts.to(device), self.stops.to(device), self.ranks.to(device), self.total)


def check_ids(input_ids: torch.Tensor) -> None:
    """Raise TypeError or ValueError for what are no ids of a sequence."""
    if input_ids.dtype not in _ID_TYPES:
        raise TypeError(f"input_ids are {input_ids.dtype}; ids are int32 or int64")
    if input_ids.ndim != 1:
        raise ValueError(f"input_ids have the shape {list(input_ids.shape)}; they are one sequence")


def _is_one_of(ids: torch.Tensor, ascending: torch.Tensor) -> torch.Tensor:
    if not len(ascending):
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    places = torch.searchsorted(ascending, ids).clamp_(max=len(ascending) - 1)
    return ascending[places] == ids
