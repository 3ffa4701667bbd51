"""A session: the rules that were chosen, run by pytest against one engine.

Pytest collects the rules, gives them their cases and runs them. This plugin gives them the engine, decides before any
test runs what is not applicable, and keeps how each case ended. What the cases amount to is decided in `report`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from conformance.engine import Profile
from conformance.requirement import Requirement, requirements
from conformance.time_limit import LIMIT_S
from conformance.trial import Outcome, Verdict, judge
from conformance.witness import Witness, capabilities


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search for cases.

    times: how many times as many examples as in CI. seed: other examples than CI's; None: CI's.
    """

    times: int = 1
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which requirements to run; empty means all.

    profile: `core` alone, or the exact values of one scheme beside it. but: requirements that are left out.
    """

    profile: Profile = Profile.CORE
    stages: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    but: frozenset[str] = frozenset()

    @property
    def is_partial(self) -> bool:
        return bool(self.stages or self.ids or self.cases or self.but)

    def includes(self, requirement: Requirement) -> bool:
        """Whether a requirement is part of this run, whatever the engine can do."""
        return (
            requirement.profile in (Profile.CORE, self.profile)
            and (not self.stages or requirement.stage in self.stages)
            and (not self.ids or requirement.id in self.ids)
            and requirement.id not in self.but
        )


@dataclass(slots=True)
class CaseResult:
    """How one case of one requirement ended, and how long it took."""

    requirement: str
    case: str
    outcome: Outcome
    duration_s: float


@dataclass(slots=True)
class Progress:
    """Called as the session goes on; the command line draws with it."""

    planned: Callable[[int], None] = lambda count: None
    started: Callable[[str, str], None] = lambda requirement, case: None
    ended: Callable[[CaseResult], None] = lambda result: None


@dataclass(slots=True, eq=False)
class Session:
    """A pytest plugin that puts an engine to the proof.

    spec: how the engine was named. limit_s: how many seconds it may take to answer one question. effort: how hard a search
    is to try. capabilities: its
    methods. planned: how many cases of each applicable requirement were collected. not_applicable: for each other one the
    methods that the engine lacks. results: in the order in which they ran. faults: what kept the suite itself from running.
    """

    engine: Any
    spec: str
    selection: Selection
    progress: Progress = field(default_factory=Progress)
    limit_s: float = LIMIT_S
    effort: Effort = Effort()
    capabilities: tuple[str, ...] = ()
    planned: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    not_applicable: dict[str, tuple[str, ...]] = field(default_factory=dict)
    results: list[CaseResult] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.capabilities = capabilities(self.engine)

    @pytest.fixture(name="engine")
    def fixture(self) -> Iterator[Witness]:
        """The engine, seen through a witness that has heard nothing yet."""
        witness = Witness(self.engine, spec=self.spec, limit_s=self.limit_s)
        yield witness
        witness.put_back()

    @pytest.fixture(name="effort")
    def _effort(self) -> Effort:
        return self.effort

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "requirement(id): the requirement that a test stands for")
        config.addinivalue_line("markers", "needs(method, ...): the engine methods that a measurement needs")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = [item for item in items if self._applies(item)]
        config.hook.pytest_deselected(items=list(set(items).difference(kept)))
        items[:] = kept
        for id in self.planned:
            self.not_applicable.pop(id, None)  # other cases of it do apply
        self.progress.planned(len(kept))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.faults.append(f"collecting {report.nodeid} failed: {report.longreprtext}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if id := _requirement_id(item):
            self.progress.started(id, _case_name(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        id = _requirement_id(item)
        error = call.excinfo.value if call.excinfo is not None else None
        if id and (call.when == "call" or error is not None):
            self._keep(id, item, call, error)
        return report

    def _keep(self, id: str, item: pytest.Item, call: pytest.CallInfo[None], error: BaseException | None) -> None:
        witness = getattr(item, "funcargs", {}).get("engine")
        answers = witness.answers if isinstance(witness, Witness) else []
        outcome = judge(error, answers) if call.when == "call" else Outcome(Verdict.ERROR, f"{call.when} failed: {error}")
        result = CaseResult(id, _case_name(item), outcome, call.duration)
        self.results.append(result)
        self.progress.ended(result)

    def _applies(self, item: pytest.Item) -> bool:
        id, needs = _requirement_id(item), item.get_closest_marker("needs")
        if not id:
            return needs is None or set(needs.args) <= set(self.capabilities)
        requirement = requirements[id]
        if not self.selection.includes(requirement):
            return False
        if self.selection.cases and _case_name(item) not in self.selection.cases:
            return False
        wanted = requirement.needs if requirement.family is None else _wanted(requirement, item)
        if lacking := tuple(need for need in wanted if need not in self.capabilities):
            self.not_applicable[id] = lacking
            return False
        self.planned[id] += 1
        return True


def _requirement_id(item: pytest.Item) -> str:
    marker = item.get_closest_marker("requirement")
    return str(marker.args[0]) if marker else ""


def _wanted(requirement: Requirement, item: pytest.Item) -> tuple[str, ...]:
    """The engine methods that a test needs; a search looks at each of its cases itself."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "vector" in params:
        vector = params["vector"]
        return requirement.wants(item.function.read(vector["given"], vector["expected"]))  # type: ignore[attr-defined]
    return requirement.wants(params["case"]) if params else requirement.needs


def _case_name(item: pytest.Item) -> str:
    """The name beside the rule; in other rooms with the room before it, as in `golden:hash-5`."""
    callspec = getattr(item, "callspec", None)
    name = str(callspec.id) if callspec else getattr(item, "originalname", item.name)
    room = item.module.__name__.partition(".")[0] if isinstance(item, pytest.Function) else ""
    return name if room == "conformance" else f"{room}:{name}"
