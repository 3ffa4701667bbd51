"""A session from beginning to end: the engine that was named, the rules that were chosen, the report and its exit status."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
import typer

import conformance
from conformance import known_failures, report, terminal
from conformance.console import err, out, refuse, unknown
from conformance.engine import EngineNotLoaded
from conformance.loading import load, misspelt
from conformance.profile import Profile
from conformance.session import Selection, Session
from conformance.suite import requirements

HOME = Path(conformance.__file__).parent
ROOMS_WITH_CASES = (HOME / "suite", HOME.parent / "golden")
ROOMS_WITH_SEARCHES = (HOME.parent / "fuzz",)

UNUSED = ("terminal", "cacheprovider", "warnings", "doctest", "logging")
"""The plugins of pytest's own that a report has no use for."""


def prove(session: Session, entries: dict[str, known_failures.KnownFailure], rooms: tuple[Path, ...]) -> report.Report:
    """Run a session over the tests of some rooms, in this process, with a progress bar where there is a terminal."""
    began = time.perf_counter()
    with terminal.progress() as progress:
        session.progress = progress
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # whatever else is installed has no say in a verdict
        options = ["-c", os.devnull, "--rootdir", str(HOME.parent), "--noconftest", "--import-mode=importlib"]
        options += [part for name in UNUSED for part in ("-p", f"no:{name}")]
        pytest.main([*options, *map(str, rooms)], plugins=[session, _Quiet()])
    return report.make(session, entries, time.perf_counter() - began)


class _Quiet:
    """A failure is told in the report's words. What pytest would write about it costs more than most rules do."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        session.config.option.tbstyle = "no"


def subject_of(engine: str, known: Path | None, verbose: bool) -> tuple[Any, dict[str, known_failures.KnownFailure]]:
    """The engine of this name, and its known failures."""
    try:
        subject = load(engine)
        listed = known or known_failures.shipped(subject.name)
        entries = known_failures.read(listed, subject.version) if listed else {}
    except (EngineNotLoaded, known_failures.BadList) as error:
        if verbose:
            raise
        refuse(str(error))
    for wrong, right in misspelt(subject).items():
        err.print(f"mmproof: the engine has a method {wrong!r}; the protocol calls it {right!r}", style="yellow", markup=False)
    return subject, entries


def selection_of(
    subject: Any, profile: Profile | None, stages: list[str] | None, ids: list[str] | None, cases: list[str] | None
) -> Selection:
    chosen_from = {"requirement": list(requirements), "stage": [one.stage for one in requirements.values()]}
    for kind, names in (("requirement", ids), ("stage", stages)):
        for name in names or []:
            if name not in chosen_from[kind]:
                refuse(unknown(name, dict.fromkeys(chosen_from[kind]), kind))
    promised = getattr(subject, "traits", None)
    chosen = profile or (promised.profile if promised else Profile.CORE)
    return Selection(chosen, tuple(stages or ()), tuple(ids or ()), tuple(cases or ()))


def deliver(
    made: report.Report, json_file: Path | None, html_file: Path | None, junit_file: Path | None, verbose: bool
) -> None:
    """Print a report, write it where it is wanted, and leave with its exit status."""
    out.print(terminal.render(made, width=out.width, verbose=verbose))
    for path, write in ((json_file, made.write_json), (html_file, made.write_html), (junit_file, made.write_junit)):
        if path is not None:
            write(path)
    raise typer.Exit(made.exit_status)


def positive(seconds: float) -> float:
    if seconds <= 0:
        refuse(f"an engine needs more than {seconds:g} s for an answer")
    return seconds
