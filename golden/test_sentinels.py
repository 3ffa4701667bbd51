"""Sentinels, measured on SGLang."""

from conformance.cases import Exact
from golden.vectors import vectors


@vectors("SENTINELS-06")
def test_sentinels_of_an_identity(given: str, expected: list[int]) -> Exact:
    return Exact(bytes.fromhex(given), tuple(expected))


@vectors("SENTINELS-07")
def test_sentinels_of_a_hash(given: int, expected: list[int]) -> Exact:
    return Exact(given, tuple(expected))
