"""What the steps cost as plain Python: one well-written loop over all positions each, to compare an engine with."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from reference.items import Chunk, Item, MropeLayout, Span

Ids = NDArray[np.int64]


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
    return np.array(_padded(input_ids, items), dtype=np.int64)


def pad_pairs(input_ids: Ids, items: Sequence[Item], start: int, end: int) -> Ids:
    values = [_sentinels(item) for item in items]
    padded = []
    inside: tuple[int, ...] | None = None
    begun = row = 0
    for token in input_ids.tolist():
        if token == end:
            inside = None
        if inside is None:
            padded.append(token)
        else:
            padded.append(inside[row & 3])
            row += 1
        if token == start:
            inside, row = values[begun], 0
            begun += 1
    return np.array(padded, dtype=np.int64)


def token_modalities(length: int, items: Sequence[Item]) -> NDArray[np.int8]:
    modalities = [0] * length
    for item in items:
        number = int(item.modality)
        for span in item.spans:
            for position in range(span.first, span.stop):
                modalities[position] = number
    return np.array(modalities, dtype=np.int8)


def positions(input_ids: Ids, items: Sequence[Item], layout: MropeLayout) -> tuple[Ids, int]:
    """For pictures, in the order of the prompt."""
    times: list[int] = []
    heights: list[int] = []
    widths: list[int] = []
    number = 0
    for item in items:
        for _ in range(len(times), item.spans[0].first):
            times.append(number)
            heights.append(number)
            widths.append(number)
            number += 1
        _, height, width = item.fields["image_grid_thw"]
        rows, columns = height // layout.spatial_merge_size, width // layout.spatial_merge_size
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
    return np.array([times, heights, widths], dtype=np.int64), number - len(input_ids)


def match(known: Sequence[int], input_ids: Ids, items: Sequence[Item], page: int) -> int:
    """How many positions of a padded prompt and of this one are the same, in whole pages."""
    same = 0
    for ours, theirs in zip(_padded(input_ids, items), known, strict=False):
        if ours != theirs:
            break
        same += 1
    return same // page * page


def plan_chunks(length: int, items: Sequence[Item], tokens_per_step: int, embeddings_per_step: int) -> list[Chunk]:
    """An item costs its embeddings in the chunk that computes its first position."""
    counts = {item.spans[0].first: item.token_count for item in items}
    chunks = []
    start = made = 0
    for position in range(length):
        count = counts.get(position, 0)
        if position - start == tokens_per_step or made + count > embeddings_per_step:
            chunks.append(Chunk(start, position - start))
            start, made = position, 0
        made += count
    return [*chunks, Chunk(start, length - start)]


def _padded(input_ids: Ids, items: Sequence[Item]) -> list[int]:
    padded: list[int] = input_ids.tolist()
    for item in items:
        values = _sentinels(item)
        for span in item.spans:
            for row, position in enumerate(range(span.first, span.stop)):
                padded[position] = values[row & 3]
    return padded


def _sentinels(item: Item) -> tuple[int, ...]:
    assert item.identity is not None
    digest = sha256(b"sglang-mm-wide-pad-v1" + item.identity).digest()
    words = (int.from_bytes(digest[first : first + 8], "big") for first in range(0, 32, 8))
    return tuple(1_000_000 + (word & (1 << 62) - 1) for word in words)
