"""Diagnosis: which known faults would explain what an engine got wrong.

The cases of a failed requirement are run once more, against the reference with each quirk that the requirement is known
to catch. A quirk is a suspect when every case that it fails fails in the engine too, and in the same way. The fewest
suspects that cover the most failing cases are named, each with the cases that it explains; it explains them *exactly* if
it gave the engine's own answers. Identities are opaque, so that there only the way can agree.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from conformance import trial
from conformance.quirks import quirks
from conformance.requirement import Requirement
from conformance.trial import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A quirk that would explain failing cases. exact: its answers in these cases equal the engine's."""

    quirk: str
    cases: tuple[str, ...]
    exact: bool
    sentence: str
    bugs: tuple[str, ...]


def diagnose(requirement: Requirement, observed: Mapping[str, Outcome]) -> tuple[Diagnosis, ...]:
    """The quirks that explain these outcomes of the requirement's own cases, the one that explains most first."""
    failing = {name for name, outcome in observed.items() if outcome.verdict is Verdict.FAIL}
    named_by = (_suspect(requirement, name, observed) for name, one in quirks.items() if requirement.id in one.caught_by)
    suspects = [suspect for suspect in named_by if suspect is not None and failing.issuperset(suspect.cases)]
    named = []
    while suspects and failing:
        best = max(suspects, key=lambda suspect: (len(failing.intersection(suspect.cases)), suspect.exact))
        if not failing.intersection(best.cases):
            break
        named.append(best)
        failing -= set(best.cases)
    return tuple(named)


def _suspect(requirement: Requirement, name: str, observed: Mapping[str, Outcome]) -> Diagnosis | None:
    quirk = quirks[name]
    engine = quirk.engine()
    outcomes = {case: trial.run(requirement, requirement.cases[case], engine, spec=engine.name) for case in observed}
    failing = tuple(case for case, outcome in outcomes.items() if outcome.verdict is Verdict.FAIL)
    if not failing or any(_way(outcomes[case]) != _way(observed[case]) for case in failing):
        return None
    exact = all(_telling(outcomes[case]) and _plain(outcomes[case]) == _plain(observed[case]) for case in failing)
    return Diagnosis(name, failing, exact, quirk.sentence, quirk.bugs)


def _way(outcome: Outcome) -> str:
    """What was wrong, without the values: a message up to the first colon or comma."""
    return re.split("[:,]", outcome.message)[0]


def _telling(outcome: Outcome) -> bool:
    return not any(isinstance(answer.value, bytes) for answer in outcome.answers)


def _plain(outcome: Outcome) -> tuple[Any, ...]:
    """What an engine said, in a form in which two engines can be compared."""
    return tuple((answer.method, "raised" if answer.error else _comparable(answer.value)) for answer in outcome.answers)


def _comparable(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        raw = value.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
        return str(value.dtype), tuple(value.shape), raw.numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Exception):
        return "error"
    if hasattr(value, "__dataclass_fields__"):
        return _comparable([getattr(value, name) for name in value.__dataclass_fields__])
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(map(_comparable, value))
    return value if isinstance(value, int | str | None) else type(value).__name__
