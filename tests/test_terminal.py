"""What a person reads: the report as text. The texts are kept as snapshots; `pytest --snapshot-update` renews them."""

import io

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from conformance import report, terminal
from conformance.adapters.reference import ReferenceEngine
from conformance.quirks import quirks
from conformance.report import Report
from tests.test_report import known, session

MESSAGE = "3 of 5 cases (beyond-30-bits, beyond-32-bits, zero-padded-on-the-right): the sentinels at place 0"


def as_text(made: Report, width: int, *, verbose: bool = False) -> str:
    """The report as a terminal of this width shows it, without colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    console.print(terminal.render(made, width=width, verbose=verbose))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


@pytest.fixture(autouse=True)
def _one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "environment", lambda: {"mmproof": "0.1.0", "python": "3.11"})


@pytest.mark.parametrize("width", [80, 120])
def test_an_engine_that_holds(width: int, snapshot: SnapshotAssertion) -> None:
    assert as_text(report.make(session(ReferenceEngine()), {}, 1.0), width) == snapshot


def test_every_requirement(snapshot: SnapshotAssertion) -> None:
    assert as_text(report.make(session(ReferenceEngine()), {}, 1.0), 120, verbose=True) == snapshot


@pytest.mark.parametrize("width", [80, 120])
def test_an_engine_that_fails_one_thing_as_listed_and_another_not(width: int, snapshot: SnapshotAssertion) -> None:
    made = report.make(session(quirks["sentinel-of-30-bits"].engine()), known(MESSAGE), 1.0)
    assert as_text(made, width) == snapshot
