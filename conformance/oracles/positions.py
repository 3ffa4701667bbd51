"""What is obviously right about positions: a walk from position to position."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from conformance.world.mrope import Script
from reference.items import Item, Modality, MropeLayout

Clock = Callable[[int, float, float], int]


def exact_time(frame: int, seconds: float, tokens_per_second: float) -> int:
    """The whole part of the exact product."""
    return int(Fraction(frame) * Fraction(seconds) * Fraction(tokens_per_second))


def float32_time(frame: int, seconds: float, tokens_per_second: float) -> int:
    """The whole part of the product that float32 gives, from left to right."""
    return int(np.float32(np.float32(frame) * np.float32(seconds)) * np.float32(tokens_per_second))


def is_clear(frames: int, seconds: float, tokens_per_second: float) -> bool:
    """Whether no frame's time is so near to a whole number that rounding could decide it, unless it is exact."""
    times = [Fraction(frame) * Fraction(seconds) * Fraction(tokens_per_second) for frame in range(frames)]
    exact = Fraction(seconds).denominator <= 64
    return all((exact and time < 2**20) or Fraction(1, 100) < time % 1 < Fraction(99, 100) for time in times[1:])


def triples(script: Script, clock: Clock = exact_time) -> NDArray[np.int64]:
    """Each position in turn: text is one more than the largest number so far; media count from there."""
    seen = [item for item in script.items if item.modality is not Modality.AUDIO]
    laid_out = {place: triple for item in seen for place, triple in places(item, script.layout, clock).items()}
    laid_out |= {place: triple for item in seen if is_film(item) for place, triple in heard(script, item).items()}
    firsts = {span.first for item in seen for span in (item.spans[:1] if is_film(item) else item.spans)}
    walked: list[tuple[int, int, int]] = []
    largest, origin = -1, 0
    for position in range(len(script.input_ids)):
        if position in firsts:
            origin = largest + 1
        if position in laid_out:
            time, row, column = laid_out[position]
            walked.append((origin + time, origin + row, origin + column))
        else:
            walked.append((largest + 1, largest + 1, largest + 1))
        largest = max(largest, *walked[-1])
    return np.array(walked, dtype=np.int64).reshape(-1, 3).T


def places(item: Item, layout: MropeLayout, clock: Clock = exact_time) -> dict[int, tuple[int, int, int]]:
    """For each position of an item its frame's time, its row and its column."""
    frames, height, width = item.fields[f"{item.modality.name.lower()}_grid_thw"]
    rows, columns = height // layout.spatial_merge_size, width // layout.spatial_merge_size
    seconds = item.fields.get("second_per_grid_ts", 1.0)
    cells = [(frame, row, column) for frame in range(frames) for row in range(rows) for column in range(columns)]
    filled = [position for span in item.spans for position in range(span.first, span.last + 1)]
    timed = layout.tokens_per_second is not None and item.modality is Modality.VIDEO
    found = {}
    for position, (frame, row, column) in zip(filled, cells, strict=True):
        time = clock(frame, seconds, layout.tokens_per_second or 1) if timed else frame
        found[position] = (0 if layout.frames_apart else time, row, column)
    return found


def is_film(item: Item) -> bool:
    """Whether a video has its recording in it."""
    return "use_audio_in_video" in item.fields


def soundtrack(script: Script, film: Item) -> Item:
    """The first recording that begins behind the first position of a film."""
    recordings = [item for item in script.items if item.modality is Modality.AUDIO]
    return min((item for item in recordings if item.spans[0] > film.spans[0]), key=lambda item: item.spans[0])


def heard(script: Script, film: Item) -> dict[int, tuple[int, int, int]]:
    """For each position of a film's recording its number, on all axes."""
    spans = soundtrack(script, film).spans
    filled = [position for span in spans for position in range(span.first, span.last + 1)]
    return {position: (number, number, number) for number, position in enumerate(filled)}


def rotary_axes(sections: tuple[int, int, int], interleaved: bool) -> NDArray[np.int64]:
    """Frequencies dealt out one by one: block after block, or in turns until height and width have theirs."""
    left, dealt = list(sections), list[int]()
    while sum(left):
        turn = len(dealt) % 3 if interleaved else min(axis for axis in range(3) if left[axis])
        axis = turn if left[turn] else 0
        left[axis] -= 1
        dealt.append(axis)
    return np.array(dealt, dtype=np.int64)


def delta(table: NDArray[np.int64]) -> int:
    """The largest number plus 1, minus the number of positions."""
    return max((int(value) for value in table.flatten()), default=-1) + 1 - len(table.T)


def text(script: Script) -> list[int]:
    """The positions that no item fills."""
    filled = {position for item in script.items for span in item.spans for position in range(span.first, span.last + 1)}
    return [position for position in range(len(script.input_ids)) if position not in filled]


def extended(table: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """One column of text after the other, each one more than the largest number so far."""
    columns = table.T.tolist()
    while len(columns) < length:
        columns.append([max((value for column in columns for value in column), default=-1) + 1] * 3)
    return np.array(columns, dtype=np.int64).reshape(-1, 3).T


def where(items: Sequence[Item]) -> Callable[[int], str]:
    """Names a position: text, or whose."""
    owners = {
        position: f"{item.modality.name.lower()} {number}"
        for number, item in enumerate(items)
        for span in item.spans
        for position in range(span.first, span.last + 1)
    }
    return lambda position: f"position {position} ({owners.get(position, 'text')})"
