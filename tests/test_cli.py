"""The command, as a user types it: in this process, but where the process itself is what is looked at."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance import catalogue, console
from conformance.cli import app

HOME = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, a wide terminal without colours, and pytest's environment put back behind each run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for one in (console.out, console.err):
        monkeypatch.setattr(one, "_width", 140)


def mmproof(*arguments: str, status: int = 0) -> str:
    """Everything that the command prints; it must end with this status, and without a traceback."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done.output


def in_a_process(*arguments: str, script: str = "import mmproof; mmproof.main()") -> str:
    """What a process of its own prints, which must end well."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(HOME)!r}); {script}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_process_proves_an_engine(tmp_path: Path) -> None:
    printed = in_a_process("run", "--stage", "sentinels", "--json", "r.json", "--junit", "r.xml")
    assert "9 of 9 applicable requirements hold; 54 of 54 cases" in printed
    assert (tmp_path / "r.xml").exists()
    assert json.loads((tmp_path / "r.json").read_text())["engine"]["name"] == "reference"


def test_the_catalogue_is_that_of_the_files_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = catalogue.catalogue()
    (kept,) = (tmp_path / "mmproof").iterdir()
    script = "import mmproof, atexit; atexit.register(lambda: print('torch' in sys.modules)); mmproof.main()"
    *listed, is_slow = in_a_process("list", "--json", script=script).splitlines()
    assert (json.loads("\n".join(listed)), is_slow) == (made.requirements, "False")
    assert catalogue.catalogue() == made
    monkeypatch.setattr(catalogue, "make", lambda: catalogue.Catalogue([], [], []))
    kept.write_text("{")
    assert catalogue.catalogue().requirements == []
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert catalogue.catalogue().quirks == []


def test_a_failing_engine_is_diagnosed_and_its_reproduction_reproduces() -> None:
    printed = mmproof("run", "--engine", "quirk:sentinel-of-30-bits", "--stage", "sentinels", status=1)
    assert "the engine answers as the quirk sentinel-of-30-bits does" in printed
    again = mmproof("run", "--engine", "quirk:sentinel-of-30-bits", "--requirement", "SENTINELS-03", "--case", "beyond-30-bits",
                    status=1)  # fmt: skip
    assert "1 of 1 cases (beyond-30-bits)" in again


def test_a_search_shows_the_smallest_case_and_how_to_find_it_again() -> None:
    searched = ("fuzz", "--engine", "quirk:hash-without-shape", "--requirement", "IDENTITY-06")
    printed = mmproof(*searched, "--times", "2", "--seed", "7", status=1)
    assert "1 of 1 cases (fuzz:test_any_two_shapes): the identities of different shapes must differ" in printed
    assert "Failing test case: search(" in printed
    assert f"{' '.join(searched[1:])} --times 2 --seed 7" in printed
    assert "1 of 1 applicable requirements hold" in mmproof("fuzz", "--requirement", "IDENTITY-06")


def test_known_failures_are_not_searched(tmp_path: Path) -> None:
    entry = {"requirement": "IDENTITY-06", "message": "x", "reason": "x", "link": "x", "versions": ">=0"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    (tmp_path / "known.toml").write_text("\n".join(["[[failure]]", *lines]))
    searched = ("fuzz", "--engine", "quirk:hash-without-shape", "--requirement", "IDENTITY-06")
    assert "nothing ran" in mmproof(*searched, "--known", "known.toml", status=3)


def test_a_report_is_accepted_as_a_list_that_the_next_run_holds_to(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(ACME)
    mmproof("run", "--engine", "acme.py:Engine", "--json", "r.json", status=1)
    assert "known failures" in mmproof("accept", "r.json", "acme.toml")
    assert "known failure" in mmproof("run", "--engine", "acme.py:Engine", "--known", "acme.toml")


ACME = """
class Engine:
    name, version = "acme", "1"

    def sentinels_from_hash(self, number):
        return [(1 << 62) - 1] * 4

    def check_vocabulary(self, size):
        if size > 10_000_000:
            raise ValueError("too large")
"""


def test_the_name_of_an_engine_is_no_emoji(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text("class boom:\n    def __init__(self): raise ValueError('no')\n")
    assert "acme.py:boom: making it failed" in mmproof("run", "--engine", "acme.py:boom", status=2)


def test_a_new_adapter_gets_verdicts_at_once(tmp_path: Path) -> None:
    printed = mmproof("new-adapter", "acme")
    assert len((tmp_path / "acme.py").read_text().splitlines()) <= 25
    assert "mmproof run --engine acme.py:Engine" in printed
    assert "mmproof explain METHOD" in printed
    verdicts = mmproof("run", "--engine", "acme.py:Engine", "--requirement", "IDENTITY-06", status=1)
    assert "✗ IDENTITY-06" in verdicts
    assert "acme.py exists already" in mmproof("new-adapter", "acme", status=2)


def test_stages_of_which_an_engine_has_nothing_are_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(ACME)
    printed = mmproof("run", "--engine", "acme.py:Engine", "--stage", "sentinels", "--stage", "merging", status=1)
    assert "not applicable at all: merging" in printed


REFUSED = {
    "an unknown engine": (["run", "--engine", "nix"], "there is no engine named 'nix'"),
    "an unknown requirement": (
        ["run", "--requirement", "SENTINELS-99"],
        "there is no requirement 'SENTINELS-99'; did you mean",
    ),
    "an unknown stage": (["run", "--stage", "sentinel"], "there is no stage 'sentinel'; did you mean sentinels"),
    "an id that nobody has": (["explain", "X"], "there is no requirement, quirk or method 'X'; see `mmproof list`"),
    "a list that is not there": (["run", "--known", "nix.toml"], "nix.toml: No such file"),
    "a name that is none": (["new-adapter", "a-b"], "'a-b' is no Python name"),
}


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_a_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in mmproof(*arguments, status=2)


def test_an_engine_that_raises_fails_that_requirement_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(
        "class Engine:\n"
        "    name, version = 'acme', '1'\n"
        "    def sentinels(self, identity): raise KeyError('oops')\n"
        "    def check_vocabulary(self, size):\n"
        "        if size > 1_000_000: raise ValueError('too large')\n"
        "    def sentinels_from_hash(self, value): return None\n"
    )
    printed = mmproof("run", "--engine", "acme.py:Engine", status=1)
    assert "sentinels raised KeyError: 'oops'" in printed
    assert "sentinels_from_hash returned NoneType; the protocol asks for a sequence of ints" in printed
    assert "of 7 applicable requirements hold" in printed


def test_list_and_quirks() -> None:
    listed = json.loads(mmproof("list", "--json"))
    assert {"id", "level", "sentence", "needs", "cases"} <= set(listed[0])
    assert [one["id"] for one in listed[:2]] == ["MEDIA-01", "MEDIA-02"]
    assert {one["stage"] for one in json.loads(mmproof("list", "--json", "--stage", "merging"))} == {"merging"}
    assert "sentinel-of-30-bits" in {one["name"] for one in json.loads(mmproof("quirks", "--json"))}
    assert "merge_deepstack" in mmproof("list", "--methods")


def test_requirements_quirks_and_methods_are_explained() -> None:
    explained = mmproof("explain", "SENTINELS-03")
    assert "MUST NOT share a sentinel" in explained
    assert "catches   sentinel-of-30-bits" in explained
    assert "mmproof run --engine quirk:sentinel-of-30-bits --requirement SENTINELS" in mmproof("explain", "sentinel-of-30-bits")
    assert "under the identity `key`" in mmproof("explain", "open_encoder_cache.put")


def test_a_hidden_room_is_named(tmp_path: Path) -> None:
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "__init__.py").write_text("")
    script = (
        f"import sys; sys.path.insert(0, {str(HOME)!r}); sys.path.insert(0, {str(tmp_path)!r}); import mmproof; mmproof.main()"
    )
    done = subprocess.run([sys.executable, "-c", script, "list"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"its package 'golden' is hidden by {tmp_path}/golden" in done.stderr
