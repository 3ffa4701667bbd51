"""Encoding: the embeddings of the media in one step of a batch.

A step computes a chunk of each prompt in the batch. It needs one embedding row for every position of media in these
chunks, and should run the encoder as little as possible:

1. An item is encoded whole, and only if some position of it lies in its chunk. Because a chunk is contiguous and rows
   follow positions, the rows of an item in a chunk are a contiguous slice of its embedding: two counts give it.
2. What was encoded before, in this batch or in an earlier step, is not encoded again. Two items are the same if their
   identity and their token count are: a key that failed to tell two sizes apart must not merge them.
3. All misses of a modality go to its encoder in one call, in order of first appearance: by request, then by position.
   Every rank of a parallel encoder sees the same items in the same order.
4. The step holds its own references to all rows that it uses. A cache that is too small for one batch, or cleared
   meanwhile, makes it slower and never wrong.
5. What an encoder returns is checked before it is cached or used. A fault is contained: it fails the requests that
   need the item, and no other. Where an encoder raises, or its result cannot be divided among the items (one tensor
   with a wrong total, a list of a wrong length), every item of that call is suspect, so all requests that need one of
   them fail, while hits, precomputed embeddings and other modalities are served.
6. Rows are dense. A sparse tensor of a few bytes can state a shape of terabytes, and indices outside it, over which torch
   writes into memory that is not its own; a sender who has the rows can send them.
7. The rows of a request are ordered by position, over all its items, their modalities and their spans, whatever the
   order in which the items are listed: the merge puts the k-th row to the k-th position of media.

Source: SGLang 0.5.23, `mm_schedule.get_embedding_chunk` and `_get_chunked_prefill_embedding_batched`, and the
convention `get_image_feature`, `get_video_feature`, `get_audio_feature`.
Disagreements: SGLang orders rows by item and not by position, checks only the total of the rows that an encoder
returns, fails the whole batch, and cannot mix precomputed embeddings with raw items; vLLM, where an identity names one
item only, fails a request that meets another length, and runs an encoder once for each run of items alike.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import torch

from reference.encoder_cache import EncoderCache
from reference.items import Chunk, Item, Modality, Request, Span, check_disjoint

Encoder: TypeAlias = Callable[[Sequence[Item]], torch.Tensor | Sequence[torch.Tensor]]
"""Items of one modality -> their rows: one tensor [token_count, hidden] an item, or all of them in one tensor."""

_Key: TypeAlias = tuple[Modality, bytes, int]
_FIRST = attrgetter("first")


class EncodingError(ValueError):
    """The rows of an item or a request cannot be had; the message says why."""


def count_in_chunk(spans: Sequence[Span], chunk: Chunk) -> int:
    """How many positions of `spans`, in any order, lie in the chunk.

    Raises ValueError when spans overlap.
    """
    first, stop, _ = _rows(sorted(spans, key=_FIRST), chunk)
    return stop - first


def slice_chunk(embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """The rows of `embedding` [token_count, hidden] whose positions lie in the chunk: a view.

    Raises ValueError when spans overlap or descend, or when the embedding has not one row for each of their positions.
    """
    first, stop, token_count = _rows(spans, chunk)
    if embedding.ndim != 2 or embedding.shape[0] != token_count:
        raise ValueError(f"an embedding of {token_count} positions is [{token_count}, hidden], not {list(embedding.shape)}")
    return embedding[first:stop]


def _rows(spans: Sequence[Span], chunk: Chunk) -> tuple[int, int, int]:
    """How many positions of `spans` lie before the chunk, how many before its end, and how many there are."""
    sums, total, done = [0], 0, -1
    for span in spans:
        first = span.first
        if first <= done:
            check_disjoint(spans)
        done = span.last
        total += done - first + 1
        sums.append(total)

    def before(position: int) -> int:
        begun = bisect_left(spans, position, key=_FIRST)
        return sums[begun] - (max(0, spans[begun - 1].stop - position) if begun else 0)

    return before(chunk.prefix), before(chunk.stop), total


def find_encoder(modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
    """The encoder of a modality: the registered one, else the model's method of the conventional name.

    Raises EncodingError when there is neither.
    """
    if modality in registered:
        return registered[modality]
    kind = modality.name.lower()
    method: Encoder | None = getattr(model, f"get_{kind}_feature", None)
    if not callable(method):
        raise EncodingError(
            f"no encoder for {kind}: none is registered ({_listed(registered)}), and {type(model).__name__} has no method "
            f"get_{kind}_feature; register an encoder for {kind} or give the model this method"
        )
    return method


def encode(
    batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder], cache: EncoderCache | None = None
) -> list[torch.Tensor | EncodingError]:
    """For each request the rows of the media in its chunk, [positions of media in the chunk, hidden], by position.

    Items need an identity, unless they carry a precomputed embedding; the caller's hash is no key here. A chunk without
    media gives [0, 0]: where nothing was encoded, the width is unknown. Rows of several devices come on that of the
    first, rows of several dtypes in the one that holds them all.

    A request whose rows cannot be had has an EncodingError in its place, and nothing of the items at fault is cached.
    """
    generation = 0 if cache is None else cache.generation()
    wanted = {_key(item): item for request, chunk in batch for item in _in_chunk(request, chunk)}
    rows: dict[_Key, torch.Tensor | EncodingError] = {}
    misses: dict[Modality, dict[_Key, Item]] = {}
    for key, item in wanted.items():
        if key is None:
            continue
        hit = None if cache is None else cache.get(key[1], item.token_count)
        if hit is None:
            misses.setdefault(item.modality, {})[key] = item
        else:
            rows[key] = hit
    for modality, missing in misses.items():
        for key, encoded in zip(missing, _run(modality, encoders, list(missing.values())), strict=True):
            rows[key] = encoded
            if cache is not None and isinstance(encoded, torch.Tensor):
                cache.put_if_current(key[1], encoded, generation)
    return [_assemble(request, chunk, rows) for request, chunk in batch]


def _in_chunk(request: Request, chunk: Chunk) -> list[Item]:
    """The items that have a position in the chunk, by their first position."""
    return sorted((item for item in request.items if count_in_chunk(item.spans, chunk)), key=lambda item: item.spans[0].first)


def _key(item: Item) -> _Key | None:
    """What an item is encoded and cached under; None for an item that cannot or need not be encoded."""
    if item.embedding is not None or item.identity is None:
        return None
    return item.modality, item.identity, item.token_count


def _run(modality: Modality, encoders: Mapping[Modality, Encoder], items: list[Item]) -> Sequence[torch.Tensor | EncodingError]:
    """One encoder call: for each item its rows, or what is wrong with them."""
    counts = [item.token_count for item in items]
    kind = modality.name.lower()
    if modality not in encoders:
        return [EncodingError(f"there is no encoder for {kind} ({_listed(encoders)})")] * len(items)
    try:
        result = encoders[modality](items)
    except Exception as error:
        failure = EncodingError(f"the {kind} encoder raised {type(error).__name__}: {error}")
        failure.__cause__ = error
        return [failure] * len(items)
    if isinstance(result, torch.Tensor):
        whole = _checked(result, sum(counts), f"the {kind} encoder, for {len(items)} items together,")
        return [whole] * len(items) if isinstance(whole, EncodingError) else torch.split(whole, counts)
    if not isinstance(result, list | tuple) or len(result) != len(items):
        given = f"a list of {len(result)}" if isinstance(result, list | tuple) else type(result).__name__
        wanted = f"one tensor or a list of {len(items)} tensors"
        return [EncodingError(f"the {kind} encoder gave {given} for {len(items)} items; right is {wanted}")] * len(items)
    return [_checked(rows, count, f"the {kind} encoder") for rows, count in zip(result, counts, strict=True)]


def _checked(rows: Any, count: int, source: str) -> torch.Tensor | EncodingError:
    """The rows, if they are a tensor [count, hidden]."""
    if isinstance(rows, torch.Tensor) and rows.layout is not torch.strided:
        stated = f"{list(rows.shape)} as {rows.layout}"
        return EncodingError(f"{source} states {stated}: a few bytes can state any shape; give dense rows [{count}, hidden]")
    if isinstance(rows, torch.Tensor) and rows.ndim == 2 and rows.shape[0] == count:
        return rows
    given = list(rows.shape) if isinstance(rows, torch.Tensor) else type(rows).__name__
    return EncodingError(f"{source} gave {given} where {count} positions need [{count}, hidden]")


def _assemble(
    request: Request, chunk: Chunk, rows: Mapping[_Key, torch.Tensor | EncodingError]
) -> torch.Tensor | EncodingError:
    """The rows of one request by position, or the error of the first item that has none."""
    placed: list[tuple[Span, torch.Tensor]] = []
    for item in _in_chunk(request, chunk):
        key = _key(item)
        whole: torch.Tensor | EncodingError
        if key is not None:
            whole = rows[key]
        elif item.embedding is not None:
            whole = _checked(item.embedding, item.token_count, "its precomputed embedding")
        else:
            whole = EncodingError("it has no identity; identify items before they are encoded")
        if isinstance(whole, EncodingError):
            where = f"request {request.id}, {item.modality.name.lower()} at position {item.spans[0].first}"
            failure = EncodingError(f"{where}: {whole}")
            failure.__cause__ = whole.__cause__
            return failure
        parts = torch.split(whole, [len(span) for span in item.spans])
        placed += [(span, slice_chunk(part, [span], chunk)) for span, part in zip(item.spans, parts, strict=True)]
    found = [part for _, part in sorted(placed, key=lambda one: one[0]) if len(part)]
    widths = sorted({part.shape[1] for part in found})
    if len(widths) > 1:
        return EncodingError(f"request {request.id}: its rows have different widths, {' and '.join(map(str, widths))}")
    return torch.cat([part.to(found[0].device) for part in found]) if found else torch.empty(0, 0)


def _listed(encoders: Mapping[Modality, Encoder]) -> str:
    return "registered: " + (", ".join(Modality(modality).name.lower() for modality in encoders) or "nothing")
