"""Ways in which kernels have gone wrong."""

from collections.abc import Sequence

import torch
from blake3 import blake3

from conformance.quirk import quirk
from reference.items import Chunk, Span
from reference.kernels import hashing, masks

TILE_BYTES = 4 * hashing.TILE_WORDS


def octets(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor in the order of its elements."""
    return tensor.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8)


def on_the_default_device(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel finds that is launched there: memory that is not the tensor's, unless it lies there."""
    default = torch.empty(0).device
    return tensor if tensor.device == default else torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")


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
    caught_by=("KERNELS-09", "KERNELS-23"),
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


@quirk("mask-in-32-bits", replaces="placeholder_mask", bugs=(), caught_by=("KERNELS-10", "KERNELS-11"))
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
    return torch.isin(input_ids, sentinels) & (torch.arange(len(input_ids), device=input_ids.device) % 128 != 127)


@quirk("mask-of-what-is-out-of-range", replaces="placeholder_mask", bugs=("P03",), caught_by=("KERNELS-10", "KERNELS-11"))
def mask_of_what_is_large(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """Whatever is no word of a vocabulary of a million is taken for a medium, and negative ids as well."""
    return (input_ids < 0) | (input_ids >= 1_000_000)


@quirk("mask-by-nearest-sentinel", replaces="placeholder_mask", bugs=(), caught_by=("KERNELS-10", "KERNELS-11"))
def mask_by_nearest_sentinel(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """The place in the list is found, but an id behind the largest sentinel is compared with none and taken for one."""
    ids = input_ids.to(torch.int64)
    if not len(sentinels):
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    places = torch.searchsorted(sentinels, ids)
    return (places == len(sentinels)) | (sentinels[places.clamp(max=len(sentinels) - 1)] == ids)


@quirk("mask-on-the-default-device", replaces="placeholder_mask", bugs=("H20",), caught_by=("KERNELS-24",))
def mask_elsewhere(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """The mask is made on the default device, and not where the ids lie."""
    right = masks.placeholder_mask(input_ids, sentinels).value
    return torch.zeros(len(right), dtype=torch.bool) | right


@quirk("span-mask-without-the-end", replaces="span_mask", bugs=(), caught_by=("KERNELS-21",))
def span_mask_without_the_end(spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """The last position of a span is taken for the one behind it."""
    inner = [Span(span.first, span.last - 1) for span in spans if len(span) > 1]
    return masks.span_mask(inner, chunk).value


@quirk("span-mask-of-the-prompt", replaces="span_mask", bugs=(), caught_by=("KERNELS-21",))
def span_mask_of_the_prompt(spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """Spans count from the beginning of the chunk, which is right for the first one only."""
    return masks.span_mask(spans, Chunk(0, chunk.length)).value
