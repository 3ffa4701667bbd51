"""Gates: is an engine slower than another one, stage by stage?

    mmproof perf --engine ENGINE --against BASE [--stage STAGE] [--json FILE] [--plot FILE]

A block starts three processes, pinned to one core: the base, the other engine, and the base once more. For each case they are
timed in turns, ABCCBA and CBAABC, and `perf.verdict` says what five blocks amount to. A case that came out slower or unresolved
is measured once more, with other processes. What both answer is compared in the same processes that are timed.

Beside the time, counters say what a call does (`perf.counters`). Where both are the same engine by name, with the same Python,
numpy and torch, the engine may not exceed the base in any of them; otherwise they are shown.

    mmproof perf --engine ENGINE --growth

asks one engine whether twice as much traffic costs it more than twice as much (`perf.growth`).

ENGINE and BASE are named as for `mmproof run`. An engine in an environment of its own, such as the last release, is named by
the command that runs `perf.arm` there: `worker:/old/bin/python -m perf.arm acme:Engine`.

Exit status: 0 nothing is slower, 1 something is, 2 usage, 3 inconclusive: too little was measured, or resolved.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from conformance.loading import WORKER
from conformance.remote.peer import PeerGone
from conformance.remote.process import Worker
from perf.arm import STAGES
from perf.counters import Counted, Counts
from perf.growth import Growth
from perf.growth import table as growth_table
from perf.verdict import MARGIN, Block, Comparison, Round, Verdict, compare, is_red

BLOCKS, ROUNDS, FEWEST_ROUNDS = 5, 15, 5
SAMPLE_NS, BLOCK_NS = 5_000_000, 1_200_000_000
UNRESOLVED = 0.2
"""The share of cases without a verdict from which a whole comparison is inconclusive."""
FINE, SLOWER, USAGE, INCONCLUSIVE = 0, 1, 2, 3
ORDERS = ((0, 1, 2, 2, 1, 0), (2, 1, 0, 0, 1, 2))


class CannotCompare(ValueError):
    """There is nothing to compare, and why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How a case ended. again: its second run, if there was one. same_answers: whether both engines answer alike.

    base_ms: what one call takes with the base, on the clock that decides. counted: what a call does, if it could be counted.
    margin: how much more time is still the same; because: why that, or what counters may grow, is more than elsewhere.
    """

    subject: str
    stage: str
    first: Comparison
    again: Comparison | None
    base_ms: float
    same_answers: bool
    counted: Counted | None = None
    margin: float = MARGIN
    because: str = ""

    @property
    def verdict(self) -> Verdict:
        """What counts: slower only if it was slower twice; the second run, if the first one had no verdict."""
        if self.again is None or self.again.verdict is self.first.verdict:
            return self.first.verdict
        was_unresolved = self.first.verdict is Verdict.UNRESOLVED and self.again.verdict is not Verdict.SLOWER
        return self.again.verdict if was_unresolved else Verdict.UNRESOLVED

    @property
    def is_red(self) -> bool:
        has_more = self.counted is not None and self.counted.stops and bool(self.counted.more)
        return has_more or is_red(self.first.verdict, self.again.verdict if self.again else None)


class Allowed(NamedTuple):
    """By how much the time of a case and its counters may grow before they have grown, and why more than elsewhere."""

    margin: float
    counters: dict[str, int]
    because: str


class Run(NamedTuple):
    """What a case took in some blocks; what one call of the base takes; whether all arms answered alike; whether one of them
    waits, so that the wall's time decides; what went wrong."""

    blocks: list[Block]
    base_ms: float
    same_answers: bool
    waits: bool = False
    fault: str = ""

    def compared(self, margin: float) -> Comparison:
        """What the blocks amount to."""
        made = compare(self.blocks, margin=margin, waits=self.waits)
        return replace(made, verdict=Verdict.UNRESOLVED, reason=self.fault) if self.fault else made


class Arms:
    """Three processes: the base, the other engine, and the base once more."""

    def __init__(self, base: str, other: str, seed: int) -> None:
        self._workers = start([base, other, base], seed)

    def ask(self, arm: int, method: str, *arguments: Any) -> Any:
        return self._workers[arm].peer.call(0, method, arguments, {})

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def common(self, stages: Sequence[str]) -> list[tuple[str, str]]:
        """The cases of these stages that both engines can do, by stage and name."""
        try:
            base, other = (self.ask(arm, "subjects", list(stages)) for arm in (0, 1))
        except PeerGone as gone:
            raise CannotCompare(f"an engine could not be loaded: {gone}") from gone
        return [one for one in base if one in other]

    def allowed(self, name: str) -> Allowed:
        """What the other engine's case allows."""
        return Allowed(*self.ask(1, "allowances", name))

    def are_alike(self) -> bool:
        """Whether both are the same engine by name, and run through the same libraries."""
        return bool(self.ask(0, "made_of") == self.ask(1, "made_of"))

    def count(self, stage: str, name: str) -> list[Counts]:
        """What a call of a case does in each arm."""
        return [self.ask(arm, "count", stage, name) for arm in range(3)]

    def block(self, stage: str, name: str) -> Run:
        """Time a case in turns."""
        for arm in range(3):
            self.ask(arm, "prepare", stage, name)
        calls, taken = 1, max(1, self.ask(0, "sample", 1)[1])
        while taken < SAMPLE_NS // 2:
            calls = max(calls + 1, min(calls * SAMPLE_NS // taken, 50 * calls))
            taken = max(1, self.ask(0, "sample", calls)[1])
        rounds = max(FEWEST_ROUNDS, min(ROUNDS, BLOCK_NS // (6 * taken)))
        for arm in range(3):
            self.ask(arm, "sample", calls)
        walls, processors = [], []
        for number in range(rounds):
            taken = [[0, 0], [0, 0], [0, 0]]
            for arm in ORDERS[number % 2]:
                wall, processor = self.ask(arm, "sample", calls)
                taken[arm][0] += wall
                taken[arm][1] += processor
            walls.append(Round(*(max(1, one[0]) for one in taken)))
            processors.append(Round(*(max(1, one[1]) for one in taken)))
        answers = [self.ask(arm, "answer") for arm in range(3)]
        waits = any(self.ask(arm, "waits") for arm in range(3))
        base_ns = sum(one.base for one in (walls if waits else processors)) / (2 * calls * rounds)
        return Run([Block(processors, walls)], base_ns / 1e6, len(set(answers)) == 1, waits)


def start(specs: Sequence[str], seed: int) -> list[Worker]:
    """A process for each engine, all on one core."""
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    environment = {"PYTHONHASHSEED": str(seed + 1), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return [Worker(_command(spec, core), environment) for spec in specs]


def _command(spec: str, core: int) -> str:
    command = spec.removeprefix(WORKER) if spec.startswith(WORKER) else f"{sys.executable} -m perf.arm '{spec}'"
    return f"{command} {core}"


def measure(base: str, other: str, cases: Sequence[tuple[str, str]], blocks: int, seed: int, progress: Progress) -> list[Run]:
    """Time cases in so many sets of processes."""
    runs = [Run([], 0.0, True) for _ in cases]
    task = progress.add_task("measuring again" if seed else "measuring", total=blocks * len(cases))
    for number in range(blocks if cases else 0):
        arms = Arms(base, other, seed + number)
        try:
            for place, case in enumerate(cases):
                before = runs[place]
                progress.advance(task)
                try:
                    found = arms.block(*case)
                except Exception as error:  # an engine's, or the end of its process
                    runs[place] = before._replace(fault=f"{type(error).__name__}: {error}"[:200])
                    arms.stop()
                    arms = Arms(base, other, seed + number)
                    continue
                runs[place] = Run(
                    [*before.blocks, *found.blocks],
                    found.base_ms,
                    before.same_answers and found.same_answers,
                    before.waits or found.waits,
                    before.fault,
                )
        finally:
            arms.stop()
    return runs


def tally(
    base: str, other: str, cases: Sequence[tuple[str, str]], allowed: Sequence[Allowed], stops: bool | None, progress: Progress
) -> list[Counted | None]:
    """What a call of each case does; None where it raises. stops: whether more stops a change; None where both are alike."""
    found: list[Counted | None] = []
    task = progress.add_task("counting", total=len(cases))
    arms = Arms(base, other, 0)
    try:
        gates = arms.are_alike() if stops is None else stops
        for case, one in zip(cases, allowed, strict=True):
            progress.advance(task)
            try:
                ours, theirs, control = arms.count(*case)
                found.append(Counted(ours, theirs, control, one.counters, gates))
            except Exception:  # the case that is timed says what it was
                found.append(None)
                arms.stop()
                arms = Arms(base, other, 0)
    finally:
        arms.stop()
    return found


def growths(engine: str, stages: Sequence[str] = ()) -> list[Growth]:
    """How the costs of an engine grow. Raises CannotCompare."""
    (worker,) = workers = start([engine], 0)
    found = []
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            steps = [one for one in worker.peer.call(0, "growing", (), {}) if not stages or one[1] in stages]
            for workload, stage in progress.track(steps, description="measuring"):
                found.append(Growth(workload, stage, *worker.peer.call(0, "grow", (workload, stage), {})))
    except PeerGone as gone:
        raise CannotCompare(f"the engine's process has ended: {gone}") from gone
    finally:
        for one in workers:
            one.stop()
    return found


def gate(
    base: str,
    other: str,
    *,
    stages: Sequence[str] = STAGES,
    names: Sequence[str] = (),
    margin: float = MARGIN,
    blocks: int = BLOCKS,
    counters: bool | None = None,
) -> list[Finding]:
    """Compare two engines on all cases that both can do. Raises CannotCompare.

    counters: whether what a call does stops a change, too; None where both are the same engine, in the same surroundings.
    """
    arms = Arms(base, other, 0)
    try:
        cases = [(stage, name) for stage, name in arms.common(stages) if not names or name in names]
        allowed = [arms.allowed(name) for _, name in cases]
    finally:
        arms.stop()
    if not cases:
        raise CannotCompare("there is no such case that both engines can do")
    margins = [max(margin, one.margin) for one in allowed]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        counted = tally(base, other, cases, allowed, counters, progress)
        runs = measure(base, other, cases, blocks, 0, progress)
        first = [run.compared(limit) for run, limit in zip(runs, margins, strict=True)]
        doubtful = [n for n, one in enumerate(first) if one.verdict in (Verdict.SLOWER, Verdict.UNRESOLVED)]
        once_more = measure(base, other, [cases[n] for n in doubtful], blocks, blocks, progress)
    again = {n: run.compared(margins[n]) for n, run in zip(doubtful, once_more, strict=True)}
    return [
        Finding(name, stage, first[n], again.get(n), run.base_ms, run.same_answers, counted[n], margins[n], allowed[n].because)
        for n, ((stage, name), run) in enumerate(zip(cases, runs, strict=True))
    ]


def exit_status(findings: Sequence[Finding]) -> int:
    """1 if anything is slower, or does more; 3 if too few have a verdict."""
    if any(one.is_red for one in findings):
        return SLOWER
    unresolved = sum(one.verdict is Verdict.UNRESOLVED for one in findings)
    return INCONCLUSIVE if not findings or unresolved > UNRESOLVED * len(findings) else FINE


def table(findings: Sequence[Finding]) -> Table:
    """What was found, one case a line."""
    made = Table("stage", "case", "base ms", "ratio", "95 %", "noise", "verdict", "", box=None, pad_edge=False)
    for one in findings:
        last = one.again or one.first
        notes = [last.reason] if one.verdict is Verdict.UNRESOLVED and last.reason else []
        notes += ["once only"] if one.verdict is Verdict.UNRESOLVED and not last.reason else []
        notes += [] if one.same_answers else ["other answers"]
        notes += ["does more"] if one.counted and one.counted.more else []
        made.add_row(
            one.stage, one.subject, f"{one.base_ms:.3f}", f"{last.ratio:.3f}", f"{last.low:.3f} to {last.high:.3f}",
            f"{last.control - 1:+.1%}", f"[{COLOURS[one.verdict]}]{one.verdict}[/]", "; ".join(notes),
        )  # fmt: skip
    return made


def growth_status(found: Sequence[Growth]) -> int:
    """1 if anything grows too fast; 3 if nothing was measured, or too little is resolved."""
    if any(one.reasons for one in found):
        return SLOWER
    unresolved = sum(not one.is_resolved for one in found)
    return INCONCLUSIVE if not found or unresolved > UNRESOLVED * len(found) else FINE


COLOURS = {Verdict.FASTER: "green", Verdict.SAME: "default", Verdict.SLOWER: "red", Verdict.UNRESOLVED: "yellow"}


def as_json(base: str, other: str, margin: float, findings: Sequence[Finding]) -> dict[str, Any]:
    """The comparison as plain data."""

    def told(one: Comparison | None) -> dict[str, Any] | None:
        return None if one is None else asdict(one)

    rows = [
        {
            "stage": one.stage, "case": one.subject, "verdict": one.verdict, "base_ms": one.base_ms,
            "same_answers": one.same_answers, "first": told(one.first), "again": told(one.again),
            "margin": one.margin, "because": one.because, "counted": one.counted and one.counted._asdict(),
            "more": list(one.counted.more) if one.counted else [],
        }
        for one in findings
    ]  # fmt: skip
    return {"schema": 1, "engine": other, "against": base, "margin": margin, "status": exit_status(findings), "cases": rows}


def plot(findings: Sequence[Finding], margin: float, path: Path) -> None:
    """Ratios with their intervals, one case a line. The margin is shaded, and darker what the base differs from itself by."""
    from matplotlib.figure import Figure  # only who wants a plot needs it

    figure = Figure(figsize=(8, 1.2 + 0.28 * len(findings)), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(1 / (1 + margin), 1 + margin, color="0.9")
    for line, one in enumerate(reversed(findings)):
        last = one.again or one.first
        colour = {"default": "tab:blue", "yellow": "tab:orange"}.get(COLOURS[one.verdict], f"tab:{COLOURS[one.verdict]}")
        axes.fill_betweenx([line - 0.4, line + 0.4], last.control, 1 / last.control, color="0.75", linewidth=0)
        axes.plot([last.low, last.high], [line, line], color=colour)
        axes.plot([last.ratio], [line], "o", color=colour)
    axes.set_yticks(range(len(findings)), [f"{one.stage}: {one.subject}" for one in reversed(findings)], fontsize=7)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("times as long as the base")
    figure.savefig(path)


def _known(stages: Sequence[str] | None) -> Sequence[str]:
    if unknown := set(stages or ()) - set(STAGES):
        raise CannotCompare(f"there are no cases of {', '.join(sorted(unknown))}; stages: {', '.join(STAGES)}")
    return stages or STAGES


def main(
    engine: Annotated[str, typer.Option(help="The engine that must not be slower.")],
    against: Annotated[str, typer.Option(help="The base.")] = "reference",
    stage: Annotated[list[str] | None, typer.Option(help="Only this stage; may be repeated.")] = None,
    case: Annotated[list[str] | None, typer.Option(help="Only this case; may be repeated.")] = None,
    margin: Annotated[float, typer.Option(min=MARGIN, help="How much more is still the same.")] = MARGIN,
    blocks: Annotated[int, typer.Option(min=3, help="How many sets of processes.")] = BLOCKS,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the comparison as JSON.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Draw the ratios (needs matplotlib).")] = None,
    counters: Annotated[
        bool | None, typer.Option(help="More bytes, copies or calls stop a change, too, or never. Default: of the same engine.")
    ] = None,
    growth: Annotated[bool, typer.Option("--growth", help="Ask one engine how its costs grow, and compare nothing.")] = False,
) -> None:
    """Compare what an engine takes with what another one takes, and stop what is slower.

    Exit status: 0 nothing is slower, 1 something is, 2 usage, 3 inconclusive.
    """
    try:
        if growth:
            grown = growths(engine, stage or ())
            Console().print(growth_table(grown))
            raise typer.Exit(growth_status(grown))
        findings = gate(
            against, engine, stages=_known(stage), names=case or (), margin=margin, blocks=blocks, counters=counters
        )
    except CannotCompare as reason:
        Console(stderr=True).print(f"mmproof: {reason}", style="red", markup=False)
        raise typer.Exit(USAGE) from None
    Console().print(table(findings))
    for one in findings:
        for line in one.counted.lines if one.counted and one.counted.stops else ():
            Console().print(f"{one.stage}: {one.subject}: {line}", style="red", markup=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(as_json(against, engine, margin, findings), indent=2) + "\n", encoding="utf-8")
    if plot_file is not None:
        plot(findings, margin, plot_file)
    raise typer.Exit(exit_status(findings))


if __name__ == "__main__":
    typer.run(main)
