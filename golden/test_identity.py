"""SGLang's hashes, measured on SGLang."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from conformance.cases import Exact
from conformance.suite.identity_hash_cases import Hashes
from golden.vectors import vectors
from reference.items import Modality


@vectors("IDENTITY-23")
def test_hash_of_a_caller(given: str, expected: int) -> Hashes:
    return Hashes((Modality.IMAGE,), {Modality.IMAGE: [given]}, (expected,))


@vectors("IDENTITY-27")
def test_hash_of_bytes(given: str, expected: int) -> Exact:
    return Exact(bytes.fromhex(given), expected)


@vectors("IDENTITY-28")
def test_hash_of_tensors(given: Any, expected: int) -> Exact:
    return Exact(tensors(given), expected)


@vectors("IDENTITY-29")
def test_hash_of_a_feature(given: dict[str, Any], expected: int) -> Exact:
    ((kind, value),) = given.items()
    readers: dict[str, Callable[[Any], Any]] = {"tensor": tensor, "array": array, "list": tensors, "bytes": bytes.fromhex}
    return Exact(readers[kind](value), expected)


def tensors(given: Any) -> Any:
    """A tensor, or nested lists of tensors."""
    return [tensors(one) for one in given] if isinstance(given, list) else tensor(given)


def tensor(given: dict[str, Any]) -> torch.Tensor:
    """A tensor of this dtype and shape: from its memory, or `ones` or `arange`, which need not be written out."""
    dtype = getattr(torch, given["dtype"])
    if "values" in given:
        return (
            torch.ones(given["shape"], dtype=dtype) if given["values"] == "ones" else torch.arange(*given["shape"], dtype=dtype)
        )
    if not given["bytes"]:
        return torch.empty(given["shape"], dtype=dtype)
    return torch.frombuffer(bytearray.fromhex(given["bytes"]), dtype=dtype).reshape(given["shape"])


def array(given: dict[str, Any]) -> np.ndarray:
    """The same as an array; a numpy dtype such as `>f4` is for the memory of an array that no tensor can be."""
    if hasattr(torch, given["dtype"]):
        return np.array(tensor(given).numpy(), order=given.get("order", "C"))
    return np.frombuffer(bytes.fromhex(given["bytes"]), dtype=given["dtype"]).reshape(given["shape"])
