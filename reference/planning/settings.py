"""What the settings of every family have in common: they are positive numbers, given in full but for what may be off."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

Made = TypeVar("Made")


def make(kind: type[Made], family: str, settings: Mapping[str, Any]) -> Made:
    """The settings of a family as an object of its class. Raises ValueError for a name too many or too few."""
    known = {field.name: field.default is MISSING for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(settings) - set(known)):
        raise ValueError(f"{family} has no setting {', '.join(unknown)}; it has {', '.join(known)}")
    if missing := [name for name, is_needed in known.items() if is_needed and name not in settings]:
        raise ValueError(f"{family} also needs {', '.join(missing)}: the number of tokens depends on it")
    return kind(**settings)


def check(made: Any, *, may_be_zero: tuple[str, ...] = ()) -> None:
    """Raise unless each setting that is a number is an integer of at least 1, or 0 where that is allowed."""
    for field in fields(made):
        value = getattr(made, field.name)
        if field.type is float and not (isinstance(value, int | float) and value > 0):
            raise ValueError(f"{field.name} is a number above 0, not {value!r}")
        if field.type is not int:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{field.name} is an integer, not {value!r}")
        least = 0 if field.name in may_be_zero else 1
        if value < least:
            raise ValueError(f"{field.name} is at least {least}, not {value}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {' or '.join(choices)}, not {value!r}")
