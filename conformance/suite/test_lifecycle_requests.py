"""LIFECYCLE: what a request needs while it is alive, and who gives it back.

Scripts are written as in `conformance.oracles.lifecycle`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import positions as positions_oracle
from conformance.oracles.lifecycle import ROW_BYTES, TABLE, PlainRequests, Script, drawn, play, weigh
from conformance.requirement import SHOULD, requirement
from conformance.suite import lifecycle_cases as cases
from conformance.suite.lifecycle_cases import Lengths, Refusal, Replies
from conformance.world.doubles import CountingEncoder, Encoders, precomputed
from conformance.world.mrope import QWEN2_VL
from conformance.world.mrope import Script as Prompt
from reference.items import Chunk, Modality, Request


def requests_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: requests that have these."""
    return ("open_lifecycle", *(f"open_lifecycle.{method}" for method in methods))


def opened(engine: Engine, cache_rows: int = 0, encoders: Any = None) -> Any:
    """No requests yet, and a cache for so many rows."""
    return engine.open_lifecycle(Encoders() if encoders is None else encoders, TABLE, cache_rows * ROW_BYTES)


def follows(engine: Engine, case: Script, encoders: Any = None, broken: tuple[int, ...] = ()) -> None:
    """What every step computes is what was looked up row by row."""
    observed = play(opened(engine, case.cache_rows, encoders), case)
    equal(observed, play(PlainRequests(broken), case), "what enters the model", where=case.where)


def beyond_need(held: Sequence[int], case: Script, broken: tuple[int, ...] = ()) -> list[str]:
    """The lines after which more bytes are held than those of all media of all who need some."""
    most = weigh(PlainRequests(broken), case, "most_bytes")
    both = enumerate(zip(held, most, strict=True))
    return [f"{case.where(n)}: {one} of {limit}" for n, (one, limit) in both if one > limit]


def one_row_short(number: int) -> Callable[[list[torch.Tensor]], list[torch.Tensor]]:
    """An encoder's result in which the medium of this number lacks its last row."""
    return lambda rows: [one[:-1] if len(one) and one[0, 1] == number else one for one in rows]


def broken_encoders() -> dict[Modality, CountingEncoder]:
    """Encoders that lose a row of the picture k."""
    return {modality: CountingEncoder(one_row_short(3)) for modality in Modality}


STEPS = requests_with("admit", "step", "reply", "finish")
RETRACTS = requests_with("admit", "step", "reply", "retract", "finish")
ABORTS = requests_with("admit", "step", "reply", "retract", "finish", "abort")
SESSIONS = requests_with("admit", "step", "reply", "retract", "finish", "abort", "close")
WEIGHS = (*SESSIONS, "open_lifecycle.held_bytes")


@requirement("LIFECYCLE-19", needs=STEPS, cases=cases.CHUNKS, bugs=("L09",))
def test_every_chunk_has_its_rows(engine: Engine, case: Script) -> None:
    """Whatever chunks a request is computed in, and with whom, each position MUST have the row of its token or medium."""
    follows(engine, case)


@requirement("LIFECYCLE-20", needs=RETRACTS, cases=cases.RETRACTIONS, bugs=("L07", "L10"))
def test_a_retraction_changes_nothing(engine: Engine, case: Script) -> None:
    """A request that was retracted, at any point and however often, MUST be computed as if it had not been."""
    follows(engine, case)


@requirement("LIFECYCLE-21", needs=RETRACTS, cases=cases.CACHES, bugs=("L08", "L10"))
def test_a_miss_is_encoded_again(engine: Engine, case: Script) -> None:
    """Rows that the cache has no room for MUST be encoded again when they are needed, from the same content."""
    follows(engine, case)


@requirement("LIFECYCLE-22", needs=RETRACTS, cases=cases.PREFIXES, bugs=("L10",))
def test_a_cached_prefix_may_be_gone_later(engine: Engine, case: Script) -> None:
    """A request that began behind a cached prefix MUST be right, and right again from its beginning after a retraction."""
    follows(engine, case)


@requirement("LIFECYCLE-23", needs=ABORTS, cases=cases.ABORTS, bugs=("enc-cache-abort-set-mutation",))
def test_an_abort_concerns_nobody_else(engine: Engine, case: Script) -> None:
    """An abort, at any point, MUST succeed and MUST NOT change what is computed for others."""
    follows(engine, case)


@requirement("LIFECYCLE-24", needs=ABORTS, cases=cases.SHARING, bugs=("L10",))
def test_what_another_needs_stays(engine: Engine, case: Script) -> None:
    """A medium MUST stay as long as any request needs it, whichever of its requests ends first."""
    follows(engine, case)


@requirement("LIFECYCLE-25", needs=SESSIONS, cases=cases.SESSIONS, bugs=("N04",))
def test_a_session_keeps_what_a_turn_can_need(engine: Engine, case: Script) -> None:
    """The media of a finished turn MUST stay for the turns after it, and those of a running turn beyond a close or an abort."""
    follows(engine, case)


@requirement("LIFECYCLE-26", needs=ABORTS, cases=cases.FAULTS, bugs=("mm-mismatch-kills-engine", "L01"))
def test_a_fault_ends_one_request(engine: Engine, case: Script) -> None:
    """A request whose media cannot be encoded MUST end with an error, and everyone else MUST be computed."""
    follows(engine, case, broken_encoders(), broken=(3,))


@requirement("LIFECYCLE-27", needs=SESSIONS, cases=cases.ENDED, bugs=("enc-cache-abort-set-mutation",))
def test_what_has_ended_ends_again(engine: Engine, case: Script) -> None:
    """An abort of a request that is not alive, and a close of a session that is not open, MUST NOT do anything."""
    follows(engine, case)


@requirement("LIFECYCLE-28", needs=SESSIONS, cases=cases.NAMES)
def test_a_name_means_one_request(engine: Engine, case: Script) -> None:
    """An id MUST mean the one request that bears it now, whatever began alike, bore it before, or is called so elsewhere."""
    follows(engine, case)


@requirement("LIFECYCLE-29", needs=WEIGHS, cases=cases.EVERYTHING, bugs=("L04", "L05", "N04"))
def test_in_the_end_nothing_is_held(engine: Engine, case: Script) -> None:
    """When all requests have ended and all sessions are closed, no byte MUST be held."""
    held = weigh(opened(engine, case.cache_rows), case)
    equal(held[-1], 0, "the bytes held after everything ended")


@requirement("LIFECYCLE-30", needs=WEIGHS, cases=cases.EVERYTHING, bugs=("L04", "L05", "N05"))
def test_nothing_is_held_for_nobody(engine: Engine, case: Script) -> None:
    """The bytes held MUST NOT be more than all media of the requests alive and of the turns of open sessions, nor negative."""
    held = weigh(opened(engine, case.cache_rows), case)
    equal(beyond_need(held, case), [], "the lines after which more bytes are held than anyone needs")
    holds(min(held) >= 0, f"the bytes held are {held}")


@requirement("LIFECYCLE-31", level=SHOULD, needs=WEIGHS, cases=cases.EVERYTHING, bugs=("N05",))
def test_every_medium_is_held_once(engine: Engine, case: Script) -> None:
    """The bytes held SHOULD be those of all media that a request alive or a session's last turn needs, each once."""
    observed = weigh(opened(engine, case.cache_rows), case)
    equal(observed, weigh(PlainRequests(), case), "the bytes held", where=case.where)


@requirement("LIFECYCLE-32", needs=(*ABORTS, "open_lifecycle.held_bytes"), cases=cases.FAULTS, bugs=("L12", "L05"))
def test_who_fails_gives_back(engine: Engine, case: Script) -> None:
    """A request that ended with an error MUST give back what was held for it, once."""
    held = weigh(opened(engine, case.cache_rows, broken_encoders()), case)
    equal(beyond_need(held, case, broken=(3,)), [], "the lines after which more bytes are held than anyone needs")
    holds(min(held) >= 0, f"the bytes held are {held}")


@requirement(
    "LIFECYCLE-33",
    level=SHOULD,
    needs=(*SESSIONS, "open_lifecycle.device_bytes"),
    cases=cases.EVERYTHING,
    bugs=("L05", "enc-cache-encdec-free-same-step"),
)
def test_the_device_is_clear_between_steps(engine: Engine, case: Script) -> None:
    """Between steps nothing SHOULD be on the device but rows in the cache, within its size."""
    on_device = weigh(opened(engine, case.cache_rows), case, "device_bytes")
    holds(max(on_device) <= case.cache_rows * ROW_BYTES, f"{on_device} bytes on the device, room for {case.cache_rows} rows")


@requirement("LIFECYCLE-34", level=SHOULD, needs=SESSIONS, cases=cases.ROOMY)
def test_nothing_is_encoded_twice_where_there_is_room(engine: Engine, case: Script) -> None:
    """Where the cache has room, no medium SHOULD be encoded twice, be it for a further chunk, a retraction or a turn."""
    encoders = Encoders()
    play(opened(engine, case.cache_rows, encoders), case)
    equal(sorted(encoders.seen), sorted(set(encoders.seen)), "what was encoded", where="run {}".format)


@requirement(
    "LIFECYCLE-35",
    needs=requests_with("admit", "step", "reply", "retract", "positions"),
    cases={
        "no-reply": Replies(".iiii.", (0, 0)),
        "one-reply": Replies(".iiii.", (3,)),
        "a-reply-and-two-retractions": Replies(".iiii.", (2, 0, 0)),
        "a-reply-before-each-retraction": Replies("ii.jj.", (1, 2, 3)),
        "a-picture-at-the-end": Replies(".iiii", (1, 2)),
        "text": Replies("...", (2, 2)),
    },
    bugs=("R01", "R02"),
)
def test_positions_follow_the_tokens(engine: Engine, case: Replies) -> None:
    """The M-RoPE positions of a request MUST cover prompt and reply, each token once, after any number of retractions."""
    requests, prompt = opened(engine), drawn("a", case.prompt)
    table = wide_positions(prompt)
    requests.admit(prompt, None, table.copy())
    length = len(prompt.input_ids)
    for count in case.replies:
        requests.reply("a", [120] * count)
        requests.retract("a")
        length += count
        requests.step({"a": Chunk(0, length)})
        equal(requests.positions("a").T, positions_oracle.extended(table, length).T, "the positions after a retraction")


@requirement("LIFECYCLE-36", needs=requests_with("admit", "step", "held_bytes"), cases=cases.SECOND, family=lambda case: "ids")
def test_an_id_is_taken_once(engine: Engine, case: Request) -> None:
    """A request with the id of one that is alive MUST be refused, and MUST leave that one and the bytes held as they were.

    An engine that makes an id of its own for each request (the trait `caller_chooses`) is not asked.
    """
    requests, first = opened(engine), drawn("a", ".kk.ii")
    requests.admit(first, None, None)
    before = requests.held_bytes()
    refuses(lambda: requests.admit(case, None, None), "a second request with the id a")
    equal(requests.held_bytes(), before, "the bytes held after a refusal")
    expected = PlainRequests()
    expected.admit(first, None, None)
    equal(
        requests.step({"a": Chunk(0, 6)})["a"], expected.step({"a": Chunk(0, 6)})["a"], "the rows", where="position {}".format
    )


@requirement(
    "LIFECYCLE-37",
    needs=requests_with("admit", "step", "held_bytes"),
    cases={"one-short": 3, "one-long": 5, "none": 0},
    bugs=("mm-mismatch-kills-engine",),
)
def test_an_embedding_of_another_length_ends_its_request(engine: Engine, case: int) -> None:
    """An embedding with more or fewer rows than positions MUST be refused, or end its request in the first step.

    Whoever shares that step is computed, and nothing is held for the one that failed.
    """
    requests, plain, good, bad = opened(engine), PlainRequests(), drawn("a", ".jj."), drawn("b", ".iiii.")
    item = precomputed(bad.items[0], torch.zeros(case, TABLE.shape[1]))
    requests.admit(good, None, None)
    plain.admit(good, None, None)
    wrong = Request(id="b", input_ids=bad.input_ids, items=(item,))
    for _ in unless_refused(lambda: requests.admit(wrong, None, None), f"{case} rows for 4 positions"):
        answers = requests.step({"b": Chunk(0, 6), "a": Chunk(0, 0)})
        holds(isinstance(answers["b"], Exception), f"{case} rows for 4 positions were computed")
    equal(requests.step({"a": Chunk(0, 4)})["a"], plain.step({"a": Chunk(0, 4)})["a"], "the rows", where="position {}".format)
    equal(requests.held_bytes(), plain.held_bytes(), "the bytes held beside a request that failed")


@requirement(
    "LIFECYCLE-38",
    level=SHOULD,
    needs=requests_with("admit", "step"),
    cases=cases.WRONG_STEPS,
    family=lambda case: "chunks",
)
def test_a_step_goes_on_where_the_last_one_ended(engine: Engine, case: Refusal) -> None:
    """A step that leaves positions out, repeats some, or asks for more than there are SHOULD be refused as a whole.

    An engine that plans its steps itself (the trait `caller_chooses`) is not asked.
    """
    requests, plain = opened(engine), PlainRequests()
    play(requests, case.script)
    play(plain, case.script)
    refuses(lambda: requests.step(case.chunks), f"{case.chunks} after a is computed to 4 and b to 2")
    rest = {"a": Chunk(4, 4), "b": Chunk(2, 6)}
    observed, expected = requests.step(rest), plain.step(rest)
    equal(observed["a"], expected["a"], "the rows of a", where="position {} of the chunk".format)
    equal(observed["b"], expected["b"], "the rows of b", where="position {} of the chunk".format)


def all_served(observed: list[Any], expected: list[Any]) -> list[Any]:
    return expected


def all_but_b(observed: list[Any], expected: list[Any]) -> list[Any]:
    """What is right where b may have an error."""
    steps = [one if isinstance(one, dict) else {} for one in observed]
    return [
        right and {**right, **{id: one for id, one in step.items() if (id, one) == ("b", "error")}}
        for step, right in zip(steps, expected, strict=True)
    ]


MAY = {"encode": all_served, "fail": all_but_b}


@requirement("LIFECYCLE-39", needs=ABORTS, cases=cases.LENGTHS, bugs=("L10",))
def test_one_identity_in_two_lengths_is_not_one_medium(engine: Engine, case: Lengths) -> None:
    """A medium whose identity is known with another token count MUST NOT be given rows of that count, or disturb others.

    It is encoded like any other, or its request fails where `Traits.length_conflicts` says so.
    """
    script: Script = getattr(case, engine.traits.length_conflicts)
    observed, right = play(opened(engine, script.cache_rows), script), play(PlainRequests(), script)
    equal(observed, MAY[engine.traits.length_conflicts](observed, right), "what enters the model", where=script.where)


def wide_positions(request: Request) -> np.ndarray:
    """Positions in which each medium is one row of columns, as wide as it is long."""
    items = [replace(i, fields={"image_grid_thw": (1, 2, 2 * i.token_count)}) for i in request.items]
    return positions_oracle.triples(Prompt(request.input_ids, tuple(items), QWEN2_VL))
