"""Ways in which engines have fed deeper layers wrongly."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import merging as right
from reference.items import Chunk, Item

Ids = NDArray[np.int64]
Layers = tuple[torch.Tensor, torch.Tensor]

_buffers: dict[tuple[int, int], torch.Tensor] = {}


@quirk(
    "last-columns-to-the-first-layer", replaces="merge_deepstack", bugs=(), caught_by=("MERGING-13", "MERGING-14", "MERGING-16")
)
def levels_first(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The columns are read as the deeper levels first and the first layer last."""
    hidden = table.shape[1]
    return right.merge_deepstack(ids, items, rows.roll(hidden, 1) if rows.shape[1] % hidden == 0 else rows, table, chunk)


@quirk("first-layer-gets-level-zero-added", replaces="merge_deepstack", bugs=(), caught_by=("MERGING-13",))
def added(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The first level is added to the input of the first layer already."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    return merged + levels[0], levels


@quirk(
    "levels-lost", replaces="merge_deepstack", bugs=("D01", "D02", "pp-deepstack-lost"), caught_by=("MERGING-14", "MERGING-16")
)
def zeros(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The deeper rows never reach their buffer: every level is zero."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    return merged, torch.zeros_like(levels)


@quirk("columns-interleaved", replaces="merge_deepstack", bugs=(), caught_by=("MERGING-14", "MERGING-16"))
def strided(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """Level l takes every L-th column instead of the l-th block of columns."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    mixed = levels.permute(1, 2, 0).reshape(chunk.length, len(levels), -1).transpose(0, 1)
    return merged, mixed


@quirk("levels-in-modality-order", replaces="merge_deepstack", bugs=("Q02",), caught_by=("MERGING-14",))
def permuted(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The input of the first layer is put in order of positions, the levels stay pictures first."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    spans = sorted((item.modality, p) for item in items for span in item.spans for p in range(span.first, span.stop))
    order = [position - chunk.prefix for _, position in spans if chunk.prefix <= position < chunk.stop]
    mixed = levels.clone()
    mixed[:, order] = levels[:, sorted(order)]
    return merged, mixed


@quirk(
    "levels-cover-media-only",
    replaces="merge_deepstack",
    bugs=("K06", "deepstack-buffer-short"),
    caught_by=("MERGING-13", "MERGING-14", "MERGING-15", "MERGING-16"),
)
def short(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The levels have as many rows as there are media, fewer than the chunk has positions."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    return merged, levels[:, : len(rows)]


@quirk("text-in-every-level", replaces="merge_deepstack", bugs=(), caught_by=("MERGING-15", "MERGING-16"))
def text_again(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """Each level is scattered into a copy of the text embeddings, which the deeper layers then add once more."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    return merged, torch.where(levels == 0, merged, levels)


@quirk(
    "stale-levels",
    replaces="merge_deepstack",
    bugs=("D01", "K06", "deepstack-buffer-short"),
    caught_by=("MERGING-15", "MERGING-16"),
)
def one_buffer(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The levels live in one buffer that only rows of media are written to: text shows what the chunk before had there."""
    merged, levels = right.merge_deepstack(ids, items, rows, table, chunk)
    buffer = _buffers.setdefault((len(levels), levels.shape[2]), torch.zeros(len(levels), 256, levels.shape[2]))
    written = torch.from_numpy(right.span_mask((span for item in items for span in item.spans), chunk))
    buffer[:, : chunk.length][:, written] = levels[:, written].float()
    return merged, buffer[:, : chunk.length].to(levels.dtype)


@quirk("surplus-columns-dropped", replaces="merge_deepstack", bugs=("precomputed-hidden-size",), caught_by=("MERGING-17",))
def whole_levels(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """The number of levels is rounded down, and what is left over of a row is dropped."""
    hidden = table.shape[1]
    return right.merge_deepstack(ids, items, rows[:, : rows.shape[1] // hidden * hidden], table, chunk)


@quirk("width-only-asserted", replaces="merge_deepstack", bugs=("L01",), caught_by=("MERGING-17",))
def asserted(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """A width that does not divide runs into an assertion: nobody handles it, and the engine goes down with the request."""
    if rows.shape[1] % max(rows.shape[1] // table.shape[1], 1):
        raise AssertionError("the width must be divisible by the number of levels")
    return right.merge_deepstack(ids, items, rows, table, chunk)
