"""Vectors: exact values as plain JSON, run as cases of the rules of `conformance`.

A file `golden/vectors/STAGE.json` (see `vectors/schema.json`) holds its provenance and a list of vectors, each with the
requirement that it is a case of, a name, what is given and what is expected. Any language can read it; integers are
exact and may exceed 2**53.

    @vectors("SENTINELS-06")
    def test_sentinels_of_an_identity(given: str, expected: list[int]) -> Exact:
        return Exact(bytes.fromhex(given), tuple(expected))

turns each vector of SENTINELS-06 into a case, and runs the rule of that requirement on it.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import conformance.suite  # noqa: F401  (declares the rules)
from conformance.requirement import requirements

FOLDER = Path(__file__).parent / "vectors"


@cache
def load(stage: str) -> dict[str, Any]:
    """The vector file of a stage."""
    content: dict[str, Any] = json.loads((FOLDER / f"{stage}.json").read_text(encoding="utf-8"))
    return content


def vectors(id: str) -> Callable[[Callable[[Any, Any], Any]], Callable[..., None]]:
    """Turn a function that reads one vector into a test of requirement `id` on all of its vectors."""
    chosen = [vector for vector in load(requirements[id].stage)["vectors"] if vector["requirement"] == id]
    if not chosen:
        raise ValueError(f"{id} has no vectors: a test that runs nothing cannot fail")
    named = [pytest.param(vector, id=vector["name"]) for vector in chosen]

    def bind(read: Callable[[Any, Any], Any]) -> Callable[..., None]:
        @pytest.mark.requirement(id)
        @pytest.mark.parametrize("vector", named)
        def test(engine: Any, vector: dict[str, Any]) -> None:
            requirements[id].rule(engine, read(vector["given"], vector["expected"]))

        test.__name__, test.__doc__ = read.__name__, requirements[id].sentence
        vars(test)["read"] = read
        bound: Callable[..., None] = test
        return bound

    return bind
