"""Positions: where each position of a prompt lies in time, height and width (M-RoPE).

A language model that rotates by three numbers takes, for each position of a prompt, a *triple*. Text counts up alike on
all three axes. A picture stays at one time, and its tokens count rows and columns; a video counts frames as well.

1. Media count from where they begin: the largest number before them, on any axis, plus 1. Text after them goes on at the
   largest number in them, on any axis, plus 1. So no number is used by two parts of a prompt.
2. Recorded spans say where media are, and each item's own grid how it is laid out. Nothing is searched for in the ids: a
   placeholder that a user typed is text, and items that touch are two items.
3. A picture without a grid, or with one that does not fill its span, is an error. Numbered as text it would be read all
   the same, only wrongly.
4. A part of a prompt that fills `length` positions and uses `extent` numbers shifts all that follows by `extent -
   length`. So the triples of text are its positions plus the sum of the shifts before them, and no loop is needed. The
   sum over the whole prompt is the *delta*: a token at position n of the sequence, generated later, is at n + delta.
5. The time of Qwen2.5-VL is `frame * seconds * tokens_per_second` in float32, multiplied from left to right and cut off:
   the original code does so. Of 0.7 s at 25 a second, frame 6 is at 104, and not at 105.

Sources: the papers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL; SGLang 0.5.23, `get_rope_index`, `get_rope_index_glm4v`,
`extend_mrope_positions_for_retracted_request` and `_extend_session_image_inputs`. Qwen3-VL and GLM-4V number alike: each
frame is a picture of its own, behind its timestamp.
Disagreements: transformers 5.24 goes on after a video at its larger side and leaves its time out, so that a long video
overlaps the text behind it. It multiplies seconds by tokens per second first; vLLM does all of it in float64. SGLang
extends from the temporal axis alone, takes 1 second a grid where none is given, and numbers media without a grid as text.
Not here: audio, and audio in video (the Omni models). An item of audio is an error.
"""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference.items import Chunk, Item, Modality, MropeLayout, Span, all_spans, check_within

Triples = NDArray[np.int64]
"""int64 [3, n]: time, height and width of each position."""

GRIDS = {Modality.IMAGE: "image_grid_thw", Modality.VIDEO: "video_grid_thw"}


class Shape(NamedTuple):
    """How a span is laid out: in so many frames, rows and columns of tokens; each frame takes so many seconds."""

    frames: int
    rows: int
    columns: int
    seconds: float


def positions(input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[Triples, int]:
    """The triples int64 [3, n] of a prompt, and its delta: the largest number plus 1, minus n (0 for an empty prompt).

    input_ids: int64 [n]; only their number matters.
    items: in any order. A picture has the field `image_grid_thw`, a video `video_grid_thw`: frames, height and width in
    patches; with `layout.tokens_per_second` a video has `second_per_grid_ts`, too. A picture is one span; a video is one
    span, or with `layout.frames_apart` one for each frame.

    Raises ValueError for a grid that does not fill the spans of its item, is not divisible by the merge size or is none,
    for seconds that are not positive, for audio, and when spans overlap or end outside the prompt; UnknownField for a
    field that is missing.
    """
    length = len(input_ids)
    check_within(all_spans(items), length)
    spans = [(span, shape) for item in items for span, shape in _laid_out(item, layout)]
    blocks = {shape: _block(shape, layout) for shape in {shape for _, shape in spans}}
    extents = {shape: int(block.max()) + 1 for shape, block in blocks.items()}
    shift = np.zeros(length + 1, dtype=np.int64)
    for span, shape in spans:
        shift[span.stop] = extents[shape] - len(span)
    triples = np.tile(np.arange(length, dtype=np.int64) + np.cumsum(shift[:-1]), (3, 1))
    for span, shape in spans:
        triples[:, span.first : span.stop] = blocks[shape] + triples[0, span.first]
    return triples, int(shift.sum())


def extend_positions(triples: Triples, length: int) -> Triples:
    """A new int64 [3, length]: the triples of a prompt, and behind them those of text, such as its reply so far.

    The text begins at the largest number on any axis, plus 1, or at 0 in an empty prompt. A table that has this length
    already stays as it is, so that a second attempt adds nothing. Raises ValueError for a table that is longer.
    """
    count = length - _checked(triples).shape[1]
    if count < 0:
        raise ValueError(f"{triples.shape[1]} positions cannot be extended to {length}: cut them first")
    return np.concatenate([triples, np.tile(np.arange(count) + _next(triples), (3, 1))], axis=1)


def stitch_positions(previous: Triples, turn: Triples) -> Triples:
    """A new int64 [3, m + n]: the triples of all turns before [3, m], and behind them those of one more turn [3, n].

    The turn was numbered by itself, from 0. It is shifted to the largest number before it, on any axis, plus 1.
    """
    return np.concatenate([_checked(previous), _checked(turn) + _next(previous)], axis=1)


def chunk_positions(triples: Triples, chunk: Chunk) -> Triples:
    """The columns of a chunk: a view int64 [3, chunk.length]. Raises ValueError for a chunk that ends behind the last."""
    if chunk.stop > _checked(triples).shape[1]:
        raise ValueError(f"{chunk} ends behind the last of {triples.shape[1]} positions")
    return triples[:, chunk.prefix : chunk.stop]


def _laid_out(item: Item, layout: MropeLayout) -> list[tuple[Span, Shape]]:
    """The spans of an item, each with its shape."""
    if item.modality not in GRIDS:
        raise ValueError(f"{item.modality.name.lower()} has no place in time, height and width in {layout.family!r}")
    name = GRIDS[item.modality]
    frames, rows, columns = _grid(item.read(name), name, layout)
    if item.modality is Modality.IMAGE and frames != 1:
        raise ValueError(f"a picture has 1 frame, but its {name} has {frames}")
    seconds = 1.0
    if layout.tokens_per_second is not None and item.modality is Modality.VIDEO:
        seconds = _seconds(item.read("second_per_grid_ts"))
    count, each = (frames, 1) if layout.frames_apart else (1, frames)
    expected = each * rows * columns
    if len(item.spans) != count or any(len(span) != expected for span in item.spans):
        raise ValueError(
            f"{name} {list(item.read(name))} needs {count} spans of {expected} positions, not {_lengths(item.spans)}"
        )
    return [(span, Shape(each, rows, columns, seconds)) for span in item.spans]


def _grid(thw: Sequence[int], name: str, layout: MropeLayout) -> tuple[int, int, int]:
    """Frames, rows and columns of tokens."""
    numbers = [int(number) for number in thw]
    merge = layout.spatial_merge_size
    if len(numbers) != 3 or min(numbers) < 1 or numbers[1] % merge or numbers[2] % merge:
        raise ValueError(f"{name} is frames, height and width in patches, both divisible by {merge}, and not {numbers}")
    return numbers[0], numbers[1] // merge, numbers[2] // merge


def _seconds(value: float) -> float:
    seconds = float(value)
    if not (isfinite(seconds) and seconds > 0):
        raise ValueError(f"a frame of a video takes a positive number of seconds, not {seconds}")
    return seconds


def _block(shape: Shape, layout: MropeLayout) -> Triples:
    """The triples of a span that begins at 0: int64 [3, frames * rows * columns]."""
    block = np.indices(shape[:3]).reshape(3, -1)
    if layout.tokens_per_second is not None:
        seconds, rate = np.float32(shape.seconds), np.float32(layout.tokens_per_second)
        block[0] = block[0].astype(np.float32) * seconds * rate
    return block


def _lengths(spans: Sequence[Span]) -> str:
    return f"{len(spans)} of {[len(span) for span in spans]}"


def _next(triples: Triples) -> int:
    return int(triples.max(initial=-1)) + 1


def _checked(triples: Triples) -> Triples:
    if not isinstance(triples, np.ndarray) or triples.dtype != np.int64 or triples.ndim != 2 or len(triples) != 3:
        raise TypeError("positions are an int64 array [3, n]: time, height and width")
    return triples
