"""The word hash, measured on SGLang's kernels, and BLAKE3's own test vectors."""

from typing import Any

import torch

from conformance.cases import Exact
from conformance.suite.kernels_cases import pattern
from golden.vectors import vectors


@vectors("KERNELS-01")
def test_word_hash_of_bytes(given: dict[str, Any], expected: int) -> Exact:
    known = torch.tensor(list(bytes.fromhex(given.get("bytes", ""))), dtype=torch.uint8)
    return Exact(pattern(given["pattern"]) if "pattern" in given else known, expected)


@vectors("KERNELS-07")
def test_digest_of_bytes(given: dict[str, int], expected: str) -> Exact:
    return Exact(torch.arange(given["ramp"]).remainder(251).to(torch.uint8), bytes.fromhex(expected))
