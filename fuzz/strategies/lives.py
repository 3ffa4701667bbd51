"""Turns to join, and scripts for requests: see `conformance.oracles.lifecycle_turns` and `conformance.oracles.lifecycle`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import lifecycle_turns as oracle
from conformance.oracles.lifecycle import FIRST, Script, script
from conformance.oracles.lifecycle_turns import BOS, Join, Tables, join
from conformance.world.mrope import Medium
from fuzz.strategies.scripts import layouts, media
from reference.items import Request

TEXT_AND_MEDIA = ("..", "iii", "jj", "vv.vv", "w.ww", "a", "bbb", "#", ".")


def drawings(parts: Sequence[str] = TEXT_AND_MEDIA, most: int = 6) -> SearchStrategy[str]:
    """A prompt of up to `most` of these parts; shrinks to nothing."""
    return st.lists(st.sampled_from(parts), max_size=most).map("".join)


def joins() -> SearchStrategy[Join]:
    """Any history, reply and turn; shrink to a turn of one token. A request has one at least, and a reply a request."""
    first = st.builds(join, st.just(""), st.just(""), drawings().filter(bool))
    return first | st.builds(join, drawings().filter(bool), drawings((".", "#")), drawings())


def joins_with_bos() -> SearchStrategy[Join]:
    """The same, and a turn that may begin with a beginning-of-sequence token and contain others."""
    begun = st.builds("{}{}".format, st.sampled_from(["<", "", "<<", "."]), drawings((*TEXT_AND_MEDIA, "<")))
    return st.builds(lambda history, reply, turn: join(history, reply, turn, None, BOS), begun, drawings((".", "<")), begun)


@st.composite
def cut_joins(choose: st.DrawFn, divided: bool) -> Join:
    """A history that is cut, within an item or not."""
    history, reply = choose(drawings()), choose(drawings((".",)))
    items = oracle.drawn("history", history).items
    within = {p for item in items for p in range(item.spans[0].first + 1, item.spans[-1].last + 1)}
    places = [keep for keep in range(len(history) + len(reply) + 1) if (keep in within) == divided]
    if not places:
        history, places = "iii", [1, 2]
    return join(history, reply, choose(drawings()), choose(st.sampled_from(places)))


@st.composite
def tables(choose: st.DrawFn) -> Tables:
    """Positions of two turns of one family; the table of the first may end in the reply or before a tail of text."""
    layout = choose(layouts())
    history, turn = choose(_parts()), choose(_parts())
    tail, reply = choose(st.integers(1, 4)), choose(st.integers(0, 5))
    case = oracle.written(layout, [*history, tail], reply, turn)
    return oracle.tables(layout, case, len(case.history.input_ids) + choose(st.integers(-tail, reply)))


@st.composite
def stripped_tables(choose: st.DrawFn) -> Tables:
    """Positions of two turns of which the second one loses its first token."""
    layout = choose(layouts())
    case = oracle.written(layout, [1, *choose(_parts())], choose(st.integers(0, 5)), [1, *choose(_parts())], bos=1)
    return oracle.tables(layout, case)


def _parts() -> SearchStrategy[list[int | Medium]]:
    return st.lists(st.integers(1, 5) | media(), max_size=4)


@dataclass
class _Scene:
    """What a script has done so far."""

    prompts: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def say(self, *words: object) -> None:
        self.lines.append(" ".join(map(str, words)))

    def end(self, operation: str, id: str) -> None:
        self.say(operation, id)
        session = self.sessions.pop(id, None)
        if operation == "finish" and session is not None:
            self.said[session] = self.prompts[id]
        del self.at[id], self.ends[id]


OPERATIONS = ("step", "step", "step", "reply", "retract", "abort", "finish", "admit", "turn", "close")


@st.composite
def life_scripts(
    choose: st.DrawFn, operations: Sequence[str] = OPERATIONS, most_rows: int = 12, conflicts: bool = False
) -> Script:
    """Up to 24 operations that make sense, after which everything ends; shrink to nothing at all.

    conflicts: whether an identity may have two lengths, which some engines take for an error.
    """
    scene = _Scene()
    for _ in range(choose(st.integers(0, 24))):
        operation = choose(st.sampled_from(operations))
        if operation in ("admit", "turn") or not scene.at:
            _admit(choose, scene, "s" if operation == "turn" and "s" not in scene.sessions.values() else None)
        elif operation == "close":
            scene.say("close s")
            scene.said.pop("s", None)
            scene.sessions = {id: session for id, session in scene.sessions.items() if session != "s"}
        elif operation == "step":
            _step(choose, scene)
        else:
            _one(choose, scene, operation)
    if "close" in operations and choose(st.booleans()):
        scene.say("close s")
        scene.sessions.clear()
        scene.said.clear()
    for id in list(scene.at):
        scene.end(choose(st.sampled_from([one for one in ("finish", "abort") if one == "finish" or one in operations])), id)
    if "s" in scene.said or ("close" in operations and not scene.lines):
        scene.say("close s")
    embedded = choose(st.sampled_from(["", "i", "jv", "ijvwab"]))
    twice = choose(st.sampled_from([FIRST, FIRST | {"j": FIRST["i"]}]))
    drawn = script(scene.prompts, *scene.lines, cache_rows=choose(st.integers(0, most_rows)), embedded=embedded, numbers=twice)
    return drawn if conflicts else drawn._replace(prompts={id: _of_one_length(one) for id, one in drawn.prompts.items()})


def _of_one_length(request: Request) -> Request:
    """The request, its items with identities that other lengths do not have."""
    items = [replace(one, identity=sha256(f"{one.token_count} {one.identity!r}".encode()).digest()) for one in request.items]
    return replace(request, items=tuple(items))


def _admit(choose: st.DrawFn, scene: _Scene, session: str | None) -> None:
    id = f"r{len(scene.prompts)}"
    before = scene.said.get(session or "", "")
    drawing = (before if len(before) < 60 else "") + "." + choose(drawings(most=4))
    scene.prompts[id], scene.at[id], scene.ends[id] = drawing, 0, len(drawing)
    scene.say("admit", id, *([session] if session else []))
    if session:
        scene.sessions[id] = session
    _prefix(choose, scene, id)


def _prefix(choose: st.DrawFn, scene: _Scene, id: str) -> None:
    if choose(st.booleans()):
        scene.at[id] = choose(st.integers(0, scene.ends[id] - 1))
        scene.say("cached", id, scene.at[id])


def _step(choose: st.DrawFn, scene: _Scene) -> None:
    words: list[object] = []
    for id in choose(st.lists(st.sampled_from(list(scene.at)), min_size=1, max_size=3, unique=True)):
        length = choose(st.integers(1, 9))
        words += [id, length]
        scene.at[id] = min(scene.at[id] + length, scene.ends[id])
    scene.say("step", *words)


def _one(choose: st.DrawFn, scene: _Scene, operation: str) -> None:
    id = choose(st.sampled_from(list(scene.at)))
    if operation == "reply":
        count = choose(st.integers(1, 3))
        scene.ends[id] += count
        scene.say("reply", id, count)
    elif operation == "retract":
        scene.say("retract", id)
        scene.at[id] = 0
        _prefix(choose, scene, id)
    else:
        scene.end(operation, id)
