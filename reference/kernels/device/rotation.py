"""Heads turned by the triples of their positions on a GPU: each program makes a tile of the result.

A number is read twice, by itself and as its pair's other one; the second time it lies in the cache.
"""

import torch
import triton
import triton.language as tl

from reference.kernels.device.launching import NOT_SPECIALIZED, ceil_div, where
from reference.kernels.device.numbers import narrowed, rounded, widened

TILE = {"ROWS": 8, "COLUMNS": 128}
EXACT = {"enable_fp_fusion": False}
"""A product and a sum are rounded by themselves, and never together."""


def rotate(
    heads: torch.Tensor, positions: torch.Tensor, axes: torch.Tensor, table: torch.Tensor, neighbours: bool
) -> torch.Tensor:
    """Heads [n, heads, head_dim], turned; axes int64 [frequencies]: the row of `positions` that rotates each."""
    plain, cosines = _dense(heads), _dense(table)
    n, count, width = plain.shape
    out = torch.empty(n, count, width, dtype=plain.dtype, device=plain.device)
    sizes = (n, count, width, len(axes), plain.stride(0), plain.stride(1), cosines.stride(0))
    if out.numel():
        with where(out):
            grid = ceil_div(n * count, TILE["ROWS"]), ceil_div(width, TILE["COLUMNS"])
            rotate_tiles[grid](
                plain, positions.contiguous(), axes, cosines, out, *sizes, NEIGHBOURS=neighbours, **TILE, **EXACT
            )
    return out


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The same with its last dimension without gaps."""
    plain = tensor.detach().resolve_neg()
    return plain if plain.stride(-1) == 1 else plain.contiguous()


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def rotate_tiles(
    heads,
    positions,
    axes,
    table,
    out,
    n,
    count,
    width,
    half,
    token_stride,
    head_stride,
    table_stride,
    NEIGHBOURS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    kind: tl.constexpr = heads.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    token = row // count
    there = (token < n)[:, None] & (column < width)[None, :]
    if NEIGHBOURS:
        pair, other, is_one = column // 2, column ^ 1, column % 2 == 0
    else:
        is_one = column < half
        other = tl.where(is_one, column + half, column - half)
        pair = tl.minimum(column, other)
    is_turned = column < 2 * half
    turned = there & is_turned[None, :]
    axis = tl.load(axes + pair, mask=is_turned, other=0)
    position = tl.load(positions + axis[None, :] * n + token[:, None], mask=turned, other=0)
    angle = table + position * table_stride + pair[None, :]
    cosine = rounded(widened(tl.load(angle, mask=turned, other=0)), kind)
    sine = rounded(widened(tl.load(angle + half, mask=turned, other=0)), kind)
    base = heads + (token * token_stride + (row - token * count) * head_stride)[:, None]
    own = tl.load(base + column[None, :], mask=there, other=0)
    left = rounded(widened(own) * cosine, kind)
    right = rounded(widened(tl.load(base + other[None, :], mask=turned, other=0)) * sine, kind)
    total = rounded(tl.where(is_one[None, :], left - right, left + right), kind)
    place = out + row[:, None] * width + column[None, :]
    tl.store(place, tl.where(is_turned[None, :], narrowed(total, kind), own), mask=there)
