"""The catalogue: what the suite holds, as plain data that is at hand at once.

To import every rule takes seconds, for torch and transformers come along. What `list`, `quirks` and `explain` show is
therefore kept in the user's cache, under a name that covers each file of the suite: its path, its size and its time. Whoever
edits a rule gets a new catalogue. Where nothing can be kept it is made each time.
"""

import inspect
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

HOME = Path(__file__).parent

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Requirements, quirks and the methods of the engine protocol, a row of plain values each."""

    requirements: list[Row]
    quirks: list[Row]
    methods: list[Row]


def catalogue() -> Catalogue:
    """The catalogue of the suite as it is now."""
    place = _place()
    with suppress(OSError, ValueError, TypeError):  # there is none yet, or it is damaged
        return Catalogue(**json.loads(place.read_text(encoding="utf-8")))
    made = make()
    with suppress(OSError):  # nothing can be written here
        _keep(place, made)
    return made


def make() -> Catalogue:
    """The catalogue, from the rules themselves."""
    from conformance.engine import METHODS, Engine
    from conformance.quirks import quirks
    from conformance.requirement import stages
    from conformance.suite import requirements

    order = list(stages())
    return Catalogue(
        requirements=[
            {
                "id": one.id,
                "stage": one.stage,
                "level": str(one.level),
                "profile": str(one.profile),
                "needs": list(one.needs),
                "cases": list(one.cases),
                "bugs": list(one.bugs),
                "sentence": one.sentence,
                "explanation": one.explanation,
                "source": _source(one.rule),
            }
            for one in sorted(requirements.values(), key=lambda one: (order.index(one.stage), one.id))
        ],
        quirks=[
            {
                "name": one.name,
                "replaces": one.replaces,
                "caught_by": list(one.caught_by),
                "bugs": list(one.bugs),
                "sentence": one.sentence,
            }
            for one in quirks.values()
        ],
        methods=[row for name in METHODS for row in _methods(name, getattr(Engine, name))],
    )


def _methods(name: str, method: Any) -> Iterator[Row]:
    """A method, and those of the object that it opens."""
    arguments = [argument for argument in inspect.signature(method).parameters if argument != "self"]
    contract = _unwrapped(inspect.cleandoc(method.__doc__ or ""), arguments)
    yield {"method": name, "arguments": arguments, "sentence": _first_sentence(contract), "contract": contract}
    opened = getattr(method.reader, "protocol", None)
    for inner, member in vars(opened).items() if opened else ():
        if hasattr(member, "reader"):
            yield from _methods(f"{name}.{inner}", member)


def _source(rule: Any) -> str:
    """The file of a rule, from the folder of all rooms on, and its line."""
    code = rule.__code__
    return f"{Path(code.co_filename).relative_to(HOME.parent)}:{code.co_firstlineno}"


def _unwrapped(text: str, arguments: list[str]) -> str:
    """A docstring whose lines end where a paragraph, a point of a list or what is said of an argument ends."""
    begins = "|".join([r"\n", r"\* ", *(rf"{argument}(, \w+)*: " for argument in arguments)])
    return re.sub(rf"(?<!\n)\n(?!{begins}) *", " ", text)


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".") + "."


def _place() -> Path:
    """Where the catalogue of these very files is kept."""
    digest = blake2b(digest_size=16)
    for path in sorted(HOME.rglob("*.py")):
        stat = path.stat()
        digest.update(f"{path.relative_to(HOME)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    return Path(cache) / "mmproof" / f"catalogue-{_short(str(HOME))}-{digest.hexdigest()}.json"


def _short(text: str) -> str:
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _keep(place: Path, made: Catalogue) -> None:
    """Write the catalogue in one go, and remove those that the same installation had before."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(asdict(made), ensure_ascii=False), encoding="utf-8")
    part.replace(place)
    for old in place.parent.glob(f"catalogue-{_short(str(HOME))}-*.json"):
        if old != place:
            old.unlink(missing_ok=True)
