"""Which code serves an architecture, found without importing the rest.

A module is imported when one of its architectures is asked for. So one that cannot be imported takes nothing else with
it, and who asks for its architecture is told what failed and why: not that there is no such model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


class UnknownArchitecture(ValueError):
    """No module serves the architecture; the message lists those that are known."""


class ModuleFailed(ValueError):
    """The module that serves the architecture could not be imported; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module that serves some architectures. load: imports it, and gives what processes for them."""

    name: str
    architectures: tuple[str, ...]
    load: Callable[[], Any]


def register(modules: Sequence[Module], module: Module) -> tuple[Module, ...]:
    """The modules and one more. Raises ValueError, naming both, when an architecture is served already."""
    for other in modules:
        if taken := sorted(set(other.architectures) & set(module.architectures)):
            raise ValueError(f"{', '.join(taken)} of {module.name} is served by {other.name} already")
    return (*modules, module)


def find_processor(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """What processes for the first of the architectures that a module serves.

    Raises ModuleFailed when that module cannot be imported, UnknownArchitecture when there is none.
    """
    for architecture in architectures:
        for module in modules:
            if architecture in module.architectures:
                return _load(module, architecture)
    known = ", ".join(sorted(one for module in modules for one in module.architectures)) or "none"
    raise UnknownArchitecture(f"no processor serves {', '.join(architectures) or 'no architecture'}; known: {known}")


def _load(module: Module, architecture: str) -> Any:
    try:
        return module.load()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise ModuleFailed(f"{module.name}, which serves {architecture}, could not be imported: {cause}") from error
