"""Growth: an engine whose costs grow with the square is found, one whose costs grow with the size is not."""

from collections.abc import Iterator
from math import log2
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from conformance.adapters.reference import ReferenceEngine
from perf import gate, growth
from perf.arm import Arm
from perf.growth import FEW, LIMIT, Growth, Scale, doubling, interval, slopes
from perf.sized import Asked
from perf.workloads import pictures_and_text

SIZES = (10_000, 20_000, 40_000, 80_000)


class Looks(ReferenceEngine):
    """For each item it looks at all items: in Python."""

    @staticmethod
    def pad_spans(input_ids: Any, items: Any) -> Any:
        found = [sum(1 for other in items if other is item) for item in items]
        assert set(found) == {1}
        return ReferenceEngine.pad_spans(input_ids, items)


class Compares(ReferenceEngine):
    """It compares all with all: in compiled code, with memory for it."""

    @staticmethod
    def pad_spans(input_ids: Any, items: Any) -> Any:
        firsts = np.array([item.spans[0].first for item in items])
        assert (firsts[:, None] - firsts).any()
        return ReferenceEngine.pad_spans(input_ids, items)


class Searches(ReferenceEngine):
    """It searches a list for each item: in compiled code, without memory."""

    @staticmethod
    def pad_spans(input_ids: Any, items: Any) -> Any:
        ids = input_ids.tolist()
        assert not any((-number in ids) for number in range(1, 1 + len(items) // 4))
        return ReferenceEngine.pad_spans(input_ids, items)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(growth, "SCALES", {"a prompt": Scale(pictures_and_text, SIZES, "positions")})
    monkeypatch.setattr(growth, "FEW", FEW | {"lines": 64})
    return


def measured(engine: Any, stage: str = "placeholders") -> Growth:
    return growth.measure(Asked(engine), "a prompt", stage)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("engine", "found_by"), [(Looks, "lines"), (Compares, "bytes of objects at peak"), (Searches, "time")])
def test_a_square_is_found(engine: Any, found_by: str) -> None:
    assert found_by in " ".join(measured(engine()).reasons)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stage", [stage for stage in growth.STEPS if stage != "pruning"])
def test_what_the_reference_does_grows_with_the_size(stage: str) -> None:
    half, whole = (growth.STEPS[stage].ask(Asked(ReferenceEngine()), pictures_and_text(size)) for size in SIZES[-2:])
    assert max(growth.exponents(half, whole).values()) <= LIMIT


@pytest.mark.parametrize(("exponent", "expected"), [(1.0, True), (1.1, True), (1.3, False), (2.0, False)])
def test_times_that_grow_by_a_power_have_its_exponent(exponent: float, expected: bool) -> None:
    noise = np.random.default_rng(1).normal(1, 0.02, (9, 4))
    taken = np.array(SIZES, dtype=float) ** exponent * noise
    middle, low, high = interval(slopes(SIZES, taken.tolist()))
    assert low <= middle <= high
    assert abs(middle - exponent) < 0.05
    found = Growth("a prompt", "merging", {}, (middle, low, high))
    assert (not found.reasons, found.is_resolved) == (expected, True)


def test_an_interval_that_holds_the_limit_decides_nothing() -> None:
    found = Growth("a prompt", "merging", {}, (1.16, 1.1, 1.2))
    assert (found.reasons, found.is_resolved) == ([], False)
    steady = Growth("a prompt", "merging", {}, (1.0, 0.9, 1.1))
    assert gate.growth_status([steady] * 3 + [found]) == gate.INCONCLUSIVE
    assert gate.growth_status([steady] * 4 + [found]) == gate.FINE
    assert gate.growth_status([]) == gate.INCONCLUSIVE
    assert gate.growth_status([steady, Growth("a prompt", "merging", {"lines": 2.0}, (1.0, 0.9, 1.1))]) == gate.SLOWER


def test_a_count_that_doubles_is_linear_and_one_that_quadruples_is_not() -> None:
    assert doubling(1_000_000, 2_000_000, 0) == 1
    assert doubling(1_000_000, 4_000_000, 0) == 2
    assert doubling(0, 100, 4096) < log2(1.05)


def test_each_time_around_a_loop_is_a_line() -> None:
    short, long = (growth.lines(lambda n=n: [number + 1 for number in range(n)]) for n in (100, 200))
    assert long - short == 100


def test_the_command_asks_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    asked = []

    def growths(engine: str, stages: Any) -> list[Growth]:
        asked.append((engine, list(stages)))
        return [Growth("a prompt", "merging", {"lines": 1.9}, (1.0, 0.9, 1.1))]

    monkeypatch.setattr(gate, "growths", growths)
    app = typer.Typer()
    app.command()(gate.main)
    told = CliRunner().invoke(app, ["--engine", "acme", "--growth", "--stage", "merging"])
    assert (told.exit_code, asked) == (gate.SLOWER, [("acme", ["merging"])])
    assert "grows too fast: lines 1.90" in " ".join(told.output.split())


@pytest.mark.usefixtures("small")
def test_an_arm_tells_how_costs_grow() -> None:
    arm = Arm(ReferenceEngine(), 0)
    assert ("a prompt", "merging") in arm.growing()
    counts, time = arm.grow("a prompt", "placeholders")
    assert set(counts) == set(FEW)
    assert time[1] <= time[0] <= time[2]
