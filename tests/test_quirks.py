"""The kill matrix: every quirk is caught by the requirements that it names, and by none that has no business with it.

A quirk replaces one engine method, so it can only touch the requirements that ask this method. Which these are is
measured on the reference; the ones of other stages must stand downstream of the method, or say that they need it.
"""

from functools import cache

import pytest

from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.engine import METHODS
from conformance.quirks import quirks
from conformance.requirement import stages
from conformance.suite import requirements
from conformance.trial import Outcome, Verdict

STAGES = list(stages())
"""In the order in which data flows: each depends on those before it, and on none behind it."""


def outcomes(id: str, engine: ReferenceEngine) -> list[Outcome]:
    """How each case of a requirement ends."""
    one = requirements[id]
    return [trial.run(one, case, engine, spec=engine.name) for case in one.cases.values()]


@cache
def on_the_reference(id: str) -> list[Outcome]:
    return outcomes(id, ReferenceEngine())


def asked(id: str) -> set[str]:
    """The engine methods that the rule of a requirement calls."""
    return {answer.method for outcome in on_the_reference(id) for answer in outcome.answers} & set(METHODS)


@pytest.mark.parametrize("id", requirements)
def test_the_reference_meets_the_requirement(id: str) -> None:
    assert {outcome.message for outcome in on_the_reference(id) if outcome.verdict is not Verdict.PASS} == set()


@pytest.mark.parametrize("id", requirements)
def test_a_requirement_asks_what_it_needs_and_beside_it_only_what_it_is_made_of(id: str) -> None:
    needed = {need.partition(".")[0] for need in requirements[id].needs}
    assert needed - {"open_encoder_cache"} <= asked(id) | needed
    assert {
        method for method in asked(id) - needed if METHODS.index(method) > METHODS.index(max(needed, key=METHODS.index))
    } == set()


@pytest.mark.parametrize("id", requirements)
def test_a_requirement_has_a_quirk_that_it_catches(id: str) -> None:
    assert any(id in quirk.caught_by for quirk in quirks.values())


@pytest.mark.parametrize("name", quirks)
def test_a_quirk_is_caught_by_the_requirements_that_it_names(name: str) -> None:
    for id in quirks[name].caught_by:
        verdicts = {outcome.verdict for outcome in outcomes(id, quirks[name].engine())}
        assert Verdict.FAIL in verdicts, f"{id} does not catch it"
        assert Verdict.ERROR not in verdicts, f"{id} stumbles over it"


@pytest.mark.parametrize("name", quirks)
def test_a_quirk_breaks_nothing_that_does_not_depend_on_it(name: str) -> None:
    quirk = quirks[name]
    stage = {requirements[id].stage for id in quirk.caught_by}
    others = [id for id, one in requirements.items() if quirk.replaces in asked(id) and one.stage not in stage]
    for id in others:
        upstream = STAGES.index(requirements[id].stage) < min(map(STAGES.index, stage))
        independent = upstream and quirk.replaces not in requirements[id].needs
        assert not independent or {outcome.verdict for outcome in outcomes(id, quirk.engine())} == {Verdict.PASS}, id
