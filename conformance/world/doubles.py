"""Stand-ins for what an engine works with: encoders, and items whose rows say what they are.

The rows of an item are a function of the item alone. Each row names its modality, the number of the medium, the number
of rows and its own number, so that a row in the wrong place is recognised at sight:

    [modality, medium, token_count, row, 16777215]

The last column is the largest odd integer that float32 holds: it does not survive a narrower type.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
import torch

from reference.items import Chunk, Item, Modality, Request, Span

Finish: TypeAlias = Callable[[list[torch.Tensor]], Any]
"""What an encoder makes of the right rows of its items before it returns them."""

HIDDEN = 5
PLACEHOLDER = 9


def identity(modality: Modality, number: int) -> bytes:
    """The identity of the `number`-th medium of a modality."""
    return sha256(f"{modality.name} {number}".encode()).digest()


def medium(modality: Modality, number: int, *spans: tuple[int, int]) -> Item:
    """The `number`-th medium of a modality, at these inclusive spans."""
    feature, known = torch.tensor([[float(number)]]), identity(modality, number)
    return Item(modality=modality, spans=tuple(Span(*span) for span in spans), feature=feature, identity=known)


def image(number: int, *spans: tuple[int, int]) -> Item:
    """The `number`-th image."""
    return medium(Modality.IMAGE, number, *spans)


def video(number: int, *spans: tuple[int, int]) -> Item:
    """The `number`-th video."""
    return medium(Modality.VIDEO, number, *spans)


def audio(number: int, *spans: tuple[int, int]) -> Item:
    """The `number`-th recording."""
    return medium(Modality.AUDIO, number, *spans)


def precomputed(item: Item, rows: torch.Tensor | None = None) -> Item:
    """The item with its rows, or with these, instead of its feature."""
    embedding = encoded(item) if rows is None else rows
    return Item(modality=item.modality, spans=item.spans, embedding=embedding, identity=item.identity)


def request(id: str, length: int, *items: Item) -> Request:
    """A prompt of `length` positions, text but for its items."""
    input_ids = np.arange(length, dtype=np.int64) + 100
    for span in (span for item in items for span in item.spans):
        input_ids[span.first : span.stop] = PLACEHOLDER
    return Request(id=id, input_ids=input_ids, items=items)


def whole(one: Request) -> tuple[Request, Chunk]:
    """The request, computed in one step."""
    return one, Chunk(0, len(one.input_ids))


def encoded(item: Item) -> torch.Tensor:
    """The right rows of an item, float32 [token_count, HIDDEN]."""
    if item.embedding is not None:
        rows: torch.Tensor = item.embedding
        return rows if rows.layout is torch.strided else rows.to_dense()
    fixed = [float(item.modality), float(item.feature.item()), float(item.token_count)]
    return torch.tensor([[*fixed, float(row), 16777215.0] for row in range(item.token_count)]).reshape(-1, HIDDEN)


def label(item: Item) -> str:
    """An item in words: `image 1 of 5 rows`."""
    return f"{item.modality.name.lower()} {int(item.feature.item())} of {item.token_count} rows"


class CountingEncoder:
    """An encoder that gives the right rows, one tensor an item, and remembers what it was asked.

    finish: what it makes of the right list before it returns it, such as `torch.cat`, or a fault.
    calls: the items of each call, in words.
    """

    def __init__(self, finish: Finish = list) -> None:
        self.finish = finish
        self.calls: list[list[str]] = []

    def __call__(self, items: Sequence[Item]) -> Any:
        self.calls.append([label(item) for item in items])
        return self.finish([encoded(item) for item in items])


class Encoders(dict[Modality, CountingEncoder]):
    """An encoder for each modality."""

    def __init__(self, finish: Finish = list) -> None:
        super().__init__({modality: CountingEncoder(finish) for modality in Modality})

    @property
    def seen(self) -> list[str]:
        """Every item that was encoded, as often as it was, by modality."""
        return [item for encoder in self.values() for call in encoder.calls for item in call]
