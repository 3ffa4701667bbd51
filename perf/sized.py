"""Sized cases: what one call of an engine method costs, at a size that real traffic has.

    @sized("sentinels")
    def test_sentinels_of_one_picture(engine: Engine) -> Job:
        return lambda: engine.sentinels(bytes(32))

The function prepares its inputs, untimed, and returns the call to be timed. pytest-benchmark runs it and keeps the tables:
measurements without a verdict. `mmproof perf` compares two engines with them (`perf/gate.py`), and that has one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pytest

Job: TypeAlias = Callable[[], object]


class Sized(NamedTuple):
    """A sized case: its stage, the engine methods that it needs, and what prepares the call."""

    stage: str
    needs: tuple[str, ...]
    prepare: Callable[[Any], Job]


SIZED: dict[str, Sized] = {}
"""All sized cases of the modules that were imported, by name: `pad a video by spans`."""


def sized(*needs: str) -> Callable[[Callable[[Any], Job]], Callable[..., None]]:
    """Turn a function that prepares a call into a benchmark of it, for engines that have the methods `needs`."""

    def bind(prepare: Callable[[Any], Job]) -> Callable[..., None]:
        @pytest.mark.needs(*needs)
        def test(engine: Any, benchmark: Any) -> None:
            benchmark(prepare(engine))

        name, stage = prepare.__name__.removeprefix("test_").replace("_", " "), prepare.__module__.rpartition("test_")[2]
        SIZED[name] = Sized(stage, needs, prepare)
        test.__name__, test.__doc__ = prepare.__name__, prepare.__doc__
        bound: Callable[..., None] = test
        return bound

    return bind
