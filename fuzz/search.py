"""Bind a Hypothesis strategy to a requirement: the same rule, on searched cases.

    @searches("SENTINELS-01")
    def test_any_identity() -> SearchStrategy[bytes]:
        return st.binary(min_size=32, max_size=32)

The search is deterministic and of fixed length, so that it can run in CI: the same examples each time, no deadline, no
database.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

import conformance.suite  # noqa: F401  (declares the rules)
from conformance.requirement import requirements

SEARCH = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def searches(id: str, *, examples: int = 100) -> Callable[[Callable[[], SearchStrategy[Any]]], Callable[..., None]]:
    """Turn a function that returns a strategy into a search for a case that breaks requirement `id`.

    examples: how many cases are tried; fewer where a case is dear.
    """

    def bind(strategy: Callable[[], SearchStrategy[Any]]) -> Callable[..., None]:
        @pytest.mark.requirement(id)
        @settings(SEARCH, max_examples=examples)
        @given(case=strategy())
        def search(engine: Any, case: Any) -> None:
            requirements[id].rule(engine, case)

        search.__name__, search.__doc__ = strategy.__name__, requirements[id].sentence
        bound: Callable[..., None] = search
        return bound

    return bind
