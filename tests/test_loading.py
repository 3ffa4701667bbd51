"""Naming an engine, rightly and wrongly."""

from pathlib import Path

import pytest

from conformance.adapters.reference import ReferenceEngine
from conformance.engine import EngineNotLoaded, Profile, Traits
from conformance.loading import checked, load, misspelt
from conformance.witness import EngineMisanswered, EngineRaised, Witness, capabilities

ENGINE = "class Engine:\n    name, version = 'acme', '1'\n    def data_hash(self, data): return 7\n"


@pytest.mark.parametrize("spec", ["reference", "conformance.adapters.reference:ReferenceEngine"])
def test_an_engine_is_loaded_by_name_and_by_object(spec: str) -> None:
    assert isinstance(load(spec), ReferenceEngine)


def test_a_quirk_is_an_engine() -> None:
    assert load("quirk:one-varying-sentinel").name == "quirk:one-varying-sentinel"


def test_an_engine_is_loaded_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(ENGINE)
    assert capabilities(load(f"{tmp_path}/acme.py:Engine")) == ("data_hash",)


def test_an_engine_is_loaded_from_a_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_in_cwd.py").write_text(ENGINE + "made = Engine()\ndef factory(): return made\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert load("acme_in_cwd:made") is load("acme_in_cwd:factory")


WRONG = {
    "an unknown name": ("nix", "no engine named 'nix'; installed: .*reference"),
    "an unknown quirk": ("quirk:one-varying", "no quirk named 'one-varying'; did you mean one-varying-sentinel"),
    "no such module": ("nix:Engine", "importing nix failed: ModuleNotFoundError"),
    "no such object": ("conformance.loading:Engin", "has no 'Engin'"),
    "no such file": ("nix.py:Engine", "there is no file nix.py"),
    "not an engine": ("math:pi", "an engine has a 'name'"),
    "an engine that fails to start": ("conformance.engine:Engine", "making it failed: TypeError"),
}


@pytest.mark.parametrize(("spec", "sentence"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_loaded_is_explained(spec: str, sentence: str) -> None:
    with pytest.raises(EngineNotLoaded, match=sentence):
        load(spec)


def test_a_file_that_breaks_is_explained(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text("import nix_as_well")
    with pytest.raises(EngineNotLoaded, match="failed: ModuleNotFoundError: No module named 'nix_as_well'"):
        load(f"{tmp_path}/acme.py:Engine")


@pytest.mark.parametrize("text", ["import sys\nsys.exit(9)", "class Engine:\n    def __init__(self): raise SystemExit(9)"])
def test_an_engine_that_leaves_the_process_is_explained(tmp_path: Path, text: str) -> None:
    (tmp_path / "acme.py").write_text(text)
    with pytest.raises(EngineNotLoaded, match="failed: SystemExit: 9"):
        load(f"{tmp_path}/acme.py:Engine")


def test_an_engine_without_methods_is_refused() -> None:
    with pytest.raises(EngineNotLoaded, match="no method of the protocol"):
        checked("x", type("Empty", (), {"name": "empty", "version": "1"})())


def test_traits_of_another_type_are_refused() -> None:
    with pytest.raises(EngineNotLoaded, match="its traits are a dict"):
        checked("x", type("Odd", (), {"name": "odd", "version": "1", "traits": {}})())


def test_a_misspelt_method_is_noticed() -> None:
    engine = type("Typo", (), {"name": "typo", "version": "1", "identfy": lambda self, item: b"", "close": lambda self: None})()
    assert misspelt(engine) == {"identfy": "identify"}


class Acme:
    name, version = "acme", "1"

    def sentinels(self, identity: bytes) -> object:
        return None

    def find_spans(self, input_ids: object, token_id: int) -> object:
        return [(4, 2)]

    def identify(self, item: object) -> object:
        raise KeyError("grid")


def test_a_wrong_return_type_is_a_sentence() -> None:
    with pytest.raises(EngineMisanswered, match="sentinels returned NoneType; the protocol asks for a sequence of ints"):
        Witness(Acme()).sentinels(bytes(32))
    with pytest.raises(EngineMisanswered, match="a sequence of spans; a span runs from"):
        Witness(Acme()).find_spans([], 1)


def test_what_an_engine_raises_is_a_sentence() -> None:
    with pytest.raises(EngineRaised, match="identify raised KeyError: 'grid'"):
        Witness(Acme()).identify(None)


def test_an_engine_without_traits_has_the_usual_ones() -> None:
    assert Witness(Acme()).traits == Traits(profile=Profile.CORE)


def test_a_method_that_the_protocol_does_not_have_is_the_suites_fault() -> None:
    with pytest.raises(AttributeError, match="Engine has no method 'nix'"):
        Witness(Acme()).nix()
