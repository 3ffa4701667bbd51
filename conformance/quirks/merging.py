"""Ways in which engines have merged text and media wrongly."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from conformance.world.prompts import PLACEHOLDERS
from reference import merging as right
from reference.items import Chunk, Item, all_spans

Ids = NDArray[np.int64]
Merge = Callable[[Ids, Sequence[Item], torch.Tensor, torch.Tensor, Chunk], torch.Tensor]


@quirk("text-through-the-type-of-the-rows", replaces="merge", bugs=(), caught_by=("MERGING-01",))
def narrow_text(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """The whole chunk is assembled in the type of the encoder's output, which rounds the text embeddings."""
    return right.merge(ids, items, rows, table.to(rows.dtype).to(table.dtype), chunk)


@quirk("rows-in-modality-order", replaces="merge", bugs=("Q01", "Q02"), caught_by=("MERGING-02",))
def grouped_by_modality(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Rows are taken to come modality by modality, pictures first, and not by position."""
    return _reordered(ids, sorted(items, key=lambda item: item.modality), rows, table, chunk)


@quirk("rows-in-list-order", replaces="merge", bugs=("omni-interleaved-scatter-misalign",), caught_by=("MERGING-02",))
def grouped_by_item(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """The rows of an item are kept together although the positions of two items alternate."""
    return _reordered(ids, items, rows, table, chunk)


@quirk("first-picture-everywhere", replaces="merge", bugs=("mlx-gemma3-where-instead-of-scatter",), caught_by=("MERGING-02",))
def rows_of_the_first(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Only the rows of the first picture are kept, and serve all others as well."""
    first = right.span_mask(all_spans(items[:1]), chunk).sum()
    again = torch.arange(len(rows)) % max(int(first), 1)
    return right.merge(ids, items, rows[again] if len(rows) else rows, table, chunk)


@quirk(
    "spans-counted-from-the-chunk",
    replaces="merge",
    bugs=("chunked-prefill-old-merge-shape", "N03"),
    caught_by=("MERGING-03", "MERGING-04"),
)
def without_prefix(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Spans of the whole prompt are looked up in a chunk as if it began with the prompt."""
    return right.merge(ids, items, rows, table, Chunk(0, chunk.length))


@quirk("rows-rolled-after-a-prefix", replaces="merge", bugs=("E03",), caught_by=("MERGING-03",))
def rolled_after_a_prefix(
    ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> torch.Tensor:
    """A chunk that begins inside a picture starts at the picture's second remaining row."""
    inside = any(span.first < chunk.prefix < span.stop for span in all_spans(items))
    return right.merge(ids, items, rows.roll(-1, 0) if inside else rows, table, chunk)


@quirk(
    "merged-by-token-id",
    replaces="merge",
    bugs=("merge-by-token-id-generated-pad", "generated-pad-desync", "W04", "text-literal-placeholder-steals-binding"),
    caught_by=("MERGING-04",),
)
def by_token_id(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Every placeholder id takes a row, one that the user typed or the model sampled as well."""
    media = right.span_mask(all_spans(items), chunk)
    taken = np.flatnonzero(media | np.isin(ids, list(PLACEHOLDERS.values())))[: len(rows)]
    text = torch.from_numpy(right.text_ids(ids, media, len(table)))
    merged = torch.where(torch.from_numpy(media)[:, None], right.merge(ids, items, rows, table, chunk), table[text])
    merged[taken] = rows[: len(taken)].to(table.dtype)
    return merged


@quirk("ids-clamped-in-place", replaces="merge", bugs=(), caught_by=("MERGING-05",))
def clamps_in_place(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Sentinels are clamped into the vocabulary in the caller's own array, which the prefix cache reads next."""
    merged = right.merge(ids, items, rows, table, chunk)
    np.clip(ids, 0, len(table) - 1, out=ids)
    return merged


@quirk("missing-rows-are-zeros", replaces="merge", bugs=("L01", "L02"), caught_by=("MERGING-06",))
def filled_up(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Where the encoder gave too few rows, zeros stand in for the missing ones."""
    missing = max(int(right.span_mask(all_spans(items), chunk).sum()) - len(rows), 0)
    return right.merge(ids, items, torch.cat([rows, rows.new_zeros(missing, rows.shape[1])]), table, chunk)


@quirk("surplus-rows-are-cut", replaces="merge", bugs=("L03", "L11"), caught_by=("MERGING-18",))
def cut(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Where the encoder gave too many rows, the first ones are used, which may belong to an earlier chunk."""
    return right.merge(ids, items, rows[: right.span_mask(all_spans(items), chunk).sum()], table, chunk)


@quirk("no-rows-means-no-media", replaces="merge", bugs=("chunk-mm-mask-vocab-heuristic", "Z04"), caught_by=("MERGING-06",))
def dropped(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """A chunk without rows is taken for text only: its media positions get whatever row 0 of the table says."""
    if len(rows):
        return right.merge(ids, items, rows, table, chunk)
    return table[torch.from_numpy(right.text_ids(ids, right.span_mask(all_spans(items), chunk), len(table)))]


@quirk("one-row-broadcast", replaces="merge", bugs=("L02",), caught_by=("MERGING-06",))
def broadcast(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Assignment by mask broadcasts a single row over all positions of media."""
    wanted = int(right.span_mask(all_spans(items), chunk).sum())
    return right.merge(ids, items, rows.repeat(wanted, 1) if len(rows) == 1 and wanted else rows, table, chunk)


@quirk("another-width-fitted", replaces="merge", bugs=("precomputed-hidden-size",), caught_by=("MERGING-07",))
def fitted_width(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Rows of another hidden size are cut, or filled up with zeros."""
    hidden = table.shape[1]
    fitted = torch.nn.functional.pad(rows[:, :hidden], (0, max(hidden - rows.shape[1], 0)))
    return right.merge(ids, items, fitted, table, chunk)


@quirk("one-column-broadcast", replaces="merge", bugs=("precomputed-hidden-size",), caught_by=("MERGING-07",))
def wide_column(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Assignment by mask broadcasts a single column over the hidden size."""
    return right.merge(ids, items, rows.expand(-1, table.shape[1]) if rows.shape[1] == 1 else rows, table, chunk)


@quirk("result-in-the-wider-type", replaces="merge", bugs=(), caught_by=("MERGING-08",))
def promoted(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """The chunk has the type that torch promotes rows and table to, for which no kernel was built."""
    merged = right.merge(ids, items, rows, table, chunk)
    return merged.to(torch.promote_types(rows.dtype, table.dtype)) if len(rows) else merged


@quirk("rows-cast-twice", replaces="merge", bugs=("hash-bf16-to-fp16",), caught_by=("MERGING-08",))
def by_way_of_half(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Rows of a wider type than the table travel as float16, which rounds them twice."""
    wider = rows.dtype.itemsize > table.dtype.itemsize
    return right.merge(ids, items, rows.to(torch.float16) if wider else rows, table, chunk)


@quirk("text-ids-clamped", replaces="merge", bugs=("P03", "P04"), caught_by=("MERGING-09",))
def clamped(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """An id outside the table is clamped into it at text as well, and read as some other word."""
    return right.merge(np.clip(ids, 0, len(table) - 1), items, rows, table, chunk)


@quirk("negative-ids-count-from-the-end", replaces="merge", bugs=("P04",), caught_by=("MERGING-09",))
def wraps(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """A negative id indexes the table from its end."""
    return right.merge(np.where(ids < 0, ids % len(table), ids), items, rows, table, chunk)


@quirk("exact-length-refused", replaces="fit_length", bugs=(), caught_by=("MERGING-10",))
def needs_one_more(rows: torch.Tensor, count: int) -> torch.Tensor:
    """As many rows as wanted count as too few."""
    if len(rows) == count:
        raise ValueError(f"{count} rows wanted, {len(rows)} there")
    return right.fit_length(rows, count)


@quirk("zero-rows-keep-all", replaces="fit_length", bugs=(), caught_by=("MERGING-11",))
def minus_zero(rows: torch.Tensor, count: int) -> torch.Tensor:
    """The last 0 rows are asked for as rows[-0:], which are all of them."""
    return rows[-count:] if len(rows) >= count else right.fit_length(rows, count)


@quirk("first-rows-stay", replaces="fit_length", bugs=("L11",), caught_by=("MERGING-11",))
def first_ones(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Of too many rows the first ones stay, which belong to an earlier chunk."""
    return rows[:count] if len(rows) > count else right.fit_length(rows, count)


@quirk(
    "short-rows-filled-with-zeros",
    replaces="fit_length",
    bugs=("L02", "audio-short-tail-zero-embeds"),
    caught_by=("MERGING-12",),
)
def zeros_for_the_rest(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Zeros stand in for missing rows."""
    missing = max(count - len(rows), 0)
    return right.fit_length(torch.cat([rows, rows.new_zeros(missing, rows.shape[1])]), count)


def _reordered(ids: Ids, items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> torch.Tensor:
    """Merge rows that are taken to come item by item."""
    alone = [replace(item, spans=(span,)) for item in items for span in item.spans]
    order = [p for item in alone for p in range(item.spans[0].first, item.spans[0].stop) if chunk.prefix <= p < chunk.stop]
    if len(rows) != len(order):
        return right.merge(ids, items, rows, table, chunk)
    return right.merge(ids, items, rows[np.argsort(order).tolist()], table, chunk)
