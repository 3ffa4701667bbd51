"""PREPROCESSING: results that one process makes and another one keeps.

Traffic is written as in `conformance.oracles.preprocessing_mirrors`.
"""

from typing import NamedTuple

from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.oracles.preprocessing import runs_of_uses
from conformance.oracles.preprocessing_mirrors import Answer, Traffic, Work, keys, letters, plain, play, traffic
from conformance.requirement import SHOULD, requirement
from conformance.suite.preprocessing_cases import EVICTIONS, OVERSIZED, Uses


def mirror_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a mirror that has these."""
    return ("open_mirror", *(f"open_mirror.{method}" for method in ("send", "receive", *methods)))


IN_ORDER = {
    "one": traffic(2, "send a", "receive"),
    "again": traffic(2, "send a", "receive", "send a", "receive"),
    "several": traffic(3, "send ab", "receive", "send bca", "receive"),
    "twice-in-one-request": traffic(2, "send aba", "receive", "send aa", "receive"),
    "evicted-and-sent-again": traffic(2, *["send a", "receive", "send b", "receive", "send c", "receive"] * 2),
    "a-reference-is-a-use": traffic(2, *["send a", "send b", "send a", "send c", "send b"] * 2, *["receive"] * 10),
    "on-their-way-together": traffic(2, "send a", "send b", "send a", "send c", "send a", *["receive"] * 5),
    "a-large-one-drives-out-three": traffic(4, "send abc", "send Ad", "receive", "send cb", *["receive"] * 2),
    "larger-than-the-room": traffic(2, "send a", "send A", "send a", "send A", *["receive"] * 4),
    "no-room": traffic(0, "send a", "send a", "receive", "receive"),
    "room-for-all": traffic(9, "send abcA", "send Acba", "receive", "receive"),
}
NOT_TOGETHER = {
    "behind-the-one-that-is-kept": traffic(3, "send a", "receive", "send aA", "receive"),
    "before-the-one-that-is-kept": traffic(3, "send a", "receive", "send Aa", "receive"),
    "two-large-ones-in-turn": traffic(3, "send AB", "receive", "send BA", "receive", "send AB", "receive"),
    "more-than-there-is-room-for": traffic(2, "send abc", "send cba", "send bac", *["receive"] * 3),
}
OUT_OF_ORDER = {
    "the-second-before-the-first": traffic(2, "send a", "send a", "receive 1", "receive"),
    "a-request-is-aborted": traffic(2, "send a", "drop", "send a", "receive"),
    "aborted-with-others-beside": traffic(3, "send ab", "send bc", "drop", "receive", "send abc", "receive"),
    "orders-of-use-that-differ": traffic(
        2, "send a", "send b", "send c", "receive", "receive 1", "send b", "receive 1", "receive"
    ),
    "a-whole-request-is-lacking": traffic(4, "send abc", "drop", "send cba", "receive"),
    "a-restart": traffic(3, "send ab", "receive", "restart", "send ab", "receive", "send a", "receive"),
    "a-restart-with-messages-on-their-way": traffic(
        3, "send a", "receive", "send ab", "restart", "receive", "send ba", "receive"
    ),
}


class Loads(NamedTuple):
    """Requests for a picture, each with an adapter or none."""

    adapters: tuple[str | None, ...]


@requirement("PREPROCESSING-37", needs=mirror_with("forget"), cases=IN_ORDER, bugs=("p0p1-cache-desync-order",))
def test_nothing_is_lacking_in_order(engine: Engine, case: Traffic) -> None:
    """Where messages are received in the order in which they were made, every result MUST be there, and that of its key."""
    equal(play(engine.open_mirror(case.capacity_bytes), case), plain(case), "what was received", where=case.where)


@requirement("PREPROCESSING-38", level=SHOULD, needs=mirror_with(), cases=EVICTIONS | OVERSIZED)
def test_what_is_kept_is_not_made_again(engine: Engine, case: Uses) -> None:
    """What the receiver keeps SHOULD NOT be made again; what was used longest ago goes first, and for nothing too large."""
    mirror, work, observed = engine.open_mirror(traffic(case.room).capacity_bytes), Work(), []
    for letter in case.order:
        mirror.receive(mirror.send(keys(letter), None, work))
        observed.append(work.runs)
    equal(observed, runs_of_uses(case.room, case.order), "the runs so far", where=f"use {{}} of {case.order}".format)


@requirement("PREPROCESSING-39", needs=mirror_with("forget"), cases=NOT_TOGETHER)
def test_what_does_not_fit_together_arrives(engine: Engine, case: Traffic) -> None:
    """A request whose results have no room together MUST arrive whole, whichever of them are kept when it begins."""
    equal(play(engine.open_mirror(case.capacity_bytes), case), plain(case), "what was received", where=case.where)


@requirement("PREPROCESSING-40", needs=mirror_with("forget", "restart"), cases=OUT_OF_ORDER, bugs=("p0p1-cache-desync-order",))
def test_what_is_lacking_is_told_and_sent_again(engine: Engine, case: Traffic) -> None:
    """Messages lost or received in any order MUST NOT give another's result: what is lacking is told, all of it at once.

    When the sender was told to forget it, the same request arrives whole.
    """
    observed, right = play(engine.open_mirror(case.capacity_bytes), case), plain(case)
    equal([one.again for one in observed], [one.again for one in right], "what was received at last", where=case.where)
    equal([one.first.replace("-", "") for one in observed], [_there(*both) for both in zip(observed, right, strict=True)],
          "what was received at first", where=case.where)  # fmt: skip


@requirement("PREPROCESSING-41", needs=mirror_with("forget", "restart", "used_bytes"), cases=IN_ORDER | OUT_OF_ORDER)
def test_the_receivers_budget_is_kept(engine: Engine, case: Traffic) -> None:
    """The bytes that a receiver keeps MUST NOT exceed the capacity, nor be negative, whatever arrives in whatever order."""
    mirror, used = engine.open_mirror(case.capacity_bytes), list[int]()
    play(mirror, case, lambda: used.append(mirror.used_bytes()))
    beyond = [case.where(number) for number, one in enumerate(used) if not 0 <= one <= case.capacity_bytes]
    equal(beyond, [], f"the lines after which the bytes kept are not in 0 to {case.capacity_bytes}")


@requirement(
    "PREPROCESSING-42",
    level=SHOULD,
    needs=mirror_with(),
    cases={
        "one-and-another": Loads(("first", "second")),
        "none-and-one": Loads((None, "first")),
        "one-and-none": Loads(("first", None)),
        "in-turn": Loads(("first", None, "second", "first")),
    },
    bugs=("lora-processor-cache-key",),
)
def test_adapters_share_results(engine: Engine, case: Loads) -> None:
    """Requests with different adapters SHOULD share results: an adapter (LoRA) comes in after preprocessing."""
    mirror, work = engine.open_mirror(traffic(9).capacity_bytes), Work()
    observed = [letters("a", mirror.receive(mirror.send(keys("a"), adapter, work))) for adapter in case.adapters]
    equal(observed, ["a"] * len(case.adapters), "what was received", where="request {}".format)
    equal(work.runs, 1, "how often the result was made")


@requirement("PREPROCESSING-43", level=SHOULD, needs="open_mirror", cases={"negative": -1, "very-negative": -(1 << 40)})
def test_a_mirror_needs_a_capacity(engine: Engine, case: int) -> None:
    """A capacity of fewer than no bytes SHOULD be refused: it is a mistake of whoever set it."""
    refuses(lambda: engine.open_mirror(case), f"a capacity of {case} bytes")


def _there(observed: Answer, right: Answer) -> str:
    """The right letters where anything was received."""
    return "".join(letter for letter, got in zip(right.first, observed.first, strict=True) if got != "-")
