"""The public bugs behind requirements and quirks: what went wrong, and where it was reported."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that somebody reported in public. source: repositories, issues, pull requests, advisories."""

    id: str
    title: str
    source: str


@cache
def bugs() -> dict[str, Bug]:
    """All bugs that a requirement or a quirk names, by id."""
    entries = json.loads((Path(__file__).parent / "bugs.json").read_text(encoding="utf-8"))
    return {entry["id"]: Bug(**entry) for entry in entries}
