"""Sampling: which frames of a video are shown to a model, and when each of them is. Nothing is decoded here.

1. One function gives the frames and their times, so that no timestamp can come from another sampler than the pixels.
2. Frames are numbered in the whole video, and times count from its beginning, also where only a part of it is shown.
3. A clip of less than one sampled frame shows one.
4. The number is exact: rates are compared as the rational numbers that they are, and only the places are rounded.

Source: transformers 5.24, `Qwen3VLVideoProcessor.sample_frames`: evenly spread from the first frame to the last, rounded
half to even. Disagreements: Qwen's own tools round the number to a multiple of two frames and show four at least, which is
left to the processor that needs it; InternVL takes the middle of each part; vLLM cuts off instead of rounding.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

import numpy as np

from reference.media.errors import MediaError


@dataclass(frozen=True, slots=True)
class Clip:
    """The part of a video that is shown: `length` frames from number `first` on, of a video of `fps` frames a second."""

    first: int
    length: int
    fps: float


def sample_frames(clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
    """The numbers of the frames that are shown, ascending and at least one, and the time of each in seconds.

    rate: frames to show for each second, rounded down; None: as many as may be. Never more than `max_frames`, or than
    there are. Raises MediaError for a clip without frames, and for rates that are not positive numbers.
    """
    if clip.length < 1 or clip.first < 0 or max_frames < 1:
        raise MediaError(f"{max_frames} of {clip.length} frames from number {clip.first} on cannot be shown")
    if not all(isfinite(value) and value > 0 for value in (clip.fps, 1.0 if rate is None else rate)):
        raise MediaError(f"a video of {clip.fps} frames a second cannot be shown at {rate}")
    most = min(max_frames, clip.length)
    count = most if rate is None else min(max(int(clip.length * Fraction(rate) / Fraction(clip.fps)), 1), most)
    indices = clip.first + np.linspace(0, clip.length - 1, count).round().astype(np.int64)
    return indices.tolist(), (indices / clip.fps).tolist()
