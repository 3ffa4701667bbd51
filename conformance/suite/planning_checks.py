"""How the rules of planning ask: all counts of a table at once, or a refusal."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from conformance.compare import equal, refuses, unless_refused
from conformance.engine import Engine
from conformance.world.families import Family


class Table(NamedTuple):
    """A family and the media to count; each is the rest of the arguments of an engine method.

    expected: gives the right answers, one for each medium. A function, for the model owner's processor is slow.
    """

    family: Family
    media: Sequence[tuple[Any, ...]]
    expected: Callable[[], Sequence[Any]]


class Refused(NamedTuple):
    """A family and a medium that has no count."""

    family: Family
    medium: tuple[Any, ...]


def against(oracle: Callable[..., Any], family: Family, *media: tuple[Any, ...]) -> Table:
    """A table whose answers come from an oracle, when they are asked for."""
    return Table(family, media, lambda: [oracle(family, *medium) for medium in media])


def counts_are(engine: Engine, method: str, case: Table, what: str) -> None:
    """The answers of an engine method are the expected ones."""
    ask = getattr(engine, method)
    observed = [ask(case.family.name, case.family.settings, *medium) for medium in case.media]
    equal(observed, list(case.expected()), what, where=lambda n: f"{case.family.name} {_shown(case.media[n])}")


def counts_are_or_refused(engine: Engine, method: str, case: Table, what: str) -> None:
    """Each answer of an engine method is the expected one, or it refuses to give any."""
    ask = getattr(engine, method)
    for medium, expected in zip(case.media, case.expected(), strict=True):
        about = f"{case.family.name} {_shown(medium)}"
        for observed in unless_refused(partial(ask, case.family.name, case.family.settings, *medium), about):
            equal(observed, expected, f"{what} of {about}")


def is_refused(engine: Engine, method: str, case: Refused) -> None:
    """An engine method refuses a medium."""
    ask = getattr(engine, method)
    refuses(lambda: ask(case.family.name, case.family.settings, *case.medium), f"{case.family.name} {_shown(case.medium)}")


def _shown(medium: tuple[Any, ...]) -> str:
    return ", ".join(map(str, medium))
