"""The gate around its statistics: what counts of two runs, exit statuses, and three real processes."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.loading import load
from perf import gate
from perf.arm import Arm
from perf.gate import Allowed, Arms, CannotCompare, Finding, Run, exit_status
from perf.verdict import MARGIN, Block, Comparison, Round, Verdict

SLOW = """
from hashlib import sha256

from conformance.adapters.reference import ReferenceEngine

class Slow(ReferenceEngine):
    name = "slow"

    @staticmethod
    def sentinels(identity):
        print("a line for people")
        sha256(identity)
        return [ReferenceEngine.sentinels(identity) for _ in range(4)][-1]
"""


def comparison(verdict: Verdict) -> Comparison:
    return Comparison(verdict, 1.1, 1.05, 1.2, 1.0, "")


def finding(first: Verdict, again: Verdict | None = None) -> Finding:
    return Finding("a case", "a stage", comparison(first), again and comparison(again), 1.0, True)


@pytest.mark.parametrize(
    ("first", "again", "verdict"),
    [
        (Verdict.SAME, None, Verdict.SAME),
        (Verdict.SLOWER, Verdict.SLOWER, Verdict.SLOWER),
        (Verdict.SLOWER, Verdict.SAME, Verdict.UNRESOLVED),
        (Verdict.SLOWER, Verdict.FASTER, Verdict.UNRESOLVED),
        (Verdict.UNRESOLVED, Verdict.SAME, Verdict.SAME),
        (Verdict.UNRESOLVED, Verdict.SLOWER, Verdict.UNRESOLVED),
        (Verdict.UNRESOLVED, Verdict.UNRESOLVED, Verdict.UNRESOLVED),
    ],
)
def test_slower_counts_only_twice(first: Verdict, again: Verdict | None, verdict: Verdict) -> None:
    assert finding(first, again).verdict is verdict


def test_exit_statuses() -> None:
    same, slower, unresolved = (
        finding(Verdict.SAME),
        finding(Verdict.SLOWER, Verdict.SLOWER),
        finding(*[Verdict.UNRESOLVED] * 2),
    )
    assert exit_status([same, finding(Verdict.FASTER)]) == gate.FINE
    assert exit_status([same] * 9 + [slower]) == gate.SLOWER
    assert exit_status([same] * 4 + [unresolved]) == gate.FINE
    assert exit_status([same] * 3 + [unresolved]) == gate.INCONCLUSIVE
    assert exit_status([]) == gate.INCONCLUSIVE


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Processes that are played: `ratio` is how many times as long the other engine takes, by case."""
    play = SimpleNamespace(ratio={"a": 1.0, "b": 1.0}, started=0, stopped=0, alike=True, counts={}, allowed={})

    class Played:
        def __init__(self, base: str, other: str, seed: int) -> None:
            play.started += 1

        def common(self, stages: Any) -> list[tuple[str, str]]:
            return [("merging", name) for name in play.ratio]

        def allowed(self, name: str) -> Allowed:
            return Allowed(*play.allowed.get(name, (0.03, {}, "")))

        def are_alike(self) -> bool:
            return play.alike

        def count(self, stage: str, name: str) -> list[dict[str, int]]:
            return play.counts.get(name, [{"hashed bytes": 1000}] * 3)

        def block(self, stage: str, name: str) -> Run:
            if not play.ratio[name]:
                raise ValueError("no such kernel")
            rounds = [Round(100.0, 100.0 * play.ratio[name], 100.0)] * 5
            return Run([Block(rounds, rounds)], 2.0, name != "b")

        def stop(self) -> None:
            play.stopped += 1

    monkeypatch.setattr(gate, "Arms", Played)
    yield play
    assert play.started == play.stopped


def test_what_is_slower_is_measured_twice_and_told(played: SimpleNamespace, tmp_path: Path) -> None:
    played.ratio["b"] = 1.2
    findings = gate.gate("reference", "acme", margin=0.03)
    assert [(one.subject, one.verdict, one.is_red, one.same_answers) for one in findings] == [
        ("a", Verdict.SAME, False, True),
        ("b", Verdict.SLOWER, True, False),
    ]
    assert played.started == 2 + 2 * gate.BLOCKS


def test_a_case_that_fails_has_no_verdict_and_says_why(played: SimpleNamespace) -> None:
    played.ratio["a"] = 0.0
    failed, fine = gate.gate("reference", "acme")
    assert (failed.verdict, failed.first.reason) == (Verdict.UNRESOLVED, "ValueError: no such kernel")
    assert fine.verdict is Verdict.SAME


MORE, UNSTEADY = (
    [{"hashed bytes": 1000}, {"hashed bytes": 2000}, {"hashed bytes": 1000}],
    [{"hashed bytes": n} for n in (1, 3, 2)],
)


@pytest.mark.parametrize(
    ("counts", "alike", "counters", "allowed", "is_red"),
    [
        (MORE, True, None, 0, True),
        (MORE, True, None, 1000, False),
        (MORE, True, None, 999, True),
        (MORE, True, False, 0, False),
        (MORE, False, None, 0, False),
        (MORE, False, True, 0, True),
        (MORE[::2] + MORE[:1], True, None, 0, False),
        ([MORE[1], MORE[0], MORE[1]], True, None, 0, False),
        (UNSTEADY, True, None, 0, False),
    ],
)
def test_more_of_a_counter_stops_an_engine_of_the_same_name(
    played: SimpleNamespace, counts: Any, alike: bool, counters: bool | None, allowed: int, is_red: bool
) -> None:
    played.counts["b"], played.alike = counts, alike
    played.allowed["b"] = (0.03, {"hashed bytes": allowed}, "it hashes a header")
    fine, found = gate.gate("reference", "acme", counters=counters)
    assert (fine.is_red, found.is_red, found.verdict) == (False, is_red, Verdict.SAME)


def test_what_grew_is_said_in_numbers(played: SimpleNamespace, tmp_path: Path) -> None:
    import typer

    played.counts["b"] = [{"hashed bytes": 1_605_632}, {"hashed bytes": 3_211_264}, {"hashed bytes": 1_605_632}]
    app = typer.Typer()
    app.command()(gate.main)
    told = CliRunner().invoke(app, ["--engine", "acme", "--json", str(tmp_path / "told.json")])
    assert told.exit_code == gate.SLOWER
    assert "merging: b: hashed bytes: 3,211,264 where the base has 1,605,632" in told.output
    written = json.loads((tmp_path / "told.json").read_text())
    assert [one["more"] for one in written["cases"]] == [[], ["hashed bytes"]]


def test_a_case_has_the_margin_that_it_states(played: SimpleNamespace) -> None:
    played.ratio = {"a": 1.08, "b": 1.08}
    played.allowed["b"] = (0.1, {}, "it waits for a thread")
    strict, wide = gate.gate("reference", "acme")
    assert (strict.verdict, wide.verdict, wide.margin) == (Verdict.SLOWER, Verdict.SAME, 0.1)
    _, wider = gate.gate("reference", "acme", margin=0.2)
    assert wider.margin == 0.2


def test_the_command_ends_with_the_status_of_its_table(played: SimpleNamespace, tmp_path: Path) -> None:
    import typer

    app = typer.Typer()
    app.command()(gate.main)
    told = CliRunner().invoke(app, ["--engine", "acme", "--json", str(tmp_path / "told.json")])
    assert told.exit_code == gate.FINE
    assert "other answers" in told.output
    written = json.loads((tmp_path / "told.json").read_text())
    assert [one["first"]["verdict"] for one in written["cases"]] == ["SAME", "SAME"]
    played.ratio["a"] = 1.5
    assert CliRunner().invoke(app, ["--engine", "acme"]).exit_code == gate.SLOWER
    assert CliRunner().invoke(app, ["--engine", "acme", "--stage", "nix"]).exit_code == gate.USAGE
    played.ratio.clear()
    assert CliRunner().invoke(app, ["--engine", "acme"]).exit_code == gate.USAGE


def test_a_plot_has_a_line_for_each_case_with_its_interval_and_what_the_base_differs_by(tmp_path: Path) -> None:
    noisy = Finding("b case", "a stage", Comparison(Verdict.UNRESOLVED, 1.1, 1.05, 1.2, 0.93, "noise"), None, 1.0, True)
    gate.plot([finding(Verdict.SAME), noisy], 0.03, tmp_path / "ratios.svg")
    drawn = (tmp_path / "ratios.svg").read_text()
    assert drawn.index("a stage: b case") < drawn.index("a stage: a case"), "the first one is at the top"
    assert drawn.count("FillBetweenPolyCollection") == 2


def test_three_processes_take_turns(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    arms = Arms("reference", f"{tmp_path}/slow.py:Slow", 0)
    try:
        (case,) = [one for one in arms.common(["sentinels"]) if "sentinels" in one[1]][:1]
        base, other, control = arms.count(*case)
        assert base == control
        assert other["hashed bytes"] - base["hashed bytes"] >= 32
        assert not arms.are_alike()
        assert arms.allowed(case[1]) == (MARGIN, {}, "")
        run = arms.block(*case)
    finally:
        arms.stop()
    assert run.same_answers
    assert run.base_ms > 0
    assert min(one.ratio for one in run.blocks[0].processor) > 1.5


def test_time_on_the_wall_decides_where_an_engine_waits() -> None:
    blocks = [Block([Round(1.0, 1.0, 1.0)] * 5, [Round(1.0, 1.2, 1.0)] * 5)] * 5
    assert Run(blocks, 1.0, True, waits=True).compared(0.03).verdict is Verdict.SLOWER
    assert Run(blocks, 1.0, True, waits=False).compared(0.03).verdict is Verdict.SAME


def test_the_last_timed_call_is_what_is_compared() -> None:
    arm = Arm(load("reference"), 0)
    asked = iter(range(9))
    arm._job = lambda: next(asked)
    arm.sample(3)
    told = arm.answer()
    arm._job = lambda: 2
    arm.sample(1)
    assert told == arm.answer()


def test_a_planted_slowdown_is_what_it_says() -> None:
    arm = Arm(load("reference"), 50)
    arm._job = lambda: sum(range(100_000))
    slow = min(arm.sample(5)[1] for _ in range(5))
    arm._slower = 0
    assert 1.2 < slow / min(arm.sample(5)[1] for _ in range(5)) < 1.9


def test_an_engine_that_cannot_be_loaded_is_told() -> None:
    arms = Arms("reference", "nix", 0)
    try:
        with pytest.raises(CannotCompare, match="no engine named 'nix'"):
            arms.common(["sentinels"])
    finally:
        arms.stop()
