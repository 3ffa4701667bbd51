"""Lists of known failures: what they say, and how they are kept from rotting."""

from pathlib import Path

import pytest

from conformance import known_failures
from conformance.known_failures import BadList, read

ENTRY = """
[[failure]]
requirement = "SENTINELS-01"
message = "1 of 4"
reason = "why"
link = "https://example.org"
versions = "{versions}"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "engine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("versions", "version", "counts"),
    [("==1.2", "1.2", True), (">=1,<2", "1.9", True), ("==1.2", "1.3", False), ("==1.*", "1.4rc1", True)],
)
def test_an_entry_counts_for_the_versions_that_it_names(tmp_path: Path, versions: str, version: str, counts: bool) -> None:
    assert bool(read(write(tmp_path, ENTRY.format(versions=versions)), version)) is counts


BAD = {
    "no version range": (ENTRY.format(versions="0.5.23"), "no version range"),
    "no such file": (None, "No such file"),
    "no toml": ("[[", "engine.toml"),
    "other tables": ("[x]", "entries and nothing else"),
    "a missing key": (ENTRY.format(versions="==1").replace('reason = "why"', ""), "entry 1 lacks reason"),
    "an unknown key": (ENTRY.format(versions="==1") + 'until = "x"', "entry 1 has until"),
    "an empty value": (ENTRY.format(versions="==1").replace("why", " "), "reason must be text"),
    "an unknown requirement": (ENTRY.format(versions="==1").replace("-01", "-77"), "no requirement SENTINELS-77"),
    "a requirement twice": (ENTRY.format(versions="==1") * 2, "listed twice"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD)
def test_a_bad_list_is_refused_with_its_place(tmp_path: Path, text: str | None, sentence: str) -> None:
    path = tmp_path / "engine.toml" if text is None else write(tmp_path, text)
    with pytest.raises(BadList, match=sentence):
        read(path, "1")


@pytest.mark.parametrize("path", sorted(known_failures.FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_the_lists_that_are_shipped_can_be_read(path: Path) -> None:
    versions = {line.split('"')[1].removeprefix("==") for line in path.read_text().splitlines() if line.startswith("versions")}
    for version in versions:
        assert read(path, version)
