"""Bind a Hypothesis strategy to a requirement: the same rule, on searched cases.

    @searches("SENTINELS-01")
    def test_any_identity() -> SearchStrategy[bytes]:
        return st.binary(min_size=32, max_size=32)

A search is deterministic and of fixed length, so that it can run in CI: the same examples each time, no deadline, no
database. `mmproof fuzz --times 10 --seed 3` tries ten times as many, and others.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

import conformance.suite  # noqa: F401  (declares the rules)
from conformance.engine import Traits
from conformance.requirement import requirements
from conformance.session import Effort

SEARCH = settings(
    derandomize=True,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)


def every_case(traits: Traits, case: Any) -> bool:
    return True


def searches(
    id: str, *, examples: int = 100, asked: Callable[[Traits, Any], bool] = every_case
) -> Callable[[Callable[[], SearchStrategy[Any]]], Callable[..., None]]:
    """Turn a function that returns a strategy into a search for a case that breaks requirement `id`.

    examples: how many cases are tried; fewer where a case is dear. asked: whether an engine with these traits is asked a case.
    """

    def bind(strategy: Callable[[], SearchStrategy[Any]]) -> Callable[..., None]:
        @pytest.mark.requirement(id)
        def test(engine: Any, effort: Effort) -> None:
            one = requirements[id]

            def search(case: Any) -> None:
                if one.family is not None and not all(map(engine.can, one.wants(case))):
                    return  # the engine does not serve this family of models
                if not asked(engine.traits, case):
                    return  # the engine chose otherwise
                try:
                    one.rule(engine, case)
                finally:
                    engine.put_back()

            search.__qualname__ = strategy.__name__  # what the examples depend on, beside the seed
            chosen = settings(SEARCH, max_examples=examples * effort.times, derandomize=effort.seed is None)
            searching = chosen(given(case=strategy())(search))
            try:
                (searching if effort.seed is None else seed(effort.seed)(searching))()
            except Flaky as error:
                raise AssertionError("a case failed once and held when it came again: the engine's answers vary") from error

        test.__name__, test.__doc__ = strategy.__name__, requirements[id].sentence
        bound: Callable[..., None] = test
        return bound

    return bind
