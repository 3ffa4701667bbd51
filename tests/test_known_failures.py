"""Lists of known failures: what they say, and how they are kept from rotting."""

from pathlib import Path
from typing import Any

import pytest

from conformance import known_failures
from conformance.known_failures import BadList, read
from conformance.quirks import quirks

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


def finding(id: str, verdict: str, message: str = "", diagnosis: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"id": id, "verdict": verdict, "message": message, "diagnosis": list(diagnosis)}


def a_report(*findings: dict[str, Any], partial: bool = False) -> dict[str, Any]:
    return {"suite": {"partial": partial, "faults": []}, "engine": {"version": "2"}, "requirements": list(findings)}


def test_a_list_is_brought_up_to_date(tmp_path: Path) -> None:
    old = "# at the top\n" + "".join(
        ENTRY.format(versions=versions).replace("SENTINELS-01", id)
        for id, versions in [("SENTINELS-01", "==1"), ("SENTINELS-01", "==2"), ("SENTINELS-02", "==2"), ("SENTINELS-03", "==2")]
    )
    quirk = quirks["hash-without-shape"]
    made = a_report(
        finding("SENTINELS-01", "known failure", "1 of 4 cases (a): wrong"),
        finding("SENTINELS-02", "fail", '2 of 4 cases (a, "b"): \\ other'),
        finding("SENTINELS-03", "unexpected pass"),
        finding("SENTINELS-04", "pass"),
        finding("SENTINELS-05", "fail", "all"),
        finding("IDENTITY-06", "fail", "each", ({"sentence": quirk.sentence, "bugs": quirk.bugs},)),
    )
    path = write(tmp_path, old)
    path.write_text(known_failures.accept(made, path), encoding="utf-8")
    entries = read(path, "2")
    assert {id: (one.message, one.reason) for id, one in entries.items()} == {
        "IDENTITY-06": ("each", quirk.sentence),
        "SENTINELS-01": ("1 of 4", "why"),
        "SENTINELS-02": ('2 of 4 cases (a, "b"): \\ other', "why"),
        "SENTINELS-05": ("all", "Not looked into yet."),
    }
    assert list(read(path, "1")) == ["SENTINELS-01"]
    assert path.read_text(encoding="utf-8").startswith("# at the top\n\n[[failure]]")
    assert known_failures.accept(made, path) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "1 of 2 cases (a): raised X: <Engine object at 0x7f3a5c01d2e0> is busy",
            "1 of 2 cases (a): raised X: <Engine object at",
        ),
        ("2 of 2: cannot open /tmp/tmpab12/x.sock", "2 of 2: cannot open"),
        ("2 of 2: /var/folders/zz/T/x is gone", "2 of 2:"),
        ("worker died (pid 4711)", "worker died ("),
        ("all 3 cases: Thread-12 is alive", "all 3 cases:"),
        ("no answer from 127.0.0.1:40123", "no answer from"),
        ("took 3.1415 s, which is long", "took"),
        ("[2026-01-02 10:11:12] oops", "["),
        ("2026-01-02: begins with what changes", "2026-01-02: begins with what changes"),
        ("no answer within 60 s", "no answer within 60 s"),
        ("observed 4611686018427387904, expected 0x3f", "observed 4611686018427387904, expected 0x3f"),
        ("request 0b7c1f0e-4d0c-4a5e-9b1a-2d0c7f9e1a11 failed", "request"),
    ],
)
def test_a_message_is_kept_up_to_what_each_run_changes(tmp_path: Path, said: str, kept: str) -> None:
    text = known_failures.accept(a_report(finding("SENTINELS-01", "fail", said)), tmp_path / "new.toml")
    assert read(write(tmp_path, text), "2")["SENTINELS-01"].message == kept


def test_a_list_begins_with_a_report(tmp_path: Path) -> None:
    assert known_failures.accept(a_report(finding("SENTINELS-01", "fail", "x")), tmp_path / "new.toml").startswith(
        "[[failure]]"
    )


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (a_report(partial=True), "covers a part"),
        ({}, "no report"),
        ([], "no report"),
        (a_report(finding("SENTINELS-01", "error")), "errors of the suite"),
    ],
)
def test_what_proves_nothing_about_the_whole_is_not_accepted(tmp_path: Path, made: Any, sentence: str) -> None:
    with pytest.raises(BadList, match=sentence):
        known_failures.accept(made, tmp_path / "new.toml")
