"""DISAGGREGATION: rooms, in which a decode goes on with what a prefill has computed.

Scripts are written as in `conformance.oracles.disaggregation_rooms`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from conformance.compare import differ, equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.disaggregation_rooms import LIMIT_S, Player, Script, expected, gridded, rows_of, script
from conformance.oracles.lifecycle import drawn
from conformance.protocol.prefix_cache import Namespace
from conformance.requirement import requirement
from conformance.suite import disaggregation_room_cases as cases
from reference.items import Request


class Refusal(NamedTuple):
    """What was done before, and what must then be refused."""

    script: Script
    ask: Callable[[Player], Any]


BOTH = ("receive", "abort", "poll", "held_bytes")
SIDES = (
    "open_prefill_side", *(f"open_prefill_side.{method}" for method in ("begin", "store", "finish", *BOTH)),
    "open_decode_side", *(f"open_decode_side.{method}" for method in ("expect", *BOTH)),
)  # fmt: skip


def opened(engine: Engine, case: Script) -> Player:
    """Two sides that know nothing yet, and who carries their messages."""
    return Player(engine.open_prefill_side(LIMIT_S), engine.open_decode_side(LIMIT_S), case)


def played(engine: Engine, case: Script) -> Player:
    """The script, to its end."""
    return opened(engine, case).play()


def begun(case: Script) -> dict[int, str]:
    """The rooms of a script, and their requests, as the prefill has them."""
    words = [line.split() for line in case.lines if line.startswith("begin")]
    return {int(room): name for _, room, name in words}


def hands_over(engine: Engine, case: Script) -> None:
    """Each room is handed over once, to the last bit, but for those that were aborted."""
    player = played(engine, case)
    dropped = [int(line.split()[1]) for line in case.lines if line.startswith("drop")]
    for room, name in begun(case).items():
        right = "error" if room in dropped else expected(case, name)
        equal(player.handed.get(room, []), [right], f"what the decode has of room {room}")


def fails(engine: Engine, case: Script) -> None:
    """No room is handed over; whoever did not close it by himself has an error; and nothing is held."""
    player = played(engine, case)
    wrong = [told for told in player.handed.values() if set(map(str, told)) - {"error"}]
    equal(wrong, [], "what was handed over")
    equal(player.held[-1], (0, 0), "the bytes held by the prefill and the decode")


@requirement("DISAGGREGATION-36", needs=SIDES, cases=cases.HANDED)
def test_the_decode_has_what_the_prefill_computed(engine: Engine, case: Script) -> None:
    """In whatever order messages come, a room MUST be handed over once, when everything has come, and then to the last bit."""
    hands_over(engine, case)


@requirement("DISAGGREGATION-37", needs=SIDES, cases=cases.NUMBERS)
def test_a_room_is_its_number(engine: Engine, case: Script) -> None:
    """Every number from 0 to 2 ** 63 - 1 MUST be a room of its own, whatever other numbers look like."""
    hands_over(engine, case)


@requirement("DISAGGREGATION-38", needs=SIDES, cases=cases.DELTAS, bugs=("R06", "pd-decode-delta-missing"))
def test_the_delta_is_handed_over(engine: Engine, case: Script) -> None:
    """The delta of the M-RoPE positions MUST be handed over, so that the reply goes on where the prompt ended."""
    player = played(engine, case)
    told = {room: [one[3] for one in outcomes] for room, outcomes in player.handed.items()}
    equal(told, {room: [case.deltas[name]] for room, name in begun(case).items()}, "the deltas handed over")


@requirement(
    "DISAGGREGATION-39",
    needs=SIDES,
    cases={
        "the-decode-was-told": script({"a": ".iii.jj.", "b": ".iii.jj."}, "begin 7 a; expect 7 b", cases.TO_ITS_END),
        "it-has-ids-alone": script({"a": ".iii.jj.", "b": "########"}, "begin 7 a; expect 7 b", cases.TO_ITS_END),
    },
    bugs=("R06", "Z01", "Z02"),
)
def test_media_are_handed_over(engine: Engine, case: Script) -> None:
    """Each medium of the prompt MUST be handed over with its place, its grid and its identity."""
    player = opened(engine, case)
    prompts = dict(player.case.prompts)
    bare = Request(id="b", input_ids=prompts["a"].input_ids, items=prompts["b"].items)
    player.case = case._replace(prompts=prompts | {"b": bare})
    player.play()
    equal([one[0][1] for one in player.handed[7]], [expected(case, "a")[0][1]], "the items handed over")


@requirement(
    "DISAGGREGATION-40",
    needs=(*SIDES, "page_keys"),
    cases={"two-pictures": (".iiii.", ".jjjj."), "pictures-the-other-way-round": ("ii.jj.", "jj.ii.")},
    bugs=("pd-decode-image-cache-alias",),
)
def test_the_cache_of_the_decode_tells_pictures_apart(engine: Engine, case: tuple[str, str]) -> None:
    """What is handed over MUST give the decode the same keys as the prefill has, and other keys for another picture."""
    keys = []
    for drawing in case:
        whole = gridded(drawn("a", drawing))
        player = opened(engine, script({"a": drawing, "b": drawing}))
        request = handed(player, whole, Request(id="a", input_ids=whole.input_ids))
        mine, theirs = (engine.page_keys(one, Namespace(), engine.traits.prefix_page or 1) for one in (request, whole))
        equal(mine, theirs, "the keys of decode and prefill", where="page {}".format)
        keys.append(mine)
    differ(keys[0], keys[1], "the keys of two prompts with the same ids and other pictures")


@requirement("DISAGGREGATION-41", needs=SIDES, cases=cases.OTHERS, bugs=("Z01", "Z02"))
def test_another_prompt_is_an_error(engine: Engine, case: Script) -> None:
    """A room whose two sides were given different prompts MUST fail: a picture was lost on the way to one of them."""
    fails(engine, case)
    equal(played(engine, case).handed, {7: ["error"]}, "what the decode has of room 7")


@requirement("DISAGGREGATION-42", needs=SIDES, cases=cases.ABORTS)
def test_an_abort_frees_both_sides(engine: Engine, case: Script) -> None:
    """After an abort on either side nothing MUST be handed over, and nothing MUST be held on either side."""
    fails(engine, case)


@requirement(
    "DISAGGREGATION-43",
    needs=SIDES,
    cases={
        name: one for name, one in cases.ABORTS.items()
        if name.startswith("by-the-prefill") and name != "by-the-prefill-before-the-decode"
    },
)  # fmt: skip
def test_an_abort_is_told_to_the_decode(engine: Engine, case: Script) -> None:
    """A decode MUST hear of an abort of the prefill as soon as the messages have come, and have an error for its room."""
    equal(played(engine, case).handed, {7: ["error"]}, "what the decode has of room 7")


@requirement("DISAGGREGATION-44", needs=SIDES, cases=cases.LOSSES, bugs=("G02",))
def test_no_room_is_open_for_ever(engine: Engine, case: Script) -> None:
    """A room that lacks something MUST fail on each side that has opened it, by its limit, and hold nothing then."""
    fails(engine, case)
    player = played(engine, case)
    expects = {7: ["error"]} if any(line.startswith("expect") for line in case.lines) else {}
    equal(player.handed, expects, "what the decode has of its rooms")
    equal(player.closed, {7: ["error"]} if begun(case) else {}, "what the prefill has of its rooms")


@requirement("DISAGGREGATION-45", needs=SIDES, cases=cases.LATE)
def test_a_late_message_does_no_harm(engine: Engine, case: Script) -> None:
    """A message for a room that was closed MUST NOT open it, be held, or concern another room."""
    player = played(engine, case)
    equal(player.held[-1], (0, 0), "the bytes held by the prefill and the decode")
    counts = {room: len(outcomes) for room, outcomes in player.handed.items()}
    equal({room: count for room, count in counts.items() if count > 1}, {}, "rooms with several outcomes")
    good = {room: outcomes for room, outcomes in player.handed.items() if outcomes != ["error"]}
    equal(good, {room: [expected(case, begun(case)[room])] for room in good}, "what was handed over")
    equal(70 in good, "finish 70" in case.lines, "whether the other room was handed over")


@requirement("DISAGGREGATION-46", needs=SIDES, cases=cases.ROOMS)
def test_in_the_end_no_room_holds_anything(engine: Engine, case: Script) -> None:
    """When all messages have come and all rooms are closed or over their limit, no byte MUST be held on either side."""
    player = played(engine, case)
    for line in ("post", "wait 20", "poll"):
        player.do(line)
    equal((player.prefill.held_bytes(), player.decode.held_bytes()), (0, 0), "the bytes held by the prefill and the decode")
    holds(min(min(pair) for pair in player.held) >= 0, f"the bytes held were {player.held}")


@requirement(
    "DISAGGREGATION-47",
    needs=SIDES,
    cases={
        "before-the-decode-is-ready": script({"a": ".iii."}, "begin 7 a; store 7 4"),
        "before-the-decode-has-it": script({"a": ".iii."}, "begin 7 a; expect 7 a; post; store 7 5; lose"),
        "before-it-is-finished": script({"a": ".iii."}, "begin 7 a; expect 7 a; post; store 7 5; post"),
    },
)
def test_what_is_not_handed_over_is_held(engine: Engine, case: Script) -> None:
    """A prefill MUST hold what it has computed until the decode has it, and its bytes held MUST show it."""
    player = played(engine, case)
    rows = player.stored[7] * rows_of(case.prompts["a"])[0].nbytes
    holds(player.held[-1][0] >= rows, f"the prefill holds {player.held[-1][0]} bytes of {rows} that it has computed")


def opened_and(ask: Callable[[Player], Any], *lines: str) -> Refusal:
    """What must be refused when three of eight positions are computed, and after these lines."""
    return Refusal(script(cases.ONE, "begin 7 a; expect 7 a; post; store 7 3", *lines), ask)


@requirement(
    "DISAGGREGATION-48",
    needs=SIDES,
    cases={
        "begun-twice": opened_and(lambda one: one.prefill.begin(one.case.prompts["a"], one.rooms[7], 0.0)),
        "expected-twice": opened_and(lambda one: one.decode.expect(one.case.prompts["a"], one.rooms[7], 0.0)),
        "a-gap": opened_and(lambda one: one.prefill.store(one.rooms[7], 4, torch.zeros(1, 3))),
        "positions-again": opened_and(lambda one: one.prefill.store(one.rooms[7], 2, torch.zeros(1, 3))),
        "behind-the-prompt": opened_and(lambda one: one.prefill.store(one.rooms[7], 3, torch.zeros(6, 3))),
        "finished-too-early": opened_and(lambda one: one.prefill.finish(one.rooms[7], 5, 0)),
        "rows-without-a-room": opened_and(lambda one: one.prefill.store(4711, 0, torch.zeros(1, 3))),
        "finished-without-a-room": opened_and(lambda one: one.prefill.finish(4711, 5, 0)),
        "rows-after-an-abort": opened_and(lambda one: one.prefill.store(one.rooms[7], 3, torch.zeros(1, 3)), "drop 7"),
    },
)
def test_what_is_out_of_turn_is_refused(engine: Engine, case: Refusal) -> None:
    """What cannot be right in a room MUST be refused, and MUST leave it as it was."""
    player = opened(engine, case.script)
    player.play()
    refuses(lambda: case.ask(player), "what is out of turn")
    equal((player.prefill.held_bytes(), player.decode.held_bytes()), player.held[-1], "the bytes held after the refusal")


@requirement(
    "DISAGGREGATION-49",
    needs=SIDES,
    cases={
        "handed-over": "begin 7 a; expect 7 a; post; finish 7; post; poll",
        "aborted-there": "begin 7 a; expect 7 a; post; store 7 4; drop 7; post; poll",
        "aborted-here": "begin 7 a; expect 7 a; post; finish 7; leave 7; post; poll",
        "over-its-limit": "begin 7 a; expect 7 a; post; store 7 4; post; wait 11; poll",
    },
)
def test_a_room_has_one_life(engine: Engine, case: str) -> None:
    """A room that was used before MUST be refused, or MUST hand over nothing of its earlier life."""
    player = opened(engine, script({"a": ".iii.", "b": ".jjj."}, case))
    player.play()
    player.handed.clear()
    for line in ("begin 7 b", "expect 7 b", "replay", "finish 7", "post", "replay", "poll"):
        unless_refused(partial(player.do, line), "a room that was used before")
    told = [one for one in player.handed.get(7, []) if one != "error"]
    equal(told, [expected(player.case, "b")] * len(told), "what was handed over in the second life")
    holds(len(told) <= 1, f"the room was handed over {len(told)} times")


def handed(player: Player, whole: Request, bare: Request) -> Request:
    """The request that the decode goes on with, having known the ids alone."""
    room = player.prefill.begin(whole, 7, 0.0)
    player.rooms[7] = room
    player.say(player.prefill, player.decode.expect(bare, room, 0.0))
    player.say(player.decode, player.prefill.store(room, 0, rows_of(whole)))
    player.say(player.decode, player.prefill.finish(room, 5, 0))
    player.deliver(0)
    request: Request = player.decode.poll(0.0)[room].request
    return request
