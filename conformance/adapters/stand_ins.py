"""Stand-ins for packages that an engine imports and its multimodal input pipeline never calls.

To import one function of a serving engine is to import the server, and a server expects some sixty packages. Those that
are missing are replaced while the engine's modules are imported. An installed package is always used as it is, and
nobody but the engine gets to see a stand-in: transformers, for one, asks what is installed and acts on the answer.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from conformance.engine import EngineNotLoaded


@contextmanager
def stand_ins(engine: str, replaceable: Iterable[str], values: Mapping[str, Any]) -> Iterator[None]:
    """Stand-ins for the missing ones of these packages, and no warnings about them or a missing GPU.

    engine: the package that gets to see them.
    values: what is called while importing, and what answers, by full name.

    They go when the block ends, except from the modules that imported them.
    """
    finder = _Finder(engine, frozenset(name for name in replaceable if find_spec(name) is None), values)
    sys.meta_path.append(finder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, loaded in sys.modules.items() if isinstance(loaded, StandIn)]:
            del sys.modules[name]


def imported(name: str) -> Any:
    """The module of this name. Raises EngineNotLoaded, which names the package that it lacks."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise EngineNotLoaded(f"{name} needs a package that is not installed: {error.name}") from error


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, engine: str, missing: frozenset[str], values: Mapping[str, Any]) -> None:
        self._engine, self._missing, self._values = engine, missing, values

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._missing or _importer().partition(".")[0] != self._engine:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return StandIn(spec.name, self._values)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


class StandIn(ModuleType):
    """A module that has every name; each stands for a class that does nothing, unless there is a value for it."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.__values__ = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__values__.get(f"{self.__name__}.{name}") or _InertType(name, (_Inert,), {})


class _InertType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _InertType(name, (_Inert,), {})


class _Inert(metaclass=_InertType):
    """A class with every attribute, that is made of anything, may be derived from with any keywords and be the type of a
    pydantic field."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Nothing is kept."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return importlib.import_module("pydantic_core.core_schema").any_schema()


def _importer() -> str:
    """The name of the module whose import statement is being carried out."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("importlib", "conformance"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))
