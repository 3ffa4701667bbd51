"""Find the engine that a user names: `NAME`, `module:object`, `path.py:object`, `worker:COMMAND` or `quirk:NAME`."""

import difflib
import importlib
import importlib.util
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.engine import METHODS, EngineNotLoaded, Traits
from conformance.witness import capabilities

GROUP = "mmproof.engines"
WORKER = "worker:"


def load(spec: str) -> Any:
    """The engine of this name, ready to be asked.

    NAME is an entry point of the group `mmproof.engines`; `quirk:NAME` is the reference engine with that fault;
    `worker:COMMAND` is whoever answers in the process that the command starts. An
    object that is a class, or a function without engine methods, is called without arguments to make the engine.
    Modules are also looked for in the working directory. Raises EngineNotLoaded.
    """
    kind, colon, name = spec.rpartition(":")
    if spec.startswith(WORKER):
        from conformance.remote.engine import RemoteEngine  # only who has a worker needs it

        made: Any = RemoteEngine(spec.removeprefix(WORKER))
    elif not colon:
        made = _from_entry_point(spec)
    elif kind == "quirk":
        made = _from_quirk(name)
    else:
        made = _from_object(spec, _file(spec, kind) if kind.endswith(".py") else _module(spec, kind), name)
    return checked(spec, made)


def checked(spec: str, engine: Any) -> Any:
    """The engine, if it is one. Raises EngineNotLoaded for what has no name, no version or no method of the protocol."""
    for attribute in ("name", "version"):
        if not isinstance(getattr(engine, attribute, None), str):
            raise EngineNotLoaded(f"engine {spec}: an engine has a {attribute!r}, a string; this {_kind(engine)} has none")
    if not isinstance(getattr(engine, "traits", Traits()), Traits):
        raise EngineNotLoaded(f"engine {spec}: its traits are a {_kind(engine.traits)}, not a conformance.engine.Traits")
    if not capabilities(engine):
        raise EngineNotLoaded(
            f"engine {spec}: it has no method of the protocol, so nothing can be asked; `mmproof list --methods` names them"
        )
    return engine


def misspelt(engine: Any) -> dict[str, str]:
    """Public methods of the engine that the protocol does not have, but whose names are close to one that it has."""
    own = [name for name in dir(engine) if not name.startswith("_") and name not in METHODS]
    near = {name: difflib.get_close_matches(name, METHODS, n=1, cutoff=0.85) for name in own}
    return {name: found[0] for name, found in near.items() if found and callable(getattr(engine, name, None))}


def known_engines() -> list[str]:
    """The names of the engines that are installed."""
    return sorted(point.name for point in entry_points(group=GROUP))


def _from_entry_point(name: str) -> Any:
    for point in entry_points(group=GROUP, name=name):
        try:
            return _made(point.load())
        except EngineNotLoaded:
            raise
        except (Exception, SystemExit) as error:
            raise EngineNotLoaded(f"engine {name} cannot be made: {type(error).__name__}: {error}") from error
    known = ", ".join(known_engines())
    raise EngineNotLoaded(f"there is no engine named {name!r}; installed: {known}; or give module:object or path.py:object")


def _from_quirk(name: str) -> Any:
    from conformance.quirks import quirks  # imports the reference, which an engine of one's own does not need

    if name not in quirks:
        near = difflib.get_close_matches(name, quirks, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`mmproof quirks` lists them"
        raise EngineNotLoaded(f"there is no quirk named {name!r}; {hint}")
    return quirks[name].engine()


def _module(spec: str, name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: a file there must not hide an installed package
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise EngineNotLoaded(f"engine {spec}: importing {name} failed: {type(error).__name__}: {error}") from error


def _file(spec: str, path: str) -> ModuleType:
    if not Path(path).is_file():
        raise EngineNotLoaded(f"engine {spec}: there is no file {path}")
    found = importlib.util.spec_from_file_location(Path(path).stem, path)
    if found is None or found.loader is None:
        raise EngineNotLoaded(f"engine {spec}: {path} is no Python file")
    module = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise EngineNotLoaded(f"engine {spec}: running {path} failed: {type(error).__name__}: {error}") from error
    return module


def _from_object(spec: str, module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        near = difflib.get_close_matches(name, dir(module), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise EngineNotLoaded(f"engine {spec}: {module.__name__} has no {name!r}{hint}")
    try:
        return _made(getattr(module, name))
    except (Exception, SystemExit) as error:
        raise EngineNotLoaded(f"engine {spec}: making it failed: {type(error).__name__}: {error}") from error


def _made(target: Any) -> Any:
    is_factory = isinstance(target, type) or (callable(target) and not hasattr(target, "version"))
    return target() if is_factory else target


def _kind(value: Any) -> str:
    return type(value).__name__
