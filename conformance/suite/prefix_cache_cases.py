"""What PREFIX_CACHE is tried on."""

from dataclasses import replace
from typing import NamedTuple

import torch

from conformance.cases import Exact
from conformance.oracles.prefix_cache import ask, script
from conformance.protocol.prefix_cache import Namespace
from reference.items import Request


class Meeting(NamedTuple):
    """A request that meets a cache of this page size in which others are kept."""

    page: int
    kept: tuple[Request, ...]
    asked: Request


class Limited(NamedTuple):
    """A request of which only so many positions count."""

    page: int
    request: Request
    limit: int


class Tenants(NamedTuple):
    """Two namespaces that must not share, and a request in both."""

    first: Namespace
    second: Namespace
    request: Request


def meeting(page: int, *drawings: str) -> Meeting:
    """The last drawing meets the others."""
    *kept, asked = map(ask, drawings)
    return Meeting(page, tuple(kept), asked)


def named(page: int, first: bytes | int, second: bytes | int) -> Meeting:
    """The same prompt with a picture that is known by one name, then by another."""
    return Meeting(page, (ask("iiiiii ABCDEF", i=first),), ask("iiiiii ABCDEF", i=second))


def precomputed(letter: str, value: float) -> Request:
    """A prompt with an embedding in place of a picture."""
    request = ask(f"AB {letter * 6} CDEF")
    (item,) = request.items
    return replace(request, items=(replace(item, feature=None, embedding=torch.full((6, 4), value), format=None),))


OTHER_MEDIA = {
    "other-picture": meeting(1, "AB iii C", "AB jjj C"),
    "other-picture-in-pages": meeting(4, "ABCD iiiiii EF", "ABCD jjjjjj EF"),
    "other-picture-from-the-start": meeting(1, "iii A", "jjj A"),
    "other-second-picture": meeting(1, "A iii B jjj C", "A iii B kkk C"),
    "three-pictures-in-a-row": meeting(1, "AB iii C", "AB jjj C", "AB kkk C"),
    "one-more-picture-of-each": meeting(2, "A i B j C k D", "A i B j C v D", "A i B j C k B"),
    "first-of-two-in-a-page": meeting(8, "A ii B jj CD", "A kk B jj CD"),
    "second-of-two-in-a-page": meeting(8, "A ii B jj CD", "A ii B kk CD"),
    "middle-of-three-in-a-page": meeting(8, "A i B j C k DE", "A i B v C k DE"),
    "exchanged-in-a-page": meeting(8, "A ii B jj CD", "A jj B ii CD"),
    "exchanged-without-text": meeting(4, "ii jj", "jj ii"),
    "moved-in-a-page": meeting(4, "# ii j", "ii # j"),
    "end-of-one-in-the-page-of-another": meeting(4, "A iiii B jj CDEF", "A iiii B kk CDEF"),
    "video-for-picture": meeting(1, "AB iiii C", "AB vvvv C"),
    "other-recording": meeting(2, "AB aaaa C", "AB bbbb C"),
    "placeholders-typed-by-a-user": meeting(1, "AB iii C", "AB ### C"),
    "picture-after-placeholders-typed": meeting(2, "AB ### C", "AB iii C"),
    "other-embedding": Meeting(1, (precomputed("i", 0.25),), precomputed("j", 0.75)),
}
"""The same ids, and other content in one item at least."""

CLOSE_NAMES = {
    "first-16-bits-differ": named(1, b"\0\1" + bytes(30), bytes(32)),
    "last-16-bits-equal": named(2, b"\1" * 30 + b"\2\2", b"\3" * 30 + b"\2\2"),
    "first-64-bits-equal": named(1, b"\1" * 8 + b"\2" * 24, b"\1" * 8 + b"\3" * 24),
    "last-64-bits-equal": named(4, b"\1" * 24 + b"\2" * 8, b"\3" * 24 + b"\2" * 8),
    "last-bit-differs": named(1, bytes(32), bytes(31) + b"\1"),
}
"""Items whose identities are equal in part."""

HASHES = {
    "equal": named(1, (1 << 64) - 1, (1 << 64) - 1),
    "zero": named(2, 0, 0),
    "zero-and-one": named(1, 0, 1),
    "equal-low-32-bits": named(1, 5, 5 + (1 << 32)),
    "equal-modulo-2-to-the-61": named(1, 7, 7 + (1 << 61) - 1),
}
"""Items that their callers know by a hash."""

OTHER_TEXT = {
    "before-the-picture": meeting(1, "A iii B", "C iii B"),
    "after-the-picture": meeting(1, "A iii B", "A iii C"),
    "between-pictures": meeting(2, "A iii B jjj", "A iii C jjj"),
    "between-frames": meeting(1, "A vvBvv C", "A vvDvv C"),
    "same-picture-later": meeting(1, "A iii B", "AB iii B"),
    "same-picture-earlier-by-a-page": meeting(4, "ABCD iiii E", "iiii ABCD"),
    "no-picture": meeting(1, "ABCDEF", "ABCXEF"),
    "late-in-a-page": meeting(4, "ABCDEFG", "ABCDEFX"),
    "nothing-in-common": meeting(1, "ABC", "XYZ"),
    "pages-exchanged": meeting(2, "AB CD EF", "CD AB EF"),
}
"""Requests whose text differs."""

PADDED = {
    "text": Exact(meeting(1, "ABCDEF", "ABCXEF"), 3),
    "picture": Exact(meeting(1, "AB iii C", "AB jjj C"), 2),
    "in-pages": Exact(meeting(4, "AB iiiiii C", "AB iiiiii D"), 8),
    "the-same-picture-shorter": Exact(meeting(1, "AB iiiiii C", "AB iiii C"), 6),
    "the-same-picture-longer": Exact(meeting(2, "AB iiii C", "AB iiiiiii C"), 6),
}
"""Also what one identity should not have: two lengths. Sentinels do not tell them apart."""

DIFFERENCES = OTHER_MEDIA | CLOSE_NAMES | OTHER_TEXT

SHARED = {
    "text-before-a-picture": meeting(1, "ABCD iii E", "ABCD jjj E"),
    "text-before-a-picture-in-pages": meeting(4, "ABCDEFGH iiii", "ABCDEFGH jjjj"),
    "text-page-that-ends-at-a-picture": meeting(4, "A iii BCDE jjjj F", "A iii BCDE kkkk F"),
    "text-page-behind-a-picture": meeting(4, "iiii ABCD E", "iiii ABCD F"),
    "first-picture-when-a-second-one-comes": meeting(1, "A iii B", "A iii B jjj C"),
    "first-picture-when-the-second-one-goes": meeting(1, "A iii B jjj C", "A iii D"),
    "next-turn": meeting(4, "ABCD iiii EF", "ABCD iiii EFGHIJ jjjj KL"),
    "longest-of-several": meeting(1, "AB iii C", "AB iii CDE", "AB", "AB iii CDF"),
    "one-page-of-a-picture-cut": meeting(2, "A iii B", "A iii C"),
    "frames-before-another-text": meeting(1, "A vvBvv C", "A vvBvv D"),
    "pictures-in-another-order-of-the-list": Meeting(
        1, (ask("A iii B jjj C"),), replace(ask("A iii B jjj C"), items=ask("A iii B jjj C").items[::-1])
    ),
}

CONTENTS = {
    "text": meeting(1, "ABCDEF"),
    "picture": meeting(1, "AB iii C"),
    "picture-alone": meeting(1, "iiii"),
    "picture-twice": meeting(1, "A iii B iii C"),
    "two-pictures-that-touch": meeting(2, "A iii jjj B"),
    "video-of-two-frames": meeting(1, "A vvBvv C"),
    "all-kinds": meeting(2, "A iii BC vvDvv E aaaa F"),
    "whole-pages": meeting(4, "AB iiiii C"),
    "begun-page": meeting(4, "AB iiiiii CD E"),
    "picture-over-three-pages": meeting(4, "ABC iiiiiiiii DEF"),
    "shorter-than-a-page": meeting(16, "AB iii C"),
    "one-position": meeting(1, "A"),
    "nothing": meeting(1, ""),
    "embedding": Meeting(1, (), precomputed("i", 0.5)),
}
"""Requests that are kept and met again."""

LIMITS = {
    "all-but-the-last": Limited(1, ask("AB iii C"), 5),
    "all-but-the-last-of-whole-pages": Limited(4, ask("AB iiiii C"), 7),
    "inside-a-picture": Limited(1, ask("AB iiii C"), 4),
    "inside-a-page": Limited(4, ask("ABCDEFGH iiii"), 10),
    "nothing": Limited(1, ask("AB iii C"), 0),
    "more-than-there-is": Limited(1, ask("AB iii C"), 100),
}

TENANTS = {
    name: Tenants(first, second, ask(drawing))
    for name, first, second, drawing in [
        ("other-salt", Namespace("red"), Namespace("blue"), "AB iii CD"),
        ("other-salt-text-only", Namespace("red"), Namespace("blue"), "ABCDEFGH"),
        ("salt-and-none", Namespace("red"), Namespace(), "AB iii CD"),
        ("none-and-salt", Namespace(), Namespace("red"), "ABCDEFGH"),
        ("other-adapter", Namespace(None, "poet"), Namespace(None, "clerk"), "AB iii CD"),
        ("adapter-and-none", Namespace(None, "poet"), Namespace(), "AB iii CD"),
        ("same-salt-other-adapter", Namespace("red", "poet"), Namespace("red", "clerk"), "AB iii CD"),
        ("other-salt-same-adapter", Namespace("red", "poet"), Namespace("blue", "poet"), "AB iii CD"),
        ("exchanged", Namespace("red", "poet"), Namespace("poet", "red"), "AB iii CD"),
        ("salt-named-like-an-adapter", Namespace("red"), Namespace(None, "red"), "AB iii CD"),
        ("cut-elsewhere", Namespace("ab", "c"), Namespace("a", "bc"), "AB iii CD"),
        ("salt-that-says-none", Namespace("None"), Namespace(), "AB iii CD"),
    ]
} | {
    "a-picture-that-its-caller-names": Tenants(Namespace("red"), Namespace("blue"), ask("iiiiii ABCDEF", i=5)),
}

PROMPTS = {"x": "AB iii CD", "y": "AB iii EF", "z": "GHIJKL kk", "long": "AB iii CDEFGH", "short": "AB iii"}
"""What shares anything shares all media: that a picture spoils the text before it is no fault here."""

SEQUENCES = {
    "some-go": script(1, PROMPTS, "insert x", "insert z", "evict 3", "match x", "match z", "insert x", "match x"),
    "one-after-another": script(2, PROMPTS, "insert long", "evict 2", "match long", "evict 2", "match long", "match short"),
    "locked-and-some-go": script(
        1, PROMPTS, "insert x", "insert z", "lock x", "evict 8", "match x", "match z", "evict 3", "match x"
    ),
    "locked-beginning": script(2, PROMPTS, "insert long", "lock short", "evict 4", "match long", "evict 99", "match long"),
    "cut-while-locked": script(
        1, PROMPTS, "insert x", "lock x", "insert y", "evict 1", "match x", "unlock x", "evict 4", "match x"
    ),
    "kept-again-after-some-went": script(
        1, PROMPTS, "insert long", "evict 5", "insert long", "match long", "evict 99", "match long"
    ),
}

EVICTIONS = {
    "one": script(1, PROMPTS, "insert x", "evict", "match x", "used"),
    "several": script(2, PROMPTS, "insert x", "insert y", "insert z", "evict", "match x", "match y", "match z", "used"),
    "none": script(1, PROMPTS, "evict", "match x", "used"),
    "and-kept-again": script(2, PROMPTS, "insert x", "insert y", "evict", "insert x", "match x", "evict", "match x"),
}

LOCKS = {
    "locked": script(1, PROMPTS, "insert x", "insert z", "lock x", "evict", "match x", "match z"),
    "locked-twice-unlocked-once": script(1, PROMPTS, "insert x", "lock x", "lock x", "unlock x", "evict", "match x"),
    "locked-with-a-branch": script(1, PROMPTS, "insert x", "insert y", "lock x", "evict", "match x", "match y"),
    "branched-while-locked": script(1, PROMPTS, "insert x", "lock x", "insert y", "evict", "match x", "match y"),
    "only-the-beginning": script(1, PROMPTS, "insert long", "lock short", "evict", "match short", "match long"),
    "extended-while-locked": script(1, PROMPTS, "insert short", "lock short", "insert long", "evict", "match short"),
    "in-pages": script(4, PROMPTS, "insert x", "insert z", "lock x", "evict", "match x", "match z"),
    "two-that-share": script(1, PROMPTS, "insert x", "insert y", "lock x", "lock y", "unlock x", "evict", "match y", "match x"),
}

RELEASES = {
    "unlocked": script(1, PROMPTS, "insert x", "lock x", "unlock x", "evict", "match x"),
    "unlocked-twice": script(1, PROMPTS, "insert x", "lock x", "lock x", "unlock x", "unlock x", "evict", "match x"),
    "branched-while-locked": script(1, PROMPTS, "insert x", "lock x", "insert y", "unlock x", "evict", "match x"),
    "extended-while-locked": script(
        1, PROMPTS, "insert short", "lock short", "insert long", "unlock short", "evict", "match long"
    ),
    "nothing-was-there": script(1, PROMPTS, "lock x", "insert x", "unlock x", "evict", "match x"),
}

ORDERS = {
    "long-then-short": script(1, PROMPTS, "insert long", "insert short", "match long", "match short", "match x"),
    "short-then-long": script(1, PROMPTS, "insert short", "insert long", "match long", "match short", "match x"),
    "branches": script(1, PROMPTS, "insert x", "insert y", "insert z", "match x", "match y", "match z"),
    "branches-backwards": script(1, PROMPTS, "insert z", "insert y", "insert x", "match x", "match y", "match z"),
    "branches-of-a-branch": script(
        1, PROMPTS, "insert long", "insert y", "insert short", "insert x", "match long", "match y", "match x"
    ),
    "looked-for-in-between": script(2, PROMPTS, "insert long", "match y", "insert y", "match short", "match long", "match y"),
    "kept-twice": script(4, PROMPTS, "insert x", "insert x", "insert y", "match x", "match y"),
}

USAGE = {
    "one": script(1, PROMPTS, "insert x", "used"),
    "begun-page": script(4, PROMPTS, "insert x", "used"),
    "twice": script(2, PROMPTS, "insert x", "insert x", "used"),
    "shared-beginning": script(
        1, PROMPTS, "insert x", "used", "insert y", "used", "insert short", "used", "insert long", "used"
    ),
    "shared-pages": script(2, PROMPTS, "insert long", "insert x", "insert y", "used"),
    "cleared": script(2, PROMPTS, "insert x", "insert y", "clear", "used", "insert x", "used"),
    "looking-is-free": script(1, PROMPTS, "used", "match x", "used", "insert x", "match y", "used"),
}

CLEARS = {
    "kept": script(1, PROMPTS, "insert x", "clear", "match x"),
    "kept-again": script(2, PROMPTS, "insert x", "insert y", "clear", "insert x", "match x", "match y"),
}


class Pressure(NamedTuple):
    """`tokens` positions have to go from a cache in which these prompts are kept, and perhaps one of them locked."""

    page: int
    kept: tuple[Request, ...]
    tokens: int
    locked: int | None = None


def pressure(page: int, tokens: int, *drawings: str, locked: int | None = None) -> Pressure:
    return Pressure(page, tuple(map(ask, drawings)), tokens, locked)


PRESSURE = {
    "nothing": pressure(1, 0, "AB iii C"),
    "one-position": pressure(1, 1, "AB iii C"),
    "one-position-of-a-page": pressure(4, 1, "AB iii CDE"),
    "one-of-two": pressure(1, 6, "AB iii C", "DE jjj F"),
    "more-than-one-of-two": pressure(2, 7, "AB iii C", "DE jjj F"),
    "branches-and-their-stem": pressure(1, 9, "AB iii CDE", "AB iii FGH"),
    "more-than-there-is": pressure(1, 100, "AB iii C", "DE jjj F"),
    "beside-a-locked-one": pressure(1, 100, "AB iii C", "DE jjj F", locked=0),
    "branch-of-a-locked-one": pressure(1, 100, "AB iii C", "AB iii DEF", locked=0),
    "from-an-empty-cache": pressure(1, 5),
}
