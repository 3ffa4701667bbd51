"""What is obviously right about kernels: one word, one position after another."""

from collections.abc import Sequence

import blake3
import torch

from reference.items import Chunk, Span

TILE_WORDS = 8192


def octets(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor in the order of its elements."""
    return bytes(tensor.detach().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8).tolist())


def digest(data: bytes) -> bytes:
    """The digest by the package that the authors of BLAKE3 publish."""
    return blake3.blake3(data).digest()


def word_hash(data: bytes) -> int:
    """SGLang's hash, word by word. Vectors that were measured on its kernel are in `golden`."""
    padded = data + bytes(-len(data) % 4)
    words = [int.from_bytes(padded[start : start + 4], "little") for start in range(0, len(padded), 4)]
    total = 0
    for start in range(0, len(words), TILE_WORDS):
        places = range(start, min(start + TILE_WORDS, len(words)))
        first = sum(mixed(words[n] ^ ((n * 0x27D4EB2D + 0x243F6A88) % 2**32) ^ rotated(n, 15)) for n in places)
        second = sum(mixed(words[n] ^ ((n * 0x165667B1 + SECOND_SEED) % 2**32) ^ rotated(n, 13)) for n in places)
        total += mixed(first % 2**32 ^ len(padded)) * 2**32 + mixed(second % 2**32 ^ len(padded))
    total %= 2**64
    total = (total ^ total >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    total = (total ^ total >> 27) * 0x94D049BB133111EB % 2**64
    return (total ^ total >> 31) if words else 0


SECOND_SEED = (0x243F6A88 * 0x9E3779B1 ^ 0xDEADBEEF) % 2**32


def rotated(number: int, bits: int) -> int:
    """The lowest 32 bits of a number, rotated to the left."""
    return (number << bits | number % 2**32 >> (32 - bits)) % 2**32


def mixed(word: int) -> int:
    """The last steps of MurmurHash3."""
    word = (word ^ word >> 16) * 0x85EBCA6B % 2**32
    word = (word ^ word >> 13) * 0xC2B2AE35 % 2**32
    return word ^ word >> 16


def mask(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Each id by itself."""
    known = set(sentinels.tolist())
    return torch.tensor([id in known for id in input_ids.tolist()], dtype=torch.bool)


def covered(spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """Each position by itself."""
    filled = {position for span in spans for position in range(span.first, span.last + 1)}
    return torch.tensor([position in filled for position in range(chunk.prefix, chunk.stop)], dtype=torch.bool)


def scattered(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Each position in turn takes the next row, or stays as it is."""
    left, out = list(rows), destination.clone(memory_format=torch.contiguous_format)
    for position, is_taken in enumerate(mask.tolist()):
        if is_taken:
            out[position] = left.pop(0)
    return out


def merged(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each position in turn takes the next row, level by level, or the embedding of its id and zeros."""
    hidden = table.shape[1]
    left, planes = list(rows), rows.shape[1] // hidden
    out = torch.zeros(planes, chunk.length, hidden, dtype=table.dtype)
    for position, is_media in enumerate(covered(spans, chunk).tolist()):
        if is_media:
            row = left.pop(0)
            for plane in range(planes):
                out[plane, position] = row[plane * hidden : (plane + 1) * hidden]
        else:
            out[0, position] = table[min(max(int(ids[position]), 0), len(table) - 1)]
    return out[0], out[1:]
