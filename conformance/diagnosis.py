"""Diagnosis: which known faults would explain what an engine got wrong.

The cases of a failed requirement are run once more, against the reference with each quirk that the requirement is known
to catch. A quirk explains a case that fails in both and in the same way; it explains it *exactly* if it gave the engine's
own answers. Identities are opaque, so that there only the way can agree. The fewest quirks that explain the most cases
are named; of equals the one that fails least elsewhere.
"""

import re
from collections.abc import Collection, Iterable, Mapping
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
    left = {name for name, outcome in observed.items() if outcome.verdict is Verdict.FAIL}
    suspects = [_Suspect(requirement, name, observed) for name, one in quirks.items() if requirement.id in one.caught_by]
    named: list[Diagnosis] = []
    while left and suspects:
        best = max(suspects, key=lambda suspect: suspect.weight(left))
        explained = tuple(case for case in best.explained if case in left)
        if not explained:
            break
        quirk = quirks[best.name]
        named.append(Diagnosis(best.name, explained, best.exact.issuperset(explained), quirk.sentence, quirk.bugs))
        left -= set(explained)
    return tuple(named)


class _Suspect:
    """A quirk: the failing cases of the engine that it explains, those that it explains exactly, and how many it fails."""

    def __init__(self, requirement: Requirement, name: str, observed: Mapping[str, Outcome]) -> None:
        self.name = name
        engine = quirks[name].engine()
        ours = {case: trial.run(requirement, requirement.cases[case], engine, spec=engine.name) for case in observed}
        failing = [case for case, outcome in ours.items() if outcome.verdict is Verdict.FAIL]
        self.failing = len(failing)
        self.explained = [case for case in failing if _way(ours[case]) == _way(observed[case])]
        self.exact = {case for case in self.explained if _telling(ours[case]) and _plain(ours[case]) == _plain(observed[case])}

    def weight(self, left: Collection[str]) -> tuple[int, int, int]:
        """How well it explains the cases that are left: how many, how many exactly, and how little it fails elsewhere."""
        return sum(case in left for case in self.explained), sum(case in left for case in self.exact), -self.failing


def _way(outcome: Outcome) -> str:
    """What was wrong, without the values: a message up to the first colon or comma, or to what was raised."""
    return re.split("[:,]| raised ", f"{outcome.verdict} {outcome.message}")[0]


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
