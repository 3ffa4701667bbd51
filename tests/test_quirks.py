"""Every quirk is caught by the requirements that it names, and by nothing that has no business with it."""

import pytest

import conformance.quirks
import conformance.suite  # noqa: F401  (both declare)
from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.quirk import Quirk, quirks
from conformance.requirement import Requirement, requirements
from conformance.trial import Verdict

ALL_QUIRKS = [pytest.param(quirk, id=name) for name, quirk in quirks.items()]
ALL_REQUIREMENTS = [pytest.param(one, id=id) for id, one in requirements.items()]


def worst(requirement: Requirement, engine: ReferenceEngine) -> trial.Outcome:
    """The worst outcome over all cases."""
    outcomes = (trial.run(requirement, case, engine, spec=engine.name) for case in requirement.cases.values())
    return min(outcomes, key=lambda outcome: outcome.verdict)


@pytest.mark.parametrize("quirk", ALL_QUIRKS)
def test_a_quirk_is_caught_by_the_requirements_that_it_names(quirk: Quirk) -> None:
    for id in quirk.caught_by:
        outcome = worst(requirements[id], quirk.engine())
        assert outcome.verdict is Verdict.FAIL, f"{id} does not catch {quirk.name}: {outcome.verdict} {outcome.message}"


@pytest.mark.parametrize("quirk", ALL_QUIRKS)
def test_a_quirk_fails_nothing_that_does_not_ask_the_method_it_replaces(quirk: Quirk) -> None:
    engine = quirk.engine()
    for requirement in requirements.values():
        if quirk.replaces not in {need.partition(".")[0] for need in requirement.needs}:
            assert worst(requirement, engine).verdict is Verdict.PASS, requirement.id


@pytest.mark.parametrize("requirement", ALL_REQUIREMENTS)
def test_a_requirement_has_a_quirk_that_it_catches(requirement: Requirement) -> None:
    assert any(requirement.id in quirk.caught_by for quirk in quirks.values())


@pytest.mark.parametrize("requirement", ALL_REQUIREMENTS)
def test_the_reference_meets_every_requirement(requirement: Requirement) -> None:
    outcome = worst(requirement, ReferenceEngine())
    assert outcome.verdict is Verdict.PASS, outcome.message
