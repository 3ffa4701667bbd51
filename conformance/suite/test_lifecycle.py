"""LIFECYCLE: turns of a session, offloading, abort, retraction and release.

Turns are drawn as in `conformance.world.prompts`, or written as in `conformance.world.mrope`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.compare import equal, holds, refuses, same, unless_refused
from conformance.engine import Engine
from conformance.oracles import placeholders
from conformance.oracles.lifecycle_turns import Join, Padding, Tables, whole
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.suite import lifecycle_turns_cases as cases
from reference.items import Item, Request

WHAT = "the positions (time, height, width) of the whole conversation"


def at(request: Request) -> Callable[[int], str]:
    """Names a position and what is there."""
    owners = placeholders.owners(len(request.input_ids), request.items)
    return lambda n: f"position {n} ({'text' if owners[n] is None else f'item {owners[n]}'} in the whole)"


def content(item: Item) -> tuple[Any, ...]:
    """All of an item but its place."""
    feature = None if item.feature is None else np.asarray(item.feature).tolist()
    return item.identity, item.modality, item.format, feature, dict(item.fields)


def expect_items(observed: Request, expected: Request) -> None:
    """Each item of the whole stands where its positions are."""
    equal([item.identity for item in observed.items], [i.identity for i in expected.items], "the items", where="item {}".format)
    equal([item.spans for item in observed.items], [item.spans for item in expected.items], "the spans", where="item {}".format)


@requirement("LIFECYCLE-01", needs="join_turn", cases=cases.TEXTS | cases.PICTURES)
def test_a_turn_follows_the_reply(engine: Engine, case: Join) -> None:
    """The ids of a conversation MUST be those of the history, of the reply and of the turn, each unchanged, in this order."""
    expected = whole(case)
    equal(engine.join_turn(*case).input_ids, expected.input_ids, "the ids", where=at(expected))


@requirement("LIFECYCLE-02", needs="join_turn", cases=cases.PICTURES | cases.TEXTS, bugs=("N03",))
def test_every_item_keeps_its_tokens(engine: Engine, case: Join) -> None:
    """The items of a conversation MUST be those of the history and of the turn, each at the same tokens as before."""
    expected = whole(case)
    expect_items(engine.join_turn(*case), expected)


@requirement("LIFECYCLE-03", needs="join_turn", cases=cases.CARRIED, bugs=("N04",))
def test_an_item_changes_nothing_but_its_place(engine: Engine, case: Join) -> None:
    """Features, fields and identities of history and turn MUST come through a join unchanged."""
    observed, before = engine.join_turn(*case).items, [*case.history.items, *case.turn.items]
    equal([content(item) for item in observed], [content(item) for item in before], "the items", where="item {}".format)


@requirement("LIFECYCLE-04", needs="join_turn", cases=cases.STRIPPED, bugs=("N04",))
def test_a_second_beginning_of_sequence_is_dropped(engine: Engine, case: Join) -> None:
    """A turn that begins with the beginning-of-sequence token MUST lose it behind a history, and its items MUST move along."""
    expected, observed = whole(case), engine.join_turn(*case)
    equal(observed.input_ids, expected.input_ids, "the ids", where=at(expected))
    expect_items(observed, expected)


@requirement("LIFECYCLE-05", needs="join_turn", cases=cases.UNSTRIPPED)
def test_no_other_token_is_dropped(engine: Engine, case: Join) -> None:
    """A first turn MUST keep its beginning-of-sequence token, and any turn whatever else it says."""
    expected, observed = whole(case), engine.join_turn(*case)
    equal(observed.input_ids, expected.input_ids, "the ids", where=at(expected))
    expect_items(observed, expected)


@requirement("LIFECYCLE-06", needs="join_turn", cases=cases.CUT)
def test_a_cut_takes_what_lies_behind_it(engine: Engine, case: Join) -> None:
    """Of a history that is cut, the items behind the cut MUST go with their tokens, and the turn MUST follow the cut."""
    expected, observed = whole(case), engine.join_turn(*case)
    equal(observed.input_ids, expected.input_ids, "the ids", where=at(expected))
    expect_items(observed, expected)


@requirement("LIFECYCLE-07", needs="join_turn", cases=cases.DIVIDED, bugs=("W06",))
def test_a_cut_divides_no_item(engine: Engine, case: Join) -> None:
    """A cut within an item MUST be refused, or be made where the item begins."""
    whole_items = {(item.identity, item.token_count) for item in (*case.history.items, *case.turn.items)}
    for observed in unless_refused(lambda: engine.join_turn(*case), f"a cut at {case.keep}, within an item"):
        kept = len(observed.input_ids) - len(case.turn.input_ids)
        divided = {(item.identity, item.token_count) for item in observed.items} - whole_items
        holds(0 <= kept <= (case.keep or 0) and not divided, f"a cut at {case.keep} kept {kept} positions, and divided an item")
        expect_items(observed, whole(case._replace(keep=kept)))


@requirement("LIFECYCLE-08", needs="join_turn", cases=cases.BEYOND, level=SHOULD)
def test_more_than_there_is_cannot_be_kept(engine: Engine, case: Join) -> None:
    """A number of positions to keep that is negative, or more than there are, SHOULD be refused."""
    refuses(lambda: engine.join_turn(*case), f"a history of {len(case.history.input_ids) + 1} positions cut to {case.keep}")


@requirement("LIFECYCLE-09", needs="join_turn", cases=cases.ON_BOS, bugs=("N04",), level=SHOULD)
def test_no_item_stands_on_a_token_that_is_dropped(engine: Engine, case: Join) -> None:
    """An item on the beginning-of-sequence token of its turn SHOULD be refused: it would lose a position."""
    refuses(lambda: engine.join_turn(*case), f"an item on the token {case.bos}")


@requirement("LIFECYCLE-10", needs="join_turn", cases=cases.PICTURES | cases.CUT)
def test_a_history_has_several_turns(engine: Engine, case: Join) -> None:
    """A join MUST leave history and turn as they are: two turns can go on from one history, and one can be aborted."""
    before = [(one.input_ids.tolist(), [item.spans for item in one.items]) for one in (case.history, case.turn)]
    first = engine.join_turn(*case)
    first_ids = first.input_ids.tolist()
    second = engine.join_turn(*case)
    after = [(one.input_ids.tolist(), [item.spans for item in one.items]) for one in (case.history, case.turn)]
    same(before, after, "history and turn before and after a join")
    equal(second.input_ids.tolist(), first_ids, "the ids of a second turn")
    equal(first.input_ids.tolist(), first_ids, "the ids of the first turn after the second one")


@requirement("LIFECYCLE-11", needs="join_positions", cases=cases.TABLES, bugs=("N02",))
def test_positions_are_those_of_the_whole(engine: Engine, case: Tables) -> None:
    """The M-RoPE positions of a conversation MUST be those of the whole as one prompt."""
    observed, _ = engine.join_positions(*case[:4])
    equal(observed.T, case.expected.T, WHAT)


@requirement("LIFECYCLE-12", needs="join_positions", cases=cases.TABLES, bugs=("N02",))
def test_delta_is_that_of_the_whole(engine: Engine, case: Tables) -> None:
    """The delta of a conversation MUST be one number, the largest position plus 1, minus the length of the whole."""
    _, delta = engine.join_positions(*case[:4])
    equal(delta, max(case.expected.flatten().tolist(), default=-1) + 1 - case.expected.shape[1], "the delta")


@requirement("LIFECYCLE-13", needs="join_positions", cases=cases.GAPS, bugs=("N02", "R01"))
def test_a_table_is_filled_up_or_cut(engine: Engine, case: Tables) -> None:
    """A table that covers less than the history MUST be filled up with text, and one that covers more MUST be cut."""
    observed, _ = engine.join_positions(*case[:4])
    equal(observed.T, case.expected.T, WHAT)


@requirement("LIFECYCLE-14", needs="join_positions", cases=cases.STRIPPED_TABLES, bugs=("N04",))
def test_a_stripped_turn_loses_a_position(engine: Engine, case: Tables) -> None:
    """Where a turn loses its first token, its M-RoPE positions MUST lose the first one, and all others MUST move along."""
    observed, _ = engine.join_positions(*case[:4])
    equal(observed.T, case.expected.T, WHAT)


@requirement("LIFECYCLE-15", needs="join_modalities", cases=cases.MODALITIES)
def test_modalities_are_those_of_the_whole(engine: Engine, case: Tables) -> None:
    """The modalities of a conversation MUST have one number for each position, text and replies included."""
    equal(engine.join_modalities(*case[:4]), case.expected, "the modalities of the whole conversation")


@requirement("LIFECYCLE-16", needs="join_padded", cases=cases.PADDINGS, bugs=("N01",), profile=SGLANG)
def test_a_turn_is_padded_behind_its_history(engine: Engine, case: Padding) -> None:
    """The padded ids of a turn MUST be those that it has in the whole, and those of the history MUST stay."""
    equal(engine.join_padded(*case[:4]), case.expected, "the padded ids")


@requirement("LIFECYCLE-17", needs="join_padded", cases=cases.REUSED | cases.STALE, bugs=("N01",), profile=SGLANG)
def test_padded_ids_of_another_length_are_made_anew(engine: Engine, case: Padding) -> None:
    """Padded ids that were made earlier MUST be used if they have the turn's length, and MUST be made anew if not."""
    equal(engine.join_padded(*case[:4]), case.expected, "the padded ids")


@requirement("LIFECYCLE-18", needs="join_padded", cases=cases.REUSED, level=SHOULD)
def test_padded_ids_of_this_length_are_not_made_again(engine: Engine, case: Padding) -> None:
    """Padded ids of the turn's length SHOULD be taken as they are: who made them knew the media, and it costs nothing."""
    others = np.array(case.made) + 1
    kept = len(case.previous)
    equal(engine.join_padded(case.previous, case.turn_ids, case.items, others)[kept:], others, "the padded ids of the turn")
