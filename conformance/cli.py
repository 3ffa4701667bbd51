"""The command line: run, fuzz, accept, list, quirks, explain, new-adapter."""

import difflib
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pytest
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import conformance
from conformance import known_failures, report, terminal
from conformance.bugs import bugs
from conformance.engine import METHODS, Engine, EngineNotLoaded, Profile
from conformance.loading import load, misspelt
from conformance.quirks import quirks
from conformance.requirement import requirements
from conformance.session import Effort, Selection, Session
from conformance.suite import requirements as _declared  # noqa: F401  (imports every rule)
from conformance.time_limit import LIMIT_S

HOME = Path(conformance.__file__).parent
ROOMS_WITH_CASES = (HOME / "suite", HOME.parent / "golden")
ROOMS_WITH_SEARCHES = (HOME.parent / "fuzz",)

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
out, err = Console(emoji=False), Console(emoji=False, stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.callback()
def mmproof() -> None:
    """Proof that a multimodal serving engine feeds its model the picture that the user sent."""


EngineName = Annotated[str, typer.Option("--engine", help="NAME, module:object, path.py:object or quirk:NAME.")]
OfProfile = Annotated[Profile | None, typer.Option("--profile", help="Default: what the engine's traits promise.")]
OfStages = Annotated[list[str] | None, typer.Option("--stage", help="Only this stage; may be repeated.")]
OfIds = Annotated[list[str] | None, typer.Option("--requirement", help="Only this requirement; may be repeated.")]
Known = Annotated[Path | None, typer.Option(help="List of known failures; default: the one shipped for this engine.")]
Limit = Annotated[float, typer.Option("--limit", help="Seconds that the engine may take for an answer.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the report as JSON.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", help="Write the report as a page.")]
JunitFile = Annotated[Path | None, typer.Option("--junit", help="Write the report as JUnit's XML.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="List every requirement; show tracebacks.")]


@app.command()
def run(
    engine: EngineName = "reference",
    profile: OfProfile = None,
    stage: OfStages = None,
    requirement: OfIds = None,
    case: Annotated[list[str] | None, typer.Option(help="Only this case; may be repeated.")] = None,
    known: Known = None,
    limit: Limit = LIMIT_S,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    junit_file: JunitFile = None,
    verbose: Verbose = False,
) -> None:
    """Put an engine to the proof: the named cases of every rule, and the vectors.

    Exit status: 0 it holds, 1 it does not (or its list of known failures is wrong), 2 usage, 3 a fault of the suite.
    """
    subject, entries = _subject(engine, known, verbose)
    selection = _selection(subject, profile, stage, requirement, case)
    made = prove(Session(subject, engine, selection, limit_s=_positive(limit)), entries, ROOMS_WITH_CASES)
    _deliver(made, json_file, html_file, junit_file, verbose)


@app.command()
def fuzz(
    engine: EngineName = "reference",
    profile: OfProfile = None,
    stage: OfStages = None,
    requirement: OfIds = None,
    times: Annotated[int, typer.Option(min=1, help="How many times as many examples as by default.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Try other examples; by default they are the same in each run.")] = None,
    known: Known = None,
    limit: Limit = LIMIT_S,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    junit_file: JunitFile = None,
    verbose: Verbose = False,
) -> None:
    """Search for cases that break a rule, and show the smallest of each. Known failures are not searched.

    Exit status: 0 none was found, 1 some were, 2 usage, 3 a fault of the suite.
    """
    subject, entries = _subject(engine, known, verbose)
    selection = replace(_selection(subject, profile, stage, requirement, None), but=frozenset(entries))
    session = Session(subject, engine, selection, limit_s=_positive(limit), effort=Effort(times, seed))
    _deliver(prove(session, {}, ROOMS_WITH_SEARCHES), json_file, html_file, junit_file, verbose)


def prove(session: Session, entries: dict[str, known_failures.KnownFailure], rooms: tuple[Path, ...]) -> report.Report:
    """Run a session over the tests of some rooms, in this process, with a progress bar where there is a terminal."""
    began = time.perf_counter()
    with terminal.progress() as progress:
        session.progress = progress
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # whatever else is installed has no say in a verdict
        options = ["-c", os.devnull, "--rootdir", str(HOME.parent), "--noconftest", "--import-mode=importlib"]
        options += [part for name in ("terminal", "cacheprovider", "warnings", "doctest") for part in ("-p", f"no:{name}")]
        pytest.main([*options, *map(str, rooms)], plugins=[session])
    return report.make(session, entries, time.perf_counter() - began)


@app.command()
def accept(
    report_file: Annotated[Path, typer.Argument(help="What `mmproof run --json` wrote.", metavar="REPORT")],
    list_file: Annotated[Path, typer.Argument(help="A list of known failures; written anew.", metavar="LIST")],
) -> None:
    """Bring a list of known failures up to date with a report; what is written about a failure stays."""
    try:
        text = known_failures.accept(json.loads(report_file.read_text(encoding="utf-8")), list_file)
    except (OSError, ValueError) as error:
        _refuse(f"{report_file}: {error}")
    except known_failures.BadList as error:
        _refuse(str(error))
    list_file.write_text(text, encoding="utf-8")
    out.print(f"{list_file}: {text.count('[[failure]]')} known failures", highlight=False)


@app.command("list")
def list_requirements(
    stage: Annotated[str | None, typer.Option(help="Only this stage.")] = None,
    methods: Annotated[bool, typer.Option(help="List the methods of the engine protocol instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the requirements, or the methods that an engine may have."""
    if methods:
        rows: list[dict[str, Any]] = [
            {"method": name, "sentence": _first_sentence(getattr(Engine, name).__doc__)} for name in METHODS
        ]
    else:
        rows = [
            {
                "id": one.id,
                "stage": one.stage,
                "level": str(one.level),
                "profile": str(one.profile),
                "needs": list(one.needs),
                "cases": list(one.cases),
                "bugs": list(one.bugs),
                "sentence": one.sentence,
            }
            for one in requirements.values()
            if stage in (None, one.stage)
        ]
    _show(rows, as_json, columns=("method", "sentence") if methods else ("id", "level", "profile", "sentence"))


@app.command("quirks")
def list_quirks(as_json: AsJson = False) -> None:
    """List the known ways to be wrong, each with the requirements that catch it."""
    rows = [
        {
            "name": one.name,
            "replaces": one.replaces,
            "caught_by": list(one.caught_by),
            "bugs": list(one.bugs),
            "sentence": one.sentence,
        }
        for one in quirks.values()
    ]
    _show(rows, as_json, columns=("name", "caught_by", "sentence"))


@app.command()
def explain(id: Annotated[str, typer.Argument(help="A requirement, such as IDENTITY-03.", metavar="ID")]) -> None:
    """Explain a requirement: its sentence, its cases, the bugs behind it and the quirks that it catches."""
    one = requirements[_known(id, requirements, "requirement")]
    out.print(f"[bold]{one.id}[/] · {one.level} · profile {one.profile} · needs {', '.join(one.needs)}\n")
    out.print(escape(one.sentence), "\n")
    if one.explanation:
        out.print(escape(one.explanation), "\n")
    out.print(f"[bold]cases[/]   {', '.join(one.cases)}")
    for name, quirk in quirks.items():
        if one.id in quirk.caught_by:
            out.print(f"[bold]catches[/] {name}: {escape(quirk.sentence)}")
    for bug in (bugs()[id] for id in one.bugs):
        out.print(f"[bold]bug[/]     {escape(bug.title)}\n        [dim]{escape(bug.source)}[/]")


@app.command("new-adapter")
def new_adapter(name: Annotated[str, typer.Argument(help="Your engine's name; NAME.py is written.", metavar="NAME")]) -> None:
    """Write a working adapter of a few lines, to be filled with your engine's own functions."""
    if not name.isidentifier():
        _refuse(f"{name!r} is no Python name; use letters, digits and _")
    path = Path(f"{name}.py")
    if path.exists():
        _refuse(f"{path} exists already")
    path.write_text((HOME / "adapters" / "skeleton.txt").read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
    out.print(f"wrote {path}; now: mmproof run --engine {path}:Engine", highlight=False)


def _subject(engine: str, known: Path | None, verbose: bool) -> tuple[Any, dict[str, known_failures.KnownFailure]]:
    """The engine of this name, and its known failures."""
    try:
        subject = load(engine)
        listed = known or known_failures.shipped(subject.name)
        entries = known_failures.read(listed, subject.version) if listed else {}
    except (EngineNotLoaded, known_failures.BadList) as error:
        if verbose:
            raise
        _refuse(str(error))
    for wrong, right in misspelt(subject).items():
        err.print(f"mmproof: the engine has a method {wrong!r}; the protocol calls it {right!r}", style="yellow", markup=False)
    return subject, entries


def _selection(
    subject: Any, profile: Profile | None, stages: list[str] | None, ids: list[str] | None, cases: list[str] | None
) -> Selection:
    for id in ids or []:
        _known(id, requirements, "requirement")
    for name in stages or []:
        _known(name, {one.stage: one for one in requirements.values()}, "stage")
    promised = getattr(subject, "traits", None)
    chosen = profile or (promised.profile if promised else Profile.CORE)
    return Selection(chosen, tuple(stages or ()), tuple(ids or ()), tuple(cases or ()))


def _deliver(
    made: report.Report, json_file: Path | None, html_file: Path | None, junit_file: Path | None, verbose: bool
) -> None:
    """Print a report, write it where it is wanted, and leave with its exit status."""
    out.print(terminal.render(made, width=out.width, verbose=verbose))
    for path, write in ((json_file, made.write_json), (html_file, made.write_html), (junit_file, made.write_junit)):
        if path is not None:
            write(path)
    raise typer.Exit(made.exit_status)


def _positive(seconds: float) -> float:
    if seconds <= 0:
        _refuse(f"an engine needs more than {seconds:g} s for an answer")
    return seconds


def _known(name: str, known: dict[str, Any], kind: str) -> str:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        _refuse(f"there is no {kind} {name!r}; " + (f"did you mean {', '.join(near)}?" if near else "see `mmproof list`"))
    return name


def _show(rows: list[dict[str, Any]], as_json: bool, columns: tuple[str, ...]) -> None:
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), no_wrap=column in ("id", "method", "name"))
    for row in rows:
        table.add_row(*(escape(", ".join(v) if isinstance(v := row[column], list) else str(v)) for column in columns))
    out.print(table)


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".") + "."


def _refuse(sentence: str) -> NoReturn:
    err.print(f"mmproof: {sentence}", style="red", markup=False, highlight=False)
    raise typer.Exit(report.USAGE)
