"""Positions of conversations, measured on SGLang."""

from typing import Any

import numpy as np

from conformance.oracles.lifecycle_turns import Tables
from golden.vectors import vectors


def tables(given: dict[str, Any], expected: list[list[int]]) -> Tables:
    previous, turn, whole = (
        np.array(table, dtype=np.int64).reshape(3, -1) for table in (given["previous"], given["turn"], expected)
    )
    return Tables(previous, given["length"], turn, given["is_stripped"], whole)


@vectors("LIFECYCLE-11")
def test_positions_of_a_conversation(given: dict[str, Any], expected: list[list[int]]) -> Tables:
    return tables(given, expected)


@vectors("LIFECYCLE-12")
def test_delta_of_a_conversation(given: dict[str, Any], expected: list[list[int]]) -> Tables:
    return tables(given, expected)


@vectors("LIFECYCLE-13")
def test_positions_of_replies(given: dict[str, Any], expected: list[list[int]]) -> Tables:
    return tables(given, expected)


@vectors("LIFECYCLE-14")
def test_positions_of_a_stripped_turn(given: dict[str, Any], expected: list[list[int]]) -> Tables:
    return tables(given, expected)
