"""The report: what the cases of a session amount to, requirement by requirement.

`Report.as_json` is the primary product, described by `report.schema.json`. The text on the terminal, JUnit's XML and
the exit status are functions of the same report.
"""

import json
import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from conformance.bugs import bugs
from conformance.diagnosis import Diagnosis, diagnose
from conformance.known_failures import KnownFailure
from conformance.requirement import MUST, Requirement, requirements, stages
from conformance.session import CaseResult, Session
from conformance.trial import Verdict

SCHEMA = 1
PACKAGES = ("mmproof", "numpy", "pillow", "pytest", "torch", "transformers")

PASSED, FAILED, SUITE_FAULT = 0, 1, 3
"""Exit statuses beside that of `console.USAGE`. Failed: a MUST does not hold, or the list of known failures is wrong."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How one requirement ended.

    message: what was wrong, beginning with how many cases and which. note: what is wrong with the known-failure list.
    """

    requirement: Requirement
    verdict: Verdict
    message: str
    note: str
    cases: int
    failing: tuple[str, ...]
    diagnosis: tuple[Diagnosis, ...]
    reproduce: str
    duration_s: float

    @property
    def breaks_the_run(self) -> bool:
        """Whether this finding alone makes the run fail."""
        wrong = self.verdict is Verdict.FAIL and self.requirement.level is MUST
        return wrong or self.verdict is Verdict.UNEXPECTED_PASS or bool(self.note)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a session found. findings: worst first, MUST before SHOULD, then by stage and number."""

    session: Session
    findings: tuple[Finding, ...]
    faults: tuple[str, ...]
    duration_s: float

    @property
    def counts(self) -> Mapping[Verdict, int]:
        return Counter(finding.verdict for finding in self.findings)

    @property
    def applicable(self) -> int:
        return len(self.findings) - self.counts[Verdict.NOT_APPLICABLE]

    @property
    def executed(self) -> int:
        """How many cases ran to an end."""
        return len(self.session.results)

    @property
    def planned(self) -> int:
        """How many cases there were to run."""
        return sum(self.session.planned.values())

    @property
    def exit_status(self) -> int:
        if self.faults or self.counts[Verdict.ERROR] or not self.executed:
            return SUITE_FAULT
        return FAILED if any(finding.breaks_the_run for finding in self.findings) else PASSED

    def as_json(self) -> dict[str, Any]:
        """The report as plain data, valid under `report.schema.json`."""
        session = self.session
        return {
            "schema": SCHEMA,
            "suite": {
                "version": _version("mmproof"),
                "profile": str(session.selection.profile),
                "partial": session.selection.is_partial,
                "planned": self.planned,
                "executed": self.executed,
                "faults": list(self.faults),
            },
            "engine": {
                "name": session.engine.name,
                "version": session.engine.version,
                "spec": session.spec,
                "capabilities": list(session.capabilities),
            },
            "environment": environment(),
            "requirements": [_finding_as_json(finding) for finding in self.findings],
            "summary": {
                "requirements": len(self.findings),
                "applicable": self.applicable,
                **{str(verdict).replace(" ", "_"): self.counts[verdict] for verdict in Verdict},
                "exit_status": self.exit_status,
                "duration_s": round(self.duration_s, 3),
            },
        }

    def write_json(self, path: Path) -> None:
        path.write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def write_junit(self, path: Path) -> None:
        """JUnit's XML, one test case a requirement. What is known or not applicable is marked as skipped, with the reason."""
        suite = ElementTree.Element("testsuite", name=f"mmproof {self.session.engine.name}", tests=str(len(self.findings)))
        for finding in self.findings:
            one = finding.requirement
            case = ElementTree.SubElement(
                suite, "testcase", classname=one.stage, name=f"{one.id} {one.sentence}", time=f"{finding.duration_s:.3f}"
            )
            if tag := _JUNIT_TAGS.get(finding.verdict):
                ElementTree.SubElement(case, tag, message=finding.note or finding.message or str(finding.verdict))
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)

    def write_html(self, path: Path) -> None:
        """One page that stands alone. Needs jinja2 (the extra `report`)."""
        from jinja2 import Environment, StrictUndefined

        template = (Path(__file__).parent / "report.html.jinja").read_text(encoding="utf-8")
        page = Environment(autoescape=True, undefined=StrictUndefined).from_string(template)
        shown = [str(verdict) for verdict in reversed(Verdict) if self.counts[verdict]]
        path.write_text(page.render(self.as_json(), stages=stages(), verdicts=shown, bugs=bugs()), encoding="utf-8")


_JUNIT_TAGS = {
    Verdict.ERROR: "error",
    Verdict.FAIL: "failure",
    Verdict.UNEXPECTED_PASS: "failure",
    Verdict.KNOWN_FAILURE: "skipped",
    Verdict.NOT_APPLICABLE: "skipped",
}


def make(session: Session, known: Mapping[str, KnownFailure], duration_s: float) -> Report:
    """The report of a session that has ended, in the light of the engine's known failures."""
    by_id: dict[str, list[CaseResult]] = {}
    for result in session.results:
        by_id.setdefault(result.requirement, []).append(result)
    chosen = [one for one in requirements.values() if session.selection.includes(one)]
    findings = [
        _not_applicable(session, one, known.get(one.id))
        if one.id in session.not_applicable
        else _finding(session, one, by_id.get(one.id, []), known.get(one.id))
        for one in chosen
        if one.id in session.not_applicable or session.planned.get(one.id)
    ]
    order = list(stages())
    findings.sort(
        key=lambda one: (one.verdict, one.requirement.level is not MUST, order.index(one.requirement.stage), one.requirement.id)
    )
    faults = session.faults if session.results or session.faults else [_why_nothing_ran(session)]
    return Report(session, tuple(findings), tuple(faults), duration_s)


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names as text; of many only the first ones."""
    return ", ".join(names[:most]) + (f", … {len(names)} in all" if len(names) > most else "")


def environment() -> dict[str, str]:
    """What the run depended on, beside the suite and the engine."""
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        **{package: _version(package) for package in PACKAGES},
    }


def _why_nothing_ran(session: Session) -> str:
    if session.selection.cases and not session.not_applicable:
        return f"nothing ran: no chosen requirement has a case named {', '.join(session.selection.cases)}"
    return "nothing ran: the engine has none of the methods that the chosen requirements ask"


def _finding(session: Session, one: Requirement, results: Sequence[CaseResult], known: KnownFailure | None) -> Finding:
    planned = session.planned[one.id]
    failing = tuple(result.case for result in results if result.outcome.verdict is Verdict.FAIL)
    verdict, message = _verdict(results, planned, failing)
    note = ""
    if known is not None:
        verdict, note = _in_the_light_of(known, verdict, message)
    diagnosis: tuple[Diagnosis, ...] = ()
    if verdict in (Verdict.FAIL, Verdict.KNOWN_FAILURE):
        diagnosis = diagnose(one, {result.case: result.outcome for result in results if result.case in one.cases})
    duration_s = sum(result.duration_s for result in results)
    return Finding(one, verdict, message, note, planned, failing, diagnosis, _reproduce(session, one, failing), duration_s)


def _verdict(results: Sequence[CaseResult], planned: int, failing: tuple[str, ...]) -> tuple[Verdict, str]:
    errors = [result for result in results if result.outcome.verdict is Verdict.ERROR]
    if errors:
        return Verdict.ERROR, f"the suite itself failed in {errors[0].case}: {errors[0].outcome.message}"
    if len(results) < planned:
        return Verdict.ERROR, f"{planned - len(results)} of {planned} cases did not run"
    if failing:
        first = next(result for result in results if result.case == failing[0])
        return Verdict.FAIL, f"{len(failing)} of {planned} cases ({listed(failing)}): {first.outcome.message}"
    return Verdict.PASS, ""


def _in_the_light_of(known: KnownFailure, verdict: Verdict, message: str) -> tuple[Verdict, str]:
    if verdict is Verdict.PASS:
        return Verdict.UNEXPECTED_PASS, f"listed as a known failure ({known.reason}), but it holds; take it off the list"
    if verdict is Verdict.FAIL and message.startswith(known.message):
        return Verdict.KNOWN_FAILURE, ""
    if verdict is Verdict.FAIL:
        hint = "cut the listed one short if it holds what each run changes"
        return Verdict.FAIL, f"listed as a known failure, but with another message ({hint}): {known.message}"
    return verdict, ""


def _not_applicable(session: Session, one: Requirement, known: KnownFailure | None) -> Finding:
    lacking = ", ".join(session.not_applicable[one.id])
    note = "listed as a known failure, but it did not run" if known else ""
    return Finding(one, Verdict.NOT_APPLICABLE, f"the engine has no {lacking}", note, 0, (), (), "", 0.0)


def _reproduce(session: Session, one: Requirement, failing: tuple[str, ...]) -> str:
    if not failing:
        return ""
    if failing[0].startswith("fuzz:"):
        effort = session.effort
        times = f" --times {effort.times}" if effort.times > 1 else ""
        seed = f" --seed {effort.seed}" if effort.seed is not None else ""
        return f"mmproof fuzz --engine {session.spec} --requirement {one.id}{times}{seed}"
    return f"mmproof run --engine {session.spec} --requirement {one.id} --case {failing[0]}"


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    one = finding.requirement
    return {
        "id": one.id,
        "stage": one.stage,
        "level": str(one.level),
        "profile": str(one.profile),
        "verdict": str(finding.verdict),
        "sentence": one.sentence,
        "message": finding.message,
        "note": finding.note,
        "cases": finding.cases,
        "failing": list(finding.failing),
        "diagnosis": [asdict(one) for one in finding.diagnosis],
        "bugs": list(one.bugs),
        "reproduce": finding.reproduce,
        "duration_s": round(finding.duration_s, 6),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
