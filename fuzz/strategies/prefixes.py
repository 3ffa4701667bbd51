"""Requests that share beginnings, and what a prefix cache is asked about them (see `conformance.oracles.prefix_cache`)."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles.prefix_cache import Script, Step, ask
from conformance.protocol.prefix_cache import Namespace
from conformance.suite.prefix_cache_cases import Limited, Meeting, Pressure, Tenants
from reference.items import Request

WORDS = ("A", "B", "CD", "EFGHI", "#", "i", "jj", "kkk", "vvTvv", "wUwwww", "aa", "bbbbb")
"""Text, a placeholder that a user typed, and items; the videos have text between their frames."""
NAMES = "xyz"


def pages() -> SearchStrategy[int]:
    """A page of 1 to 9 positions; shrinks to 1."""
    return st.integers(1, 9)


@st.composite
def families(choose: st.DrawFn, number: int, most: int = 6) -> list[Request]:
    """So many requests of up to twice `most` words, each beginning with some of the same words; shrinks to empty ones."""
    words = st.lists(st.sampled_from(WORDS), max_size=most)
    stem = choose(words)
    drawings = [" ".join(stem[: choose(st.integers(0, len(stem)))] + choose(words)) for _ in range(number)]
    return [ask(drawing) for drawing in drawings]


@st.composite
def meetings(choose: st.DrawFn) -> Meeting:
    """A request that meets one to three others; shrinks to empty ones and pages of one position."""
    *kept, asked = choose(families(choose(st.integers(2, 4))))
    return Meeting(choose(pages()), tuple(kept), asked)


@st.composite
def limited(choose: st.DrawFn) -> Limited:
    """A request and a limit that it may not reach; shrinks to an empty one."""
    (request,) = choose(families(1))
    return Limited(choose(pages()), request, choose(st.integers(0, len(request.input_ids) + 3)))


@st.composite
def tenants(choose: st.DrawFn) -> Tenants:
    """A request in two different namespaces of short texts; shrinks to none and one of the text 0."""
    part = st.none() | st.text(min_size=1, max_size=3)
    namespaces = st.builds(Namespace, part, part)
    first, second = choose(st.tuples(namespaces, namespaces).filter(lambda pair: pair[0] != pair[1]))
    return Tenants(first, second, choose(families(1))[0])


@st.composite
def pressures(choose: st.DrawFn) -> Pressure:
    """Up to four requests, perhaps one of them locked, and up to 40 positions that have to go; shrinks to none."""
    kept = choose(families(choose(st.integers(1, 4))))
    locked = choose(st.none() | st.integers(0, len(kept) - 1))
    return Pressure(choose(pages()), tuple(kept), choose(st.integers(0, 40)), locked)


@st.composite
def scripts(choose: st.DrawFn, operations: Sequence[str]) -> Script:
    """Up to 30 of these operations on three requests; shrinks to few. `evict some` says how many, up to 20.

    Only what was locked is unlocked. Do not ask for `unlock` beside `clear`, which makes locks void.
    """
    prompts = dict(zip(NAMES, choose(families(len(NAMES))), strict=True))
    steps: list[Step] = []
    for _ in range(choose(st.integers(1, 30))):
        operation, name = choose(st.sampled_from(operations)), choose(st.sampled_from(NAMES))
        held = [step.operation for step in steps if step.about == name]
        if operation == "evict some":
            steps.append(Step("evict", str(choose(st.integers(0, 20)))))
        elif operation in ("evict", "used", "clear"):
            steps.append(Step(operation))
        elif operation == "unlock" and held.count("lock") == held.count("unlock"):
            steps.append(Step("lock", name))
        else:
            steps.append(Step(operation, name))
    return Script(choose(pages()), prompts, tuple(steps))
