"""What the cases of a session amount to: verdicts, exit statuses, diagnoses, and the published format."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

import conformance
from conformance import report, trial
from conformance.adapters.reference import ReferenceEngine
from conformance.engine import Profile
from conformance.known_failures import KnownFailure
from conformance.quirks import quirks
from conformance.report import FAILED, PASSED, SUITE_FAULT, Finding, Report
from conformance.session import CaseResult, Selection, Session
from conformance.suite import requirements
from conformance.trial import Verdict

SCHEMA = json.loads((Path(conformance.__file__).parent / "report.schema.json").read_text())
WRONG = "sentinel-of-30-bits"  # fails SENTINELS-03, -04 and -07
MESSAGE = "3 of 5 cases (beyond-30-bits, beyond-32-bits, zero-padded-on-the-right): the sentinels at place 0"


def session(engine: Any, stage: str = "sentinels") -> Session:
    """A session that ran every case of a stage, without pytest."""
    made = Session(engine, engine.name, Selection(profile=Profile.SGLANG, stages=(stage,)))
    for one in filter(made.selection.includes, requirements.values()):
        if lacking := tuple(need for need in one.needs if need not in made.capabilities):
            made.not_applicable[one.id] = lacking
            continue
        for name, case in one.cases.items():
            made.planned[one.id] += 1
            made.results.append(CaseResult(one.id, name, trial.run(one, case, engine), 0.0))
    return made


def known(message: str, requirement: str = "SENTINELS-03") -> Mapping[str, KnownFailure]:
    return {requirement: KnownFailure(requirement, message, "why", "https://example.org", "==0.1.0")}


def found(made: Report, id: str) -> Finding:
    return next(finding for finding in made.findings if finding.requirement.id == id)


@pytest.fixture
def good() -> Session:
    return session(ReferenceEngine())


@pytest.fixture
def bad() -> Session:
    return session(quirks[WRONG].engine())


def test_an_engine_that_holds_passes(good: Session) -> None:
    made = report.make(good, {}, 1.0)
    assert {finding.verdict for finding in made.findings} == {Verdict.PASS}
    assert made.exit_status == PASSED


def test_a_failure_is_explained_and_can_be_reproduced(bad: Session) -> None:
    finding = found(report.make(bad, {}, 1.0), "SENTINELS-03")
    assert finding.verdict is Verdict.FAIL
    assert finding.message.startswith(MESSAGE)
    assert finding.reproduce == f"mmproof run --engine quirk:{WRONG} --requirement SENTINELS-03 --case beyond-30-bits"
    assert [(one.quirk, one.exact, one.cases) for one in finding.diagnosis] == [(WRONG, True, finding.failing)]


def test_the_worst_comes_first_and_the_run_fails(bad: Session) -> None:
    made = report.make(bad, {}, 1.0)
    assert [finding.requirement.id for finding in made.findings[:4]] == [
        "SENTINELS-03",
        "SENTINELS-07",
        "SENTINELS-04",
        "SENTINELS-01",
    ]
    assert made.exit_status == FAILED


def test_a_listed_failure_is_known(bad: Session) -> None:
    finding = found(report.make(bad, known(MESSAGE), 1.0), "SENTINELS-03")
    assert (finding.verdict, finding.note, finding.breaks_the_run) == (Verdict.KNOWN_FAILURE, "", False)


def test_a_listed_failure_with_another_message_is_a_failure(bad: Session) -> None:
    finding = found(report.make(bad, known("2 of 5 cases"), 1.0), "SENTINELS-03")
    assert (finding.verdict, finding.breaks_the_run) == (Verdict.FAIL, True)
    assert "with another message" in finding.note


def test_a_listed_requirement_that_holds_is_unexpected(good: Session) -> None:
    made = report.make(good, known(MESSAGE), 1.0)
    assert found(made, "SENTINELS-03").verdict is Verdict.UNEXPECTED_PASS
    assert made.exit_status == FAILED


def test_a_listed_requirement_that_did_not_run_is_a_fault_of_the_list() -> None:
    class Half:
        name, version = "half", "1"

        def sentinels(self, identity: bytes) -> tuple[int, ...]:
            return ReferenceEngine.sentinels(identity)

    made = report.make(session(Half()), known(MESSAGE), 1.0)
    finding = found(made, "SENTINELS-03")
    assert (finding.verdict, finding.message) == (Verdict.NOT_APPLICABLE, "the engine has no sentinels_from_hash")
    assert (finding.note, made.exit_status) == ("listed as a known failure, but it did not run", FAILED)


def test_a_fault_of_the_suite_is_never_counted_against_the_engine(good: Session) -> None:
    good.results[0].outcome = trial.judge(KeyError("rule"), [])
    made = report.make(good, {}, 1.0)
    assert made.findings[0].verdict is Verdict.ERROR
    assert made.findings[0].message == "the suite itself failed in zeros: KeyError: 'rule'"
    assert made.exit_status == SUITE_FAULT


def test_a_run_that_was_cut_short_has_proved_nothing(good: Session) -> None:
    del good.results[-1]
    made = report.make(good, {}, 1.0)
    assert (made.findings[0].message, made.exit_status) == ("1 of 3 cases did not run", SUITE_FAULT)


def test_a_run_of_nothing_is_no_success() -> None:
    class Other:
        name, version = "other", "1"

        def count_in_chunk(self, spans: object, chunk: object) -> int:
            return 0

    made = report.make(session(Other()), {}, 1.0)
    assert made.exit_status == SUITE_FAULT
    assert made.faults == ("nothing ran: the engine has none of the methods that the chosen requirements ask",)


@pytest.mark.parametrize(
    "engine",
    [ReferenceEngine(), quirks[WRONG].engine(), quirks["one-varying-sentinel"].engine()],
    ids=lambda engine: engine.name,
)
def test_the_json_report_follows_its_schema(engine: Any, tmp_path: Path) -> None:
    made = report.make(session(engine), known(MESSAGE), 1.0)
    made.write_json(tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(content, SCHEMA)
    assert content["suite"]["planned"] == content["suite"]["executed"] == len(made.session.results)


def test_junit_has_a_test_case_for_each_requirement(bad: Session, tmp_path: Path) -> None:
    report.make(bad, known(MESSAGE), 1.0).write_junit(tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("tests") == str(len(suite)) == "9"
    assert [case[0].tag if len(case) else "passed" for case in suite][:4] == ["failure", "failure", "skipped", "passed"]


def test_the_page_names_every_requirement_and_escapes_what_it_shows(bad: Session, tmp_path: Path) -> None:
    bad.faults.append("<script>")
    report.make(bad, known(MESSAGE), 1.0).write_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(one in page for one in requirements if one.startswith("SENTINELS"))
    assert "answers as the quirk <code>sentinel-of-30-bits</code> does" in page
    assert "<script>" not in page
