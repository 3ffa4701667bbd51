"""Known failures: what an engine is known to get wrong, as a list that cannot rot.

A TOML file holds, for one engine, entries such as

    [[failure]]
    requirement = "IDENTITY-03"
    message = "2 of 6 cases (transposed, flattened)"    # how the failure's message begins
    reason = "The hash covers bytes alone."
    link = "https://github.com/…"
    versions = "==0.5.23"

An entry only counts for the versions that it names. A listed requirement that passes, fails with another message, is
unknown or did not run is a fault of the list, and the run fails. `accept` brings a list up to date with a report.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from conformance.bugs import bugs
from conformance.suite import requirements

FOLDER = Path(__file__).parent

CHANGING = re.compile(
    r"""
      \b0x[0-9a-f]{6,}                             # an address
    | \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-       # a UUID
    | \b(?:pid|process|thread)s?[\s=:#-]*\d{2,}    # a process, a thread
    | \b(?:localhost|127\.0\.0\.1|\[::1\]):\d+     # a port
    | (?:/private)?(?:/var/folders|/var/tmp|/tmp)/  # a temporary path
    | \b\d{4}-\d\d-\d\d | \b\d\d:\d\d:\d\d         # a date, a time
    | \b\d+\.\d+(?:e-?\d+)?\s?(?:s|ms|us|µs|seconds|milliseconds)\b  # how long something took
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What differs from run to run in what engines say. A limit such as `60 s` is a whole number, and stays."""


class BadList(Exception):
    """A list of known failures that cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One entry; all values are text."""

    requirement: str
    message: str
    reason: str
    link: str
    versions: str


def read(path: Path, version: str) -> dict[str, KnownFailure]:
    """The entries that count for this version of the engine, by requirement.

    Raises BadList for a file that is missing or no TOML, for an entry with a missing, unknown or empty key, an unknown
    requirement, an impossible version range, and for two entries of one requirement.
    """
    entries: dict[str, KnownFailure] = {}
    for number, raw in enumerate(_raw_entries(path), start=1):
        place = f"{path.name}, entry {number}"
        entry = _entry(raw, place)
        counts = _covers(entry.versions, version, place)
        if entry.requirement not in requirements:
            raise BadList(f"{place}: there is no requirement {entry.requirement}")
        if counts and entry.requirement in entries:
            raise BadList(f"{place}: {entry.requirement} is listed twice for version {version}")
        if counts:
            entries[entry.requirement] = entry
    return entries


def shipped(engine_name: str) -> Path | None:
    """The list that comes with mmproof for the engine of this name."""
    path = FOLDER / f"{engine_name}.toml"
    return path if path.is_file() else None


def accept(report: Mapping[str, Any], path: Path) -> str:
    """The text of the list at `path`, brought up to date: every requirement that failed in the report stands in it.

    What is written about a failure stays, and so do entries for other versions and the comment at the top. A new one is
    explained by the quirks of its diagnosis, where there are any. What holds or did not run goes.

    report: as `mmproof run --json` writes it. Raises BadList for a report that is partial or none, and for a bad list.
    """
    try:
        partial, version = report["suite"]["partial"] or report["suite"]["faults"], str(report["engine"]["version"])
        failed = [one for one in report["requirements"] if one["verdict"] in ("fail", "known failure")]
        if any(one["verdict"] == "error" for one in report["requirements"]):
            raise BadList("the report holds errors of the suite itself")
    except (KeyError, TypeError) as error:
        raise BadList("this is no report of `mmproof run --json`") from error
    if partial:
        raise BadList("the report covers a part of the suite; a list takes a whole one")
    known = read(path, version) if path.exists() else {}
    others = [_entry(raw, path.name) for raw in _raw_entries(path)] if path.exists() else []
    entries = [one for one in others if not _covers(one.versions, version, path.name)]
    entries += [_accepted(one, known.get(one["id"]), version) for one in failed]
    top = path.read_text(encoding="utf-8").partition("[[failure]]")[0].rstrip() if path.exists() else ""
    return "\n\n".join([top] * bool(top) + [_as_toml(one) for one in sorted(entries, key=lambda one: one.requirement)]) + "\n"


def _accepted(finding: Mapping[str, Any], known: KnownFailure | None, version: str) -> KnownFailure:
    if known is not None:
        stands = finding["message"].startswith(known.message)
        return known if stands else replace(known, message=lasting(finding["message"]))
    quirks = finding["diagnosis"]
    reason = " ".join(one["sentence"] for one in quirks) or "Not looked into yet."
    link = "; ".join(_unique(bugs()[id].source for one in quirks for id in one["bugs"])) or "No report is known."
    return KnownFailure(finding["id"], lasting(finding["message"]), reason, link, f"=={version}")


def lasting(message: str) -> str:
    """A message up to the first thing that each run changes; all of it where nothing stands before that."""
    changing = CHANGING.search(message)
    return (changing and message[: changing.start()].rstrip()) or message


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _as_toml(entry: KnownFailure) -> str:
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in asdict(entry).items()]
    return "\n".join(["[[failure]]", *lines])


def _covers(versions: str, version: str, place: str) -> bool:
    try:
        return SpecifierSet(versions).contains(Version(version), prereleases=True)
    except InvalidSpecifier as error:
        raise BadList(f"{place}: versions = {versions!r} is no version range such as '==0.5.23'") from error
    except InvalidVersion:
        return versions == f"=={version}"  # an engine whose versions are no Python versions is listed one by one


def _raw_entries(path: Path) -> list[Mapping[str, object]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadList(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise BadList(f"{path.name}: {error}") from error
    entries = content.get("failure", [])
    if set(content) - {"failure"} or not isinstance(entries, list):
        raise BadList(f"{path.name}: a list has [[failure]] entries and nothing else")
    return entries


def _entry(raw: Mapping[str, object], place: str) -> KnownFailure:
    wanted = {field.name for field in fields(KnownFailure)}
    if missing := sorted(wanted - set(raw)):
        raise BadList(f"{place} lacks {', '.join(missing)}")
    if unknown := sorted(set(raw) - wanted):
        raise BadList(f"{place} has {', '.join(unknown)}, which no entry has; it takes {', '.join(sorted(wanted))}")
    if empty := sorted(key for key, value in raw.items() if not isinstance(value, str) or not value.strip()):
        raise BadList(f"{place}: {', '.join(empty)} must be text and not empty")
    return KnownFailure(**{key: str(value) for key, value in raw.items()})
