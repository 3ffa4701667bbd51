"""Ways in which engines have let the fault of one item, or what a cache remembers, reach other requests."""

from collections.abc import Sequence
from typing import Any

import torch

from conformance.quirk import quirk
from conformance.quirks.encoding_batch import Answers, Batch, Encoders, fit, joined, with_items
from reference import encoding as right
from reference.encoder_cache import EncoderCache
from reference.encoding import Encoder, EncodingError
from reference.items import Item

# One item's fault


@quirk(
    "one-bad-item-fails-the-batch",
    replaces="encode",
    bugs=("L01", "L02", "L03"),
    caught_by=("ENCODING-17", "ENCODING-18", "ENCODING-19"),
)
def all_or_nothing(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The first item without its rows ends the step, and with it every request of the batch."""
    answers = right.encode(batch, encoders, cache)
    for answer in answers:
        if isinstance(answer, EncodingError):
            raise answer
    return answers


@quirk("precomputed-rows-stretched", replaces="encode", bugs=("L11", "precomputed-hidden-size"), caught_by=("ENCODING-17",))
def stretched(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Precomputed rows that are too few or too many are stretched or cut to the number of tokens."""

    def fitted(item: Item) -> Item:
        given = item.embedding
        if given is None or given.ndim != 2:
            return item
        return Item(modality=item.modality, spans=item.spans, embedding=fit(given, item.token_count), identity=item.identity)

    return right.encode([(with_items(request, map(fitted, request.items)), chunk) for request, chunk in batch], encoders, cache)


@quirk(
    "rows-filled-up", replaces="encode", bugs=("L11", "audio-short-tail-zero-embeds"), caught_by=("ENCODING-18", "ENCODING-20")
)
def filled_up(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Rows from the encoder that are too few or too many are stretched or cut to the number of tokens, and cached."""

    def fitted(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            result = encoder(items)
            if isinstance(result, torch.Tensor) and result.ndim == 2:
                return fit(result, sum(item.token_count for item in items))
            if isinstance(result, list) and len(result) == len(items):
                return [
                    fit(rows, item.token_count) if rows.ndim == 2 else rows for rows, item in zip(result, items, strict=True)
                ]
            return result

        return run

    return right.encode(batch, {modality: fitted(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("results-paired-up-to-the-shorter", replaces="encode", bugs=("L03", "L11"), caught_by=("ENCODING-18", "ENCODING-20"))
def misaligned(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The results of an encoder are given to the items in turn, also when there are more or fewer results than items."""

    def paired(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            result = encoder(items)
            return [*result, *[None] * len(items)][: len(items)] if isinstance(result, list) else result

        return run

    return right.encode(batch, {modality: paired(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("errors-become-zeros", replaces="encode", bugs=("G11",), caught_by=("ENCODING-19",))
def zeros(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Where the encoder raises, its items are given rows of zeros, and the model answers about nothing."""

    def quiet(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            try:
                return encoder(items)
            except RuntimeError:
                return [torch.zeros(item.token_count, 5) for item in items]

        return run

    return right.encode(batch, {modality: quiet(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("any-encoder-will-do", replaces="encode", bugs=("G11",), caught_by=("ENCODING-19",))
def any_encoder(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """A modality without an encoder is given to that of another one."""
    every = {item.modality: next(iter(encoders.values())) for request, _ in batch for item in request.items}
    return right.encode(batch, {**every, **encoders}, cache)


@quirk("one-bad-item-fails-its-call", replaces="encode", bugs=("L01",), caught_by=("ENCODING-18",))
def fails_its_call(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Only the total of the rows is looked at: every picture that was encoded beside a bad one fails with it."""

    def totalled(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            result = encoder(items)
            return torch.cat(result) if isinstance(result, list) and len({part.ndim for part in result}) == 1 else result

        return run

    return right.encode(batch, {modality: totalled(encoder) for modality, encoder in encoders.items()}, cache)


# What the cache remembers


@quirk("cached-before-checked", replaces="encode", bugs=("L11",), caught_by=("ENCODING-20",))
def cached_first(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """What the encoder returns is cut to the items and cached before anybody looks at how many rows there are."""
    generation = cache.generation() if cache is not None else 0

    def caching(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            result = encoder(items)
            parts = result if isinstance(result, list) else []
            if isinstance(result, torch.Tensor) and result.ndim == 2:
                parts = list(torch.split(fit(result, sum(i.token_count for i in items)), [i.token_count for i in items]))
            for item, rows in zip(items, parts, strict=False):
                if cache is not None and item.identity is not None and rows.ndim == 2:
                    cache.put_if_current(item.identity, fit(rows, item.token_count), generation)
            return result

        return run

    return right.encode(batch, {modality: caching(encoder) for modality, encoder in encoders.items()}, cache)


@quirk("never-looked-up", replaces="encode", bugs=("E04", "Z03"), caught_by=("ENCODING-21",))
def uncached(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Every chunk of a picture encodes the picture again."""
    return right.encode(batch, encoders, None)


@quirk(
    "hits-before-misses",
    replaces="encode",
    bugs=("omni-cached-prompt-executor",),
    caught_by=("ENCODING-20", "ENCODING-21", "ENCODING-23"),
)
def hits_first(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """The rows that were cached are put before those that were encoded, in whatever order the prompt has them."""
    groups = []
    for request, chunk in batch:
        hits = [i for i in request.items if cache and i.identity and cache.get(i.identity, i.token_count) is not None]
        misses = [item for item in request.items if item not in hits]
        parts = [hits, misses] if hits and misses else [list(request.items)]
        groups.append([(with_items(request, items), chunk) for items in parts])
    encoded = iter(right.encode([one for group in groups for one in group], encoders, cache))
    return [joined([next(encoded) for _ in group]) for group in groups]


@quirk(
    "cache-trusted-by-key",
    replaces="encode",
    bugs=("E01", "enc-cache-hit-count-mismatch", "emb-cache-length-check-on-hit"),
    caught_by=("ENCODING-22",),
)
def trusting(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """What the cache holds under an identity is used, however many rows it has."""

    class Trusting(Wrapped):
        def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
            entry = self.cache._entries.get(key)
            return None if entry is None else entry.embedding

    return right.encode(batch, encoders, Trusting(cache) if cache is not None else None)


@quirk("read-back-from-the-cache", replaces="encode", bugs=("E04", "E05"), caught_by=("ENCODING-23",))
def read_back(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Rows are put into the cache and read back when the step is put together; what was evicted meanwhile is an error."""
    begun = cache.generation() if cache is not None else 0
    answers = right.encode(batch, encoders, cache)
    if cache is None or cache.generation() != begun:
        return answers
    wanted = [[i for i in r.items if i.embedding is None and right.count_in_chunk(i.spans, c)] for r, c in batch]
    lost = [[i for i in items if i.identity and cache.get(i.identity, i.token_count) is None] for items in wanted]
    return [EncodingError("encoder cache miss") if gone else answer for answer, gone in zip(answers, lost, strict=True)]


@quirk("cached-after-a-clear", replaces="encode", bugs=("weights-update-stale-encoder",), caught_by=("ENCODING-24",))
def cached_late(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Rows are cached when they are ready, also when the weights that made them are gone."""

    class Late(Wrapped):
        def put_if_current(self, key: bytes, embedding: torch.Tensor, generation: int) -> bool:
            return self.cache.put(key, embedding)

    return right.encode(batch, encoders, Late(cache) if cache is not None else None)


class Wrapped(EncoderCache):
    """A cache seen through a faulty reader."""

    def __init__(self, cache: EncoderCache) -> None:
        super().__init__(0)
        self.cache = cache

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        return self.cache.get(key, token_count)

    def generation(self) -> int:
        return self.cache.generation()

    def put_if_current(self, key: bytes, embedding: torch.Tensor, generation: int) -> bool:
        return self.cache.put_if_current(key, embedding, generation)
