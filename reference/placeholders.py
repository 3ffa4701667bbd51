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
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from reference.items import Item, Span, SpanTable, make_spans, span_table
from reference.sentinels import fill, sentinel_table

_CACHED = 1 << 16
"""Positions whose ids a processor's own cache holds: half a megabyte."""


def find_spans(input_ids: NDArray[np.int64], token_id: int) -> tuple[Span, ...]:
    """The maximal runs of `token_id` in `input_ids` int64 [n], by position.

    Two items without a token between them are one run: only who expanded the prompt can tell them apart.
    """
    is_media = np.pad(_checked(input_ids) == token_id, 1)
    edges = np.flatnonzero(np.diff(is_media)).reshape(-1, 2)
    return make_spans(edges[:, 0], edges[:, 1] - 1)


def pad_spans(input_ids: NDArray[np.int64], items: Sequence[Item]) -> NDArray[np.int64]:
    """A new int64 array [n]: each span filled with its item's sentinels from the first one on, the rest as it was.

    Raises ValueError when spans overlap or end outside the prompt, and for an item without identity and caller hash.
    """
    padded = _checked(input_ids).copy()
    spans = span_table(items, len(padded))
    _fill(padded, spans, sentinel_table(items))
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
    starts, stops = _pair_up(input_ids, ends)
    is_item_start = np.isin(input_ids[starts], np.array([*item_starts], dtype=np.int64))
    if len(starts) and not is_item_start[0]:
        start = starts[0]
        raise ValueError(f"the slice that token {input_ids[start]} starts at position {start} comes before any item start")
    begun = int(is_item_start.sum())
    if begun > len(items):
        start = starts[is_item_start][len(items)]
        raise ValueError(
            f"token {input_ids[start]} at position {start} starts item {len(items) + 1}, but the request has {len(items)}"
        )
    if begun < len(items):
        raise ValueError(f"the request has {len(items)} items, but only {begun} item starts in {len(padded)} positions")
    _fill(padded, SpanTable(is_item_start.cumsum() - 1, starts + 1, stops), values)
    return padded


def token_modalities(length: int, items: Sequence[Item]) -> NDArray[np.int8]:
    """For each of `length` positions the number of the modality whose span it lies in, 0 at text: int8 [length].

    Raises ValueError when spans overlap or end outside the prompt, and for a negative length.
    """
    if length < 0:
        raise ValueError(f"a prompt cannot have {length} positions")
    spans = span_table(items, length)
    edges = np.column_stack([spans.firsts, spans.stops]).ravel()
    numbers = np.zeros(len(edges) + 1, dtype=np.int8)
    numbers[1::2] = np.frombuffer(bytes([item.modality for item in items]), dtype=np.int8)[spans.owners]
    return np.repeat(numbers, np.diff(edges, prepend=0, append=length))


def _checked(input_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    if not isinstance(input_ids, np.ndarray) or input_ids.dtype != np.int64 or input_ids.ndim != 1:
        raise TypeError("input_ids is a one-dimensional int64 array: narrower ids cannot hold a sentinel")
    return input_ids


def _fill(padded: NDArray[np.int64], spans: SpanTable, table: NDArray[np.int64]) -> None:
    """Write to each span the sentinels of its item in turn; to spans of one length at once, as many as a cache holds."""
    ascending = np.sort(spans.lengths)
    for length in ascending[np.diff(ascending, prepend=-1) > 0].tolist():
        windows = sliding_window_view(padded, length, writeable=True)
        alike = np.flatnonzero(spans.lengths == length)
        step = 1 + _CACHED // (1 + length)
        for start in range(0, len(alike), step):
            some = alike[start : start + step]
            windows[spans.firsts[some]] = fill(table[spans.owners[some]], length)


def _ends_by_start(pairs: Sequence[tuple[int, int]], item_starts: Collection[int]) -> dict[int, int]:
    """Which end token closes which start token, after a check that no token has two meanings."""
    ends = dict(pairs)
    if len({*chain(*pairs)}) != 2 * len(pairs):
        raise ValueError(f"the ids of start and end tokens must all be different, but are {list(pairs)}")
    if strangers := sorted(set(item_starts) - set(ends)):
        raise ValueError(f"the item starts {strangers} are no start tokens; these are {sorted(ends)}")
    return ends


def _pair_up(input_ids: NDArray[np.int64], ends: dict[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The positions of the start tokens, and of the end tokens that close them: start and end take turns."""
    starts = np.array([*ends.keys()], dtype=np.int64)
    is_boundary = np.zeros(len(input_ids), dtype=np.bool_)
    for token in chain(*ends.items()):
        is_boundary |= input_ids == token
    places = np.flatnonzero(is_boundary)
    tokens = input_ids[places]
    closing = tokens[::2].copy()
    for start, end in ends.items():
        closing[tokens[::2] == start] = end
    is_wrong = np.empty(len(tokens), dtype=np.bool_)
    is_wrong[::2] = ~np.isin(tokens[::2], starts)
    is_wrong[1::2] = tokens[1::2] != closing[: len(tokens) // 2]
    if is_wrong.any():
        at = int(is_wrong.argmax())
        if at % 2 == 0:
            raise ValueError(f"the end token {tokens[at]} at position {places[at]} closes nothing")
        raise ValueError(
            f"token {tokens[at]} at position {places[at]} stands inside the pair that token {tokens[at - 1]} opened at "
            f"position {places[at - 1]}; that pair ends with token {closing[at // 2]}"
        )
    if len(tokens) % 2:
        raise ValueError(f"the start token {tokens[-1]} at position {places[-1]} is never closed")
    return places[::2], places[1::2]
