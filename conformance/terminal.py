"""The report as text: what a person reads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from conformance.bugs import bugs
from conformance.report import Finding, Report, environment, listed
from conformance.requirement import stages
from conformance.session import CaseResult
from conformance.session import Progress as SessionProgress
from conformance.trial import Verdict

MARKS = {
    Verdict.ERROR: ("!", "bold magenta"),
    Verdict.FAIL: ("✗", "bold red"),
    Verdict.UNEXPECTED_PASS: ("?", "bold yellow"),
    Verdict.KNOWN_FAILURE: ("~", "yellow"),
    Verdict.NOT_APPLICABLE: ("-", "dim"),
    Verdict.PASS: ("✓", "green"),
}


@contextmanager
def progress() -> Iterator[SessionProgress]:
    """A bar that moves while the session runs, with the requirement at hand and the failures so far.

    It has a way to the terminal of its own: pytest captures whatever is written to standard error meanwhile.
    """
    failing = TextColumn("[red]{task.fields[failing]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), failing)
    with (
        open(os.dup(2), "w", encoding="utf-8") as to_terminal,
        Progress(*columns, console=Console(file=to_terminal, emoji=False), transient=True) as bar,
    ):
        task = bar.add_task("collecting", total=None, failing="")
        failed = 0

        def planned(count: int) -> None:
            bar.update(task, total=count)

        def started(requirement: str, case: str) -> None:
            bar.update(task, description=f"{requirement:18}")

        def ended(result: CaseResult) -> None:
            nonlocal failed
            bar.advance(task)
            if result.outcome.verdict is not Verdict.PASS:
                failed += 1
                bar.update(task, failing=f"{failed} failing")

        yield SessionProgress(planned, started, ended)


def render(report: Report, *, width: int, verbose: bool = False) -> Group:
    """The whole report, worst first: requirements that do not hold with what is known of them, then a table of stages.

    width: of the terminal; a narrow one is spared what each stage is about.
    verbose: every requirement with its sentence, also those that hold.
    """
    parts: list[RenderableType] = [_head(report)]
    for finding in report.findings:
        if finding.verdict <= Verdict.KNOWN_FAILURE or finding.note:
            parts += ["", _detail(finding)]
    if verbose:
        parts += ["", _every_requirement(report)]
    parts += ["", _stages(report, wide=width >= 110)]
    if silent := _not_asked(report):
        parts += [Text(f"not applicable at all: {', '.join(silent)}", style="dim")]
    parts += [Text(f"{fault}", style="bold magenta") for fault in report.faults]
    parts += ["", _headline(report)]
    return Group(*parts)


def _head(report: Report) -> RenderableType:
    engine, here = report.session.engine, environment()
    title = f"mmproof {here.pop('mmproof')} · {engine.name} {engine.version} · profile {report.session.selection.profile}"
    made_with = ", ".join(f"{name} {version}" for name, version in here.items())
    return Group(Rule(title, align="left"), Text(made_with, style="dim"))


def _detail(finding: Finding) -> RenderableType:
    mark, style = MARKS[finding.verdict]
    one = finding.requirement
    title = Text.assemble((f"{mark} {one.id} ", style), (f"{finding.verdict}, {one.level}", style))
    rows = Table.grid(padding=(0, 1))
    rows.add_column(style="dim", width=9)
    rows.add_column(overflow="fold")
    rows.add_row("rule", escape(one.sentence))
    rows.add_row("observed", escape(finding.message))
    for label, text in _background(finding):
        rows.add_row(label, escape(text))
    return Group(title, Padding(rows, (0, 0, 0, 2)))


def _background(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.note:
        yield "list", finding.note
    for diagnosis in finding.diagnosis:
        cases = "" if set(diagnosis.cases) >= set(finding.failing) else f"in {listed(diagnosis.cases)} "
        how = "answers as" if diagnosis.exact else "fails as"
        yield "diagnosis", f"{cases}the engine {how} the quirk {diagnosis.quirk} does: {diagnosis.sentence}"
    named = [id for diagnosis in finding.diagnosis for id in diagnosis.bugs] or list(finding.requirement.bugs)
    sources = {bugs()[id].source.replace("'", '"'): None for id in named}  # some bugs were reported together
    yield from (("reported", source) for source in sources)
    if finding.reproduce:
        yield "reproduce", finding.reproduce


def _every_requirement(report: Report) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("requirement")
    table.add_column("cases", justify="right")
    table.add_column("")
    for finding in report.findings:
        mark, style = MARKS[finding.verdict]
        shown = finding.message if finding.verdict is Verdict.NOT_APPLICABLE else finding.requirement.sentence
        cases = str(finding.cases or "")
        table.add_row(Text(mark, style=style), finding.requirement.id, cases, escape(shown))
    return table


def _not_asked(report: Report) -> list[str]:
    """The stages of which the engine has no method at all."""
    present = {finding.requirement.stage for finding in report.findings}
    asked = {finding.requirement.stage for finding in report.findings if finding.verdict is not Verdict.NOT_APPLICABLE}
    return [stage for stage in stages() if stage in present - asked]


def _stages(report: Report, *, wide: bool) -> RenderableType:
    present = {finding.requirement.stage for finding in report.findings}.difference(_not_asked(report))
    table = Table(box=None, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    if wide:
        table.add_column("what it is about", style="dim")
    shown = [verdict for verdict in reversed(Verdict) if report.counts[verdict]]
    for verdict in shown:
        table.add_column(
            str(verdict), justify="right", style=MARKS[verdict][1], min_width=len(max(str(verdict).split(), key=len))
        )
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for stage, about in stages().items():
        if stage not in present:
            continue
        findings = [finding for finding in report.findings if finding.requirement.stage == stage]
        counts = [sum(finding.verdict is verdict for finding in findings) for verdict in shown]
        cases, time = sum(finding.cases for finding in findings), sum(finding.duration_s for finding in findings)
        table.add_row(stage, *([about] if wide else []), *(str(count or "") for count in counts), str(cases), f"{time:.1f} s")
    return table


def _headline(report: Report) -> RenderableType:
    passed, status = report.counts[Verdict.PASS], report.exit_status
    left_out = report.counts[Verdict.NOT_APPLICABLE]
    words = f"{passed} of {report.applicable} applicable requirements hold"
    if left_out:
        words += f", {left_out} not applicable"
    words += f"; {report.executed} of {report.planned} cases in {report.duration_s:.1f} s"
    if report.session.selection.is_partial:
        words += " (a partial run: it proves nothing about the whole)"
    held = "bold yellow" if report.counts[Verdict.KNOWN_FAILURE] else "bold green"
    return Text(words, style="bold red" if status else held)
