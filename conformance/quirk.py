"""Quirks: named ways to be wrong, each taken from a public bug report.

    @quirk("one-varying-sentinel", replaces="sentinels", bugs=("H10",), caught_by=("SENTINELS-02",))
    def only_the_first_varies(identity: bytes) -> tuple[int, ...]:
        \"\"\"Only the first value depends on the content; a match that stops later sees no difference.\"\"\"

A quirk stands in for one method of the reference engine. It proves that its requirements can fail, it diagnoses real
engines whose answers equal its own, and it documents what has gone wrong in the field.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from conformance.adapters.reference import ReferenceEngine
from conformance.engine import METHODS

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Quirk:
    """A faulty stand-in for one engine method.

    bugs: ids in `conformance/bugs.json`. caught_by: the requirements that must fail.
    """

    name: str
    function: Callable[..., Any]
    replaces: str
    bugs: tuple[str, ...]
    caught_by: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What the faulty engine does."""
        return " ".join((self.function.__doc__ or "").split())

    def engine(self) -> ReferenceEngine:
        """The reference engine with this fault."""
        body = {self.replaces: staticmethod(self.function), "name": f"quirk:{self.name}"}
        faulty: ReferenceEngine = type("QuirkyEngine", (ReferenceEngine,), body)()
        return faulty


quirks: dict[str, Quirk] = {}
"""All quirks that were imported, by name. `conformance.quirks` imports them all."""


def quirk(name: str, *, replaces: str, bugs: tuple[str, ...], caught_by: tuple[str, ...]) -> Callable[[F], F]:
    """Register a faulty function under a name."""
    if replaces not in METHODS:
        raise ValueError(f"quirk {name} replaces {replaces}, which the engine protocol does not have")
    if name in quirks:
        raise ValueError(f"there is a quirk {name} already")

    def register(function: F) -> F:
        quirks[name] = Quirk(name, function, replaces, bugs, caught_by)
        return function

    return register
