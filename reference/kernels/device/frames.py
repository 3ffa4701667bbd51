"""Tokens of a video compared with those of the frame before, on a GPU: each program compares some tokens.

The lanes are those of `reference.pruning`. A product of two numbers of 32 bits is exact in 64, so that it does not matter
whether it is fused with the sum.
"""

import torch
import triton
import triton.language as tl

from reference.kernels.device.launching import NOT_SPECIALIZED, ceil_div, where
from reference.kernels.device.numbers import widened
from reference.pruning import LANES

ROWS = 4
SIZES = {"ROWS": ROWS, "LANES": LANES, "HALVINGS": LANES.bit_length() - 1}


def compare(embeddings: torch.Tensor, tokens_per_frame: int) -> torch.Tensor:
    """1 - cosine of each row and the one a frame before: float64 [rows]; infinity in the first frame."""
    plain = embeddings.detach().resolve_neg()
    rows = plain if plain.stride(1) == 1 else plain.contiguous()
    out = torch.full((len(rows),), torch.inf, dtype=torch.float64, device=rows.device)
    n, hidden = len(rows) - tokens_per_frame, rows.shape[1]
    if n:
        with where(rows):
            compare_rows[(ceil_div(n, ROWS),)](rows, out, n, tokens_per_frame, hidden, rows.stride(0), **SIZES)
    return out


@triton.jit
def add_up(lanes, ROWS: tl.constexpr, LANES: tl.constexpr, HALVINGS: tl.constexpr):
    """The sum of each row of lanes: neighbours are added, until one number is left."""
    for step in tl.static_range(HALVINGS):
        lanes = tl.sum(tl.reshape(lanes, [ROWS, LANES >> (step + 1), 2]), axis=2)
    return tl.reshape(lanes, [ROWS])


@triton.jit(do_not_specialize=[*NOT_SPECIALIZED, "frame"])
def compare_rows(rows, out, n, frame, hidden, stride, ROWS: tl.constexpr, LANES: tl.constexpr, HALVINGS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    both = tl.zeros([ROWS, LANES], tl.float64)
    before = tl.zeros([ROWS, LANES], tl.float64)
    now = tl.zeros([ROWS, LANES], tl.float64)
    for start in range(0, hidden, LANES):
        column = start + tl.arange(0, LANES)
        there = (token < n)[:, None] & (column < hidden)[None, :]
        place = rows + token[:, None] * stride + column[None, :]
        previous = widened(tl.load(place, mask=there, other=0)).to(tl.float64)
        current = widened(tl.load(place + frame.to(tl.int64) * stride, mask=there, other=0)).to(tl.float64)
        both += previous * current
        before += previous * previous
        now += current * current
    squares = add_up(before, ROWS, LANES, HALVINGS) * add_up(now, ROWS, LANES, HALVINGS)
    cosine = add_up(both, ROWS, LANES, HALVINGS) / tl.sqrt(tl.where(squares == 0, 1, squares))
    tl.store(out + frame.to(tl.int64) + token, 1 - cosine, mask=token < n)
