"""Ways in which engines have padded by token pairs wrongly."""

from collections.abc import Collection, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from conformance.world.prompts import PLACEHOLDERS
from reference import placeholders as right
from reference.items import Item, Modality
from reference.sentinels import SHIFT, fill, item_sentinels

Ids = NDArray[np.int64]
Pairs = Sequence[tuple[int, int]]


@quirk(
    "pair-tokens-padded",
    replaces="pad_pairs",
    bugs=("P05",),
    caught_by=("PLACEHOLDERS-11", "PLACEHOLDERS-13", "PLACEHOLDERS-16"),
)
def tokens_included(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """Padding covers the start and end tokens as well and so differs from padding by spans."""
    padded = right.pad_pairs(input_ids, items, pairs, item_starts)
    padded[np.isin(input_ids, list(chain(*pairs)))] = SHIFT
    return padded


@quirk("leftover-placeholders-blanked", replaces="pad_pairs", bugs=(), caught_by=("PLACEHOLDERS-13",))
def text_clamped(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """Placeholder ids outside all pairs are taken for leftovers and blanked."""
    padded = right.pad_pairs(input_ids, items, pairs, item_starts)
    padded[padded == PLACEHOLDERS[Modality.IMAGE]] = 0
    return padded


@quirk(
    "slices-taken-for-items",
    replaces="pad_pairs",
    bugs=("O05",),
    caught_by=("PLACEHOLDERS-11", "PLACEHOLDERS-12", "PLACEHOLDERS-15", "PLACEHOLDERS-16"),
)
def every_pair_an_item(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """Every pair takes the next item, a slice too; when they run out, the last one is used again."""
    starts = [start for start, _ in pairs]
    places = int(np.isin(input_ids, starts).sum())
    dealt = [items[min(place, len(items) - 1)] for place in range(places)] if items else []
    return right.pad_pairs(input_ids, dealt, pairs, starts)


@quirk(
    "phase-continues-over-slices",
    replaces="pad_pairs",
    bugs=(),
    caught_by=("PLACEHOLDERS-11", "PLACEHOLDERS-12", "PLACEHOLDERS-16"),
)
def running_slices(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """The cycle goes on from slice to slice of an item."""
    padded = right.pad_pairs(input_ids, items, pairs, item_starts)
    for item in items:
        media = np.flatnonzero(np.isin(padded, item_sentinels(item)))
        padded[media] = fill(item_sentinels(item), len(media))
    return padded


@quirk("pads-pairs-in-place", replaces="pad_pairs", bugs=("Q05",), caught_by=("PLACEHOLDERS-14",))
def pairs_in_place(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """The caller's array is padded and returned."""
    input_ids[:] = right.pad_pairs(input_ids, items, pairs, item_starts)
    return input_ids


@quirk(
    "pairs-by-count-only",
    replaces="pad_pairs",
    bugs=("P05", "O01", "audio-literal-added-twice"),
    caught_by=("PLACEHOLDERS-15",),
)
def zipped(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """The k-th start goes with the k-th end, an unbalanced prompt is not padded, and the last item fills what is left."""
    return _zip_pairs(input_ids, items, pairs, item_starts)


@quirk("items-without-a-pair-forgotten", replaces="pad_pairs", bugs=("L03",), caught_by=("PLACEHOLDERS-15",))
def surplus_items(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    """Items for which the prompt has no place are dropped without a word."""
    places = int(np.isin(input_ids, list(item_starts)).sum())
    return right.pad_pairs(input_ids, items[:places], pairs, item_starts)


def _zip_pairs(input_ids: Ids, items: Sequence[Item], pairs: Pairs, item_starts: Collection[int]) -> Ids:
    padded = input_ids.copy()
    starts = np.flatnonzero(np.isin(input_ids, [start for start, _ in pairs])).tolist()
    ends = np.flatnonzero(np.isin(input_ids, [end for _, end in pairs])).tolist()
    if len(starts) != len(ends):
        return padded
    if any(edge < before for before, edge in pairwise(chain(*zip(starts, ends, strict=True)))):
        raise AssertionError("the padded prompt has another length")
    number = -1
    for start, end in zip(starts, ends, strict=True):
        number += int(input_ids[start]) in item_starts
        padded[start + 1 : end] = fill(item_sentinels(items[min(number, len(items) - 1)]), end - start - 1)
    return padded
