"""What is obviously right about placeholders: a look at each position in turn."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.oracles import sentinels
from reference.items import Item, Span


def runs(input_ids: Sequence[int], token_id: int) -> tuple[Span, ...]:
    """Every position that holds the token either lengthens the last run or begins one."""
    found: list[Span] = []
    for position, token in enumerate(input_ids):
        if token == token_id:
            longer = found and found[-1].last == position - 1
            first = found.pop().first if longer else position
            found.append(Span(first, position))
    return tuple(found)


def owners(length: int, items: Sequence[Item]) -> list[int | None]:
    """For each position the index of the item that fills it, or None."""
    filled = {p: k for k, item in enumerate(items) for span in item.spans for p in range(span.first, span.last + 1)}
    return [filled.get(position) for position in range(length)]


def media_positions(length: int, items: Sequence[Item]) -> list[int]:
    """The positions that an item fills."""
    return [position for position, owner in enumerate(owners(length, items)) if owner is not None]


def text_positions(length: int, items: Sequence[Item]) -> list[int]:
    """The positions that no item fills."""
    return [position for position, owner in enumerate(owners(length, items)) if owner is None]


def modalities(length: int, items: Sequence[Item]) -> tuple[int, ...]:
    """The number of the item's modality at each position, 0 at text."""
    return tuple(0 if owner is None else int(items[owner].modality) for owner in owners(length, items))


def padded(input_ids: NDArray[np.int64], items: Sequence[Item]) -> NDArray[np.int64]:
    """SGLang's padded ids: in every span the four sentinels of its item in turn."""
    ids = [int(token) for token in input_ids]
    for item in items:
        for span in item.spans:
            for step, position in enumerate(range(span.first, span.last + 1)):
                ids[position] = _sentinels(item)[step % 4]
    return np.array(ids, dtype=np.int64)


def _sentinels(item: Item) -> tuple[int, ...]:
    if item.caller_hash is not None:
        return sentinels.expected(item.caller_hash.to_bytes(8, "big"))
    return sentinels.expected(item.identity or b"")
