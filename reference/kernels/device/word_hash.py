"""The word hash of `reference.kernels.hashing` on a GPU: a program a tile, and one that adds up what they found."""

import torch
import triton
import triton.language as tl

from reference.kernels.device.launching import NOT_SPECIALIZED, ceil_div, where
from reference.kernels.device.words import as_words, load_tail, load_words
from reference.kernels.hashing import FIRST_PLACE, FIRST_SEED, SECOND_PLACE, SECOND_SEED, TILE_WORDS

BLOCK = 1024
PLACES = {"A": FIRST_PLACE, "B": SECOND_PLACE, "SEED_A": FIRST_SEED, "SEED_B": SECOND_SEED}


def hash_words(octets: torch.Tensor) -> int:
    """The word hash of bytes, uint8 [n]."""
    if not len(octets):
        return 0
    data, words = as_words(octets)
    tiles = torch.empty(ceil_div(len(data), 4 * TILE_WORDS), dtype=torch.int64, device=octets.device)
    total = torch.empty(1, dtype=torch.int64, device=octets.device)
    with where(octets):
        hash_tiles[(len(tiles),)](data, words, tiles, len(data), TILE=TILE_WORDS, BLOCK=BLOCK, **PLACES)
        finish_hash[(1,)](tiles, total, len(tiles), BLOCK=BLOCK)
    return int(total.item()) % 2**64


@triton.jit
def _rotate(word, BITS: tl.constexpr):
    return (word << BITS) | (word >> (32 - BITS))


@triton.jit
def _mix(word):
    word = (word ^ (word >> 16)) * 0x85EBCA6B
    word = (word ^ (word >> 13)) * 0xC2B2AE35
    return word ^ (word >> 16)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def hash_tiles(
    octets,
    words,
    tiles,
    n_bytes,
    TILE: tl.constexpr,
    BLOCK: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    SEED_A: tl.constexpr,
    SEED_B: tl.constexpr,
):
    """One number for each TILE words."""
    n_bytes = n_bytes.to(tl.int64)
    n_words = (n_bytes + 3) // 4
    tile = tl.program_id(0).to(tl.int64)
    tail = load_tail(octets, n_bytes)
    first = tl.zeros([BLOCK], tl.uint32)
    second = tl.zeros([BLOCK], tl.uint32)
    for start in range(0, TILE, BLOCK):
        index = tile * TILE + start + tl.arange(0, BLOCK)
        there = index < n_words
        word = load_words(words, index, n_bytes, tail, there)
        place = index.to(tl.uint32)
        first += tl.where(there, _mix(word ^ (place * A + SEED_A) ^ _rotate(place, 15)), 0)
        second += tl.where(there, _mix(word ^ (place * B + SEED_B) ^ _rotate(place, 13)), 0)
    length = (n_words * 4).to(tl.uint32)
    high = _mix(tl.sum(first.to(tl.uint64), axis=0).to(tl.uint32) ^ length)
    low = _mix(tl.sum(second.to(tl.uint64), axis=0).to(tl.uint32) ^ length)
    tl.store(tiles + tile, ((high.to(tl.uint64) << 32) | low.to(tl.uint64)).to(tl.int64, bitcast=True))


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def finish_hash(tiles, total, n_tiles, BLOCK: tl.constexpr):
    """The sum of all tiles, mixed once more. One program: a tensor of 8 GiB has no more than 262,144 tiles."""
    sums = tl.zeros([BLOCK], tl.int64)
    for start in range(0, n_tiles, BLOCK):
        index = start + tl.arange(0, BLOCK)
        sums += tl.load(tiles + index, mask=index < n_tiles, other=0)
    x = tl.sum(sums, axis=0).to(tl.uint64, bitcast=True)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    tl.store(total, (x ^ (x >> 31)).to(tl.int64, bitcast=True))
