"""BLAKE3 on a GPU: each lane digests a chunk of 1,024 bytes, then each lane joins two neighbours, level by level.

BLAKE3 is a tree. Its chunks depend on nothing but their bytes and their number, so all of them are digested at once. A
level joins neighbours in pairs, and the one that has no neighbour goes up as it is: this gives the tree of the
specification, whose left side is always complete. Chaining values lie by word, [8, count], so that lanes read neighbouring
addresses.

Source: the BLAKE3 paper (O'Connor, Aumasson, Neves and Wilcox-O'Hearn), sections 2.1 to 2.5.
"""

import torch
import triton
import triton.language as tl

from reference.kernels.device.launching import NOT_SPECIALIZED, ceil_div, where
from reference.kernels.device.words import as_words, load_tail, load_words

LANES = {"BLOCK": 128, "num_warps": 2}
CHUNK_BYTES, BLOCK_BYTES = 1024, 64


def digest(octets: torch.Tensor) -> bytes:
    """The BLAKE3 digest of bytes, uint8 [n]."""
    data, words = as_words(octets)
    n_bytes, n_chunks = len(data), max(1, ceil_div(len(data), CHUNK_BYTES))
    n_blocks = max(1, ceil_div(min(n_bytes, CHUNK_BYTES), BLOCK_BYTES))
    values = torch.empty(8, n_chunks, dtype=torch.int32, device=data.device)
    with where(data):
        grid = (ceil_div(n_chunks, LANES["BLOCK"]),)
        digest_chunks[grid](data, words, values, n_bytes, n_chunks, n_blocks, **LANES)
        while values.shape[1] > 1:
            below, values = values, values.new_empty(8, ceil_div(values.shape[1], 2))
            grid = (ceil_div(values.shape[1], LANES["BLOCK"]),)
            join_parents[grid](below, values, below.shape[1], **LANES)
    return values.cpu().numpy().astype("<i4").tobytes()


@triton.jit
def _rotate(x, BITS: tl.constexpr):
    return (x >> BITS) | (x << (32 - BITS))


@triton.jit
def _mix(a, b, c, d, x, y):
    a = a + b + x
    d = _rotate(d ^ a, 16)
    c = c + d
    b = _rotate(b ^ c, 12)
    a = a + b + y
    d = _rotate(d ^ a, 8)
    c = c + d
    b = _rotate(b ^ c, 7)
    return a, b, c, d


@triton.jit
def compress(value, m, counter, n_bytes, flags):
    """The chaining value (8 words) after a block of 16 words m of n_bytes. counter: int64."""
    low, high = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    s0, s1, s2, s3, s4, s5, s6, s7 = value
    zero = s0 * 0
    s8, s9, s10, s11 = zero + 0x6A09E667, zero + 0xBB67AE85, zero + 0x3C6EF372, zero + 0xA54FF53A
    s12, s13, s14, s15 = zero + low, zero + high, zero + n_bytes, zero + flags
    for _ in tl.static_range(7):
        s0, s4, s8, s12 = _mix(s0, s4, s8, s12, m[0], m[1])
        s1, s5, s9, s13 = _mix(s1, s5, s9, s13, m[2], m[3])
        s2, s6, s10, s14 = _mix(s2, s6, s10, s14, m[4], m[5])
        s3, s7, s11, s15 = _mix(s3, s7, s11, s15, m[6], m[7])
        s0, s5, s10, s15 = _mix(s0, s5, s10, s15, m[8], m[9])
        s1, s6, s11, s12 = _mix(s1, s6, s11, s12, m[10], m[11])
        s2, s7, s8, s13 = _mix(s2, s7, s8, s13, m[12], m[13])
        s3, s4, s9, s14 = _mix(s3, s4, s9, s14, m[14], m[15])
        m = (m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1], m[11], m[12], m[5], m[9], m[14], m[15], m[8])
    return s0 ^ s8, s1 ^ s9, s2 ^ s10, s3 ^ s11, s4 ^ s12, s5 ^ s13, s6 ^ s14, s7 ^ s15


@triton.jit
def _first_value(zero):
    return (
        zero + 0x6A09E667,
        zero + 0xBB67AE85,
        zero + 0x3C6EF372,
        zero + 0xA54FF53A,
        zero + 0x510E527F,
        zero + 0x9B05688C,
        zero + 0x1F83D9AB,
        zero + 0x5BE0CD19,
    )


@triton.jit
def _store_value(out, stride, lane, there, value):
    for n in tl.static_range(8):
        tl.store(out + n * stride + lane, value[n].to(tl.int32, bitcast=True), mask=there)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def digest_chunks(octets, words, values, n_bytes, n_chunks, n_blocks, BLOCK: tl.constexpr):
    """The chaining value of each chunk; of a single chunk the digest. n_blocks: how many the longest chunk has."""
    n_bytes = n_bytes.to(tl.int64)
    n_chunks = n_chunks.to(tl.int64)
    chunk = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = chunk < n_chunks
    tail = load_tail(octets, n_bytes)
    root = tl.where(n_chunks == 1, 8, 0)
    c0, c1, c2, c3, c4, c5, c6, c7 = _first_value(tl.zeros([BLOCK], tl.uint32))
    for block in range(0, n_blocks):
        start = chunk * 1024 + block * 64
        is_active = there & ((start < n_bytes) | (block == 0))
        is_last = (start + 64 >= n_bytes) | (block == 15)
        length = tl.minimum(tl.maximum(n_bytes - start, 0), 64).to(tl.uint32)
        flags = (tl.where(is_last, 2 + root, 0) + tl.where(block == 0, 1, 0)).to(tl.uint32)
        word = start // 4
        m = (
            load_words(words, word, n_bytes, tail, is_active),
            load_words(words, word + 1, n_bytes, tail, is_active),
            load_words(words, word + 2, n_bytes, tail, is_active),
            load_words(words, word + 3, n_bytes, tail, is_active),
            load_words(words, word + 4, n_bytes, tail, is_active),
            load_words(words, word + 5, n_bytes, tail, is_active),
            load_words(words, word + 6, n_bytes, tail, is_active),
            load_words(words, word + 7, n_bytes, tail, is_active),
            load_words(words, word + 8, n_bytes, tail, is_active),
            load_words(words, word + 9, n_bytes, tail, is_active),
            load_words(words, word + 10, n_bytes, tail, is_active),
            load_words(words, word + 11, n_bytes, tail, is_active),
            load_words(words, word + 12, n_bytes, tail, is_active),
            load_words(words, word + 13, n_bytes, tail, is_active),
            load_words(words, word + 14, n_bytes, tail, is_active),
            load_words(words, word + 15, n_bytes, tail, is_active),
        )
        d0, d1, d2, d3, d4, d5, d6, d7 = compress((c0, c1, c2, c3, c4, c5, c6, c7), m, chunk, length, flags)
        c0, c1 = tl.where(is_active, d0, c0), tl.where(is_active, d1, c1)
        c2, c3 = tl.where(is_active, d2, c2), tl.where(is_active, d3, c3)
        c4, c5 = tl.where(is_active, d4, c4), tl.where(is_active, d5, c5)
        c6, c7 = tl.where(is_active, d6, c6), tl.where(is_active, d7, c7)
    _store_value(values, n_chunks, chunk, there, (c0, c1, c2, c3, c4, c5, c6, c7))


@triton.jit
def _load_child(below, n_below, place, there):
    return (
        tl.load(below + 0 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 1 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 2 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 3 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 4 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 5 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 6 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
        tl.load(below + 7 * n_below + place, mask=there, other=0).to(tl.uint32, bitcast=True),
    )


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def join_parents(below, above, n_below, BLOCK: tl.constexpr):
    """The next level, [8, ceil(n_below / 2)], of chaining values [8, n_below]; of two of them the digest."""
    n_below = n_below.to(tl.int64)
    n_above = (n_below + 1) // 2
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = lane < n_above
    is_pair = 2 * lane + 1 < n_below
    left = _load_child(below, n_below, 2 * lane, there)
    right = _load_child(below, n_below, 2 * lane + 1, is_pair)
    zero = tl.zeros([BLOCK], tl.uint32)
    flags = tl.where(n_below == 2, 12, 4).to(tl.uint32)
    joined = compress(_first_value(zero), left + right, lane * 0, zero + 64, zero + flags)
    for n in tl.static_range(8):
        word = tl.where(is_pair, joined[n], left[n])
        tl.store(above + n * n_above + lane, word.to(tl.int32, bitcast=True), mask=there)
