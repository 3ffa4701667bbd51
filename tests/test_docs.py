"""What the documents say is what the suite does."""

import json
import runpy
from pathlib import Path

import pytest

from conformance.bugs import bugs
from conformance.quirks import quirks
from conformance.suite import requirements

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", ["requirements.md", "quirks.md"])
def test_a_generated_page_is_current(name: str) -> None:
    page = runpy.run_path(str(DOCS / "generate.py"))["PAGES"][name]
    assert (DOCS / name).read_text(encoding="utf-8") == page(), "run `python docs/generate.py`"


def test_every_bug_that_is_named_has_its_source_and_every_source_is_needed() -> None:
    named = {id for one in (*requirements.values(), *quirks.values()) for id in one.bugs}
    assert named == set(bugs())


def test_bugs_are_sorted_and_complete() -> None:
    entries = json.loads((DOCS.parent / "conformance" / "bugs.json").read_text(encoding="utf-8"))
    assert [entry["id"] for entry in entries] == sorted(bugs())
    assert all(entry["title"] and entry["source"] for entry in entries)


def test_every_quirk_says_what_it_does() -> None:
    assert all(quirk.sentence.endswith(".") for quirk in quirks.values())
