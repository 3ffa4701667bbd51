"""Placeholders: where the media of a prompt stand, and their padding with sentinels.

A processor expands each picture of a prompt into a run of one placeholder id. This stage finds the runs, and replaces
their ids by the sentinels of the items, so that a prefix cache sees content and not place.

1. Length never changes and the caller's array is never written: positions, spans and grids that were computed earlier
   stay true.
2. Only recorded spans are padded. A placeholder id elsewhere, typed by a user or sampled by a model, is text.
3. Every span begins with the first sentinel. So the ids of a frame or slice do not depend on what comes before it, and
   padding by spans equals padding by token pairs.
4. Token pairs bind pictures to places by counting, and a pair that a user typed shifts the count. There is no way to
   tell it from a real one here, so whatever does not add up is an error and never a guess.

Source: SGLang 0.5.23, `get_mm_items_offset`, `pad_mm_tokens`, `pad_mm_token_pairs` and `build_token_modalities`.
Disagreements: SGLang's search wraps around, so a prompt that begins and ends with the placeholder gives wrong spans; it
clips spans that leave the prompt, lets the later of two overlapping items win, and pads an unbalanced prompt not at
all. vLLM leaves placeholder ids in the prompt and keys its prefix cache by item and offset instead.
"""

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from reference.items import Item, Span, all_spans, check_within
from reference.sentinels import fill, sentinel_table


def find_spans(input_ids: NDArray[np.int64], token_id: int) -> tuple[Span, ...]:
    """The maximal runs of `token_id` in `input_ids` int64 [n], by position.

    Two items without a token between them are one run: only who expanded the prompt can tell them apart.
    """
    is_media = np.pad(_checked(input_ids) == token_id, 1)
    edges = np.flatnonzero(np.diff(is_media)).reshape(-1, 2)
    return tuple(Span(first, stop - 1) for first, stop in edges.tolist())


def pad_spans(input_ids: NDArray[np.int64], items: Sequence[Item]) -> NDArray[np.int64]:
    """A new int64 array [n]: each span filled with its item's sentinels from the first one on, the rest as it was.

    Raises ValueError when spans overlap or end outside the prompt, and for an item without identity and caller hash.
    """
    padded = _checked(input_ids).copy()
    check_within(all_spans(items), len(padded))
    owners = np.repeat(np.arange(len(items)), [len(item.spans) for item in items])
    spans = [span for item in items for span in item.spans]
    firsts, lasts = [span.first for span in spans], [span.last for span in spans]
    _fill(padded, firsts, lasts, sentinel_table(items)[owners])
    return padded


def pad_pairs(
    input_ids: NDArray[np.int64], items: Sequence[Item], pairs: Sequence[tuple[int, int]], item_starts: Collection[int]
) -> NDArray[np.int64]:
    """A new int64 array [n]: what lies strictly between a start and an end token filled with an item's sentinels.

    pairs: (start id, end id), all ids different.
    item_starts: the start ids that begin a new item; a pair with another start is a further slice of the item before
    it, as the tiles of InternVL and MiniCPM. The k-th item start in the prompt belongs to items[k]; spans of items are
    not looked at. Each slice is filled from the first sentinel on; an empty one is fine.

    A pair token that a user typed counts like any other, and so makes the request an error. Raises ValueError, with the
    position and the token, for tokens that do not pair up, cross or nest, for a slice before any item start, and unless
    there are as many item starts as items.
    """
    padded = _checked(input_ids).copy()
    ends = _ends_by_start(pairs, item_starts)
    values = sentinel_table(items)
    slices = _pair_up(input_ids, ends)
    begun = 0
    owners = []
    for token, start, _ in slices:
        begun += token in item_starts
        if begun == 0:
            raise ValueError(f"the slice that token {token} starts at position {start} comes before any item start")
        if begun > len(items):
            raise ValueError(f"token {token} at position {start} starts item {begun}, but the request has {len(items)}")
        owners.append(begun - 1)
    if begun < len(items):
        raise ValueError(f"the request has {len(items)} items, but only {begun} item starts in {len(padded)} positions")
    _fill(padded, [start + 1 for _, start, _ in slices], [end - 1 for _, _, end in slices], values[owners])
    return padded


def token_modalities(length: int, items: Sequence[Item]) -> NDArray[np.int8]:
    """For each of `length` positions the number of the modality whose span it lies in, 0 at text: int8 [length].

    Raises ValueError when spans overlap or end outside the prompt, and for a negative length.
    """
    if length < 0:
        raise ValueError(f"a prompt cannot have {length} positions")
    check_within(all_spans(items), length)
    modalities = np.zeros(length, dtype=np.int8)
    for item in items:
        number = int(item.modality)
        for span in item.spans:
            modalities[span.first : span.last + 1] = number
    return modalities


def _checked(input_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    if not isinstance(input_ids, np.ndarray) or input_ids.dtype != np.int64 or input_ids.ndim != 1:
        raise TypeError("input_ids is a one-dimensional int64 array: narrower ids cannot hold a sentinel")
    return input_ids


def _fill(padded: NDArray[np.int64], firsts: list[int], lasts: list[int], values: NDArray[np.int64]) -> None:
    """Write to each span its sentinels int64 [spans, 4] in turn; to those of one length in one step."""
    starts = np.array(firsts, dtype=np.int64)
    lengths = np.array(lasts, dtype=np.int64) - starts + 1
    for length in np.unique(lengths).tolist():
        alike = lengths == length
        padded[starts[alike, None] + np.arange(length)] = fill(values[alike], length)


def _ends_by_start(pairs: Sequence[tuple[int, int]], item_starts: Collection[int]) -> dict[int, int]:
    """Which end token closes which start token, after a check that no token has two meanings."""
    ends = dict(pairs)
    if len({*chain(*pairs)}) != 2 * len(pairs):
        raise ValueError(f"the ids of start and end tokens must all be different, but are {list(pairs)}")
    if strangers := sorted(set(item_starts) - set(ends)):
        raise ValueError(f"the item starts {strangers} are no start tokens; these are {sorted(ends)}")
    return ends


def _pair_up(input_ids: NDArray[np.int64], ends: dict[int, int]) -> list[tuple[int, int, int]]:
    """Each start token, its position, and that of the end token that closes it."""
    boundaries = np.flatnonzero(np.isin(input_ids, np.array([*ends.keys(), *ends.values()], dtype=np.int64)))
    found: list[tuple[int, int, int]] = []
    opened: tuple[int, int] | None = None
    for position, token in zip(boundaries.tolist(), input_ids[boundaries].tolist(), strict=True):
        if opened is None and token in ends:
            opened = token, position
        elif opened is None:
            raise ValueError(f"the end token {token} at position {position} closes nothing")
        elif token == ends[opened[0]]:
            found.append((*opened, position))
            opened = None
        else:
            raise ValueError(
                f"token {token} at position {position} stands inside the pair that token {opened[0]} opened at "
                f"position {opened[1]}; that pair ends with token {ends[opened[0]]}"
            )
    if opened is not None:
        raise ValueError(f"the start token {opened[0]} at position {opened[1]} is never closed")
    return found
