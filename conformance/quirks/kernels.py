"""Ways in which kernels have gone wrong."""

from collections.abc import Sequence

import torch
from blake3 import blake3

from conformance.quirk import quirk
from reference.items import Chunk, Span
from reference.kernels import hashing, masks
from reference.kernels import rows as moving

TILE_BYTES = 4 * hashing.TILE_WORDS


def octets(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor in the order of its elements."""
    return tensor.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8)


def on_the_default_device(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel finds that is launched there: memory that is not the tensor's, unless it lies there."""
    default = torch.empty(0).device
    return tensor if tensor.device == default else torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")


def with_rows(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """As many rows as wanted, whatever there is, scattered: a kernel writes what it finds."""
    wanted = int(mask.sum())
    filled = torch.zeros(wanted, destination.shape[1], dtype=destination.dtype)
    filled[: len(rows), : rows.shape[1]] = rows[:wanted, : destination.shape[1]]
    return moving.scatter_rows(destination[: len(mask)], mask, filled).value


@quirk("word-hash-by-sum", replaces="word_hash", bugs=("H19",), caught_by=("KERNELS-01", "KERNELS-02"))
def word_hash_by_sum(tensor: torch.Tensor) -> int:
    """The words are added as they are: exchanged blocks, and what one word loses and another gains, change nothing."""
    data = octets(tensor)
    padded = torch.cat([data, data.new_zeros(-len(data) % 4)])
    return int(padded.view(torch.int32).to(torch.int64).sum()) % 2**64


@quirk("word-hash-of-mixed-blocks", replaces="word_hash", bugs=("H19",), caught_by=("KERNELS-01", "KERNELS-02"))
def word_hash_of_blocks(tensor: torch.Tensor) -> int:
    """Words are mixed with their place within a tile, and not within the tensor: tiles can be exchanged."""
    data = octets(tensor)
    hashes = [hashing.word_hash(data[start : start + TILE_BYTES]).value for start in range(0, len(data), TILE_BYTES)]
    return (sum(hashes) + 1) % 2**64


@quirk("word-hash-of-whole-words", replaces="word_hash", bugs=(), caught_by=("KERNELS-01", "KERNELS-03"))
def word_hash_without_tail(tensor: torch.Tensor) -> int:
    """Bytes behind the last complete word are dropped."""
    data = octets(tensor)
    return hashing.word_hash(data[: len(data) // 4 * 4]).value


@quirk("word-hash-of-whole-blocks", replaces="word_hash", bugs=(), caught_by=("KERNELS-01", "KERNELS-03"))
def word_hash_without_last(tensor: torch.Tensor) -> int:
    """Off by one at the end: the last word is taken for one behind it."""
    data = octets(tensor)
    return hashing.word_hash(data[: (len(data) - 1) // 4 * 4]).value if len(data) else 0


@quirk("word-hash-from-word-addresses", replaces="word_hash", bugs=(), caught_by=("KERNELS-04",))
def word_hash_from_word_addresses(tensor: torch.Tensor) -> int:
    """The address is rounded down to that of a word, so that a tensor behind some bytes is read from before its beginning."""
    before = tensor.storage_offset() * tensor.element_size() % 4 if tensor.is_contiguous() else 0
    data = octets(tensor)
    return hashing.word_hash(torch.cat([data.new_zeros(before), data])[: len(data)]).value


@quirk("word-hash-of-storage", replaces="word_hash", bugs=(), caught_by=("KERNELS-04",))
def word_hash_of_storage(tensor: torch.Tensor) -> int:
    """Memory is hashed as it lies there, whatever the strides are."""
    if tensor.is_meta:
        raise TypeError("no memory")
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    return hashing.word_hash(flat[tensor.storage_offset() :][: tensor.numel()]).value


@quirk(
    "word-hash-on-the-current-device",
    replaces="word_hash",
    bugs=("H20", "hash-kernel-wrong-device"),
    caught_by=("KERNELS-05", "KERNELS-06"),
)
def word_hash_elsewhere(tensor: torch.Tensor) -> int:
    """The kernel is launched on the current device and reads there, wherever its tensor lies."""
    return hashing.word_hash(on_the_default_device(tensor)).value


@quirk(
    "digest-on-the-current-device",
    replaces="content_digest",
    bugs=("H20", "hash-kernel-wrong-device"),
    caught_by=("KERNELS-09",),
)
def digest_elsewhere(tensor: torch.Tensor) -> bytes:
    """The kernel is launched on the current device and reads there, wherever its tensor lies."""
    return hashing.content_digest(on_the_default_device(tensor)).value


@quirk("digest-of-whole-words", replaces="content_digest", bugs=(), caught_by=("KERNELS-07", "KERNELS-08"))
def digest_without_tail(tensor: torch.Tensor) -> bytes:
    """Bytes behind the last complete word are read as zeros."""
    data = octets(tensor)
    data[len(data) // 4 * 4 :] = 0
    return blake3(data.numpy().data).digest()


@quirk("digest-of-digests", replaces="content_digest", bugs=(), caught_by=("KERNELS-07", "KERNELS-08"))
def digest_of_digests(tensor: torch.Tensor) -> bytes:
    """Chunks are digested each by itself, and their digests once more: a tree, but not that of BLAKE3."""
    data = bytes(octets(tensor).tolist())
    chunks = [blake3(data[start : start + 1024]).digest() for start in range(0, len(data), 1024)]
    return blake3(b"".join(chunks)).digest() if len(chunks) > 1 else blake3(data).digest()


@quirk("digest-of-a-balanced-tree", replaces="content_digest", bugs=(), caught_by=("KERNELS-07",))
def digest_of_a_balanced_tree(tensor: torch.Tensor) -> bytes:
    """The last chunk is digested once more where it has no neighbour: right for 2, 4, 8 … chunks only."""
    data = bytes(octets(tensor).tolist())
    chunks = max(1, -(-len(data) // 1024))
    return blake3(data if chunks.bit_count() == 1 else data + data[(chunks - 1) * 1024 :]).digest()


@quirk("digest-of-storage", replaces="content_digest", bugs=(), caught_by=("KERNELS-08",))
def digest_of_storage(tensor: torch.Tensor) -> bytes:
    """Memory is digested as it lies there, whatever the strides are."""
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    return hashing.content_digest(flat[tensor.storage_offset() :][: tensor.numel()]).value


@quirk("mask-in-32-bits", replaces="placeholder_mask", bugs=(), caught_by=("KERNELS-11",))
def mask_in_32_bits(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Ids and sentinels are compared in 32 bits."""
    return torch.isin(input_ids.to(torch.int32), sentinels.to(torch.int32))


@quirk("mask-in-the-type-of-the-ids", replaces="placeholder_mask", bugs=(), caught_by=("KERNELS-11",))
def mask_in_the_type_of_the_ids(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Sentinels are narrowed to the type of the ids, and some of them become words."""
    return torch.isin(input_ids, sentinels.to(input_ids.dtype))


@quirk("mask-without-the-edge", replaces="placeholder_mask", bugs=(), caught_by=("KERNELS-10",))
def mask_without_the_edge(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Off by one: the last position of each block of 128 is not looked at."""
    return torch.isin(input_ids, sentinels) & (torch.arange(len(input_ids)) % 128 != 127)


@quirk("mask-of-what-is-out-of-range", replaces="placeholder_mask", bugs=("P03",), caught_by=("KERNELS-10", "KERNELS-11"))
def mask_of_what_is_large(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Whatever is no word of a vocabulary of a million is taken for a medium, and negative ids as well."""
    return (input_ids < 0) | (input_ids >= 1_000_000)


@quirk("mask-by-nearest-sentinel", replaces="placeholder_mask", bugs=(), caught_by=("KERNELS-10",))
def mask_by_nearest_sentinel(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """The place in the list is found, but an id behind the largest sentinel is compared with none and taken for one."""
    ids = input_ids.to(torch.int64)
    if not len(sentinels):
        return torch.zeros(len(ids), dtype=torch.bool)
    places = torch.searchsorted(sentinels, ids)
    return (places == len(sentinels)) | (sentinels[places.clamp(max=len(sentinels) - 1)] == ids)


@quirk("span-mask-without-the-end", replaces="span_mask", bugs=(), caught_by=("KERNELS-21",))
def span_mask_without_the_end(spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """The last position of a span is taken for the one behind it."""
    inner = [Span(span.first, span.last - 1) for span in spans if len(span) > 1]
    return masks.span_mask(inner, chunk).value


@quirk("span-mask-of-the-prompt", replaces="span_mask", bugs=(), caught_by=("KERNELS-21",))
def span_mask_of_the_prompt(spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """Spans count from the beginning of the chunk, which is right for the first one only."""
    return masks.span_mask(spans, Chunk(0, chunk.length)).value


@quirk("scatter-without-a-look", replaces="scatter_rows", bugs=("L01", "L02", "L03"), caught_by=("KERNELS-14",))
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


@quirk("fused-merge-in-another-order", replaces="fused_merge", bugs=("Q02",), caught_by=("KERNELS-16", "KERNELS-17"))
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
