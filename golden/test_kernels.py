"""The word hash, measured on SGLang's kernels."""

from typing import Any

import torch

from conformance.cases import Exact
from conformance.suite.kernels_cases import pattern
from golden.vectors import vectors


@vectors("KERNELS-01")
def test_word_hash_of_bytes(given: dict[str, Any], expected: int) -> Exact:
    known = torch.tensor(list(bytes.fromhex(given.get("bytes", ""))), dtype=torch.uint8)
    return Exact(pattern(given["pattern"]) if "pattern" in given else known, expected)
