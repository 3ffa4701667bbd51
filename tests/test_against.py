"""The comparison of two engines: what its table says, and when it fails."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perf import against
from perf.against import Measured, Ratio, Runner, Stopwatch, ratio, row
from perf.against_cases import CASES, Case
from perf.verdict import Round

LYING = """
from conformance.adapters.reference import ReferenceEngine

class Engine(ReferenceEngine):
    def sentinels_from_hash(self, value):
        return ({answer})
"""


def asking(engine: Any) -> Callable[[], object]:
    return lambda: engine.sentinels_from_hash(7)


ASKED = Case("sentinels", "of a hash", "sentinels_from_hash", "sentinels_from_hash", asking, 3)


@pytest.mark.parametrize(
    ("low", "high", "wanted", "mark"),
    [(3.0, 4.0, 3.0, "met"), (2.0, 2.9, 3.0, "MISSED"), (2.9, 3.1, 3.0, "open"), (1.0, 2.0, None, "")],
)
def test_what_is_wanted_is_met_missed_or_open(low: float, high: float, wanted: float | None, mark: str) -> None:
    assert Ratio(low, 3.0, high).mark(wanted) == mark


def test_a_ratio_lies_in_its_interval() -> None:
    found = ratio([Round(2.0, 2.0 * times, 2.0) for times in (3.0, 4.0, 4.0, 4.0, 5.0)])
    assert found.middle == pytest.approx(4.0)
    assert 3.0 <= found.low <= 4.0 + 1e-9
    assert 4.0 - 1e-9 <= found.high <= 5.0 + 1e-9
    assert ratio([Round(2.0, 6.0, 2.0)] * 5) == pytest.approx((3.0, 3.0, 3.0))


def test_a_row_says_how_many_copies_the_base_takes() -> None:
    case = ASKED._replace(copy=lambda: int, copies=1.5)
    cells = row(case, Measured(2.0, Ratio(2.0, 2.5, 2.9), Ratio(0.4, 0.5, 0.6)))
    assert cells == ["sentinels", "of a hash", "2.000", "2.50", "2.00 to 2.90", "3 MISSED", "2.00 of 1.5 MISSED"]


@pytest.mark.parametrize(
    ("answer", "status"), [("super().sentinels_from_hash(value)", 0), ("*super().sentinels_from_hash(value)[:3], 5", 1)]
)
def test_unequal_answers_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, status: int
) -> None:
    (tmp_path / "lying.py").write_text(LYING.format(answer=answer))
    monkeypatch.setattr(against, "CASES", [ASKED])
    assert against.main(["--engine", f"{tmp_path}/lying.py:Engine"]) == status
    said = capsys.readouterr().out
    assert ("UNEQUAL: sentinels, of a hash" in said) == bool(status)
    assert ("MISSED" in said.split("wanted:")[0]) == (not status), "as fast as the reference, where three times were wanted"


def test_a_stopwatch_counts_what_it_watches_less_what_was_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0

    def clock() -> int:
        return now

    def spend(time: int) -> None:
        nonlocal now
        now += time

    def answer() -> None:
        spend(2)
        engine.put_in()

    engine = SimpleNamespace(answer=answer, put_in=lambda: spend(5))
    monkeypatch.setitem(sys.modules, "engine", engine)
    watch = Stopwatch(("engine:answer", "-engine:put_in"), clock)
    with watch.running():
        spend(100)
        engine.answer()
    assert watch.spent_ns == 2


def test_a_watched_job_is_repeated_as_often_as_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = 0, 0

    def answer() -> None:
        nonlocal now, calls
        now, calls = now + against.SAMPLE_NS // 10, calls + 1

    def clock() -> int:
        return now

    monkeypatch.setitem(sys.modules, "engine", SimpleNamespace(answer=answer))
    for own in (("engine:answer",), None):
        runner, calls = Runner(lambda: sys.modules["engine"].answer(), own, clock), 0
        assert (runner.sample(), calls) == (against.SAMPLE_NS // 10, 11)


def test_stages_are_in_the_order_in_which_data_flows() -> None:
    order = ["identity", "sentinels", "placeholders", "positions", "prefix_cache", "encoder_cache", "encoding", "merging"]
    stages = list(dict.fromkeys(case.stage for case in CASES))
    assert stages == [*order, "lifecycle", "kernels"]
    assert len({(case.stage, case.name) for case in CASES}) == len(CASES)
