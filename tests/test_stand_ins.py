"""Stand-ins for packages that an engine imports and never calls."""

import importlib.util
import sys
from contextlib import AbstractContextManager
from typing import Any

import pytest

from conformance.adapters.stand_ins import StandIn, stand_ins
from conformance.adapters.stand_ins import imported as module
from conformance.engine import EngineNotLoaded

ABSENT = "a_package_that_nobody_has"


def replaced() -> AbstractContextManager[None]:
    """An engine imports a package that is not installed, and one that is."""
    return stand_ins("engine", (ABSENT, "json"), {})


def imported(by: str, statement: str) -> dict[str, Any]:
    """What a module of this name has after this import statement."""
    names: dict[str, Any] = {"__name__": by}
    exec(statement, names)
    return names


def test_the_engine_gets_a_stand_in_for_a_missing_package() -> None:
    with replaced():
        names = imported("engine.module", f"from {ABSENT}.part import Base\nclass Made(Base.Inner, keyword=True): pass")
    assert isinstance(names["Made"], type)


def test_an_installed_package_is_used_as_it_is() -> None:
    with replaced():
        assert imported("engine.module", "import json")["json"].loads("[1]") == [1]


def test_nobody_else_sees_a_stand_in() -> None:
    finders = list(sys.meta_path)
    with replaced():
        imported("engine.module", f"import {ABSENT}")
        with pytest.raises(ModuleNotFoundError):
            imported("transformers.module", f"import {ABSENT}.part")
    assert sys.meta_path == finders
    assert importlib.util.find_spec(ABSENT) is None


def test_values_that_are_used_while_importing_are_there() -> None:
    assert StandIn("package", {"package.answer": 42}).answer == 42


def test_a_module_that_lacks_a_package_names_it() -> None:
    with pytest.raises(EngineNotLoaded, match=f"needs a package that is not installed: {ABSENT}"):
        module(f"{ABSENT}.part")
