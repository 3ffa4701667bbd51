"""Prompts drawn as text, one character a position, so that a case shows what it is about.

draw("..iii.vv.vv#.")   text, a picture of three positions, a video of two frames, a literal placeholder, text

.        text, each position with an id of its own
i j k    pictures, v w videos, a b recordings: each run of a letter is a span of that item
#        the placeholder id of pictures, outside all spans: typed by a user or sampled by the model
< >      a pair of tokens that begins an item, with what lies between them
[ ]      a pair of tokens that holds a further slice of the item before it
"""

from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference.items import Item, Modality, Span

MODALITIES = {letter: modality for letters, modality in zip(("ijk", "vw", "ab"), Modality, strict=True) for letter in letters}
PLACEHOLDERS = {Modality.IMAGE: 11, Modality.VIDEO: 12, Modality.AUDIO: 13}
PAIRS = ((1, 2), (3, 4))
ITEM_STARTS = (1,)
VOCABULARY = 128
"""Larger than every id of a drawn prompt."""

_IDS = {"<": 1, ">": 2, "[": 3, "]": 4, "#": PLACEHOLDERS[Modality.IMAGE]} | {
    letter: PLACEHOLDERS[modality] for letter, modality in MODALITIES.items()
}
_FIRST_TEXT_ID = 20


class Prompt(NamedTuple):
    """Ids int64 [n] with placeholder ids at media, and the items that fill them."""

    input_ids: NDArray[np.int64]
    items: tuple[Item, ...]


class Pairing(NamedTuple):
    """What `pad_pairs` is asked."""

    input_ids: NDArray[np.int64]
    items: tuple[Item, ...]
    pairs: tuple[tuple[int, int], ...] = PAIRS
    item_starts: tuple[int, ...] = ITEM_STARTS


class BadSpans(NamedTuple):
    """A prompt length and items whose spans cannot be right."""

    length: int
    items: tuple[Item, ...]


def draw(drawing: str, listed: str | None = None) -> Prompt:
    """The prompt of a drawing of at most 108 positions.

    listed: the letters of the items in the order of the list; by first appearance unless given.
    """
    ids = [_IDS.get(character, _FIRST_TEXT_ID + position) for position, character in enumerate(drawing)]
    letters = dict.fromkeys(character for character in drawing if character in MODALITIES)
    runs = [(letter, [position for position, _ in run]) for letter, run in groupby(enumerate(drawing), lambda pair: pair[1])]
    spans = {letter: tuple(Span(run[0], run[-1]) for name, run in runs if name == letter) for letter in letters}
    items = tuple(picture(letter, spans.get(letter, ())) for letter in (letters if listed is None else listed))
    return Prompt(np.array(ids, dtype=np.int64), items)


def picture(letter: str, spans: tuple[Span, ...] = (), *, caller_hash: int | None = None) -> Item:
    """An item whose modality and content depend on the letter only."""
    identity = sha256(letter.encode()).digest()
    return Item(modality=MODALITIES[letter], spans=spans, identity=identity, caller_hash=caller_hash)
