"""Ways in which drafters without a model have looked up media."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import speculation as right
from reference.items import Chunk, Item, Modality
from reference.merging import span_mask

Ids = NDArray[np.int64]
Items = Sequence[Item]
Proposals = tuple[int, ...]

PLACEHOLDERS = {Modality.IMAGE: 11, Modality.VIDEO: 12, Modality.AUDIO: 13}


@quirk("sentinels-are-looked-up", replaces="propose_ngram", bugs=("P04",), caught_by=("SPECULATION-11", "SPECULATION-13"))
def padded(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """The lookup runs over padded ids, and proposes the sentinels that followed."""
    return right.propose_ngram(ids, (), shortest, longest, count)


@quirk("placeholders-are-looked-up", replaces="propose_ngram", bugs=(), caught_by=("SPECULATION-13", "SPECULATION-15"))
def unpadded(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """The lookup runs over placeholder ids, which are alike for all pictures, and proposes them."""
    plain = ids.copy()
    for item in items:
        plain[span_mask(item.spans, Chunk(0, len(ids)))] = PLACEHOLDERS[item.modality]
    return right.propose_ngram(plain, (), shortest, longest, count)


@quirk("one-proposal-too-many", replaces="propose_ngram", bugs=(), caught_by=("SPECULATION-12",))
def one_more(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """The last proposal is inclusive, and there is one more than there are slots."""
    return right.propose_ngram(ids, items, shortest, longest, count + 1)


@quirk("shortest-match-first", replaces="propose_ngram", bugs=(), caught_by=("SPECULATION-16",))
def shortest_first(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """The shortest match is taken."""
    return right.propose_ngram(ids, items, shortest, shortest, count)


@quirk("last-words-match-themselves", replaces="propose_ngram", bugs=(), caught_by=("SPECULATION-14", "SPECULATION-16"))
def themselves(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """The last occurrence of the last words is their own, and nothing stands behind it."""
    return ()


@quirk("media-cut-out-before-the-lookup", replaces="propose_ngram", bugs=(), caught_by=("SPECULATION-13", "SPECULATION-15"))
def cut_out(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """Media are taken out of the ids, so that the text around them is one."""
    media = span_mask((span for item in items for span in item.spans), Chunk(0, len(ids)))
    return right.propose_ngram(ids[~media], (), shortest, longest, count)


@quirk("media-marked-in-place", replaces="propose_ngram", bugs=("P04",), caught_by=("SPECULATION-17",))
def in_place(ids: Ids, items: Items, shortest: int, longest: int, count: int) -> Proposals:
    """The positions of media are overwritten in the request's own ids, so that they match nothing."""
    proposals = right.propose_ngram(ids, items, shortest, longest, count)
    ids[span_mask((span for item in items for span in item.spans), Chunk(0, len(ids)))] = -1
    return proposals
