"""What the steps cost as plain Python: one well-written loop over all positions each, to compare an engine with.

A loop looks at each position by itself; what is once per item or span is as short as it can be. It takes items in any order
and refuses what an engine must refuse: spans that overlap or leave the prompt, grids that do not fill their span, token
pairs that do not add up.
"""

import struct
from collections.abc import Sequence
from hashlib import sha256
from itertools import cycle
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from reference.items import Chunk, Item, MropeLayout, Span

Ids = NDArray[np.int64]
LOW_62 = (1 << 62) - 1


def find_spans(input_ids: Ids, token_id: int) -> tuple[Span, ...]:
    spans = []
    first = None
    for position, token in enumerate(input_ids.tolist()):
        if token == token_id:
            if first is None:
                first = position
        elif first is not None:
            spans.append(Span(first, position - 1))
            first = None
    if first is not None:
        spans.append(Span(first, len(input_ids) - 1))
    return tuple(spans)


def pad_spans(input_ids: Ids, items: Sequence[Item]) -> Ids:
    return _array(_padded(input_ids, items))


def pad_pairs(input_ids: Ids, items: Sequence[Item], start: int, end: int) -> Ids:
    values = [_sentinels(item) for item in items]
    padded = []
    inside: tuple[int, ...] | None = None
    begun = row = 0
    for token in input_ids.tolist():
        if token == end:
            if inside is None:
                raise ValueError("an end token closes nothing")
            inside = None
        if inside is None:
            padded.append(token)
        else:
            padded.append(inside[row & 3])
            row += 1
        if token == start:
            if inside is not None or begun == len(values):
                raise ValueError("a start token inside a pair, or of no item")
            inside, row = values[begun], 0
            begun += 1
    if inside is not None or begun < len(values):
        raise ValueError("a start token is never closed, or an item never begun")
    return _array(padded)


def token_modalities(length: int, items: Sequence[Item]) -> NDArray[np.int8]:
    modalities = bytearray(length)
    for span, item in _by_position(items, length):
        number = int(item.modality)
        for position in range(span.first, span.stop):
            modalities[position] = number
    return np.frombuffer(modalities, dtype=np.int8)


def positions(input_ids: Ids, items: Sequence[Item], layout: MropeLayout) -> tuple[Ids, int]:
    """For pictures."""
    times: list[int] = []
    heights: list[int] = []
    widths: list[int] = []
    number = 0
    for span, item in _by_position(items, len(input_ids)):
        for _ in range(len(times), span.first):
            times.append(number)
            heights.append(number)
            widths.append(number)
            number += 1
        frames, height, width = item.fields["image_grid_thw"]
        rows, columns = height // layout.spatial_merge_size, width // layout.spatial_merge_size
        if frames != 1 or rows * columns != len(span):
            raise ValueError("a grid that does not fill its span")
        for row in range(number, number + rows):
            for column in range(number, number + columns):
                times.append(number)
                heights.append(row)
                widths.append(column)
        number += max(rows, columns)
    for _ in range(len(times), len(input_ids)):
        times.append(number)
        heights.append(number)
        widths.append(number)
        number += 1
    return np.stack([_array(times), _array(heights), _array(widths)]), number - len(input_ids)


def match(known: Sequence[int], input_ids: Ids, items: Sequence[Item], page: int) -> int:
    """How many positions of a padded prompt and of this one are the same, in whole pages."""
    same = 0
    for ours, theirs in zip(_padded(input_ids, items), known, strict=False):
        if ours != theirs:
            break
        same += 1
    return same // page * page


def plan_chunks(length: int, items: Sequence[Item], tokens_per_step: int, embeddings_per_step: int) -> list[Chunk]:
    """For items of one span: each costs its embeddings in the chunk that computes its first position."""
    costs = [0] * length
    for span, _ in _by_position(items, length):
        costs[span.first] = len(span)
    chunks = []
    start, stop, made = 0, tokens_per_step, 0
    for position, cost in enumerate(costs):
        made += cost
        if position == stop or made > embeddings_per_step:
            chunks.append(Chunk(start, position - start))
            start, stop, made = position, position + tokens_per_step, cost
    return [*chunks, Chunk(start, length - start)]


def _padded(input_ids: Ids, items: Sequence[Item]) -> list[int]:
    padded: list[int] = input_ids.tolist()
    for span, item in _by_position(items, len(input_ids)):
        for position, value in zip(range(span.first, span.stop), cycle(_sentinels(item)), strict=False):
            padded[position] = value
    return padded


def _by_position(items: Sequence[Item], length: int) -> list[tuple[Span, Item]]:
    """Each span with its item. Raises ValueError for spans that overlap or end outside the prompt."""
    spans = sorted([(span.first, span, item) for item in items for span in item.spans], key=itemgetter(0))
    done = -1
    for _, span, _ in spans:
        if span.first <= done:
            raise ValueError("spans overlap")
        done = span.last
    if done >= length:
        raise ValueError("a span ends outside the prompt")
    return [(span, item) for _, span, item in spans]


def _sentinels(item: Item) -> tuple[int, ...]:
    assert item.identity is not None
    a, b, c, d = struct.unpack(">4Q", sha256(b"sglang-mm-wide-pad-v1" + item.identity).digest())
    return 1_000_000 + (a & LOW_62), 1_000_000 + (b & LOW_62), 1_000_000 + (c & LOW_62), 1_000_000 + (d & LOW_62)


def _array(numbers: list[int]) -> Ids:
    return np.fromiter(numbers, np.int64, len(numbers))
