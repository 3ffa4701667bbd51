"""Ways in which engines have got the encoding of a batch wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeAlias

import torch

from conformance.quirk import quirk
from reference import encoding as right
from reference.encoder_cache import EncoderCache
from reference.encoding import Encoder, EncodingError
from reference.items import Chunk, Item, Modality, Request

Batch: TypeAlias = Sequence[tuple[Request, Chunk]]
Encoders: TypeAlias = Mapping[Modality, Encoder]
Answers: TypeAlias = list[torch.Tensor | EncodingError]
Parts: TypeAlias = Callable[[Request], list[list[Item]]]
ROOMY = 1 << 30

# Rows that belong to somebody else


@quirk(
    "last-picture-of-the-batch",
    replaces="encode",
    bugs=("Q03",),
    caught_by=(
        "ENCODING-05",
        "ENCODING-06",
        "ENCODING-07",
        "ENCODING-09",
        "ENCODING-13",
        "ENCODING-15",
        "ENCODING-22",
        "ENCODING-23",
    ),
)
def last_picture(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Every prompt of the batch is given the picture of the last one."""
    if len(batch) < 2:
        return right.encode(batch, encoders, cache)
    last = [item for request, _ in batch for item in request.items if item.feature is not None][-1:]

    def swap(item: Item) -> Item:
        same = [other for other in last if other.modality is item.modality and item.feature is not None]
        return replace(item, feature=same[0].feature, identity=same[0].identity) if same else item

    return right.encode([(with_items(request, map(swap, request.items)), chunk) for request, chunk in batch], encoders, cache)


@quirk(
    "first-chunk-for-all",
    replaces="encode",
    bugs=("chunk-batch-mixed-runtime",),
    caught_by=("ENCODING-05", "ENCODING-06", "ENCODING-07", "ENCODING-13", "ENCODING-15"),
)
def first_chunk(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """How rows are sliced is decided by the first request of the batch."""
    return right.encode([(request, batch[0][1]) for request, _ in batch], encoders, cache)


@quirk(
    "answers-of-a-shorter-list",
    replaces="encode",
    bugs=("chunk-batch-mixed-runtime", "Q06"),
    caught_by=("ENCODING-06", "ENCODING-15"),
)
def shifted(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Requests without media are left out of one list and not of the other, and get the rows of the next request."""
    answers = right.encode(batch, encoders, cache)
    with_rows = [answer for answer in answers if isinstance(answer, EncodingError) or len(answer)]
    return with_rows + [torch.empty(0, 0)] * (len(answers) - len(with_rows))


@quirk(
    "no-rows-is-no-media",
    replaces="encode",
    bugs=("Z04",),
    caught_by=("ENCODING-06", "ENCODING-11", "ENCODING-12", "ENCODING-15"),
)
def truthiness(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """An empty list of rows is taken for a missing one, so that a chunk of text fails its request."""
    answers = right.encode(batch, encoders, cache)
    return [answer if isinstance(answer, EncodingError) or len(answer) else EncodingError("no rows") for answer in answers]


@quirk(
    "encode-whole-items",
    replaces="encode",
    bugs=("chunked-prefill-old-merge-shape", "E03", "Z03"),
    caught_by=("ENCODING-05", "ENCODING-06", "ENCODING-07", "ENCODING-12", "ENCODING-14", "ENCODING-16", "ENCODING-21"),
)
def whole_items(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """All rows of an item that the chunk touches are used, also those of positions that are done or to come."""
    touched = [
        (with_items(r, (i for i in r.items if right.count_in_chunk(i.spans, c))), Chunk(0, len(r.input_ids))) for r, c in batch
    ]
    return right.encode(touched, encoders, cache)


@quirk(
    "one-row-too-many",
    replaces="encode",
    bugs=("emb-cache-length-check-on-hit",),
    caught_by=(
        "ENCODING-05",
        "ENCODING-06",
        "ENCODING-07",
        "ENCODING-11",
        "ENCODING-12",
        "ENCODING-14",
        "ENCODING-15",
        "ENCODING-16",
        "ENCODING-21",
    ),
)
def inclusive_chunk(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The first position after a chunk is taken for its last one."""
    return right.encode([(request, Chunk(chunk.prefix, chunk.length + 1)) for request, chunk in batch], encoders, cache)


@quirk("rows-by-modality", replaces="encode", bugs=("Q01", "Q02"), caught_by=("ENCODING-12", "ENCODING-14"))
def by_modality(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The rows of all images come before those of all videos, wherever they stand in the prompt."""
    return in_parts(batch, encoders, cache, lambda request: [[i for i in request.items if i.modality is m] for m in Modality])


@quirk("rows-by-item", replaces="encode", bugs=("omni-interleaved-scatter-misalign",), caught_by=("ENCODING-12", "ENCODING-14"))
def by_item(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The rows of one item follow those of the item before it in the list, wherever their positions are."""
    return in_parts(batch, encoders, cache, lambda request: [[item] for item in request.items])


@quirk("merged-by-hash-alone", replaces="encode", bugs=("E02",), caught_by=("ENCODING-10",))
def by_hash_alone(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Items of a batch are the same if their identity is; the first one's rows are stretched or cut for the others."""
    first: dict[bytes | None, Item] = {}

    def merged(item: Item) -> Item:
        known = first.setdefault(item.identity, item)
        if item.feature is None or known.token_count == item.token_count:
            return item
        return replace(item, feature=None, format=None, embedding=fit(_rows_of(known, encoders), item.token_count))

    return right.encode([(with_items(request, map(merged, request.items)), chunk) for request, chunk in batch], encoders, cache)


# What is encoded, and how often


@quirk("outside-the-chunk-too", replaces="encode", bugs=("E04", "K04"), caught_by=("ENCODING-11",))
def everything(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Every item of a request is encoded in every chunk."""
    kept = cache or EncoderCache(ROOMY)
    right.encode([(request, Chunk(0, len(request.input_ids))) for request, _ in batch], encoders, kept)
    return right.encode(batch, encoders, kept)


@quirk(
    "every-occurrence-encoded", replaces="encode", bugs=("enc-cache-dup-in-one-step",), caught_by=("ENCODING-07", "ENCODING-09")
)
def every_occurrence(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """An item that occurs twice in a batch is encoded twice: only the cache is asked whether it is known."""
    occurrences: Counter[bytes | None] = Counter()

    def apart(item: Item) -> Item:
        occurrences[item.identity] += 1
        if item.identity is None or occurrences[item.identity] == 1:
            return item
        return replace(item, identity=sha256(item.identity + bytes(occurrences[item.identity])).digest())

    return right.encode([(with_items(request, map(apart, request.items)), chunk) for request, chunk in batch], encoders, cache)


@quirk("one-call-an-item", replaces="encode", bugs=("concurrent-images-crash",), caught_by=("ENCODING-08",))
def one_by_one(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The encoder is called once for each item."""

    def alone(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            results = [encoder([item]) for item in items]
            return [result[0] if isinstance(result, list) and len(result) == 1 else result for result in results]

        return run

    return right.encode(batch, {modality: alone(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("encoded-in-hash-order", replaces="encode", bugs=(), caught_by=("ENCODING-09",))
def hash_order(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Misses are kept in a set, so that the ranks of a parallel encoder compute different items at the same time."""

    def shuffled(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            order = sorted(range(len(items)), key=lambda number: items[number].identity or b"")
            result = encoder([items[number] for number in order])
            sizes = [items[number].token_count for number in order]
            if isinstance(result, torch.Tensor) and len(result) == sum(sizes):
                result = list(torch.split(result, sizes))
            well = isinstance(result, list) and len(result) == len(items)
            return [result[order.index(number)] for number in range(len(items))] if well else result

        return run

    return right.encode(batch, {modality: shuffled(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("joined-rows-split-evenly", replaces="encode", bugs=("concurrent-images-crash",), caught_by=("ENCODING-13",))
def split_evenly(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Rows that come in one tensor are divided into equal parts, whatever the sizes of the items."""

    def even(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            result = encoder(items)
            if isinstance(result, torch.Tensor) and len(result) == sum(item.token_count for item in items):
                return torch.tensor_split(result, len(items))
            return result

        return run

    return right.encode(batch, {modality: even(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("precomputed-or-raw", replaces="encode", bugs=(), caught_by=("ENCODING-16",))
def not_mixed(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """A batch in which some items are precomputed and some are not is not served at all."""
    if len({item.embedding is None for request, _ in batch for item in request.items}) > 1:
        raise NotImplementedError("precomputed embeddings beside raw items")
    return right.encode(batch, encoders, cache)


@quirk("precomputed-rows-whole", replaces="encode", bugs=("E03",), caught_by=("ENCODING-16",))
def precomputed_whole(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Precomputed rows are not sliced: the rows of positions that are done are used again."""

    def start(request: Request, chunk: Chunk) -> Chunk:
        ready = any(item.embedding is not None for item in request.items)
        return Chunk(0, chunk.stop) if ready else chunk

    return right.encode([(request, start(request, chunk)) for request, chunk in batch], encoders, cache)


# Helpers


def with_items(request: Request, items: Iterable[Item]) -> Request:
    """The request with other items."""
    return replace(request, items=tuple(items))


def fit(rows: torch.Tensor, count: int) -> torch.Tensor:
    """`count` rows, the last ones cut off or the last one repeated."""
    filler = rows[-1:].expand(max(0, count - len(rows)), -1) if len(rows) else torch.zeros(count, 5)
    return torch.cat([rows, filler])[:count]


def _rows_of(item: Item, encoders: Encoders) -> torch.Tensor:
    return torch.cat(list(encoders[item.modality]([item])))


def joined(answers: Answers) -> torch.Tensor | EncodingError:
    """The rows of these answers one after the other, or the first error."""
    rows = []
    for answer in answers:
        if isinstance(answer, EncodingError):
            return answer
        rows += [answer] if len(answer) else []
    if len({part.shape[1] for part in rows}) > 1:
        return EncodingError("rows of different widths")
    return torch.cat(rows) if rows else torch.empty(0, 0)


def in_parts(batch: Batch, encoders: Encoders, cache: EncoderCache | None, parts: Parts) -> Answers:
    """Each request as several that have some of its items each, their rows one after the other."""
    alone = [[(with_items(request, items), chunk) for items in parts(request)] for request, chunk in batch]
    flat = [one for group in alone for one in group]
    answers = iter(right.encode(flat, encoders, cache))
    return [joined([next(answers) for _ in group]) for group in alone]
