"""What the requests of LIFECYCLE are tried on: scripts as in `conformance.oracles.lifecycle`."""

from typing import NamedTuple

from conformance.oracles.lifecycle import FIRST, Script, drawn, script
from reference.items import Chunk, Request

ONE = {"a": "..iiii.."}
TWO = {"a": "..iiii..", "b": ".jjj.kk."}
SHARED = {"a": "..iiii..", "b": ".iiii.jj", "c": "iiii"}
MIXED = {"a": ".ii.vv.vv.aaa.", "b": "bb.ww.jj"}
SESSION = {"a": ".iii.", "b": ".iii...jj.", "c": ".iii...jj..kk"}

TWICE = FIRST | {"j": FIRST["i"]}
"""What i and j are in some scripts: the same picture."""

CHUNKS = {
    "whole": script(ONE, "admit a", "step a 8", "finish a"),
    "text": script({"a": "....."}, "admit a", "step a 2", "step a 3", "finish a"),
    "one-at-a-time": script(ONE, "admit a", *["step a 1"] * 8, "finish a"),
    "in-threes": script(MIXED, "admit a", *["step a 3"] * 5, "finish a"),
    "with-a-reply": script(ONE, "admit a", "step a 8", "reply a 1", "step a 1", "reply a 2", "step a 2", "finish a"),
    "a-reply-of-placeholders": script(ONE, "admit a", "reply a 5", "step a 9", "step a 9", "finish a"),
    "together": script(TWO, "admit a", "admit b", "step a 3 b 4", "step a 5 b 4", "finish a", "finish b"),
    "one-joins-later": script(TWO, "admit a", "step a 3", "admit b", "step a 2 b 8", "step a 3", "finish a", "finish b"),
    "the-same-picture-twice": script({"a": ".ii.jj."}, "admit a", "step a 3", "step a 4", "finish a", numbers=TWICE),
    "the-same-picture-in-two": script(SHARED, "admit a", "admit b", "step a 8 b 8", "finish a", "finish b"),
    "a-reply-beside-a-prompt": script(
        TWO, "admit b", "step b 8", "reply b 2", "admit a", "step a 8 b 1", "step b 1", "finish a", "finish b"
    ),
    "embedded": script(TWO, "admit a", "admit b", "step a 4 b 3", "step a 4 b 5", "finish b", "finish a", embedded="ik"),
    "embedded-in-one-request": script(SHARED, "admit a", "step a 8", "finish a", embedded="i"),
}
RETRACTIONS = {
    "before-the-first-step": script(ONE, "admit a", "retract a", "step a 8", "finish a"),
    "within-a-picture": script(ONE, "admit a", "step a 4", "retract a", "step a 8", "finish a"),
    "behind-a-picture": script(ONE, "admit a", "step a 7", "retract a", "step a 3", "step a 5", "finish a"),
    "of-a-reply": script(ONE, "admit a", "step a 8", "reply a 3", "step a 2", "retract a", "step a 9", "step a 2", "finish a"),
    "twice": script(ONE, "admit a", "step a 8", "reply a 1", "retract a", "step a 9", "reply a 1", "retract a", "step a 9",
                    "step a 1", "finish a"),
    "of-a-part-again": script(ONE, "admit a", "step a 6", "retract a", "step a 3", "retract a", "step a 8", "finish a"),
    "of-one-of-two": script(TWO, "admit a", "admit b", "step a 5 b 5", "retract a", "step b 3 a 2", "step a 6", "finish b",
                            "finish a"),
    "of-all-modalities": script(MIXED, "admit a", "step a 12", "retract a", "step a 6", "step a 8", "finish a"),
    "of-embeddings": script(TWO, "admit a", "admit b", "step a 5 b 6", "retract a", "retract b", "step a 8 b 8", "finish a",
                            "finish b", embedded="ik"),
    "with-room-in-the-cache": script(ONE, "admit a", "step a 8", "retract a", "step a 8", "finish a", cache_rows=4),
}  # fmt: skip
CACHES = {
    f"{rows}-rows": script(
        MIXED | {"c": ".ii.jj"}, "admit a", "admit b", "admit c", "step a 4 b 1 c 2", "step a 4 c 4 b 4", "retract a",
        "step a 9 b 3", "step a 5", "finish a", "finish b", "finish c", cache_rows=rows,
    )
    for rows in (0, 1, 2, 3, 5, 9, 100)
}  # fmt: skip
PREFIXES = {
    "of-text": script(ONE, "admit a", "cached a 2", "step a 6", "finish a"),
    "within-a-picture": script(ONE, "admit a", "cached a 4", "step a 4", "finish a"),
    "behind-a-picture": script(MIXED, "admit a", "cached a 3", "step a 4", "step a 7", "finish a"),
    "nearly-all": script(ONE, "admit a", "cached a 7", "step a 1", "finish a"),
    "after-a-retraction": script(MIXED, "admit a", "step a 8", "retract a", "cached a 6", "step a 8", "finish a"),
    "longer-than-what-was-computed": script(MIXED, "admit a", "step a 3", "retract a", "cached a 9", "step a 5", "finish a"),
    "gone-after-a-retraction": script(MIXED, "admit a", "cached a 9", "step a 5", "retract a", "step a 14", "finish a"),
}
ABORTS = {
    "before-the-first-step": script(TWO, "admit a", "admit b", "abort a", "step b 8", "finish b"),
    "within-a-picture": script(TWO, "admit a", "admit b", "step a 4 b 2", "abort a", "step b 6", "finish b"),
    "while-retracted": script(TWO, "admit a", "admit b", "step a 4 b 5", "retract a", "abort a", "retract b", "step b 8",
                              "finish b"),
    "in-the-reply": script(TWO, "admit a", "step a 8", "reply a 2", "admit b", "step a 1 b 1", "abort a", "step b 7",
                           "finish b"),
    "of-the-same-picture": script(SHARED, "admit a", "admit b", "step a 4 b 2", "abort a", "step b 6", "finish b"),
    "of-several-pictures": script(MIXED, "admit a", "admit b", "step a 14 b 3", "abort a", "step b 5", "finish b"),
    "of-all": script(TWO, "admit a", "admit b", "step a 4 b 5", "abort b", "abort a"),
}  # fmt: skip
SHARING = {
    "the-first-one-ends": script(SHARED, "admit a", "admit b", "step a 8 b 3", "finish a", "step b 5", "retract b", "step b 8",
                                 "finish b"),
    "the-second-one-ends": script(SHARED, "admit a", "admit b", "step a 3 b 8", "finish b", "retract a", "step a 8",
                                  "finish a"),
    "the-first-one-is-aborted": script(SHARED, "admit a", "admit b", "step a 8 b 3", "abort a", "retract b", "step b 8",
                                       "finish b"),
    "before-it-was-needed": script(SHARED, "admit a", "admit b", "abort a", "step b 8", "finish b"),
    "two-of-three-end": script(SHARED, "admit a", "admit b", "admit c", "step a 8 b 8 c 2", "finish a", "abort b", "step c 2",
                               "retract c", "step c 4", "finish c"),
    "twice-in-the-one-that-ends": script({"a": ".ii.jj.", "b": "ii."}, "admit a", "admit b", "step a 7", "finish a", "step b 3",
                                         "retract b", "step b 3", "finish b", numbers=TWICE),
}  # fmt: skip


class Lengths(NamedTuple):
    """Requests whose media have one identity and other lengths: what is done where each is encoded, and where `b` may fail."""

    encode: Script
    fail: Script


_TWO_LENGTHS = {"a": ".ii.", "b": ".iii."}
LENGTHS = {
    "in-one-step": Lengths(
        script(_TWO_LENGTHS, "admit a", "admit b", "step a 4 b 5", "finish a", "retract b", "step b 5", "finish b"),
        script(_TWO_LENGTHS, "admit a", "admit b", "step a 4 b 5", "finish a", "abort b"),
    ),
    "one-behind-the-other": Lengths(
        script(_TWO_LENGTHS, "admit a", "step a 2", "admit b", "step b 5", "step a 2", "finish b", "finish a", cache_rows=9),
        script(_TWO_LENGTHS, "admit a", "step a 2", "admit b", "step b 5", "step a 2", "abort b", "finish a", cache_rows=9),
    ),
}
SESSIONS = {
    "two-turns": script(SESSION, "admit a s", "step a 5", "finish a", "admit b s", "step b 10", "finish b", "close s"),
    "a-turn-is-retracted": script(SESSION, "admit a s", "step a 5", "reply a 2", "step a 2", "finish a", "admit b s",
                                  "cached b 7", "step b 3", "retract b", "step b 10", "finish b", "close s"),
    "a-turn-is-aborted": script(SESSION, "admit a s", "step a 5", "finish a", "admit b s", "step b 8", "abort b", "admit c s",
                                "step c 13", "finish c", "close s"),
    "the-first-turn-is-aborted": script(SESSION, "admit a s", "step a 3", "abort a", "admit b s", "step b 10", "finish b",
                                        "close s"),
    "closed-while-a-turn-runs": script(SESSION, "admit a s", "step a 5", "finish a", "admit b s", "step b 2", "close s",
                                       "step b 3", "retract b", "step b 10", "finish b"),
    "closed-while-the-first-turn-runs": script(SESSION, "admit a s", "step a 2", "close s", "step a 3", "finish a"),
    "closed-while-a-turn-runs-that-is-aborted": script(SESSION, "admit a s", "step a 5", "finish a", "admit b s", "step b 2",
                                                       "close s", "abort b"),
    "opened-again": script(SESSION, "admit a s", "step a 5", "finish a", "close s", "admit b s", "step b 10", "finish b",
                           "close s"),
    "a-turn-without-the-picture": script(
        {"a": ".iii.", "d": "......"}, "admit a s", "step a 5", "finish a", "admit d s", "step d 6", "finish d", "close s"
    ),
    "embedded": script(SESSION, "admit a s", "step a 5", "finish a", "admit b s", "step b 10", "finish b", "admit c s",
                       "step c 13", "finish c", "close s", embedded="ij"),
    "two-sessions": script(SESSION | {"d": ".iii."}, "admit a s", "admit d t", "step a 5 d 5", "finish a", "finish d",
                           "close t", "admit b s", "step b 10", "finish b", "close s"),
    "beside-a-request": script(SESSION | {"d": ".iii."}, "admit a s", "admit d", "step a 5", "finish a", "close s", "step d 5",
                               "finish d"),
}  # fmt: skip
FAULTS = {
    "alone": script({"a": ".kk."}, "admit a", "step a 4"),
    "beside-a-good-one": script({"a": "..ii", "b": ".kk."}, "admit a", "admit b", "step a 3 b 4", "step a 1", "finish a"),
    "after-a-good-step": script({"a": "..ii", "b": "..kk"}, "admit a", "admit b", "step a 3 b 2", "step b 2 a 1", "finish a"),
    "behind-a-good-picture": script({"a": ".ii.kk", "b": ".ii."}, "admit a", "admit b", "step a 6 b 4", "finish b"),
    "shared-by-two": script({"a": ".kk", "b": "kk.", "c": "jj"}, "admit a", "admit b", "admit c", "step a 3 b 3 c 2",
                            "finish c"),
    "then-admitted-again": script({"a": ".kk.", "b": "ii"}, "admit a", "step a 4", "admit a", "step a 1", "admit b",
                                  "step a 3 b 2", "finish b"),
}  # fmt: skip
"""The picture k cannot be encoded."""

ENDED = {
    "aborted-twice": script(TWO, "admit a", "admit b", "step a 4", "abort a", "abort a", "step b 8", "finish b"),
    "aborted-after-its-end": script(TWO, "admit a", "admit b", "step a 8", "finish a", "abort a", "step b 8", "finish b"),
    "never-there": script(TWO, "admit b", "abort a", "step b 8", "finish b"),
    "nobody-at-all": script(TWO, "abort a"),
    "closed-twice": script(SESSION, "admit a s", "step a 5", "finish a", "close s", "close s"),
    "closed-but-never-opened": script(ONE, "admit a", "close s", "step a 8", "finish a"),
    "aborted-twice-with-the-picture-of-another": script(SHARED, "admit a", "admit b", "abort a", "abort a", "step b 8",
                                                        "retract b", "step b 8", "finish b"),
}  # fmt: skip
NAMES = {
    "a-name-of-another": script({"a": ".ii", "aa": ".jj", "ab": "ww."}, "admit a", "admit aa", "admit ab", "step a 2 aa 2",
                                "abort a", "step aa 1 ab 3", "finish aa", "finish ab"),
    "again-after-an-abort": script(ONE, "admit a", "step a 5", "reply a 2", "abort a", "admit a", "step a 8", "reply a 1",
                                   "step a 1", "finish a"),
    "again-after-its-end": script(ONE, "admit a", "step a 8", "reply a 2", "step a 2", "finish a", "admit a", "step a 3",
                                  "step a 5", "reply a 3", "step a 3", "finish a"),
    "again-while-retracted": script(ONE, "admit a", "step a 5", "retract a", "abort a", "admit a", "step a 8", "finish a"),
    "a-session-like-a-request": script({"s": ".ii", "a": ".jj"}, "admit s", "admit a s", "step a 3", "finish a", "close s",
                                       "step s 3", "finish s"),
}  # fmt: skip
EVERYTHING = {
    f"{group}-{name}": case
    for group, cases in (
        ("chunks", CHUNKS), ("retraction", RETRACTIONS), ("prefix", PREFIXES), ("abort", ABORTS), ("sharing", SHARING),
        ("session", SESSIONS), ("ended", ENDED), ("name", NAMES),
    )
    for name, case in cases.items()
}  # fmt: skip

ROOMY = {
    "chunks": script(ONE, "admit a", *["step a 2"] * 4, "finish a", cache_rows=4),
    "a-retraction": script(ONE, "admit a", "step a 8", "retract a", "step a 8", "finish a", cache_rows=4),
    "two-requests": script(SHARED, "admit a", "step a 8", "admit b", "step b 8", "finish a", "finish b", cache_rows=6),
    "a-second-turn": script(SESSION, "admit a s", "step a 5", "finish a", "admit b s", "step b 10", "finish b", "close s",
                            cache_rows=9),
}  # fmt: skip


class Replies(NamedTuple):
    """A prompt, and how many tokens are generated before each retraction."""

    prompt: str
    replies: tuple[int, ...]


class Refusal(NamedTuple):
    """What is done first, and a step that must be refused."""

    script: Script
    chunks: dict[str, Chunk]


_BEGUN = script(TWO, "admit a", "admit b", "step a 4 b 2")
WRONG_STEPS = {
    "from-the-beginning-again": Refusal(_BEGUN, {"a": Chunk(0, 4)}),
    "with-a-gap": Refusal(_BEGUN, {"a": Chunk(5, 1)}),
    "behind-the-end": Refusal(_BEGUN, {"a": Chunk(4, 5)}),
    "of-nobody": Refusal(_BEGUN, {"c": Chunk(0, 1)}),
    "one-right-and-one-wrong": Refusal(_BEGUN, {"b": Chunk(2, 2), "a": Chunk(6, 1)}),
}

SECOND: dict[str, Request] = {"the-same": drawn("a", "..iiii.."), "another": drawn("a", ".jj.")}
"""Requests with the id of one that is alive."""
