"""Ways in which kernels that move rows have gone wrong."""

from collections.abc import Sequence

import torch

from conformance.quirk import quirk
from reference.items import Chunk, Span
from reference.kernels import masks
from reference.kernels import rows as moving


def with_rows(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """As many rows as wanted, whatever there is, scattered: a kernel writes what it finds."""
    wanted = int(mask.sum())
    filled = torch.zeros(wanted, destination.shape[1], dtype=destination.dtype)
    filled[: len(rows), : rows.shape[1]] = rows[:wanted, : destination.shape[1]]
    return moving.scatter_rows(destination[: len(mask)], mask, filled).value


@quirk("scatter-without-a-look", replaces="scatter_rows", bugs=("L01", "L02", "L03"), caught_by=("KERNELS-14", "KERNELS-22"))
def scatter_without_a_look(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Nobody counts the rows: what is missing is whatever lies behind them."""
    return with_rows(destination, mask, rows)


@quirk("scatter-one-row-further", replaces="scatter_rows", bugs=("Q01",), caught_by=("KERNELS-12", "KERNELS-13", "KERNELS-22"))
def scatter_one_further(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The sum of the mask includes the position itself, and is taken for the number of rows before it."""
    return moving.scatter_rows(destination, mask, rows.roll(-1, 0)).value


@quirk("scatter-of-whole-tiles", replaces="scatter_rows", bugs=(), caught_by=("KERNELS-12",))
def scatter_of_whole_tiles(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Columns behind the last complete tile of 128 are not written."""
    right = moving.scatter_rows(destination, mask, rows).value
    if destination.shape[1] > 128:
        right[:, 128:] = destination[:, 128:]
    return right


@quirk("scatter-by-dense-strides", replaces="scatter_rows", bugs=(), caught_by=("KERNELS-13",))
def scatter_by_dense_strides(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Rows are read as if they lay one behind the other."""
    flat = torch.empty(0, dtype=rows.dtype, device=rows.device).set_(rows.untyped_storage())[rows.storage_offset() :]
    dense = flat.repeat(rows.numel() + 1)[: rows.numel()].reshape(rows.shape) if rows.numel() else rows
    return moving.scatter_rows(destination, mask, dense).value


@quirk("scatter-into-the-destination", replaces="scatter_rows", bugs=(), caught_by=("KERNELS-15",))
def scatter_in_place(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The caller's tensor is written to."""
    right = moving.scatter_rows(destination, mask, rows).value
    return destination.copy_(right)


Layers = tuple[torch.Tensor, torch.Tensor]


@quirk("fused-merge-by-id", replaces="fused_merge", bugs=("merge-by-token-id-generated-pad",), caught_by=("KERNELS-18",))
def merge_by_id(ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """A text position whose id is out of range is taken for a medium, and gets whatever row comes next."""
    merged, levels = moving.fused_merge(ids, spans, rows, table, chunk).value
    stray = ((ids < 0) | (ids >= len(table))) & ~masks.span_mask(spans, chunk).value
    merged[stray] = rows[0, : table.shape[1]] if len(rows) else torch.zeros_like(table[0])
    return merged, levels


@quirk("fused-merge-without-clamp", replaces="fused_merge", bugs=("P04",), caught_by=("KERNELS-18",))
def merge_without_clamp(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """Ids are not clamped: an id outside of the table reads other memory, here the table once more."""
    return moving.fused_merge(ids.remainder(len(table)), spans, rows, table, chunk).value


@quirk("fused-merge-clamps-one-too-far", replaces="fused_merge", bugs=(), caught_by=("KERNELS-18",))
def merge_one_too_far(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """Ids are clamped to the size of the vocabulary, which is one behind its last word."""
    longer = torch.cat([table, torch.zeros_like(table[:1])])
    return moving.fused_merge(ids, spans, rows, longer, chunk).value


@quirk("fused-merge-clamps-in-place", replaces="fused_merge", bugs=(), caught_by=("KERNELS-20",))
def merge_clamps_in_place(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """The caller's ids are clamped into the vocabulary, and the sentinels are gone."""
    return moving.fused_merge(ids.clamp_(0, len(table) - 1), spans, rows, table, chunk).value


@quirk(
    "fused-merge-in-another-order", replaces="fused_merge", bugs=("Q02",), caught_by=("KERNELS-16", "KERNELS-17", "KERNELS-22")
)
def merge_in_another_order(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """Rows are handed out in another order than that of the positions."""
    return moving.fused_merge(ids, spans, rows.flip(0), table, chunk).value


@quirk("fused-merge-of-any-rows", replaces="fused_merge", bugs=("L01", "L02", "L03"), caught_by=("KERNELS-19",))
def merge_of_any_rows(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """Nobody counts the rows: too many are ignored, and too few are followed by zeros."""
    wanted = int(masks.span_mask(spans, chunk).value.sum())
    enough = torch.cat([rows, rows.new_zeros(wanted, rows.shape[1])])[:wanted]
    return moving.fused_merge(ids, spans, enough, table, chunk).value


@quirk("fused-merge-text-in-all-levels", replaces="fused_merge", bugs=(), caught_by=("KERNELS-17",))
def merge_text_in_levels(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """The deeper layers get the embeddings of text, too."""
    merged, levels = moving.fused_merge(ids, spans, rows, table, chunk).value
    text = ~masks.span_mask(spans, chunk).value
    levels[:, text] = merged[text]
    return merged, levels


@quirk("fused-merge-through-float16", replaces="fused_merge", bugs=("hash-bf16-to-fp16",), caught_by=("KERNELS-16",))
def merge_through_float16(
    ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> Layers:
    """bfloat16 passes through float16 on its way."""
    merged, levels = moving.fused_merge(ids, spans, rows, table, chunk).value
    return (merged.to(torch.float16).to(merged.dtype), levels) if merged.dtype == torch.bfloat16 else (merged, levels)


@quirk("scratch-on-the-default-device", replaces="fused_merge", bugs=("H20",), caught_by=("KERNELS-22",))
def merge_elsewhere(ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk) -> Layers:
    """What the kernel writes to is made on the default device, and not where the table lies."""
    merged, levels = moving.fused_merge(ids, spans, rows, table, chunk).value
    return torch.empty(merged.shape, dtype=merged.dtype).copy_(merged), levels
