"""The gate's statistics: properties that hold for any measurements, and how often it is right on recorded noise."""

from math import isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.gate_quality import MACHINES, recorded, resampled
from perf.verdict import Block, Logs, Round, Verdict, compare, interval, is_red, judge, of_block

TIMES = st.floats(0.5, 2.0)
ROUNDS = st.lists(st.builds(Round, TIMES, TIMES, TIMES), min_size=1, max_size=6)
NEAR = st.floats(-0.1, 0.1)
RUNS = st.lists(st.builds(Logs, NEAR, NEAR, NEAR), min_size=3, max_size=8)


@given(RUNS)
def test_exchanging_the_engines_mirrors_the_verdict(run: list[Logs]) -> None:
    exchanged = [Logs(*(-each for each in one)) for one in run]
    assert judge(exchanged)[0] is judge(run)[0].mirrored


@given(ROUNDS)
def test_exchanging_the_engines_inverts_the_ratio_of_a_block(rounds: list[Round]) -> None:
    twice = [Round(one.base, one.other, one.base) for one in rounds]
    exchanged = [Round(one.other, one.base, one.other) for one in rounds]
    assert isclose(of_block(Block(twice, twice)).other, -of_block(Block(exchanged, exchanged)).other)


@given(st.lists(ROUNDS, min_size=1, max_size=5), st.integers(-3, 9))
def test_scaling_all_times_changes_nothing(blocks: list[list[Round]], power: int) -> None:
    scale = 4.0**power  # exact in floating point, also under a root
    scaled = [[Round(*(scale * time for time in one)) for one in block] for block in blocks]
    assert compare([Block(one, one) for one in scaled]) == compare([Block(one, one) for one in blocks])


@given(RUNS)
def test_the_order_of_blocks_says_nothing(run: list[Logs]) -> None:
    assert judge(run[::-1]) == judge(run)


@given(st.lists(ROUNDS, min_size=1, max_size=5))
def test_the_interval_lies_within_what_was_measured(blocks: list[list[Round]]) -> None:
    low, high = interval(blocks, resamples=50)
    ratios = [one.ratio for block in blocks for one in block]
    assert min(ratios) * (1 - 1e-9) <= low <= high <= max(ratios) * (1 + 1e-9)


def run_of(*ratios: float, control: float = 1.0, beside: float | None = None) -> list[Logs]:
    return [Logs(*map(log, (one, control, beside or one))) for one in ratios]


@pytest.mark.parametrize(
    ("run", "verdict", "reason"),
    [
        (run_of(1.05, 1.05, 1.05, 1.05, 1.05), Verdict.SLOWER, ""),
        (run_of(1.05, 1.05, 1.04, 1.02, 0.99), Verdict.SLOWER, ""),
        (run_of(1.05, 1.05, 1.04, 1.01, 0.99), Verdict.UNRESOLVED, "the blocks do not agree"),
        (run_of(1.02, 1.02, 1.02, 1.9, 1.9), Verdict.SAME, ""),
        (run_of(0.9, 0.9, 0.9), Verdict.FASTER, ""),
        (run_of(1.2, 1.2, 1.2, control=1.06), Verdict.UNRESOLVED, "the base differs from itself by 6.0%"),
        (run_of(1.2, 1.2, 1.2, control=1 / 1.06), Verdict.UNRESOLVED, "the base differs from itself by 6.0%"),
        (run_of(1.2, 1.2, 1.2, beside=0.9), Verdict.UNRESOLVED, "the two clocks point in opposite directions"),
        (run_of(1.2, 1.2), Verdict.UNRESOLVED, "2 blocks, where 3 are needed"),
        ([], Verdict.UNRESOLVED, "0 blocks, where 3 are needed"),
    ],
)
def test_verdicts(run: list[Logs], verdict: Verdict, reason: str) -> None:
    assert judge(run) == (verdict, reason)


def test_a_wider_margin_lets_more_pass_and_wall_time_decides_where_an_engine_waits() -> None:
    assert judge(run_of(1.05, 1.05, 1.05), margin=0.06)[0] is Verdict.SAME
    block = Block(processor=[Round(1, 1, 1)], wall=[Round(1, 1.5, 1)])
    assert compare([block] * 3).verdict is Verdict.SAME
    assert compare([block] * 3, waits=True).verdict is Verdict.SLOWER


def test_only_slower_twice_stops_a_change() -> None:
    assert is_red(Verdict.SLOWER, Verdict.SLOWER)
    assert not is_red(Verdict.SLOWER, None)
    assert not is_red(Verdict.SLOWER, Verdict.UNRESOLVED)
    assert not is_red(Verdict.SAME, Verdict.SAME)


@pytest.mark.parametrize("machine", MACHINES)
def test_equal_code_is_never_stopped(machine: str) -> None:
    first, second = (resampled(recorded(machine, 0), 10_000, seed) for seed in (1, 2))
    assert not any(map(is_red, first, second))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("slower", "share"), [(5, 0.97), (10, 0.99), (20, 0.99)])
def test_what_is_slower_is_found(machine: str, slower: int, share: float) -> None:
    verdicts = resampled(recorded(machine, slower), 2000, 1)
    assert verdicts.count(Verdict.SLOWER) >= share * len(verdicts)
