"""Positions: where each position of a prompt lies in time, height and width (M-RoPE).

A language model that rotates by three numbers takes, for each position of a prompt, a *triple*. Text counts up alike on
all three axes, and so does a recording. A picture stays at one time, and its tokens count rows and columns; a video counts
frames as well.

1. Media count from where they begin: the largest number before them, on any axis, plus 1. Text after them goes on at the
   largest number in them, on any axis, plus 1. So no number is used by two parts of a prompt.
2. Recorded spans say where media are, and each item's own grid how it is laid out. Nothing is searched for in the ids: a
   placeholder that a user typed is text, and items that touch are two items.
3. A picture without a grid, or with one that does not fill its span, is an error. Numbered as text it would be read all
   the same, only wrongly.
4. Each position counts 1 further than the one before it, and the one behind a part that fills `length` positions and uses
   `extent` numbers counts `extent - length` further than that. So the triples of text are the sum of these steps, and no
   loop is needed. What the sum over a whole prompt has more than the prompt has positions is its *delta*: a token at
   position n of the sequence, generated later, is at n + delta.
5. The time of Qwen2.5-VL is `frame * seconds * tokens_per_second` in float32, multiplied from left to right and cut off:
   the original code does so. Of 0.7 s at 25 a second, frame 6 is at 104, and not at 105.
6. A video in which its recording is interleaved (Qwen2.5-Omni, Qwen3-Omni) and that recording count from the same number
   on, each by itself: what is seen and heard at one time has one time. Spans say which position is whose.

Sources: the papers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL; SGLang 0.5.23, `get_rope_index`, `get_rope_index_glm4v`,
`extend_mrope_positions_for_retracted_request` and `_extend_session_image_inputs`. Qwen3-VL and GLM-4V number alike: each
frame is a picture of its own, behind its timestamp.
Disagreements: transformers 5.24 goes on after a video at its larger side and leaves its time out, so that a long video
overlaps the text behind it. It multiplies seconds by tokens per second first; vLLM does all of it in float64. SGLang
extends from the temporal axis alone, takes 1 second a grid where none is given, and numbers media without a grid as text.
Behind a video with its recording, transformers and SGLang go on at the largest number of the last piece alone, which may be
less than what an earlier piece has; vLLM takes both. In Qwen2.5-Omni transformers gives one number to the two start tokens
of such a video, and one to its two end tokens; vLLM counts them as the text that they are. Qwen3-Omni keeps
fractions of time in transformers and SGLang; here they are cut off.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from reference.items import Chunk, Item, Modality, MropeLayout, Span, SpanTable, all_spans, span_table

Triples = NDArray[np.int64]
"""int64 [3, n]: time, height and width of each position."""

GRIDS = {Modality.IMAGE: "image_grid_thw", Modality.VIDEO: "video_grid_thw"}


class Shape(NamedTuple):
    """How media are laid out: in so many frames, rows and columns of tokens; each frame takes so many seconds."""

    frames: int
    rows: int
    columns: int
    seconds: float


class Film(NamedTuple):
    """A video with its recording in it: the positions that both fill together, from the same number on."""

    first: int
    stop: int
    shape: Shape
    video: Item
    audio: Item


def positions(input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[Triples, int]:
    """The triples int64 [3, n] of a prompt, and its delta: the largest number plus 1, minus n (0 for an empty prompt).

    input_ids: int64 [n]; only their number matters.
    items: in any order. A picture has the field `image_grid_thw`, a video `video_grid_thw`: frames, height and width in
    patches; with `layout.tokens_per_second` a video has `second_per_grid_ts`, too. A picture is one span; a video is one
    span, or with `layout.frames_apart` one for each frame. A recording is any spans. A video with the field
    `use_audio_in_video` (true) and the recording that begins in it, or right behind it, fill their positions together.

    Raises ValueError for a grid that does not fill the spans of its item, is not divisible by the merge size or is none,
    for seconds that are not positive, for a video without the recording that it should have or with a gap in both, and
    when spans overlap or end outside the prompt; UnknownField for a field that is missing.
    """
    length = len(input_ids)
    spans = span_table(items, length)
    films = _films(items, layout)
    firsts = _firsts(items, spans, layout)
    blocks = {shape: _block(shape, layout) for shape in {*firsts, *(film.shape for film in films)}}
    numbers = np.ones(length + 1, dtype=np.int64)
    numbers[0] = 0
    for shape, places in firsts.items():
        count = blocks[shape].shape[1]
        numbers[places + count] += _next(blocks[shape]) - count
    for film in films:
        numbers[film.stop] += max(_next(blocks[film.shape]), film.audio.token_count) - (film.stop - film.first)
    numbers.cumsum(out=numbers)
    triples = np.tile(numbers[:-1], (3, 1))
    for shape, places in firsts.items():
        windows = sliding_window_view(triples, blocks[shape].shape[1], axis=1, writeable=True)
        windows[:, places] = blocks[shape][:, None] + triples[0, places, None]
    for film in films:
        origin = triples[0, film.first]
        triples[:, _filled(film.video)] = blocks[film.shape] + origin
        triples[:, _filled(film.audio)] = np.arange(film.audio.token_count) + origin
    return triples, int(numbers[-1]) - length


def extend_positions(triples: Triples, length: int) -> Triples:
    """A new int64 [3, length]: the triples of a prompt, and behind them those of text, such as its reply so far.

    The text begins at the largest number on any axis, plus 1, or at 0 in an empty prompt. A table that has this length
    already stays as it is, so that a second attempt adds nothing. Raises ValueError for a table that is longer.
    """
    count = length - _checked(triples).shape[1]
    if count < 0:
        raise ValueError(f"{triples.shape[1]} positions cannot be extended to {length}: cut them first")
    return np.concatenate([triples, np.tile(np.arange(count) + _next(triples), (3, 1))], axis=1)


def retracted_positions(triples: Triples, replies: Sequence[int]) -> list[Triples]:
    """The positions [3, n + reply] of a prompt and its reply at each attempt to schedule them again, from the prompt's own."""
    return [extend_positions(triples, triples.shape[1] + reply) for reply in replies]


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


def rotary_axes(sections: tuple[int, int, int], interleaved: bool) -> NDArray[np.int64]:
    """Which axis rotates each frequency, 0 time, 1 height, 2 width: int64 [sum of the sections].

    sections: how many frequencies each axis rotates. Interleaved, the axes take turns, as long as height and width have any
    left; the rest is time's. Raises ValueError for a section below 0, and for sections that run out before their turns do.
    """
    if min(sections) < 0:
        raise ValueError(f"an axis rotates 0 frequencies or more, not {sections}")
    if not interleaved:
        return np.repeat(np.arange(3), sections)
    axes = np.zeros(sum(sections), dtype=np.int64)
    for axis in (1, 2):
        axes[axis : 3 * sections[axis] : 3] = axis
    if np.bincount(axes, minlength=3).tolist() != list(sections):
        raise ValueError(f"{len(axes)} frequencies are too few for time, height and width to take turns {sections} times")
    return axes


def has_audio(item: Item) -> bool:
    """Whether an item is a video in which its recording is interleaved."""
    return bool(item.fields.get("use_audio_in_video")) and item.modality is Modality.VIDEO


def _firsts(items: Sequence[Item], spans: SpanTable, layout: MropeLayout) -> dict[Shape, NDArray[np.int64]]:
    """For each shape the first positions of the spans that have it."""
    kinds: dict[Hashable, int] = {}
    kind_of = [kinds.setdefault(_kind(item), len(kinds)) for item in items]
    examples = dict(zip(reversed(kind_of), reversed(items), strict=True))
    shapes: dict[Shape, int] = {}
    needs = [(-1, 0, 0)] * len(kinds)
    for kind, number in kinds.items():
        if kind is not None:
            shape = _shape(examples[number], layout)
            count, each = (shape.frames, 1) if layout.frames_apart else (1, shape.frames)
            one = shapes.setdefault(shape._replace(frames=each), len(shapes))
            needs[number] = one, count, each * shape.rows * shape.columns
    shape_of, counts, lengths = np.array(needs, dtype=np.int64).reshape(-1, 3)[kind_of].T
    is_wrong = np.bincount(spans.owners, minlength=len(items)) != counts
    is_wrong[spans.owners[spans.lengths != lengths[spans.owners]]] = True
    for wrong in np.flatnonzero(is_wrong & (shape_of >= 0))[:1].tolist():
        name = GRIDS[items[wrong].modality]
        raise ValueError(
            f"{name} {list(items[wrong].read(name))} needs {counts[wrong]} spans of {lengths[wrong]} positions, "
            f"not {_lengths(items[wrong].spans)}"
        )
    by_shape = np.argsort(shape_of[spans.owners], kind="stable")
    begins = np.searchsorted(shape_of[spans.owners[by_shape]], np.arange(len(shapes)))
    return dict(zip(shapes, np.split(spans.firsts[by_shape], begins)[1:], strict=True))


def _kind(item: Item) -> Hashable:
    """What the shape of a picture or video follows from; None for what has none of its own."""
    if item.modality not in GRIDS or has_audio(item):
        return None
    name = GRIDS[item.modality]
    return name, *item.read(name), item.fields.get("second_per_grid_ts")


def _films(items: Sequence[Item], layout: MropeLayout) -> list[Film]:
    """Each video that has audio, with the recording that begins in it or right behind it."""
    if not (videos := [item for item in items if has_audio(item)]):
        return []
    recordings = sorted((item for item in items if item.modality is Modality.AUDIO and item.spans), key=_start)
    films = []
    for video in videos:
        shape = _shape(video, layout)
        if video.token_count != (expected := shape.frames * shape.rows * shape.columns):
            raise ValueError(f"a video of {shape.frames} frames needs {expected} positions, not {_lengths(video.spans)}")
        first, behind = video.spans[0].first, video.spans[-1].stop
        own = recordings[bisect_left(recordings, first, key=_start) : bisect_right(recordings, behind, key=_start)]
        if len(own) != 1:
            raise ValueError(f"one recording begins in the video from {first} on, or right behind it, and not {len(own)}")
        spans = all_spans([video, *own])
        if any(before.stop != after.first for before, after in pairwise(spans)):
            raise ValueError(f"a video and its recording fill their positions without a gap, which {spans} have")
        films.append(Film(first, spans[-1].stop, shape, video, own[0]))
    return films


def _start(item: Item) -> int:
    return item.spans[0].first


def _filled(item: Item) -> NDArray[np.int64]:
    """The positions of an item, in the order of its rows."""
    return np.concatenate([np.arange(span.first, span.stop) for span in item.spans])


def _shape(item: Item, layout: MropeLayout) -> Shape:
    """The shape of a picture or a video."""
    name = GRIDS[item.modality]
    frames, rows, columns = _grid(item.read(name), name, layout)
    if item.modality is Modality.IMAGE and frames != 1:
        raise ValueError(f"a picture has 1 frame, but its {name} has {frames}")
    seconds = 1.0
    if layout.tokens_per_second is not None and item.modality is Modality.VIDEO:
        seconds = _seconds(item.read("second_per_grid_ts"))
    return Shape(frames, rows, columns, seconds)


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
