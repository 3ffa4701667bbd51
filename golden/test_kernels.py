"""The word hash, measured on SGLang's kernels, BLAKE3's own test vectors, heads that transformers turned, and videos."""

from typing import Any

import torch

from conformance.cases import Exact
from conformance.oracles.kernels_computing import Film, Heads
from conformance.suite.kernels_cases import pattern
from golden.vectors import vectors


@vectors("KERNELS-01")
def test_word_hash_of_bytes(given: dict[str, Any], expected: int) -> Exact:
    known = torch.tensor(list(bytes.fromhex(given.get("bytes", ""))), dtype=torch.uint8)
    return Exact(pattern(given["pattern"]) if "pattern" in given else known, expected)


@vectors("KERNELS-07")
def test_digest_of_bytes(given: dict[str, int], expected: str) -> Exact:
    return Exact(torch.arange(given["ramp"]).remainder(251).to(torch.uint8), bytes.fromhex(expected))


@vectors("KERNELS-27")
def test_heads_that_are_turned(given: dict[str, Any], expected: dict[str, str]) -> Exact:
    dtype, n = getattr(torch, given["dtype"]), len(given["positions"][0])
    shapes = [(n, count, given["head_dim"]) for count in given["heads"]]
    query, key = (memory(given[name], dtype, shape) for name, shape in zip(("query", "key"), shapes, strict=True))
    time, height, width = given["sections"]
    table = memory(given["table"], torch.float32, (-1, 2 * (time + height + width)))
    case = Heads(
        query, key, torch.tensor(given["positions"]), table, (time, height, width), given["interleaved"], given["neighbours"]
    )
    right = [memory(expected[name], dtype, shape) for name, shape in zip(("query", "key"), shapes, strict=True)]
    return Exact(case, tuple(right))


@vectors("KERNELS-37")
def test_tokens_that_are_compared(given: dict[str, Any], expected: list[str]) -> Exact:
    frames, height, width = given["grid"]
    embeddings = memory(given["embeddings"], getattr(torch, given["dtype"]), (frames * height * width, -1))
    first = torch.full((height * width,), torch.inf, dtype=torch.float64)
    later = torch.tensor([float.fromhex(value) for value in expected], dtype=torch.float64)
    return Exact(Film(embeddings, (frames, height, width)), torch.cat([first, later]))


def memory(data: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of this memory."""
    return torch.frombuffer(bytearray(bytes.fromhex(data)), dtype=dtype).reshape(shape)
