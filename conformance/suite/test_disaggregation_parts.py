"""DISAGGREGATION: rows of media that arrive in parts, before the prefill.

Scripts are written as in `conformance.oracles.disaggregation_parts`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from conformance.compare import Mismatch, equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles.disaggregation_parts import LIMIT_S, PlainReceiver, Player, Script, bare, script
from conformance.oracles.lifecycle import TABLE, drawn
from conformance.requirement import SHOULD, requirement
from conformance.suite import disaggregation_cases as cases
from conformance.suite.merging_feeds import chunk_ids
from conformance.world.doubles import Encoders, precomputed
from conformance.world.prompts import Prompt
from reference.items import Chunk, Request


class Refusal(NamedTuple):
    """A request that cannot be waited for in these parts."""

    request: Request
    parts: list[list[int]]


def receiver_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a receiver with these."""
    return ("open_receiver", *(f"open_receiver.{method}" for method in methods))


def answers(engine: Engine, case: Script, method: str | None = None) -> list[Any]:
    """What the engine answers to each line, or what it tells after each."""
    return _answers(engine.open_receiver(LIMIT_S), engine, case, method)


def expected(engine: Engine, case: Script, method: str | None = None) -> list[Any]:
    """What is right, given the engine's choices."""
    return _answers(PlainReceiver(case, engine.traits.part_items, engine.traits.repeated_parts), engine, case, method)


def _answers(receiver: Any, engine: Engine, case: Script, method: str | None) -> list[Any]:
    player = Player(receiver, case, engine.traits.part_items)
    tell: Callable[[Any], Any] = (lambda answer: answer) if method is None else lambda _: getattr(receiver, method)()
    return [tell(player.do(line)) for line in case.lines]


def follows(engine: Engine, case: Script) -> None:
    """Every poll gives what one process would have made, or an error where there is one."""
    equal(answers(engine, case), expected(engine, case), "the outcomes", where=case.where)


WAITS = receiver_with("expect", "arrive", "poll")
ALL = receiver_with("expect", "arrive", "fail", "cancel", "poll", "held_bytes")


@requirement("DISAGGREGATION-23", needs=WAITS, cases=cases.ORDERS)
def test_any_order_gives_the_same_rows(engine: Engine, case: Script) -> None:
    """Once all parts have come, in whatever order, each item MUST have the rows of its encoder, bit for bit; not before."""
    follows(engine, case)


@requirement("DISAGGREGATION-24", needs=WAITS, cases=cases.MIXED, bugs=("G05",))
def test_embeddings_and_parts_make_one_request(engine: Engine, case: Script) -> None:
    """Items with embeddings MUST be waited with, not for, in a request and in a batch that has both kinds."""
    follows(engine, case)


@requirement("DISAGGREGATION-25", needs=ALL, cases=cases.NAMES)
def test_a_part_is_for_one_request(engine: Engine, case: Script) -> None:
    """A part, a failure and a cancellation MUST concern the request of exactly this name."""
    follows(engine, case)


@requirement("DISAGGREGATION-26", needs=WAITS, cases=cases.REPEATED)
def test_a_repeated_part_does_not_count_twice(engine: Engine, case: Script) -> None:
    """A part that comes twice MUST be dropped, or MUST fail its request; it MUST NOT stand for another."""
    follows(engine, case)


@requirement("DISAGGREGATION-27", needs=WAITS, cases=cases.MISFITS)
def test_rows_that_do_not_fit_fail_their_request(engine: Engine, case: Script) -> None:
    """A part that is not what was asked for MUST fail its request, and nobody else's."""
    follows(engine, case)


@requirement("DISAGGREGATION-28", needs=ALL, cases=cases.FAILURES, bugs=("G01",))
def test_an_error_of_the_encoder_fails_its_request(engine: Engine, case: Script) -> None:
    """An error that arrives in place of rows MUST fail its request by the next poll, and nobody else's."""
    follows(engine, case)


@requirement("DISAGGREGATION-29", needs=WAITS, cases=cases.LIMITS, bugs=("G01", "G02"))
def test_nobody_waits_for_ever(engine: Engine, case: Script) -> None:
    """Each request MUST have one outcome: its rows, or an error when its parts have not come within the limit."""
    follows(engine, case)


@requirement("DISAGGREGATION-50", level=SHOULD, needs=WAITS, cases=cases.LATE_POLLS, bugs=("G02",))
def test_what_came_in_time_is_not_late(engine: Engine, case: Script) -> None:
    """A request whose parts have all come in time SHOULD have its rows, however late it is looked at."""
    follows(engine, case)


@requirement("DISAGGREGATION-30", needs=ALL, cases=cases.ENDINGS, bugs=("G04",))
def test_what_comes_late_is_dropped(engine: Engine, case: Script) -> None:
    """A request that was cancelled MUST NOT have an outcome, and what comes for one that does not wait MUST be dropped."""
    follows(engine, case)


@requirement("DISAGGREGATION-31", needs=WAITS, cases=cases.FIELDS)
def test_what_was_found_out_stays_with_its_item(engine: Engine, case: Script) -> None:
    """What the encoder side found out about an item MUST be with this item, whatever other parts have or lack."""
    follows(engine, case)


@requirement("DISAGGREGATION-32", needs=ALL, cases=cases.PARTS, bugs=("G01", "G04"))
def test_a_receiver_holds_what_is_needed(engine: Engine, case: Script) -> None:
    """A receiver MUST NOT hold more rows than have arrived for requests that have no outcome yet."""
    held, needed = answers(engine, case, "held_bytes"), expected(engine, case, "held_bytes")
    both = enumerate(zip(held, needed, strict=True))
    over = [f"{case.where(n)}: {one} of {most}" for n, (one, most) in both if not 0 <= one <= most]
    equal(over, [], "the lines after which more bytes are held than anyone needs")


@requirement(
    "DISAGGREGATION-33",
    needs=receiver_with("expect", "arrive", "poll", "held_bytes"),
    cases={
        "half-of-two": script({"a": "iiii.vv"}, "expect a; arrive a 0"),
        "all": script({"a": "iiii"}, "expect a; arrive a 0"),
    },
)
def test_what_waits_can_be_seen(engine: Engine, case: Script) -> None:
    """The bytes held MUST be at least those of the rows that have arrived for requests that wait."""
    held, arrived = answers(engine, case, "held_bytes"), expected(engine, case, "held_bytes")
    holds(held[-1] >= arrived[-1], f"{held[-1]} bytes are held of {arrived[-1]} that arrived")


@requirement(
    "DISAGGREGATION-34",
    level=SHOULD,
    needs=receiver_with("expect", "arrive", "poll", "held_bytes"),
    cases={
        "an-item-in-no-part": Refusal(drawn("b", "ii.jj"), [[0]]),
        "an-item-in-two-parts": Refusal(drawn("b", "ii.vv"), [[0], [1], [0]]),
        "an-embedding-in-a-part": Refusal(drawn("b", "ii.vv", "v"), [[0], [1]]),
        "a-number-that-no-item-has": Refusal(drawn("b", "ii"), [[0], [1]]),
        "a-request-that-waits": Refusal(drawn("a", "jj"), [[0]]),
    },
)
def test_what_cannot_be_waited_for_is_refused(engine: Engine, case: Refusal) -> None:
    """A request whose parts are not those of its items, or that waits already, SHOULD be refused, and change nothing."""
    receiver, first = engine.open_receiver(LIMIT_S), script({"a": "ii"}, "expect a", "arrive a 0", "poll")
    player = Player(receiver, first, engine.traits.part_items)
    player.do("expect a")
    refuses(lambda: receiver.expect(bare(case.request), case.parts, 0.0), "a request that cannot be waited for")
    equal(receiver.held_bytes(), 0, "the bytes held after a refusal")
    observed = [player.do("arrive a 0"), player.do("poll")]
    equal(observed, expected(engine, first)[1:], "the outcome of the first request", where=first.where)


@requirement(
    "DISAGGREGATION-35",
    needs=(*WAITS, "encode", "merge"),
    cases={
        f"{kind}-{name}": one
        for kind, table in (("orders", cases.ORDERS), ("mixed", cases.MIXED))
        for name, one in table.items()
    },
    bugs=("G05",),
)
def test_disaggregated_equals_colocated(engine: Engine, case: Script) -> None:
    """What enters the language model MUST be what one process makes that encodes and merges by itself, bit for bit."""
    player = Player(engine.open_receiver(LIMIT_S), case, engine.traits.part_items)
    outcomes = outcomes_of(player, case)
    equal(sorted(outcomes), sorted(case.prompts), "the requests that have their rows")
    for name, whole in case.prompts.items():
        apart = Request(id=name, input_ids=whole.input_ids, items=outcomes[name])
        equal(entered(engine, apart), entered(engine, whole), f"what enters of {name}", where="position {}".format)


def outcomes_of(player: Player, case: Script) -> dict[str, Any]:
    """The items of each request that a script brings together."""
    outcomes: dict[str, Any] = {}
    for line in case.lines:
        outcomes |= player.receiver.poll(player.now) if line == "poll" else (player.do(line), {})[1]
    failed = {id: one for id, one in outcomes.items() if isinstance(one, Exception)}
    holds(not failed, f"requests failed, though all their parts came: {failed}")
    return outcomes


def entered(engine: Engine, request: Request) -> torch.Tensor:
    """What enters the language model: rows among the embeddings of text."""
    chunk = Chunk(0, len(request.input_ids))
    items = tuple(precomputed(item, item.embedding) if item.embedding is not None else item for item in request.items)
    (rows,) = engine.encode([(Request(id=request.id, input_ids=request.input_ids, items=items), chunk)], Encoders(), None)
    if isinstance(rows, Exception):
        raise Mismatch(f"{request.id} cannot be encoded: {rows}")
    ids = chunk_ids(engine, Prompt(request.input_ids, items), chunk)
    return engine.merge(ids, items, rows if len(rows) else TABLE[:0], TABLE.clone(), chunk)
