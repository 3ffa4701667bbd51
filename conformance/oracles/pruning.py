"""What is obviously right about pruning: every token in turn, in exact arithmetic."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.world.videos import MaskOrNone, Pruned, Video, positions
from reference.items import Chunk, Item, Modality, Request, Span


class Count(NamedTuple):
    """A question after the retained count, and the answers that there are."""

    given: tuple[int, int, float]
    right: tuple[int, ...]


def as_written(tokens_per_frame: int, frames: int, rate: float) -> int:
    """The count for the decimal that the rate is written as."""
    return max(tokens_per_frame, int(tokens_per_frame * frames * (1 - Fraction(Decimal(repr(rate))))))


def in_binary(tokens_per_frame: int, frames: int, rate: float) -> int:
    """The count in the arithmetic of doubles, from left to right."""
    return max(tokens_per_frame, int(tokens_per_frame * frames * (1.0 - rate)))


def count(tokens_per_frame: int, frames: int, rate: float) -> Count:
    """Both readings of a rate are right."""
    given = tokens_per_frame, frames, rate
    return Count(given, (as_written(*given), in_binary(*given)))


def unlike(case: Video) -> list[Fraction]:
    """For each token after the first frame 1 - cosine to the token at its place in the previous frame.

    Exact: a token whose length is not a fraction is refused. Zeros have the cosine 0 with everything.
    """
    _, height, width = case.grid
    tokens = [[Fraction(value) for value in row] for row in case.embeddings.to(torch.float64).tolist()]
    return [1 - _cosine(tokens[n], tokens[n - height * width]) for n in range(height * width, len(tokens))]


def mask(case: Video) -> NDArray[np.bool_]:
    """The first frame, and then the most unlike tokens, of equals the earlier one."""
    frames, height, width = case.grid
    first = height * width
    left = as_written(first, frames, case.rate) - first
    values = unlike(case)
    ranking = sorted(range(len(values)), key=lambda n: (-values[n], n))
    return np.array([True] * first + [n in ranking[:left] for n in range(len(values))], dtype=np.bool_)


def fates(length: int, items: Sequence[Item], masks: Sequence[MaskOrNone]) -> list[tuple[int | None, bool]]:
    """For each position the number of its span, counted over all items as listed, or None; and whether it is kept."""
    fate: list[tuple[int | None, bool]] = [(None, True)] * length
    number = 0
    for item, bits in zip(items, masks, strict=True):
        left = [True] * item.token_count if bits is None else [bool(bit) for bit in bits]
        for span in item.spans:
            for position in range(span.first, span.last + 1):
                fate[position] = number, left.pop(0)
            number += 1
    return fate


def survivors(case: Pruned) -> list[int]:
    """The old positions of what is kept, in order: text, and media where the mask says so."""
    return [n for n, (_, kept) in enumerate(fates(len(case.input_ids), case.items, case.masks)) if kept]


def spans(case: Pruned) -> tuple[tuple[Span, ...], ...]:
    """For each item the places of its survivors, span by span."""
    fate = fates(len(case.input_ids), case.items, case.masks)
    owners = [fate[old][0] for old in survivors(case)]
    found, number = [], 0
    for item in case.items:
        places = [[n for n, owner in enumerate(owners) if owner == number + k] for k in range(len(item.spans))]
        found.append(tuple(Span(place[0], place[-1]) for place in places if place))
        number += len(item.spans)
    return tuple(found)


class Place(NamedTuple):
    """Where a position was before pruning, where it is after it, and the text before it, there and here (-1: none)."""

    old: int
    new: int
    old_text: int
    new_text: int
    is_text: bool


def places(case: Pruned) -> list[Place]:
    """Everything that is kept."""
    fate = fates(len(case.input_ids), case.items, case.masks)
    found: list[Place] = []
    text = (-1, -1)
    for new, old in enumerate(survivors(case)):
        found.append(Place(old, new, *text, fate[old][0] is None))
        text = (old, new) if found[-1].is_text else text
    return found


def _cosine(one: list[Fraction], other: list[Fraction]) -> Fraction:
    lengths = _root(sum(v * v for v in one)) * _root(sum(v * v for v in other))
    return Fraction(sum(a * b for a, b in zip(one, other, strict=True))) / lengths if lengths else Fraction(0)


def _root(square: Fraction | int) -> Fraction:
    square = Fraction(square)
    root = Fraction(isqrt(square.numerator), isqrt(square.denominator))
    if root * root != square:
        raise ValueError(f"a token of the squared length {square} has no exact cosine")
    return root


def moved(items: Sequence[Item], places: Sequence[tuple[Span, ...]]) -> tuple[Item, ...]:
    """The items with other spans."""
    return tuple(
        Item(modality=item.modality, spans=new, identity=item.identity, caller_hash=item.caller_hash)
        for item, new in zip(items, places, strict=True)
    )


def distances(table: NDArray[np.int64], pairs: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """For each pair of columns their difference on each axis, [pairs, 3]; -1 is a column of zeros."""
    rows = [
        [int(table[axis, one]) - (int(table[axis, other]) if other >= 0 else 0) for axis in range(3)] for one, other in pairs
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def step(request: Request, chunk: Chunk, rate: float) -> tuple[NDArray[np.int64], torch.Tensor]:
    """The ids of a chunk of the pruned prompt, and for each position of media there the row of the token that is kept."""
    masks = tuple(_mask_of(item, rate) for item in request.items)
    case = Pruned(request.input_ids, request.items, masks, positions(len(request.input_ids), request.items))
    inside = survivors(case)[chunk.prefix : chunk.prefix + chunk.length]
    rows = {
        place: item.feature[n]
        for item in request.items
        for n, place in enumerate(p for span in item.spans for p in range(span.first, span.last + 1))
    }
    found = [rows[place] for place in inside if place in rows]
    return request.input_ids[inside], torch.stack(found) if found else torch.empty(0, 4)


def length(request: Request, rate: float) -> int:
    """How many positions the pruned prompt has."""
    gone = [int((~mask).sum()) for mask in (_mask_of(item, rate) for item in request.items) if mask is not None]
    return len(request.input_ids) - sum(gone)


def _mask_of(item: Item, rate: float) -> MaskOrNone:
    if item.modality is not Modality.VIDEO:
        return None
    frames = item.fields["video_grid_thw"][0]
    return mask(Video(item.feature, (frames, 1, item.token_count // frames), rate))
