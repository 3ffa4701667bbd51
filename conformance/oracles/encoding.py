"""What is obviously right about encoding: position by position."""

from collections.abc import Sequence
from typing import TypeAlias

import torch

from conformance.world.doubles import HIDDEN, encoded, label
from reference.items import Chunk, Item, Modality, Request, Span

Batch: TypeAlias = Sequence[tuple[Request, Chunk]]


def positions(spans: Sequence[Span]) -> list[int]:
    """Every position of the spans."""
    return [position for span in spans for position in range(span.first, span.last + 1)]


def rows_in_chunk(spans: Sequence[Span], chunk: Chunk) -> list[int]:
    """The numbers of the rows of an item whose positions lie in the chunk."""
    inside = range(chunk.prefix, chunk.prefix + chunk.length)
    return [row for row, position in enumerate(positions(spans)) if position in inside]


def media_positions(request: Request, chunk: Chunk) -> list[int]:
    """The positions of media in the chunk."""
    media = positions([span for item in request.items for span in item.spans])
    return [position for position in range(chunk.prefix, chunk.prefix + chunk.length) if position in media]


def expected(request: Request, chunk: Chunk) -> torch.Tensor:
    """The rows of the chunk: for each position of media the row of the item that is there."""
    rows = [_row_at(request.items, position) for position in media_positions(request, chunk)]
    return torch.stack(rows) if rows else torch.empty(0, HIDDEN)


def needed(batch: Batch) -> list[str]:
    """The items to encode, each once: by modality, then in the order in which their first positions in a chunk appear."""
    found: dict[str, Modality] = {}
    for request, chunk in batch:
        for position in media_positions(request, chunk):
            item = _item_at(request.items, position)
            if item.embedding is None:
                found.setdefault(label(item), item.modality)
    return sorted(found, key=found.__getitem__)


def _item_at(items: Sequence[Item], position: int) -> Item:
    (item,) = (item for item in items if position in positions(item.spans))
    return item


def _row_at(items: Sequence[Item], position: int) -> torch.Tensor:
    item = _item_at(items, position)
    return encoded(item)[positions(item.spans).index(position)]
