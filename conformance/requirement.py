"""Requirements: a rule with an id, a sentence and cases.

    @requirement("SENTINELS-01", needs="sentinels", cases={"zeros": bytes(32)}, bugs=("P03",))
    def test_sentinels_lie_outside_every_vocabulary(engine: Engine, case: bytes) -> None:
        \"\"\"A sentinel MUST be larger than every id of a vocabulary.\"\"\"

A rule asks the engine, and asserts with `conformance.compare`. It does not know where its cases come from: the table
beside it, the vectors of `golden`, or the search of `fuzz`.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

import pytest

from conformance.engine import METHODS, Profile, Traits, families


class Level(StrEnum):
    """How much a requirement binds, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"


MUST, SHOULD = Level.MUST, Level.SHOULD
CORE, SGLANG = Profile.CORE, Profile.SGLANG

Rule: TypeAlias = Callable[[Any, Any], None]
R = TypeVar("R", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Requirement:
    """What every engine that has the methods `needs` is held to.

    cases: by name. A name is made of lower-case words joined by hyphens, and never changes its meaning.
    family: the family of models that a case is about, where cases are about several. A case is not asked of an engine that
        lacks a method's form for its family.
    """

    id: str
    rule: Rule
    needs: tuple[str, ...]
    level: Level
    profile: Profile
    bugs: tuple[str, ...]
    cases: Mapping[str, Any] = field(repr=False)
    family: Callable[[Any], str] | None = None

    def wants(self, case: Any) -> tuple[str, ...]:
        """The engine methods that one case needs."""
        if self.family is None:
            return self.needs
        formed = [need for need in self.needs if families(need, Traits())]
        return (*self.needs, *(f"{need}.{self.family(case)}" for need in formed))

    @property
    def stage(self) -> str:
        return self.id.rpartition("-")[0].lower()

    @property
    def about(self) -> str:
        """What its stage is about: the first line of the rule's module, `STAGE: about.`"""
        first_line = (sys.modules[self.rule.__module__].__doc__ or "").partition("\n")[0]
        return first_line.partition(": ")[2].rstrip(".")

    @property
    def sentence(self) -> str:
        """The normative sentence: the first paragraph of the rule's docstring."""
        return " ".join((self.rule.__doc__ or "").strip().split("\n\n")[0].split())

    @property
    def explanation(self) -> str:
        """The rest of the rule's docstring."""
        return "\n\n".join(" ".join(p.split()) for p in (self.rule.__doc__ or "").strip().split("\n\n")[1:])


requirements: dict[str, Requirement] = {}
"""All rules that were imported, by id. `conformance.suite` imports them all."""


def stages() -> dict[str, str]:
    """The stages in the order in which data flows, that of the engine protocol, and what each one is about."""
    first = [one for id, one in requirements.items() if id.endswith("-01")]
    first.sort(key=lambda one: METHODS.index(one.needs[0].partition(".")[0]))
    return {one.stage: one.about for one in first}


def requirement(
    id: str,
    *,
    needs: str | tuple[str, ...],
    cases: Mapping[str, Any],
    bugs: tuple[str, ...] = (),
    level: Level = MUST,
    profile: Profile = CORE,
    family: Callable[[Any], str] | None = None,
) -> Callable[[R], R]:
    """Declare a rule of the form `rule(engine, case)`; pytest runs it once for each named case."""
    needs = (needs,) if isinstance(needs, str) else needs

    def declare(rule: R) -> R:
        made = Requirement(id, rule, needs, level, profile, bugs, dict(cases), family)
        _check(made)
        requirements[id] = made
        named = [pytest.param(case, id=name) for name, case in cases.items()]
        marked: R = pytest.mark.requirement(id)(pytest.mark.parametrize("case", named)(rule))
        return marked

    return declare


def _check(made: Requirement) -> None:
    taken = requirements.get(made.id)
    if taken is not None and taken.rule.__qualname__ != made.rule.__qualname__:
        raise ValueError(f"{made.id} is taken by {taken.rule.__name__}")
    if not re.fullmatch(r"[A-Z_]+-\d\d", made.id):
        raise ValueError(f"{made.id}: an id is a stage and two digits, such as SENTINELS-01")
    if not re.search(rf"\b{made.level}\b", made.sentence):
        raise ValueError(f"{made.id}: the first paragraph of the docstring is the normative sentence and says {made.level}")
    if unknown := [need for need in made.needs if need.partition(".")[0] not in METHODS]:
        raise ValueError(f"{made.id} needs {', '.join(unknown)}, which the engine protocol does not have")
    if not made.cases:
        raise ValueError(f"{made.id} has no cases: a rule that runs nothing cannot fail")
    if bad := [name for name in made.cases if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)]:
        raise ValueError(f"{made.id}: case names are lower-case words joined by hyphens, not {', '.join(bad)}")
