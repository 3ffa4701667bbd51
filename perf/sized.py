"""Sized cases: what one call of an engine method costs, at a size that real traffic has.

    @sized("sentinels")
    def test_sentinels_of_one_picture(engine: Engine) -> Job:
        return lambda: engine.sentinels(bytes(32))

The function prepares its inputs, untimed, and returns the call to be timed. pytest-benchmark runs it and keeps the
tables. These are measurements and no gates: they have no verdict.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

Job: TypeAlias = Callable[[], object]


def sized(*needs: str) -> Callable[[Callable[[Any], Job]], Callable[..., None]]:
    """Turn a function that prepares a call into a benchmark of it, for engines that have the methods `needs`."""

    def bind(prepare: Callable[[Any], Job]) -> Callable[..., None]:
        @pytest.mark.needs(*needs)
        def test(engine: Any, benchmark: Any) -> None:
            benchmark(prepare(engine))

        test.__name__, test.__doc__ = prepare.__name__, prepare.__doc__
        bound: Callable[..., None] = test
        return bound

    return bind
