"""Sized cases: what one call of an engine method costs, at a size that real traffic has.

    @sized("sentinels")
    def test_sentinels_of_one_picture(engine: Engine) -> Job:
        return lambda: engine.sentinels(bytes(32))

The function prepares its inputs, untimed, and returns the call to be timed. pytest-benchmark runs it and keeps the tables:
measurements without a verdict. `mmproof perf` compares two engines with them (`perf/gate.py`), and that has one.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import pytest

from conformance.witness import Witness
from perf.verdict import MARGIN

Job: TypeAlias = Callable[[], object]


class Asked:
    """An engine as it is, with nothing between: cases may ask whether it can do something, and everything else."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.can = Witness(engine).can

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class Sized(NamedTuple):
    """A sized case: its stage, the engine methods that it needs, and what prepares the call.

    margin: how much more time is still the same here; allowed: by how much which counters may grow; because: why either is
    more than elsewhere. uncounted: why only hashes and encoders can be counted, such as threads.
    """

    stage: str
    needs: tuple[str, ...]
    prepare: Callable[[Any], Job]
    margin: float = MARGIN
    allowed: Mapping[str, int] = {}
    because: str = ""
    uncounted: str = ""


SIZED: dict[str, Sized] = {}
"""All sized cases of the modules that were imported, by name: `pad a video by spans`."""


def declare(name: str, case: Sized) -> None:
    """Make a case known. Raises ValueError for a margin below the usual one, and for one, or an allowance, without a reason."""
    if case.margin < MARGIN:
        raise ValueError(f"{name}: a margin is only ever more than {MARGIN}, not {case.margin}")
    if (case.margin > MARGIN or case.allowed) and not case.because:
        raise ValueError(f"{name}: say in `because` why more is allowed here")
    if any(more < 0 for more in case.allowed.values()):
        raise ValueError(f"{name}: an allowance is 0 or more")
    SIZED[name] = case


def sized(*needs: str, **more: Any) -> Callable[[Callable[[Any], Job]], Callable[..., None]]:
    """Turn a function that prepares a call into a benchmark of it, for engines that have the methods `needs`.

    more: margin, allowed, because and uncounted of the case, as `Sized` explains them.
    """

    def bind(prepare: Callable[[Any], Job]) -> Callable[..., None]:
        @pytest.mark.needs(*needs)
        def test(engine: Any, benchmark: Any) -> None:
            benchmark(prepare(Asked(engine.subject)))

        name, stage = prepare.__name__.removeprefix("test_").replace("_", " "), prepare.__module__.rpartition("test_")[2]
        declare(name, Sized(stage, needs, prepare, **more))
        test.__name__, test.__doc__ = prepare.__name__, prepare.__doc__
        bound: Callable[..., None] = test
        return bound

    return bind
