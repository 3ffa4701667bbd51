"""Cases of the rules about encoder, prefill and decode as instances: requests for parts, and scripts.

Scripts are written as in `conformance.oracles.disaggregation` and `conformance.oracles.disaggregation_parts`.
"""

from collections.abc import Mapping
from typing import Any

from conformance.oracles import disaggregation as sides
from conformance.oracles import disaggregation_parts as parts
from conformance.oracles.disaggregation import message
from reference.items import Modality

GOOD = message("good", 0)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


VIDEO = {"modality": int(Modality.VIDEO)}
MALFORMED: dict[str, Any] = {
    "a-video-without-media": {**without("media"), **VIDEO},
    "an-image-without-media": without("media"),
    "no-medium": {**GOOD, "media": [], "options": []},
    "a-medium-that-is-none": {**GOOD, "media": [None]},
    "a-video-that-is-none": {**GOOD, **VIDEO, "media": [None]},
    "media-that-are-text": {**GOOD, "media": "good.png"},
    "no-id": without("id"),
    "an-empty-id": {**GOOD, "id": ""},
    "an-id-that-is-a-number": {**GOOD, "id": 7},
    "no-modality": without("modality"),
    "an-unknown-modality": {**GOOD, "modality": 9},
    "a-part-that-there-is-not": {**GOOD, "part": 1},
    "a-part-before-the-first": {**GOOD, "part": -1},
    "no-parts": {**GOOD, "parts": 0},
    "a-part-that-is-a-text": {**GOOD, "part": "0"},
    "a-part-that-is-true": {**GOOD, "part": False},
    "no-receiver": {**GOOD, "receivers": 0},
    "receivers-that-are-true": {**GOOD, "receivers": True},
    "options-for-another-number-of-media": {**GOOD, "options": [{}, {}]},
    "no-options": without("options"),
    "nothing": {},
    "a-list": [GOOD],
    "none": None,
}

DONE = "submit a0 1; take; encoded a0; send a0 0; sent a0 0"
SENDS: Mapping[str, sides.Script] = {
    "one-part": sides.script(DONE),
    "four-receivers-at-once": sides.script(
        "submit a0 4; take; encoded a0; send a0 0; send a0 1; send a0 2; send a0 3",
        "sent a0 2; sent a0 0; sent a0 3; sent a0 1",
    ),
    "four-receivers-one-by-one": sides.script(
        "submit a0 4; take; encoded a0; send a0 3; sent a0 3; send a0 1; sent a0 1; send a0 0; sent a0 0; send a0 2; sent a0 2"
    ),
    "two-parts-of-a-request": sides.script(
        "submit a0 1; submit a1 1; take; encoded a0; take; encoded a1; send a1 0; send a0 0; sent a0 0; sent a1 0"
    ),
    "requests-whose-names-begin-alike": sides.script(
        "submit a0 1; submit aa0 1; submit a1 1; take; take; take; encoded aa0; encoded a1; encoded a0",
        "send a0 0; sent a0 0; send a1 0; send aa0 0; sent aa0 0; sent a1 0",
    ),
    "taken-in-their-order": sides.script("submit b0 1; submit a0 1; take; submit c0 1; take; take; take"),
    "again-after-its-end": sides.script(DONE, DONE),
}
BROKEN: Mapping[str, sides.Script] = {
    "one-receiver": sides.script("submit a0 1; take; broken a0; send a0 0; sent a0 0"),
    "three-receivers": sides.script(
        "submit a0 3; take; broken a0; send a0 0; send a0 2; sent a0 0; sent a0 2; send a0 1; sent a0 1"
    ),
    "the-second-of-three-parts": sides.script(
        "submit a0 1; submit a1 1; submit a2 1; take; encoded a0; take; broken a1; take; encoded a2",
        "send a0 0; send a1 0; send a2 0; sent a0 0; sent a1 0; sent a2 0",
    ),
}
CANCELS: Mapping[str, sides.Script] = {
    "queued": sides.script("submit a0 1; submit b0 1; cancel a; take; encoded b0; send b0 0; sent b0 0; take"),
    "encoding": sides.script("submit a0 1; take; cancel a; encoded a0; submit b0 1; take"),
    "encoding-and-then-broken": sides.script("submit a0 1; take; cancel a; broken a0; sweep"),
    "staged": sides.script("submit a0 2; take; encoded a0; cancel a; sweep"),
    "sending": sides.script("submit a0 2; take; encoded a0; send a0 0; cancel a; sent a0 0; sweep"),
    "sending-to-two": sides.script("submit a0 3; take; encoded a0; send a0 0; send a0 1; cancel a; sent a0 1; lost a0 0"),
    "between-two-sends": sides.script("submit a0 2; take; encoded a0; send a0 0; sent a0 0; cancel a"),
    "twice": sides.script("submit a0 2; take; encoded a0; send a0 0; cancel a; cancel a; sent a0 0; cancel a"),
    "after-its-end": sides.script(DONE, "cancel a; cancel nobody"),
    "all-parts": sides.script(
        "submit a0 1; submit a1 1; submit a2 1; take; encoded a0; take; cancel a; encoded a1; take; submit b0 1; take"
    ),
    "one-whose-name-another-begins-with": sides.script(
        "submit a0 1; submit aa0 1; cancel a; take; encoded aa0; send aa0 0; sent aa0 0"
    ),
}
LOST: Mapping[str, sides.Script] = {
    "the-only-one": sides.script("submit a0 1; take; encoded a0; send a0 0; lost a0 0"),
    "with-two-siblings-on-their-way": sides.script(
        "submit a0 3; take; encoded a0; send a0 0; send a0 1; send a0 2; lost a0 1; sent a0 0; sent a0 2; sweep"
    ),
    "the-last-of-two": sides.script("submit a0 2; take; encoded a0; send a0 0; sent a0 0; send a0 1; lost a0 1"),
    "all": sides.script("submit a0 2; take; encoded a0; send a0 0; send a0 1; lost a0 0; lost a0 1"),
    "beside-another-part": sides.script(
        "submit a0 1; submit b0 1; take; take; encoded a0; encoded b0; send a0 0; send b0 0; lost a0 0; sent b0 0"
    ),
}
STALE: Mapping[str, sides.Script] = {
    "staged-and-forgotten": sides.script("submit a0 1; take; encoded a0; wait 11; sweep"),
    "three-of-which-one-is-read-and-one-is-stuck": sides.script(
        "submit a0 2; submit b0 1; submit c0 1; take; take; take; encoded a0; encoded b0; encoded c0; jam b0; send a0 0",
        "wait 11; sweep; wait 11; sweep; sent a0 0; wait 1; sweep",
    ),
    "not-yet": sides.script("submit a0 1; take; encoded a0; wait 9; sweep; send a0 0; wait 9; sweep; sent a0 0"),
    "heard-of-again": sides.script("submit a0 3; take; encoded a0; send a0 0; wait 9; sent a0 0; wait 9; sweep; wait 9; sweep"),
    "waiting-in-the-queue": sides.script("submit a0 1; wait 30; sweep; take; wait 30; sweep; encoded a0; send a0 0; sent a0 0"),
    "stuck-after-a-cancel": sides.script("submit a0 1; take; encoded a0; jam a0; cancel a; sweep; submit b0 1; take"),
}
SIDES = {
    f"{kind}-{name}": one
    for kind, table in (("sends", SENDS), ("broken", BROKEN), ("cancels", CANCELS), ("lost", LOST), ("stale", STALE))
    for name, one in table.items()
}

THREE = {"a": ".ii.jjj.k."}
ORDERS: Mapping[str, parts.Script] = {
    "in-order": parts.script(THREE, "expect a; arrive a 0; arrive a 1; arrive a 2; poll"),
    "from-behind": parts.script(THREE, "expect a; arrive a 2; arrive a 1; arrive a 0; poll"),
    "polled-in-between": parts.script(THREE, "expect a; poll; arrive a 1; poll; arrive a 0; poll; arrive a 2; poll; poll"),
    "two-modalities": parts.script(
        {"a": "vv.ii.ww.jj.aa"}, "expect a; arrive a 4; arrive a 1; arrive a 3; arrive a 0; poll", "arrive a 2; poll"
    ),
    "a-video-of-three-frames": parts.script({"a": "v.vv.v.ii"}, "expect a; arrive a 1; arrive a 0; poll"),
    "two-requests-alternating": parts.script(
        {"a": "ii.jjj", "b": "kk.aa"}, "expect a; expect b; arrive b 1; arrive a 1; arrive a 0; poll; arrive b 0; poll"
    ),
    "one-picture-twice": parts.script({"a": "ii.jj.ii"}, "expect a; arrive a 1; arrive a 0; poll"),
    "lengths-that-are-shared-otherwise": parts.script(
        {"a": "i.jjjj.kkk"}, "expect a; arrive a 2; arrive a 0; arrive a 1; poll"
    ),
}
MIXED: Mapping[str, parts.Script] = {
    "a-request-with-both": parts.script({"a": "ii.jjj.kk"}, "expect a; poll; arrive a 1; poll", embedded="ik"),
    "the-first-item-is-raw": parts.script({"a": "ii.jjj"}, "expect a; poll; arrive a 0; poll", embedded="j"),
    "all-precomputed": parts.script({"a": "ii.jjj"}, "expect a; poll", embedded="ij"),
    "a-batch-with-both": parts.script(
        {"a": "ii.", "b": "jjj.", "c": "i.k"},
        "expect a; expect b; expect c; poll; arrive b 0; poll; arrive c 1; poll",
        embedded="i",
    ),
    "text": parts.script({"a": "..."}, "expect a; poll"),
}
NAMES: Mapping[str, parts.Script] = {
    "one-name-begins-another": parts.script(
        {"1": "ii.", "10": "jjj.", "101": "kk."},
        "expect 1; expect 10; expect 101; arrive 10 0; poll; cancel 1; arrive 101 0; poll",
    ),
    "a-name-that-looks-like-a-part": parts.script(
        {"a": "ii.", "a_local_part_0": "jjj."},
        "expect a; expect a_local_part_0; arrive a_local_part_0 0; poll; arrive a 0; poll",
    ),
    "an-empty-name-is-nobody": parts.script({"a": "ii."}, "expect a; cancel; arrive a 0; poll"),
}
REPEATED: Mapping[str, parts.Script] = {
    "before-the-last-part": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; again a 0; arrive a 1; poll"),
    "in-place-of-the-last-part": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; again a 0; poll; arrive a 1; poll"),
    "after-the-last-part": parts.script({"a": "ii.vv"}, "expect a; arrive a 1; arrive a 0; again a 1; poll"),
    "after-the-outcome": parts.script({"a": "ii.vv"}, "expect a; arrive a 1; arrive a 0; poll; again a 1; poll"),
    "with-other-rows": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; short a 0; arrive a 1; poll"),
}
MISFITS: Mapping[str, parts.Script] = {
    how: parts.script(
        {"a": "i.jjj.kk", "b": "jj"}, f"expect a; expect b; arrive a 2; {how} a 0; poll; arrive b 0; poll; arrive a 0; poll"
    )
    for how in ("short", "long", "wide", "cast", "recount")
} | {"beyond": parts.script({"a": "iii.vv", "b": "jj"}, "expect a; expect b; arrive a 1; beyond a; poll; arrive b 0; poll")}
FAILURES: Mapping[str, parts.Script] = {
    "the-second-of-three": parts.script(
        {"a": "ii.vv.aa", "b": "jj"}, "expect a; expect b; arrive a 0; broken a 1; poll; arrive a 2; arrive b 0; poll"
    ),
    "the-only-one": parts.script({"a": "ii"}, "expect a; broken a 0; poll; poll"),
    "two": parts.script({"a": "ii.vv"}, "expect a; broken a 0; broken a 1; poll; poll"),
    "nobody-can-be-asked": parts.script({"a": "ii.vv", "b": "jj"}, "expect a; expect b; fail a; poll; arrive b 0; poll"),
    "beside-a-precomputed-item": parts.script({"a": "ii.jj"}, "expect a; broken a 1; poll", embedded="i"),
}
LIMITS: Mapping[str, parts.Script] = {
    "one-part-is-missing": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; wait 9; poll; wait 2; poll; arrive a 1; poll"),
    "nothing-came": parts.script({"a": "ii.vv"}, "expect a; wait 11; poll; poll"),
    "each-by-its-own-clock": parts.script(
        {"a": "ii", "b": "jj"}, "expect a; wait 6; expect b; wait 6; poll; arrive b 0; poll; wait 6; poll"
    ),
    "sixty-at-once": parts.script(
        {f"r{n}": "i" for n in range(60)},
        *(f"expect r{n}" for n in range(60)),
        *(f"arrive r{n} 0" for n in range(0, 60, 4)),
        "poll; wait 60; poll; poll",
    ),
}
LATE_POLLS: Mapping[str, parts.Script] = {
    "two-parts": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; arrive a 1; wait 60; poll"),
    "beside-one-that-lacks-a-part": parts.script(
        {"a": "ii.vv", "b": "jj"}, "expect a; expect b; arrive a 0; arrive b 0; wait 60; poll; poll"
    ),
}
ENDINGS: Mapping[str, parts.Script] = {
    "before-the-first-part": parts.script({"a": "ii.vv"}, "expect a; cancel a; arrive a 0; arrive a 1; poll; wait 20; poll"),
    "between-two-parts": parts.script({"a": "ii.vv"}, "expect a; arrive a 1; cancel a; arrive a 0; poll"),
    "before-the-poll": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; arrive a 1; cancel a; poll"),
    "after-the-outcome": parts.script({"a": "ii.vv"}, "expect a; arrive a 0; arrive a 1; poll; cancel a; poll"),
    "after-a-failure": parts.script({"a": "ii.vv"}, "expect a; broken a 0; cancel a; poll"),
    "nobody": parts.script({"a": "ii"}, "cancel a; expect a; cancel b; arrive a 0; poll"),
    "a-part-that-nobody-waits-for": parts.script(
        {"a": "ii", "b": "jj"}, "expect a; arrive b 0; arrive a 0; poll; wait 20; poll"
    ),
}
FIELDS: Mapping[str, parts.Script] = {
    "each-has-some": parts.script({"a": "vv.ww"}, "expect a; arrive a 1; arrive a 0; poll"),
    "the-first-part-has-none": parts.script({"a": "vv.ii.ww"}, "expect a; bare a 0; arrive a 1; arrive a 2; poll"),
    "the-last-part-has-none": parts.script({"a": "vv.ii.ww"}, "expect a; arrive a 0; bare a 1; arrive a 2; poll"),
    "beside-a-precomputed-item": parts.script({"a": "ii.jj"}, "expect a; arrive a 1; poll", embedded="i"),
}
PARTS = {
    f"{kind}-{name}": one
    for kind, table in (
        ("orders", ORDERS),
        ("mixed", MIXED),
        ("names", NAMES),
        ("repeated", REPEATED),
        ("misfits", MISFITS),
        ("failures", FAILURES),
        ("limits", LIMITS),
        ("endings", ENDINGS),
        ("fields", FIELDS),
    )
    for name, one in table.items()
}
