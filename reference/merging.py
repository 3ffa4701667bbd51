"""Merging: what enters the language model, text embeddings and the rows of media in one tensor.

1. A position is a medium because a span says so, never because of its id. A placeholder id outside all spans, typed by
   a user or sampled by the model, is text and gets its text embedding.
2. Rows come by position, whatever the order of the items or of their modalities: the k-th row belongs to the k-th
   media position of the chunk. So one scatter serves all modalities, and interleaved ones cannot swap.
3. Sentinels lie outside the vocabulary. Only media positions may hold such an id, and it is never looked up. At a text
   position it is an error: clamped into the vocabulary it would be read as some other word.
4. A wrong number of rows is an error of this request, found before anything is written. On a GPU it would otherwise be
   an out-of-bounds write that takes the whole engine down.
5. Every call makes new tensors, so no row of an earlier chunk can show through. Runs of text and of media take turns in
   them: they are joined as whole runs, and each row is written once.

Source: SGLang 0.5.23, `_get_multimodal_mask`, `_adjust_embedding_length`, `embed_mm_inputs`, `_scatter_mm_embedding` and
`separate_deepstack_embeds`.
Disagreements: SGLang finds media by sentinel and clamps all ids in the caller's tensor; asked for 0 rows, its length
adjustment keeps all. vLLM merges by a recorded mask, and one row too few is broadcast where torch allows it.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle, islice

import numpy as np
import torch
from numpy.typing import NDArray

from reference.items import Chunk, Item, Span, all_spans, span_table
from reference.placeholders import pad_spans
from reference.sentinels import item_sentinels


def span_mask(spans: Iterable[Span], chunk: Chunk) -> NDArray[np.bool_]:
    """Which positions of the chunk lie in a span: bool [chunk.length]. Spans are in any order."""
    mask = np.zeros(chunk.length, dtype=np.bool_)
    for span in spans:
        mask[max(span.first - chunk.prefix, 0) : max(span.stop - chunk.prefix, 0)] = True
    return mask


def sentinel_mask(input_ids: NDArray[np.int64], sentinels: Iterable[int]) -> NDArray[np.bool_]:
    """Which positions of `input_ids` int64 [n] hold one of the sentinels: bool [n]."""
    return np.isin(input_ids, np.array([*sentinels], dtype=np.int64))


def check_padding(input_ids: NDArray[np.int64], items: Sequence[Item], chunk: Chunk) -> None:
    """Raise ValueError, naming the position, where the ids of a chunk and the recorded spans disagree.

    They agree when each media position holds the sentinel that `pad_spans` puts there, and no text position holds a
    sentinel of these items. Items have an identity or a caller hash.
    """
    _check_length(input_ids, chunk)
    spans = all_spans(items)
    media = span_mask(spans, chunk)
    longest = max([chunk.stop, *(span.stop for span in spans)])
    expected = pad_spans(np.zeros(longest, dtype=np.int64), items)[chunk.prefix : chunk.stop]
    astray = sentinel_mask(input_ids, (value for item in items for value in item_sentinels(item)))
    wrong = np.flatnonzero(np.where(media, input_ids != expected, astray))
    if wrong.size:
        place = "a media position" if media[wrong[0]] else "a text position"
        raise ValueError(
            f"position {chunk.prefix + wrong[0]} is {place} by the recorded spans, but holds the id {input_ids[wrong[0]]}: "
            "ids and spans disagree"
        )


def text_ids(input_ids: NDArray[np.int64], media: NDArray[np.bool_], vocabulary: int, prefix: int = 0) -> NDArray[np.int64]:
    """The ids at the text positions of `input_ids`, by position, to look up text embeddings with: a new int64 array.

    prefix: the position of the first id, for the error message.
    Raises ValueError, naming position and id, when one of them is outside 0 to vocabulary - 1.
    """
    positions = np.flatnonzero(~media)
    ids = input_ids[positions]
    strangers = np.flatnonzero((ids < 0) | (ids >= vocabulary))
    if strangers.size:
        first = int(strangers[0])
        raise ValueError(
            f"the text position {prefix + positions[first]} holds the id {ids[first]}, outside a vocabulary of {vocabulary} "
            "ids; only positions of media may"
        )
    return ids


def fit_length(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The last `count` of `rows` [m, hidden], 0 included; a view.

    Rows that are to be dropped are those of an earlier chunk, so they come first. Raises ValueError when there are
    fewer rows than `count`: nothing could stand in for the missing ones.
    """
    if count < 0:
        raise ValueError(f"a chunk cannot need {count} rows")
    if len(rows) < count:
        raise ValueError(f"a chunk has {count} positions of media, but there are only {len(rows)} rows for them")
    return rows[len(rows) - count :]


def merge(
    input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> torch.Tensor:
    """What enters the language model for one chunk: a new tensor [chunk.length, hidden] of the table's dtype and device.

    input_ids: the ids of the chunk, int64 [chunk.length]. What they are at media positions does not matter here;
    `check_padding` verifies it.
    items: of the whole prompt, in any order; the recorded spans say which positions are media.
    rows: [positions of media in the chunk, hidden], by position, of any floating type.
    table: the text embeddings [vocabulary, hidden].

    Raises ValueError for any other number or width of rows, for spans that overlap, and for an id outside the
    vocabulary at a text position.
    """
    _check_length(input_ids, chunk)
    media = _media_mask(items, chunk)
    if rows.ndim != 2 or rows.shape[1] != table.shape[1]:
        raise ValueError(f"rows have the shape {list(rows.shape)}, but the model takes [rows, {table.shape[1]}]")
    if len(rows) != media.sum():
        raise ValueError(f"{len(rows)} rows for {media.sum()} positions of media in {chunk}: each one takes exactly one row")
    ids = torch.from_numpy(text_ids(input_ids, media, len(table), chunk.prefix)).to(table.device)
    return torch.cat(_in_turns(media, table.index_select(0, ids), rows.to(table)))


def merge_deepstack(
    input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> tuple[torch.Tensor, torch.Tensor]:
    """`merge` for encoders that also feed deeper layers: rows are [media, hidden * (1 + levels)].

    Returns what `merge` would for the first `hidden` columns, and [levels, chunk.length, hidden] of the table's dtype
    for the others: level l holds the l-th further `hidden` columns at the positions of media and zeros at text.

    Raises ValueError as `merge` does, and when the width of the rows is no multiple of `hidden`.
    """
    hidden = table.shape[1]
    if rows.ndim != 2 or rows.shape[1] % hidden or rows.shape[1] < hidden:
        raise ValueError(f"rows have the shape {list(rows.shape)}, but their width must be a multiple of {hidden}")
    merged = merge(input_ids, items, rows[:, :hidden], table, chunk)
    media, nothing = _media_mask(items, chunk), table.new_zeros(chunk.length - len(rows), hidden)
    levels = [rows[:, first : first + hidden].to(table) for first in range(hidden, rows.shape[1], hidden)]
    deeper = torch.cat([nothing[:0], *(run for level in levels for run in _in_turns(media, nothing, level))])
    return merged, deeper.view(len(levels), chunk.length, hidden)


def _check_length(input_ids: NDArray[np.int64], chunk: Chunk) -> None:
    if len(input_ids) != chunk.length:
        raise ValueError(f"{len(input_ids)} ids for {chunk}, which has {chunk.length} positions")


def _media_mask(items: Sequence[Item], chunk: Chunk) -> NDArray[np.bool_]:
    spans = span_table(items)
    edges = np.column_stack([spans.firsts, spans.stops]).ravel()
    inside = np.clip(edges - chunk.prefix, 0, chunk.length)
    return np.repeat(np.arange(len(edges) + 1) % 2 == 1, np.diff(inside, prepend=0, append=chunk.length))


def _in_turns(media: NDArray[np.bool_], text: torch.Tensor, rows: torch.Tensor) -> list[torch.Tensor]:
    """Each run of text positions and each run of media as its part of `text` or `rows`, by position, beginning with text."""
    edges = np.flatnonzero(np.diff(media, prepend=False))
    lengths = np.diff(edges, prepend=0, append=len(media)).tolist()
    sources = cycle((iter(text.split_with_sizes(lengths[::2])), iter(rows.split_with_sizes(lengths[1::2]))))
    return [next(source) for source in islice(sources, len(lengths))]
