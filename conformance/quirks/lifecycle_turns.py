"""Ways in which engines have joined the turns of a conversation wrongly."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference.items import Item, Request, Span
from reference.lifecycle import turns as right
from reference.placeholders import pad_spans

Ids = NDArray[np.int64]
Table = NDArray[np.int64]


def moved(item: Item, by: int) -> Item:
    """The item, all of its spans shifted, but not below 0."""
    return replace(item, spans=tuple(Span(max(0, span.first + by), max(0, span.last + by)) for span in item.spans))


def with_items(joined: Request, items: Sequence[Item]) -> Any:
    """Ids and items, which need not fit together."""
    return joined.input_ids, tuple(items)


def split(joined: Request, history: Request) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """The items of the history and those of the turn, in a join that cuts nothing."""
    return joined.items[: len(history.items)], joined.items[len(history.items) :]


@quirk("reply-left-out", replaces="join_turn", bugs=(), caught_by=("LIFECYCLE-01", "LIFECYCLE-02"))
def without_the_reply(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The turn follows the prompt before it, and what was generated in between is left out."""
    return right.join_turn(history, reply[:0], turn, keep if keep is None else min(keep, len(history.input_ids)), bos)


@quirk("reply-cut-at-its-placeholders", replaces="join_turn", bugs=("W04",), caught_by=("LIFECYCLE-01",))
def without_media_tokens(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """Placeholder ids that the model generated are taken out of the reply, as if no text could hold them."""
    return right.join_turn(history, reply[(reply < 11) | (reply > 13)], turn, None, bos)


@quirk("spans-behind-the-prompt", replaces="join_turn", bugs=("N03",), caught_by=("LIFECYCLE-02",))
def spans_behind_the_prompt(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The spans of a turn move by the length of the prompt before it, without the reply."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    before, behind = split(joined, history)
    return with_items(joined, [*before, *(moved(item, -len(reply)) for item in behind)])


@quirk("spans-behind-the-unexpanded-prompt", replaces="join_turn", bugs=("N03",), caught_by=("LIFECYCLE-02",))
def spans_behind_the_unexpanded_prompt(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The spans of a turn move by the length that the prompt before it had when each item was one placeholder."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    before, behind = split(joined, history)
    shrunk = sum(item.token_count - 1 for item in before)
    return with_items(joined, [*before, *(moved(item, -shrunk) for item in behind)])


@quirk("spans-of-the-turn-alone", replaces="join_turn", bugs=("N04",), caught_by=("LIFECYCLE-02", "LIFECYCLE-04"))
def spans_of_the_turn(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The spans of a turn are left as they are, and point into the history."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    return with_items(joined, [*split(joined, history)[0], *turn.items])


@quirk("features-of-the-history-freed", replaces="join_turn", bugs=("N04",), caught_by=("LIFECYCLE-03",))
def without_features(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The features of the history were freed when its turn finished."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    before, behind = split(joined, history)
    return with_items(joined, [*(replace(item, feature=None, embedding=None, format=None) for item in before), *behind])


@quirk("bos-within-a-conversation", replaces="join_turn", bugs=("N04",), caught_by=("LIFECYCLE-04",))
def nothing_stripped(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """Every turn keeps its beginning-of-sequence token."""
    return right.join_turn(history, reply, turn, keep, None)


@quirk("bos-stripped-and-spans-left", replaces="join_turn", bugs=("N04",), caught_by=("LIFECYCLE-04",))
def spans_left(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The beginning-of-sequence token is dropped from the ids, and the spans stay where they were."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    dropped = len(right.join_turn(history, reply, turn, keep, None).input_ids) - len(joined.input_ids)
    before, behind = split(joined, history) if keep is None else (joined.items, ())
    return with_items(joined, [*before, *(moved(item, dropped) for item in behind)])


@quirk("bos-of-the-first-turn-stripped", replaces="join_turn", bugs=("N04",), caught_by=("LIFECYCLE-05",))
def stripped_always(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """A turn loses its beginning-of-sequence token although nothing stands before it."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    is_first = bos is not None and len(joined.input_ids) == len(turn.input_ids) and turn.input_ids[:1].tolist() == [bos]
    return (joined.input_ids[1:], [moved(item, -1) for item in joined.items]) if is_first else joined


@quirk("cut-keeps-all-items", replaces="join_turn", bugs=("W06",), caught_by=("LIFECYCLE-06", "LIFECYCLE-07"))
def items_outlive_a_cut(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """A cut shortens the ids of a history, and all of its items are kept."""
    if keep is None or not 0 <= keep <= len(history.input_ids) + len(reply):
        return right.join_turn(history, reply, turn, keep, bos)
    joined = right.join_turn(replace(history, items=()), reply, turn, keep, bos)
    return with_items(joined, [*history.items, *joined.items])


@quirk("cut-within-an-item", replaces="join_turn", bugs=("W06",), caught_by=("LIFECYCLE-07",))
def items_are_divided(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """A cut within an item leaves it with fewer positions, which its rows no longer fit."""
    if keep is None or not 0 <= keep <= len(history.input_ids) + len(reply):
        return right.join_turn(history, reply, turn, keep, bos)
    clipped = [
        replace(item, spans=tuple(Span(span.first, min(span.last, keep - 1)) for span in item.spans if span.first < keep))
        for item in history.items
    ]
    return right.join_turn(replace(history, items=tuple(item for item in clipped if item.spans)), reply, turn, keep, bos)


@quirk("kept-like-a-slice", replaces="join_turn", bugs=(), caught_by=("LIFECYCLE-08",))
def kept_like_a_slice(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """A number to keep is used as the end of a slice: a negative one counts from the end, a large one means all."""
    length = len(history.input_ids) + len(reply)
    return right.join_turn(history, reply, turn, keep if keep is None else len(range(length)[:keep]), bos)


@quirk("item-clamped-to-the-beginning", replaces="join_turn", bugs=("N04",), caught_by=("LIFECYCLE-09",))
def clamped(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """An item on the beginning-of-sequence token is clamped to what is left, one position short."""
    spans = [span for item in turn.items for span in item.spans]
    if bos is None or turn.input_ids[:1].tolist() != [bos] or not any(span.first == 0 for span in spans):
        return right.join_turn(history, reply, turn, keep, bos)
    joined = right.join_turn(history, reply, replace(turn, input_ids=turn.input_ids[1:], items=()), keep, None)
    base = len(joined.input_ids) - len(turn.input_ids) + 1
    return with_items(joined, [*history.items, *(moved(moved(item, -1), base) for item in turn.items)])


@quirk("history-padded-in-place", replaces="join_turn", bugs=("N01",), caught_by=("LIFECYCLE-10",))
def padded_in_place(history: Request, reply: Ids, turn: Request, keep: int | None, bos: int | None) -> Any:
    """The history is padded in place when the next turn comes, so that no other turn can go on from it."""
    joined = right.join_turn(history, reply, turn, keep, bos)
    history.input_ids[:] = pad_spans(history.input_ids, history.items)
    return joined


@quirk("turns-numbered-alone", replaces="join_positions", bugs=("N02",), caught_by=("LIFECYCLE-11", "LIFECYCLE-13"))
def numbered_alone(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """The positions of each turn begin at 0, and are put behind those before."""
    joined, delta = right.join_positions(previous, length, turn, is_stripped)
    return np.concatenate([joined[:, :length], turn[:, int(is_stripped) :]], axis=1), delta


@quirk("delta-of-the-turn", replaces="join_positions", bugs=("N02",), caught_by=("LIFECYCLE-12",))
def delta_of_the_turn(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """The delta is that of the last turn alone."""
    joined, _ = right.join_positions(previous, length, turn, is_stripped)
    return joined, int(turn.max(initial=-1)) + 1 - turn.shape[1]


@quirk("deltas-put-together", replaces="join_positions", bugs=("N02",), caught_by=("LIFECYCLE-12",))
def deltas_put_together(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """The deltas of the turns are concatenated: there is one for each turn, where one is needed."""
    joined, _ = right.join_positions(previous, length, turn, is_stripped)
    deltas = [int(table.max(initial=-1)) + 1 - table.shape[1] for table in (previous, turn)]
    return joined, np.array(deltas)


@quirk("no-positions-for-the-reply", replaces="join_positions", bugs=("R01",), caught_by=("LIFECYCLE-11", "LIFECYCLE-13"))
def without_a_gap(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """The reply has no positions: the table is shorter than the conversation."""
    return right.join_positions(previous, min(length, previous.shape[1]), turn, is_stripped)


@quirk("gap-behind-the-last-time", replaces="join_positions", bugs=("R02",), caught_by=("LIFECYCLE-11",))
def behind_the_last_time(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """The reply goes on behind the time of the last position, and not behind the largest number on any axis."""
    known = previous[:, :length]
    if known.shape[1] == 0 or known.shape[1] == length:
        return right.join_positions(previous, length, turn, is_stripped)
    text = np.tile(known[0, -1] + 1 + np.arange(length - known.shape[1]), (3, 1))
    return right.join_positions(np.concatenate([known, text], axis=1), length, turn, is_stripped)


@quirk("table-outlives-a-cut", replaces="join_positions", bugs=("N02",), caught_by=("LIFECYCLE-13",))
def table_uncut(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """A history that is cut keeps its whole table of positions."""
    return right.join_positions(previous, max(length, previous.shape[1]), turn, is_stripped)


@quirk("bos-keeps-its-position", replaces="join_positions", bugs=("N04",), caught_by=("LIFECYCLE-14",))
def bos_keeps_its_position(previous: Table, length: int, turn: Table, is_stripped: bool) -> Any:
    """The turn's table keeps the position of the token that was dropped, at the cost of the history's last one."""
    return right.join_positions(previous, length - int(is_stripped), turn, False)


@quirk("no-modality-for-replies", replaces="join_modalities", bugs=("N02",), caught_by=("LIFECYCLE-15",))
def modalities_put_together(previous: NDArray[np.int8], length: int, turn: NDArray[np.int8], is_stripped: bool) -> Any:
    """The modalities of the turns are put together without those of the replies between them."""
    return np.concatenate([previous[:length], turn[int(is_stripped) :]])


@quirk("bos-keeps-its-modality", replaces="join_modalities", bugs=("N04",), caught_by=("LIFECYCLE-15",))
def bos_keeps_its_modality(previous: NDArray[np.int8], length: int, turn: NDArray[np.int8], is_stripped: bool) -> Any:
    """The modalities of a turn are one too many where its beginning-of-sequence token was dropped."""
    return right.join_modalities(previous, length, turn, False)


@quirk("turn-left-unpadded", replaces="join_padded", bugs=("N01",), caught_by=("LIFECYCLE-16", "LIFECYCLE-17"))
def left_unpadded(previous: Ids, turn_ids: Ids, items: Sequence[Item], made: Ids | None) -> Any:
    """Ids are refreshed when their number changes. Padding does not change it, and so the placeholders stay."""
    return np.concatenate([previous, turn_ids])


@quirk("padded-by-the-turn-alone", replaces="join_padded", bugs=("N03",), caught_by=("LIFECYCLE-16",))
def padded_by_placeholders(previous: Ids, turn_ids: Ids, items: Sequence[Item], made: Ids | None) -> Any:
    """Whatever placeholder id is in the turn is padded, also one that a user typed."""
    joined = right.join_padded(previous, turn_ids, items, made)
    typed = np.flatnonzero(joined == 11)
    joined[typed[typed >= len(previous)]] = joined[0]
    return joined


@quirk("stale-padded-ids", replaces="join_padded", bugs=("N01",), caught_by=("LIFECYCLE-17",))
def stale(previous: Ids, turn_ids: Ids, items: Sequence[Item], made: Ids | None) -> Any:
    """Padded ids that were made once are used for whatever turn comes, whether or not they have its length."""
    return right.join_padded(previous, turn_ids, items, made) if made is None else np.concatenate([previous, made])


@quirk("padded-again", replaces="join_padded", bugs=(), caught_by=("LIFECYCLE-18",))
def padded_again(previous: Ids, turn_ids: Ids, items: Sequence[Item], made: Ids | None) -> Any:
    """Padded ids that were made earlier are never used."""
    return right.join_padded(previous, turn_ids, items, None)
