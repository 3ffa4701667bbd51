"""Ways in which engines have made precomputed embeddings dense that came sparse."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from conformance.quirk import quirk
from conformance.quirks.encoding_batch import Answers, Batch, Encoders, with_items
from reference import encoding as right
from reference.encoder_cache import EncoderCache
from reference.items import Item

Dense = Callable[[torch.Tensor], torch.Tensor]


def densified(batch: Batch, dense: Dense) -> Batch:
    """The batch with each sparse embedding made dense in this way."""

    def changed(item: Item) -> Item:
        rows: Any = item.embedding
        return item if rows is None or rows.layout is not torch.sparse_coo else replace(item, embedding=dense(rows))

    return [(with_items(request, map(changed, request.items)), chunk) for request, chunk in batch]


def is_sound(rows: torch.Tensor) -> bool:
    """Whether all indices lie within the shape."""
    indices, sides = rows._indices(), torch.tensor(rows.shape)[:, None]
    return bool(((indices >= 0) & (indices < sides)).all())


def summed(rows: torch.Tensor) -> torch.Tensor:
    """The rows, or a tensor of another shape where an index lies outside: torch itself would write there."""
    return rows.to_dense() if is_sound(rows) else torch.empty(0)


@quirk("stated-shape-is-allocated", replaces="encode", bugs=("embeds-sparse-dense-bomb",), caught_by=("ENCODING-29",))
def allocated(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Memory is taken for whatever shape a sparse embedding states, before anybody looks at it."""
    return right.encode(densified(batch, summed), encoders, cache)


@quirk("sparse-indices-count-from-the-end", replaces="encode", bugs=("embeds-negative-sparse",), caught_by=("ENCODING-29",))
def wrapped(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Nobody looks at the indices of a sparse embedding, and one below 0 writes a value from the end."""

    def dense(rows: torch.Tensor) -> torch.Tensor:
        indices = rows._indices()
        sides = torch.tensor(rows.shape)[:, None]
        if rows.shape[1] > 1 << 20 or not bool(((indices >= -sides) & (indices < sides)).all()):
            return torch.empty(0)
        return torch.sparse_coo_tensor(indices % sides, rows._values(), rows.shape, check_invariants=True).to_dense()

    return right.encode(densified(batch, dense), encoders, cache)


@quirk("last-part-of-a-sparse-value", replaces="encode", bugs=("embeds-negative-sparse",), caught_by=("ENCODING-28",))
def last_part(batch: Batch, encoders: Encoders, cache: EncoderCache | None) -> Answers:
    """Where a value of a sparse embedding comes in several parts, the last one is taken for all of it."""

    def dense(rows: torch.Tensor) -> torch.Tensor:
        if not is_sound(rows) or rows.shape[1] > 1 << 20:
            return torch.empty(0)
        made = torch.zeros(rows.shape)
        for (row, column), value in zip(rows._indices().T.tolist(), rows._values(), strict=True):
            made[row, column] = value
        return made

    return right.encode(densified(batch, dense), encoders, cache)
