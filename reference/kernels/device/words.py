"""Bytes read as little-endian words of 32 bits, from any address and of any number."""

import torch
import triton
import triton.language as tl


def as_words(octets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes, uint8 [n], and their complete words, int32 [n // 4]: of a copy, if they begin where no word can."""
    begins_a_word = octets.data_ptr() % 4 == 0 and octets.storage_offset() % 4 == 0
    data = octets if begins_a_word else octets.clone()
    return data, data[: len(data) // 4 * 4].view(torch.int32)


@triton.jit
def load_tail(octets, n_bytes):
    """The last, incomplete word: 1 to 3 bytes, filled up with zeros."""
    start = n_bytes // 4 * 4
    word = tl.load(octets + start, mask=start < n_bytes, other=0).to(tl.uint32)
    word |= tl.load(octets + start + 1, mask=start + 1 < n_bytes, other=0).to(tl.uint32) << 8
    return word | (tl.load(octets + start + 2, mask=start + 2 < n_bytes, other=0).to(tl.uint32) << 16)


@triton.jit
def load_words(words, index, n_bytes, tail, there):
    """The words of these int64 indices, 0 behind the end. tail: from `load_tail`. there: which are wanted."""
    full = n_bytes // 4
    word = tl.load(words + index, mask=there & (index < full), other=0).to(tl.uint32, bitcast=True)
    return tl.where(index == full, tail, word)
