"""Ways in which engines have laid out a prompt wrongly whose videos are pruned."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import pruning as right
from reference.items import Item, Span, all_spans
from reference.pruning import Mask

Ids = NDArray[np.int64]
Masks = Sequence[Mask | None]
Prompt = tuple[Ids, tuple[tuple[Span, ...], ...]]
Positions = tuple[NDArray[np.int64], int]

# Ids and spans


@quirk(
    "even-shares",
    replaces="prune_prompt",
    bugs=("evs-qwen3-interleaved",),
    caught_by=("PRUNING-09", "PRUNING-10"),
)
def even_shares(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """What a video keeps beside its first frame is spread evenly over the other frames."""
    right.prune_prompt(input_ids, items, masks)
    return right.prune_prompt(input_ids, items, [_evened(item, mask) for item, mask in zip(items, masks, strict=True)])


@quirk("no-frame-is-empty", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-09", "PRUNING-10"))
def no_frame_is_empty(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """Every frame has a placeholder at least, also one of which nothing is kept."""
    right.prune_prompt(input_ids, items, masks)
    filled = []
    for item, mask in zip(items, masks, strict=True):
        bits = _bits(item, mask)
        for rows in _rows(item):
            bits[rows[0]] |= not bits[rows].any()
        filled.append(bits)
    return right.prune_prompt(input_ids, items, filled)


@quirk("masks-in-the-order-of-positions", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-09", "PRUNING-10"))
def masks_by_position(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """Masks are given to the videos in the order of their positions, in which the items are not always listed."""
    right.prune_prompt(input_ids, items, masks)
    pruned = sorted((n for n, mask in enumerate(masks) if mask is not None), key=lambda n: items[n].spans[0])
    taken = iter([mask for mask in masks if mask is not None])
    by_position = {n: next(taken) for n in pruned}
    fitting = [by_position.get(n) for n in range(len(items))]
    return right.prune_prompt(input_ids, items, [_fit(item, mask) for item, mask in zip(items, fitting, strict=True)])


@quirk("text-between-frames-is-lost", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-09", "PRUNING-10", "PRUNING-13"))
def without_timestamps(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """A video is laid out as one run of placeholders, without the text between its frames."""
    ids, spans = right.prune_prompt(input_ids, items, masks)
    stays = np.ones(len(ids), dtype=np.bool_)
    for item in spans:
        stays[item[0].first : item[-1].stop] = False
        for span in item:
            stays[span.first : span.stop] = True
    moved: NDArray[np.int64] = np.cumsum(stays) - stays
    return ids[stays], tuple(
        (Span(int(moved[item[0].first]), int(moved[item[0].first]) + sum(map(len, item)) - 1),) if item else ()
        for item in spans
    )


@quirk(
    "items-behind-stay-in-place",
    replaces="prune_prompt",
    bugs=("V01", "evs-video-then-image-mrope"),
    caught_by=("PRUNING-10", "PRUNING-13"),
)
def behind_stay(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """A video gets new spans, and what is not pruned keeps those that it had, so that a picture behind it is not found."""
    ids, spans = right.prune_prompt(input_ids, items, masks)
    kept = (item.spans if mask is None else new for item, mask, new in zip(items, masks, spans, strict=True))
    return ids, tuple(kept)


@quirk(
    "one-span-from-first-to-last",
    replaces="prune_prompt",
    bugs=("prefix-noncontiguous-item",),
    caught_by=("PRUNING-10", "PRUNING-13"),
)
def first_to_last(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """A video is recorded as one span from its first position to its last, text between frames included."""
    ids, spans = right.prune_prompt(input_ids, items, masks)
    return ids, tuple((Span(item[0].first, item[-1].last),) if item else () for item in spans)


@quirk("no-copy-without-pruning", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-11",))
def no_copy(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """Where nothing is pruned the caller's own array is returned."""
    ids, spans = right.prune_prompt(input_ids, items, masks)
    return (input_ids if len(ids) == len(input_ids) else ids), spans


@quirk("pruned-in-place", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-11",))
def in_place(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """The caller's array is written over, and a view of its beginning returned."""
    ids, spans = right.prune_prompt(input_ids, items, masks)
    input_ids[: len(ids)] = ids
    return input_ids[: len(ids)], spans


@quirk("masks-cut-to-length", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-12",))
def cut_to_length(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """A mask that is too long is cut, and one that is too short keeps the rest."""
    return right.prune_prompt(input_ids, items, [_fit(item, mask) for item, mask in zip(items, masks, strict=True)])


@quirk("one-sentinel-for-all", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-13",))
def one_sentinel(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """The new spans of a video are filled with the first id of the old ones, not with its sentinels in turn."""
    ids, spans = right.prune_prompt(input_ids, items, masks)
    for item, mask, new in zip(items, masks, spans, strict=True):
        for span in new if mask is not None else ():
            ids[span.first : span.stop] = input_ids[item.spans[0].first]
    return ids, spans


@quirk("ids-of-the-kept-tokens", replaces="prune_prompt", bugs=(), caught_by=("PRUNING-13",))
def where_the_mask_is(input_ids: Ids, items: Sequence[Item], masks: Masks) -> Prompt:
    """Ids are taken out where the tokens were, so that the sentinels of a span come out of turn."""
    _, spans = right.prune_prompt(input_ids, items, masks)
    return input_ids[_stays(len(input_ids), items, masks)], spans


# Positions


@quirk(
    "positions-counted-anew", replaces="prune_positions", bugs=("V01",), caught_by=("PRUNING-14", "PRUNING-16", "PRUNING-18")
)
def counted_anew(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """The pruned prompt has the positions 0, 1, 2 and so on, as if it were text."""
    kept, _ = right.prune_positions(positions, items, masks)
    return np.tile(np.arange(kept.shape[1]), (3, 1)), 0


@quirk("positions-of-the-first-tokens", replaces="prune_positions", bugs=(), caught_by=("PRUNING-14",))
def of_the_first(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """Positions are cut behind as ids are: a kept token has the position of one of the first of its span."""
    return right.prune_positions(positions, items, [_first_bits(item, mask) for item, mask in zip(items, masks, strict=True)])


@quirk(
    "walk-by-the-full-grid",
    replaces="prune_positions",
    bugs=("V01", "evs-video-then-image-mrope"),
    caught_by=("PRUNING-14", "PRUNING-15", "PRUNING-16"),
)
def full_grid(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """The walk over the prompt goes on by the full grid of a video, so that what stands behind it gets its positions."""
    length = right.prune_positions(positions, items, masks)[0].shape[1]
    return positions[:, :length].copy(), int(positions[:, :length].max()) + 1 - length


@quirk("text-behind-the-width", replaces="prune_positions", bugs=(), caught_by=("PRUNING-15", "PRUNING-16"))
def behind_the_width(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """Text goes on at the width of the video's grid, which is within the video where it has more frames than columns."""
    moved = positions.copy()
    for span in all_spans(items):
        if span.stop < positions.shape[1]:
            width = int(positions[2, span.first : span.stop].max()) + 1
            moved[:, span.stop :] -= positions[0, span.stop] - width
            positions = moved.copy()
    return right.prune_positions(moved, items, masks)


@quirk("text-closes-up", replaces="prune_positions", bugs=(), caught_by=("PRUNING-16",))
def closes_up(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """Text follows the largest position that is kept, so that its distance depends on what was pruned."""
    moved = positions.copy()
    stays = _stays(positions.shape[1], items, masks)
    for span in all_spans(items):
        if span.stop < positions.shape[1]:
            largest = int(moved[:, : span.stop][:, stays[: span.stop]].max(initial=-1))
            moved[:, span.stop :] -= moved[0, span.stop] - largest - 1
    return right.prune_positions(moved, items, masks)


@quirk("delta-of-the-whole-prompt", replaces="prune_positions", bugs=("V01",), caught_by=("PRUNING-17",))
def delta_of_the_whole(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """The delta is that of the prompt before pruning, so that the answer begins within the prompt."""
    kept, _ = right.prune_positions(positions, items, masks)
    return kept, int(positions.max()) + 1 - positions.shape[1]


@quirk("text-counts-every-token", replaces="prune_positions", bugs=("V01",), caught_by=("PRUNING-16", "PRUNING-18"))
def every_token(positions: NDArray[np.int64], items: Sequence[Item], masks: Masks) -> Positions:
    """Text goes on behind a video as if each of its tokens had been a word."""
    moved = positions.copy()
    for span in all_spans(items):
        moved[:, span.stop :] += len(span)
    return right.prune_positions(moved, items, masks)


def _bits(item: Item, mask: Mask | None) -> NDArray[np.bool_]:
    return np.ones(item.token_count, dtype=np.bool_) if mask is None else np.array(mask, dtype=np.bool_)


def _fit(item: Item, mask: Mask | None) -> NDArray[np.bool_]:
    fitted = np.ones(item.token_count, dtype=np.bool_)
    if mask is not None:
        fitted[: len(mask)] = np.asarray(mask)[: item.token_count]
    return fitted


def _rows(item: Item) -> list[NDArray[np.int64]]:
    """The numbers of the tokens of each span."""
    return np.split(np.arange(item.token_count), np.cumsum([len(span) for span in item.spans])[:-1])


def _evened(item: Item, mask: Mask | None) -> NDArray[np.bool_]:
    bits = _bits(item, mask)
    first, *others = _rows(item)
    left = int(bits.sum()) - len(first)
    for number, rows in enumerate(others):
        share = left // len(others) + (number < left % len(others))
        bits[rows] = np.arange(len(rows)) < share
    return bits


def _first_bits(item: Item, mask: Mask | None) -> NDArray[np.bool_]:
    bits = _bits(item, mask)
    for rows in _rows(item):
        bits[rows] = np.arange(len(rows)) < bits[rows].sum()
    return bits


def _stays(length: int, items: Sequence[Item], masks: Masks) -> NDArray[np.bool_]:
    stays = np.ones(length, dtype=np.bool_)
    for item, mask in zip(items, masks, strict=True):
        places = [place for span in item.spans for place in range(span.first, span.stop)]
        stays[places] = _bits(item, mask)
    return stays
