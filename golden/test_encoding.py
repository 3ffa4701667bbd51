"""Encoding, measured on SGLang."""

from typing import Any

from conformance.cases import Exact
from golden.vectors import vectors
from reference.items import Chunk, Span


@vectors("ENCODING-01")
def test_positions_of_media_in_a_chunk(given: dict[str, Any], expected: int) -> Exact:
    return Exact(_spans_and_chunk(given), expected)


@vectors("ENCODING-02")
def test_rows_of_a_chunk(given: dict[str, Any], expected: list[int]) -> Exact:
    return Exact(_spans_and_chunk(given), expected)


def _spans_and_chunk(given: dict[str, Any]) -> tuple[tuple[Span, ...], Chunk]:
    return tuple(Span(*pair) for pair in given["spans"]), Chunk(given["prefix"], given["length"])
