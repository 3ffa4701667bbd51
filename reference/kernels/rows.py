"""Rows that enter the language model: scattered by a mask, or merged with text embeddings in one pass.

`fused_merge` is `reference.merging.merge` as one kernel: it finds which positions are media, clamps the ids of the others,
gathers their embeddings, and takes the rows of media, level by level. It reads spans and not ids, and that is also what
makes one pass enough: the number of a position's row follows from its span, while a mask by ids would have to be summed up
first, and its sum brought to the host, before anybody knows whether there are as many rows.

Rows are moved bit by bit and never converted: they have the type of what they join. Ids of text outside of the table are
clamped into it, so that nothing outside of its memory is read; `reference.merging.text_ids` refuses them before.

Source: SGLang 0.5.23, `embed_mm_inputs`, `_scatter_mm_embedding`.
"""

from collections.abc import Iterable

import numpy as np
import torch

from reference.items import Chunk, Span
from reference.kernels.dispatch import Computed, Path, movable, path_of
from reference.kernels.masks import SpansOfChunk, check_ids

SHORT_RUN = 16 * 1024
"""Runs of rows that have fewer bytes than this on average are scattered position by position on a CPU."""


def scatter_rows(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> Computed[torch.Tensor]:
    """`destination` [n, hidden] with the k-th row of `rows` [m, hidden] at the k-th position of `mask`, bool [n]; a new tensor.

    Raises ValueError for other shapes and for a number of rows that is not that of the mask, TypeError for another dtype.
    """
    path = path_of(destination=destination, mask=mask, rows=rows)
    _check_rows(rows, destination, "destination")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}; a mask is of bools")
    if mask.shape != destination.shape[:1]:
        raise ValueError(f"mask has the shape {list(mask.shape)} for {len(destination)} positions")
    if rows.shape[1] != destination.shape[1]:
        raise ValueError(f"rows of {rows.shape[1]} columns for a destination of {destination.shape[1]}")
    ranks = mask.cumsum(0) if path is Path.TRITON else mask.count_nonzero()[None]
    wanted = int(ranks[-1]) if len(ranks) else 0
    if len(rows) != wanted:
        raise ValueError(f"{len(rows)} rows for {wanted} positions of the mask: each one takes exactly one row")
    moved, taken = movable(destination), movable(rows)
    if path is Path.CPU:
        scattered = _scatter(moved, mask, taken)
    else:
        from reference.kernels.device.rows import scatter

        scattered = scatter(moved, mask, ranks, taken)
    return Computed(scattered.view(destination.dtype), path)


def fused_merge(
    input_ids: torch.Tensor, spans: Iterable[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Computed[tuple[torch.Tensor, torch.Tensor]]:
    """What enters the language model for one chunk, [chunk.length, hidden], and its deeper layers, [levels, length, hidden].

    input_ids: int32 or int64 [chunk.length]; what they are at media positions does not matter.
    spans: of the whole prompt, disjoint, in any order.
    rows: [positions of media in the chunk, hidden * (1 + levels)], by position, of the table's dtype.
    table: the text embeddings [vocabulary, hidden].
    Deeper layers get the further columns of the rows, and zeros at text.

    Raises ValueError for any other number or width of rows, for spans that overlap, for ids of another length and for text
    without a table, TypeError for other dtypes.
    """
    path = path_of(input_ids=input_ids, rows=rows, table=table)
    check_ids(input_ids)
    _check_rows(rows, table, "table")
    found = SpansOfChunk.of(spans, chunk)
    if len(input_ids) != chunk.length:
        raise ValueError(f"{len(input_ids)} ids for {chunk}, which has {chunk.length} positions")
    if not table.shape[1] or not rows.shape[1] or rows.shape[1] % table.shape[1]:
        raise ValueError(f"rows have {rows.shape[1]} columns; the model takes {table.shape[1]}, or a multiple of them")
    if len(rows) != found.total:
        raise ValueError(f"{len(rows)} rows for {found.total} positions of media in {chunk}: each one takes exactly one row")
    if found.total < chunk.length and not len(table):
        raise ValueError("there is text, but the table has no embeddings")
    planes, moved, taken = rows.shape[1] // table.shape[1], movable(table), movable(rows)
    if path is Path.CPU:
        merged = _merge(input_ids.to(torch.int64), found, taken, moved, planes)
    else:
        from reference.kernels.device.rows import merge

        merged = merge(input_ids, found.to(table.device), taken, moved, planes)
    whole = merged.view(table.dtype)
    return Computed((whole[0], whole[1:]), path)


def _scatter(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Long runs are joined, so that each row is written once; of short ones each would cost more than its rows."""
    edges = np.flatnonzero(np.diff(mask.numpy(), prepend=False))
    if SHORT_RUN * len(edges) > destination.nbytes:
        return destination.contiguous().index_copy(0, mask.nonzero()[:, 0], rows)
    lengths = np.diff(edges, prepend=0, append=len(mask)).tolist()
    parts = list(destination.split_with_sizes(lengths))  # kept, taken, kept, and so on
    parts[1::2] = rows.split_with_sizes(lengths[1::2])
    return torch.cat(parts)


def _merge(ids: torch.Tensor, spans: SpansOfChunk, rows: torch.Tensor, table: torch.Tensor, planes: int) -> torch.Tensor:
    """The layers of a chunk, [planes, length, hidden]: the first one with text."""
    out = table.new_zeros(planes, len(ids), table.shape[1])
    media = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for first, stop in zip(spans.firsts.tolist(), spans.stops.tolist(), strict=True):
        media[first:stop] = True
    out[0, ~media] = table[ids[~media].clamp(0, max(len(table) - 1, 0))]
    out[:, media] = rows.reshape(len(rows), planes, table.shape[1]).transpose(0, 1)
    return out


def _check_rows(rows: torch.Tensor, other: torch.Tensor, name: str) -> None:
    if rows.ndim != 2 or other.ndim != 2:
        raise ValueError(f"rows have the shape {list(rows.shape)} and {name} {list(other.shape)}; both are [rows, columns]")
    if rows.dtype != other.dtype:
        raise TypeError(f"rows are {rows.dtype} and {name} is {other.dtype}; kernels move rows and convert nothing")
