"""Masks of media on a GPU: each lane looks for its position or its id in an ascending list."""

import torch
import triton
import triton.language as tl

from reference.kernels.device.launching import NOT_SPECIALIZED, ceil_div, where

BLOCK = 1024


def mask_sentinels(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Which ids [n] are one of the ascending sentinels [k]: bool [n]."""
    ids, ascending = input_ids.contiguous(), sentinels.contiguous()
    out = torch.empty(len(ids), dtype=torch.bool, device=ids.device)
    if len(ids):
        with where(ids):
            grid = (ceil_div(len(ids), BLOCK),)
            find_sentinels[grid](ids, ascending, out, len(ids), len(ascending), steps_for(ascending), BLOCK=BLOCK)
    return out


def mask_spans(firsts: torch.Tensor, stops: torch.Tensor, length: int) -> torch.Tensor:
    """Which of so many positions lie in one of the ascending, disjoint spans: bool [length]."""
    out = torch.empty(length, dtype=torch.bool, device=firsts.device)
    if length:
        with where(firsts):
            grid = (ceil_div(length, BLOCK),)
            find_spans[grid](firsts, stops, out, length, len(firsts), steps_for(firsts), BLOCK=BLOCK)
    return out


def steps_for(ascending: torch.Tensor) -> int:
    """How often a list of this length must be halved until one place is left."""
    return len(ascending).bit_length()


@triton.jit
def count_up_to(ascending, n_sorted, value, steps):
    """How many numbers of an ascending list are at most `value`, for each of these int64 values."""
    low = value * 0
    high = low + n_sorted
    for _ in range(0, steps):
        middle = (low + high) // 2
        is_open = low < high
        is_below = is_open & (tl.load(ascending + middle, mask=is_open, other=0) <= value)
        high = tl.where(is_open & (is_below == 0), middle, high)
        low = tl.where(is_below, middle + 1, low)
    return low


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def find_sentinels(ids, sentinels, out, n, n_sorted, steps, BLOCK: tl.constexpr):
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = position < n
    id = tl.load(ids + position, mask=there, other=0).to(tl.int64)
    count = count_up_to(sentinels, n_sorted, id, steps)
    nearest = tl.load(sentinels + count - 1, mask=there & (count > 0), other=0)
    tl.store(out + position, (count > 0) & (nearest == id), mask=there)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def find_spans(firsts, stops, out, n, n_spans, steps, BLOCK: tl.constexpr):
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = position < n
    count = count_up_to(firsts, n_spans, position, steps)
    stop = tl.load(stops + count - 1, mask=there & (count > 0), other=0)
    tl.store(out + position, position < stop, mask=there)
