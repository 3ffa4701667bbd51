"""DISAGGREGATION: an encoder with its queue, and the rows that wait to be sent.

Scripts are written as in `conformance.oracles.disaggregation`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.oracles.disaggregation import STALE_AFTER_S, PlainEncoder, Player, Script, Store, message, script
from conformance.requirement import requirement
from conformance.suite import disaggregation_cases as cases


class Refusal(NamedTuple):
    """What was done before, and what must then be refused."""

    script: Script
    ask: Callable[[Any], Any]


class Played(NamedTuple):
    """What came of a script: the answers, and after each line the bytes held and the parts that have not ended.

    torn: the lines after which a part was being sent whose memory was not registered.
    """

    answers: list[Any]
    held: list[int]
    pending: list[int]
    torn: list[str]
    store: Store


def side_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: an encoder with these."""
    return ("open_encoder_side", *(f"open_encoder_side.{method}" for method in methods))


def played(engine: Engine, case: Script) -> Played:
    """The script with the engine, and beside it with the diaries, which know what is being sent."""
    store, plain = Store(), PlainEncoder()
    player = Player(engine.open_encoder_side((), store, STALE_AFTER_S), store)
    knower = Player(plain, Store())
    made = Played([], [], [], [], store)
    for number, line in enumerate(case.lines):
        made.answers.append(player.do(line))
        knower.do(line)
        made.held.append(player.side.held_bytes())
        made.pending.append(player.side.pending())
        made.torn.extend([case.where(number)] if set(plain.in_transfer()) - store.kept() else [])
    return made


def expected(case: Script) -> Played:
    """What the diaries say."""
    player = Player(PlainEncoder(), Store())
    made = Played([], [], [], [], player.store)
    for line in case.lines:
        made.answers.append(player.do(line))
        made.held.append(player.side.held_bytes())
        made.pending.append(player.side.pending())
    return made


def follows(engine: Engine, case: Script) -> None:
    """Every answer is that of the diaries."""
    equal(played(engine, case).answers, expected(case).answers, "the answers", where=case.where)


ALL = side_with("submit", "take", "encoded", "send", "sent", "cancel", "sweep", "held_bytes", "pending")


@requirement("DISAGGREGATION-12", needs=ALL, cases=cases.MALFORMED, bugs=("G09",))
def test_no_rank_sees_a_malformed_request(engine: Engine, case: Any) -> None:
    """A malformed request MUST be refused before any rank has seen it, and nothing of it MUST be kept."""
    seen: list[Any] = []
    side = engine.open_encoder_side((seen.append, seen.append), Store(), STALE_AFTER_S)
    refuses(lambda: side.submit(case, 0.0), "a malformed request for a part")
    equal(seen, [], "what the ranks have seen")
    equal((side.pending(), side.take()), (0, None), "what is kept of it")


@requirement(
    "DISAGGREGATION-13",
    needs=ALL,
    cases={
        "one-rank": (1, message("a", 0)),
        "four-ranks": (4, message("a", 3, 2)),
        "with-further-keys": (2, message("a", 0) | {"trace": "x", "url": "good.png"}),
        "options": (2, message("a", 0) | {"media": ["a", "b"], "options": [{"max_pixels": 784}, {}]}),
    },
    bugs=("G06",),
)
def test_every_rank_sees_a_request_once(engine: Engine, case: tuple[int, Mapping[str, Any]]) -> None:
    """A request for a part MUST reach every rank once, whole: its media, its options and whatever else it says."""
    count, asked = case
    seen: list[list[Any]] = [[] for _ in range(count)]
    side = engine.open_encoder_side(tuple(rank.append for rank in seen), Store(), STALE_AFTER_S)
    side.submit(asked, 0.0)
    told = [[{key: dict(one).get(key) for key in asked} for one in rank] for rank in seen]
    equal(told, [[dict(asked)]] * count, "what the ranks have seen", where="rank {}".format)


@requirement("DISAGGREGATION-14", needs=ALL, cases=cases.SENDS, bugs=("G12",))
def test_every_receiver_gets_the_rows(engine: Engine, case: Script) -> None:
    """Parts MUST be encoded in the order in which they came, and each receiver MUST get all rows of its part."""
    follows(engine, case)


@requirement("DISAGGREGATION-15", needs=ALL, cases=cases.BROKEN, bugs=("G01",))
def test_every_receiver_gets_the_error(engine: Engine, case: Script) -> None:
    """Where the encoder fails, each receiver MUST get the error in place of the rows, and other parts MUST NOT notice."""
    follows(engine, case)


@requirement("DISAGGREGATION-16", needs=ALL, cases=cases.CANCELS, bugs=("G04",))
def test_a_cancelled_request_goes_no_further(engine: Engine, case: Script) -> None:
    """A cancelled part MUST NOT be encoded any more, and MUST have ended as soon as nobody encodes or reads it."""
    made, right = played(engine, case), expected(case)
    equal(made.answers, right.answers, "the answers", where=case.where)
    equal(made.pending, right.pending, "the parts that have not ended", where=case.where)


@requirement("DISAGGREGATION-17", needs=ALL, cases=cases.LOST, bugs=("G08",))
def test_a_failed_transfer_ends_its_part(engine: Engine, case: Script) -> None:
    """When a transfer has failed, its part MUST end as soon as its other transfers have, and these MUST get all rows."""
    made, right = played(engine, case), expected(case)
    equal(made.answers, right.answers, "the answers", where=case.where)
    equal(made.pending, right.pending, "the parts that have not ended", where=case.where)


@requirement("DISAGGREGATION-18", needs=ALL, cases=cases.STALE, bugs=("G07",))
def test_a_sweep_looks_at_each_part_by_itself(engine: Engine, case: Script) -> None:
    """A sweep MUST end every part of which nothing was heard for too long, whatever becomes of others, and no other."""
    made, right = played(engine, case), expected(case)
    equal(made.answers, right.answers, "the answers", where=case.where)
    equal(made.pending, right.pending, "the parts that have not ended", where=case.where)


@requirement("DISAGGREGATION-19", needs=ALL, cases=cases.SIDES, bugs=("G04", "G07", "G08"))
def test_an_encoder_holds_what_is_needed(engine: Engine, case: Script) -> None:
    """An encoder MUST NOT hold more rows than those of parts that have not ended."""
    held, needed = played(engine, case).held, expected(case).held
    both = enumerate(zip(held, needed, strict=True))
    over = [f"{case.where(n)}: {one} of {most}" for n, (one, most) in both if not 0 <= one <= most]
    equal(over, [], "the lines after which more bytes are held than anyone needs")


@requirement("DISAGGREGATION-20", needs=ALL, cases=cases.SIDES, bugs=("G12", "G07"))
def test_memory_is_registered_once_and_released_once(engine: Engine, case: Script) -> None:
    """The memory of a part's rows MUST be registered once, however many receivers it has, and released once when it ends."""
    store = played(engine, case).store
    plain = Player(PlainEncoder(), Store())
    needed = [(plain.do(line), plain.side.has_rows())[1] for line in case.lines]
    registered = {name: count for name, count in store.registered.items() if name in counted(needed)}
    equal(registered, counted(needed), "how often the memory of each part was registered")
    equal(dict(store.released), dict(store.registered - Counter(needed[-1])), "how often that of ended parts was released")


@requirement("DISAGGREGATION-21", needs=ALL, cases=cases.SIDES, bugs=("G12",))
def test_what_is_being_sent_stays(engine: Engine, case: Script) -> None:
    """While a transfer of a part runs, the memory of its rows MUST be registered, whatever else happens to it."""
    equal(played(engine, case).torn, [], "the lines after which a part is sent from memory that was given back")


STAGED = "submit a0 2; take; encoded a0"


@requirement(
    "DISAGGREGATION-22",
    needs=ALL,
    cases={
        "queued": Refusal(script("submit a0 2"), lambda side: side.send("a", 0, 0, 0.0)),
        "being-encoded": Refusal(script("submit a0 2; take"), lambda side: side.send("a", 0, 0, 0.0)),
        "never-asked-for": Refusal(script(STAGED), lambda side: side.send("b", 0, 0, 0.0)),
        "another-part": Refusal(script(STAGED), lambda side: side.send("a", 1, 0, 0.0)),
        "a-receiver-that-there-is-not": Refusal(script(STAGED), lambda side: side.send("a", 0, 2, 0.0)),
        "a-receiver-before-the-first": Refusal(script(STAGED), lambda side: side.send("a", 0, -1, 0.0)),
        "on-its-way": Refusal(script(STAGED, "send a0 0"), lambda side: side.send("a", 0, 0, 0.0)),
        "sent-already": Refusal(script(STAGED, "send a0 0; sent a0 0"), lambda side: side.send("a", 0, 0, 0.0)),
        "cancelled": Refusal(script(STAGED, "send a0 0; cancel a"), lambda side: side.send("a", 0, 1, 0.0)),
        "failed": Refusal(
            script("submit a0 3; take; encoded a0; send a0 0; send a0 1; lost a0 0"), lambda side: side.send("a", 0, 2, 0.0)
        ),
        "ended": Refusal(script(STAGED, "cancel a"), lambda side: side.send("a", 0, 1, 0.0)),
        "a-second-request-for-it": Refusal(script(STAGED), lambda side: side.submit(message("a", 0), 0.0)),
    },
    bugs=("G08",),
)
def test_what_cannot_be_sent_is_refused(engine: Engine, case: Refusal) -> None:
    """A part that is not staged, has been given up or has been sent to this receiver MUST be refused, and stay as it was."""
    store = Store()
    player = Player(engine.open_encoder_side((), store, STALE_AFTER_S), store)
    for line in case.script.lines:
        player.do(line)
    before = (player.side.pending(), player.side.held_bytes(), store.kept())
    refuses(lambda: case.ask(player.side), "what this part is not ready for")
    equal((player.side.pending(), player.side.held_bytes(), store.kept()), before, "what is held after the refusal")


def counted(needed: list[set[tuple[str, int]]]) -> dict[tuple[str, int], int]:
    """How often each part began to have rows."""
    before = [set(), *needed]
    begun = [name for last, now in zip(before, needed, strict=False) for name in now - last]
    return {name: begun.count(name) for name in begun}
