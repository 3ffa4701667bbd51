"""Rows on a GPU: each program makes a tile of the result and decides, row by row, where it comes from."""

import torch
import triton
import triton.language as tl

from reference.kernels.device.launching import NOT_SPECIALIZED, ceil_div, where
from reference.kernels.device.masks import count_up_to, steps_for
from reference.kernels.masks import SpansOfChunk

TILE = {"ROWS": 8, "COLUMNS": 128}


def scatter(destination: torch.Tensor, mask: torch.Tensor, ranks: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`destination` [n, hidden] with rows [m, hidden] where the mask is; ranks int64 [n]: its sums from the left."""
    n, hidden = destination.shape
    out = torch.empty(n, hidden, dtype=destination.dtype, device=destination.device)
    strides = (destination.stride(0), rows.stride(0))
    if out.numel():
        with where(out):
            scatter_tiles[_grid(n, hidden)](destination, mask.contiguous(), ranks, rows, out, n, hidden, *strides, **TILE)
    return out


def merge(ids: torch.Tensor, spans: SpansOfChunk, rows: torch.Tensor, table: torch.Tensor, planes: int) -> torch.Tensor:
    """The layers of a chunk, [planes, length, hidden]: the first one with text, the others with zeros there."""
    n, hidden = len(ids), table.shape[1]
    out = torch.empty(planes, n, hidden, dtype=table.dtype, device=table.device)
    found = (spans.firsts, spans.stops, spans.ranks)
    sizes = (n, len(spans.firsts), steps_for(spans.firsts), len(table), hidden, table.stride(0), rows.stride(0))
    if out.numel():
        with where(out):
            merge_tiles[(*_grid(n, hidden), planes)](ids.contiguous(), *found, rows, table, out, *sizes, **TILE)
    return out


def _grid(n: int, hidden: int) -> tuple[int, int]:
    return ceil_div(n, TILE["ROWS"]), ceil_div(hidden, TILE["COLUMNS"])


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def scatter_tiles(
    destination,
    mask,
    ranks,
    rows,
    out,
    n,
    hidden,
    destination_stride,
    rows_stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    there = (position < n)[:, None] & (column < hidden)[None, :]
    is_taken = (tl.load(mask + position, mask=position < n, other=0) != 0)[:, None]
    row = tl.load(ranks + position, mask=position < n, other=0) - 1
    taken = tl.load(rows + row[:, None] * rows_stride + column[None, :], mask=there & is_taken, other=0)
    kept = tl.load(
        destination + position[:, None] * destination_stride + column[None, :], mask=there & (is_taken == 0), other=0
    )
    tl.store(out + position[:, None] * hidden + column[None, :], tl.where(is_taken, taken, kept), mask=there)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def merge_tiles(
    ids,
    firsts,
    stops,
    ranks,
    rows,
    table,
    out,
    n,
    n_spans,
    steps,
    vocabulary,
    hidden,
    table_stride,
    rows_stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    plane = tl.program_id(2).to(tl.int64)
    there = position < n
    count = count_up_to(firsts, n_spans, position, steps)
    span = count - 1
    is_found = there & (count > 0)
    is_media = is_found & (position < tl.load(stops + span, mask=is_found, other=0))
    row = tl.load(ranks + span, mask=is_media, other=0) + position - tl.load(firsts + span, mask=is_media, other=0)
    is_text = there & (is_media == 0) & (plane == 0)
    id = tl.load(ids + position, mask=there, other=0).to(tl.int64)
    id = tl.minimum(tl.maximum(id, 0), vocabulary - 1)
    inside = (column < hidden)[None, :]
    source = row[:, None] * rows_stride + plane * hidden + column[None, :]
    taken = tl.load(rows + source, mask=is_media[:, None] & inside, other=0)
    gathered = tl.load(table + id[:, None] * table_stride + column[None, :], mask=is_text[:, None] & inside, other=0)
    place = (plane * n + position)[:, None] * hidden + column[None, :]
    tl.store(out + place, tl.where(is_media[:, None], taken, gathered), mask=there[:, None] & inside)
