"""What routers are tried on: requests, ranks that come and go, and reports that come late, twice or never."""

from dataclasses import replace
from typing import NamedTuple

from conformance.cases import Exact
from conformance.oracles.prefix_cache import ask
from conformance.protocol.parallel import Load, Policy, Routed
from conformance.suite.prefix_cache_cases import meeting
from reference.items import Request


class Step(NamedTuple):
    """What happens to a router: "route", "report", "dead" or "alive".

    request: what is routed. rank: whom it concerns. load, number: what that rank reports, as its report of this number.
    """

    what: str
    request: Routed = Routed()
    rank: int = 0
    load: Load = Load(0, 0, 0)
    number: int = 0


class Traffic(NamedTuple):
    """A router for so many ranks, and what happens to it."""

    ranks: int
    steps: tuple[Step, ...]


class Asked(NamedTuple):
    """A policy, and the request that it is asked about when rank 1 of 3 is dead."""

    policy: Policy
    request: Routed


def sized(*counts: int) -> tuple[Step, ...]:
    """Requests of so many tokens, one after the other."""
    return tuple(Step("route", Routed((), count)) for count in counts)


def dead(*ranks: int) -> tuple[Step, ...]:
    """These ranks die."""
    return tuple(Step("dead", rank=rank) for rank in ranks)


def alive(*ranks: int) -> tuple[Step, ...]:
    """These ranks are there again."""
    return tuple(Step("alive", rank=rank) for rank in ranks)


def says(rank: int, requests: int, tokens: int, received: int, number: int = 1) -> tuple[Step, ...]:
    """A report."""
    return (Step("report", Routed(), rank, Load(requests, tokens, received), number),)


def keyed(drawing: str, count: int | None = None) -> Routed:
    """A request whose pages are the letters of the drawing, each with all before it; 100 tokens a page."""
    return Routed(tuple(drawing[:end] for end in range(1, len(drawing) + 1)), 100 * len(drawing) if count is None else count)


CIRCLES = {
    "one-rank": Traffic(1, sized(1, 1, 1)),
    "two-ranks": Traffic(2, sized(*[1] * 6)),
    "eight-ranks": Traffic(8, sized(*range(24))),
    "one-dies": Traffic(3, (*dead(1), *sized(*[1] * 6))),
    "the-first-dies": Traffic(3, (*dead(0), *sized(*[1] * 6))),
    "all-but-one-die": Traffic(4, (*dead(0, 1, 3), *sized(*[1] * 4))),
}

BURSTS = {
    "one-rank": Traffic(1, sized(5, 5)),
    "equal": Traffic(3, sized(*[4] * 9)),
    "unequal": Traffic(2, sized(9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
    "descending": Traffic(4, sized(9, 8, 7, 6, 5, 4, 3, 2, 1)),
    "mixed": Traffic(3, sized(7, 1, 4, 4, 9, 2, 2, 8, 3, 30, 1, 1)),
    "one-dies": Traffic(3, (*sized(5, 5, 5), *dead(1), *sized(1, 2, 3, 4))),
}

REPORTED = {
    "one-is-busy": Traffic(2, (*says(0, 9, 90, 0), *sized(10, 10, 10, 10))),
    "one-was-busy": Traffic(2, (*says(0, 9, 90, 0), *sized(10), *says(0, 0, 0, 0, 2), *says(1, 1, 10, 1), *sized(10, 10))),
    "more-is-under-way": Traffic(2, (*sized(10, 10, 10, 10), *says(0, 0, 0, 0), *says(1, 1, 5, 2), *sized(10))),
    "work-is-done": Traffic(2, (*sized(10, 10, 10, 10), *says(0, 0, 0, 2), *says(1, 2, 20, 2), *sized(10))),
    "work-is-done-on-the-other": Traffic(2, (*sized(10, 10, 10, 10), *says(1, 0, 0, 2), *says(0, 2, 20, 2), *sized(10))),
}

MEMORY = {
    "late": Traffic(2, (*says(0, 9, 900, 0, 2), *says(1, 5, 500, 0, 1), *says(0, 0, 0, 0, 1), *sized(10, 10, 10))),
    "twice": Traffic(2, (*says(0, 2, 200, 0), *sized(10, 10), *says(0, 2, 200, 0), *sized(10, 10, 10))),
    "twice-and-late": Traffic(
        3, (*says(2, 1, 10, 0), *says(1, 8, 800, 0, 7), *sized(9, 9), *says(1, 0, 0, 0, 6), *says(2, 1, 10, 0), *sized(9, 9, 9))
    ),
}
"""Traffic with reports of which some are late, or come again: those whose number is not larger than one before."""

STALE = {
    "two-ranks": Traffic(2, tuple(step for n in range(8) for step in (*sized(10), *says(0, 0, 0, 0, n), *says(1, 0, 0, 0, n)))),
    "four-ranks": Traffic(
        4, tuple(step for n in range(3) for step in (*sized(*[10] * 8), *[s for r in range(4) for s in says(r, 0, 0, 0, n)]))
    ),
    "busy-ranks": Traffic(
        2, tuple(step for n in range(8) for step in (*sized(10), *says(0, 3, 30, 0, n), *says(1, 3, 30, 0, n)))
    ),
}
"""Traffic in which ranks say, again and again, how they were before anything was sent to them."""

ROOMS = {
    "zero": Exact((4, 0, ()), 0),
    "small": Exact((4, 3, ()), 3),
    "as-many-as-ranks": Exact((4, 4, ()), 0),
    "large": Exact((8, 2**63 - 25, ()), 7),
    "one-rank": Exact((1, 77, ()), 0),
    "three-ranks": Exact((3, 1_000_000, ()), 1),
    "another-rank-is-dead": Exact((4, 7, (1,)), 3),
}
"""How many ranks, the room, and the ranks that are dead; and the rank of the room."""

EXPLICIT: dict[str, Asked] = {
    "round-robin": Asked("round robin", Routed((), 5, rank=2)),
    "total-requests": Asked("total requests", Routed((), 5, rank=2)),
    "total-tokens": Asked("total tokens", Routed((), 5, rank=2)),
    "bootstrap-room": Asked("bootstrap room", Routed((), 5, rank=2, room=0)),
    "prefix": Asked("prefix", keyed("ab")._replace(rank=2)),
}

ANY: dict[str, Asked] = {
    "round-robin": Asked("round robin", Routed((), 5)),
    "total-requests": Asked("total requests", Routed((), 5)),
    "total-tokens": Asked("total tokens", Routed((), 5)),
    "prefix": Asked("prefix", keyed("ab")),
    "prefix-without-a-page": Asked("prefix", Routed((), 5)),
}

DEATHS = (
    ANY
    | {f"asked-for-{name}": asked._replace(request=asked.request._replace(rank=1)) for name, asked in EXPLICIT.items()}
    | {
        "its-room": Asked("bootstrap room", Routed((), 5, room=1)),
        "another-room": Asked("bootstrap room", Routed((), 5, room=5)),
    }
)

WRONG: dict[str, Asked] = {
    "rank-beyond-the-last": Asked("round robin", Routed((), 5, rank=3)),
    "rank-before-the-first": Asked("total requests", Routed((), 5, rank=-1)),
    "no-room": Asked("bootstrap room", Routed((), 5)),
}

AGAIN = {
    "the-same": (keyed("abc"), keyed("abc")),
    "a-longer-one": (keyed("abc"), keyed("abcdef")),
    "a-turn-later": (keyed("abcdefgh"), keyed("abcdefghi")),
    "its-beginning": (keyed("abcdef"), keyed("abcd")),
    "another-end": (keyed("abcdefx"), keyed("abcdefy")),
}
"""A request, and one that comes later and has more in common with it than it has not."""

SPREAD = {
    "other-pictures": tuple(ask(f"iiiiiiii {'ABCDEFGH'}", i=bytes([n]) * 32) for n in range(16)),
    "other-hashes": tuple(ask("iiiiiiii ABCDEFGH", i=n << 48) for n in range(1, 17)),
    "other-videos": tuple(ask("vvvvvvvv ABCDEFGH", v=bytes([n]) * 32) for n in range(16)),
    "shorter-than-a-page": tuple(ask("iii", i=bytes([n]) * 32) for n in range(16)),
    "text-shorter-than-a-page": tuple(ask(f"AB{'CDEFGHIJKLMNOPQR'[n]}") for n in range(16)),
}
"""Requests that have no page of 4 positions in common."""


SHORT = {
    "shorter-than-a-page": meeting(4, "iii", "jjj"),
    "text-shorter-than-a-page": meeting(4, "AB", "AB"),
    "no-positions": meeting(4, "", "iii"),
}
"""Requests without a full page."""


def unplaced(letter: str) -> Request:
    """A request with a picture whose placeholder was not found in the prompt."""
    request = ask(f"{letter * 4} ABCDEFGH")
    (item,) = request.items
    return replace(request, items=(replace(item, spans=()),))
