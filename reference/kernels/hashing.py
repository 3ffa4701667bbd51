"""What is made of the bytes of a tensor: SGLang's word hash, and their BLAKE3 digest.

The word hash is that of SGLang 0.5.23 (`gpu_tensor_hash`), number by number: routers and caches share keys with it.
    1. The bytes are read as little-endian words of 32 bits, the last one filled up with zeros.
    2. Each word is mixed with its place, in two ways, so that words which change places change the hash. (A release of
       SGLang added the words of a block, and pictures with two blocks exchanged were one.)
    3. The mixed words of each 8,192 are added, both sums are mixed with the number of bytes, and these pairs are added over
       the whole tensor: no order of the additions changes the result, so a GPU may take any.
    4. The sum is mixed once more. Without any word there is nothing to mix, and the hash is 0.
It is for keys among friends: other contents of a given hash can be computed (`golden` has two contents of one hash), and it
is blind to dtype, to shape and to zeros that fill up a word. `content_digest` is for identities.

Disagreements: in SGLang the number of a word has 32 bits with a sign, which 8 GiB overflow; here only the place that is mixed
in is taken modulo 2**32. On a CPU, SGLang takes a SHA-256 instead (`reference.identity.tensor_hash`), so that its key of a
picture depends on where it was hashed.
"""

from collections.abc import Iterator

import numpy as np
import torch
from blake3 import blake3
from numpy.typing import NDArray

from reference.kernels.dispatch import Computed, Path, octets, path_of

TILE_WORDS = 8192
"""How many words are added before the number of bytes is mixed in. Another number is another hash."""

FIRST_PLACE, SECOND_PLACE = 0x27D4EB2D, 0x165667B1
FIRST_SEED, SECOND_SEED = 0x243F6A88, (0x243F6A88 * 0x9E3779B1 ^ 0xDEADBEEF) % 2**32
_TILES_AT_ONCE = 32


def word_hash(tensor: torch.Tensor) -> Computed[int]:
    """SGLang's 64-bit hash of a tensor on a GPU, wherever it lies: of its bytes in the order of its elements.

    Raises TypeError for a tensor without plain memory.
    """
    path = path_of(tensor=tensor)
    data = octets(tensor)
    if path is Path.CPU:
        return Computed(_hash_words(data.numpy()), path)
    from reference.kernels.device.word_hash import hash_words

    return Computed(hash_words(data), path)


def content_digest(tensor: torch.Tensor) -> Computed[bytes]:
    """The BLAKE3 digest, 32 bytes, of a tensor's bytes in the order of its elements; 0 bytes have one as well.

    Raises TypeError for a tensor without plain memory.
    """
    path = path_of(tensor=tensor)
    data = octets(tensor)
    if path is Path.CPU:
        return Computed(blake3(data.numpy().data).digest(), path)
    from reference.kernels.device.blake3 import digest

    return Computed(digest(data), path)


def _hash_words(data: NDArray[np.uint8]) -> int:
    if not len(data):
        return 0
    padded_bytes = (len(data) + 3) // 4 * 4
    return _finish(sum(_tile_hashes(data, padded_bytes)) % 2**64)


def _tile_hashes(data: NDArray[np.uint8], padded_bytes: int) -> Iterator[int]:
    """One number of 64 bits for each tile; some tiles at a time, so that little memory is needed beside the tensor's."""
    step = 4 * TILE_WORDS * _TILES_AT_ONCE
    for start in range(0, len(data), step):
        piece = data[start : start + step]
        tiles = np.zeros((-(-len(piece) // (4 * TILE_WORDS)), TILE_WORDS), dtype="<u4")
        tiles.reshape(-1).view(np.uint8)[: len(piece)] = piece
        places = (start // 4 + np.arange(tiles.size)).astype(np.uint32).reshape(tiles.shape)
        there = start + 4 * np.arange(tiles.size).reshape(tiles.shape) < padded_bytes
        first = _mix(tiles ^ (places * np.uint32(FIRST_PLACE) + np.uint32(FIRST_SEED)) ^ _rotate(places, 15)) * there
        second = _mix(tiles ^ (places * np.uint32(SECOND_PLACE) + np.uint32(SECOND_SEED)) ^ _rotate(places, 13)) * there
        length = np.uint32(padded_bytes % 2**32)
        high, low = (_mix(part.sum(axis=1, dtype=np.uint32) ^ length) for part in (first, second))
        yield from ((int(one) << 32) + int(other) for one, other in zip(high, low, strict=True))


def _mix(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The finaliser of MurmurHash3 for 32 bits."""
    words = (words ^ words >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    words = (words ^ words >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return words ^ words >> np.uint32(16)


def _rotate(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return words << np.uint32(bits) | words >> np.uint32(32 - bits)


def _finish(total: int) -> int:
    """The finaliser of SplitMix64."""
    total = (total ^ total >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    total = (total ^ total >> 27) * 0x94D049BB133111EB % 2**64
    return total ^ total >> 31
