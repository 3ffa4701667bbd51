"""Qwen2-VL, Qwen2.5-VL, Qwen3-VL and GLM-4V: a picture keeps its aspect ratio and gets as many tokens as its pixels deserve.

Source: transformers 5.24, `smart_resize` of the image processor of Qwen2-VL, of the video processors of Qwen2-VL and
Qwen3-VL, and of GLM-4.1V's processors, to which those of GLM-4.6V are equal. Sides are rounded to the nearest multiple
of patch_size * merge_size, ties to the even one.
Disagreements: qwen-vl-utils, and SGLang's copy of it, lift a side to one multiple *before* they compare the area with
its limits, so a thin picture (1000 x 10) gets more tokens. Of a picture near max_pixels both sides are rounded down, but
never below one multiple; the area may then exceed max_pixels.
"""

from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import NamedTuple

from reference.items import Size
from reference.planning.settings import check

LARGEST_RATIO = 200
"""The longest side may be this many times the shortest."""


class Grid(NamedTuple):
    """How many patches a medium has in time, height and width."""

    time: int
    height: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QwenVL:
    """Qwen2-VL and Qwen2.5-VL. min_pixels and max_pixels bound the area of a picture, or of each frame of a video.

    cap_pixels_per_frame: whether a video of many frames has smaller ones, as in qwen-vl-utils: all of them together take
    nine tenths of a context of max_video_tokens at most, but no frame has less than 1.05 times min_pixels.
    """

    patch_size: int
    merge_size: int
    temporal_patch_size: int
    min_pixels: int
    max_pixels: int
    cap_pixels_per_frame: bool = False
    max_video_tokens: int | None = None

    def __post_init__(self) -> None:
        check(self)
        if not isinstance(self.cap_pixels_per_frame, bool):
            raise TypeError(f"cap_pixels_per_frame is True or False, not {self.cap_pixels_per_frame!r}")
        if self.cap_pixels_per_frame and (self.max_video_tokens is None or self.max_video_tokens < 1):
            raise ValueError(f"cap_pixels_per_frame needs max_video_tokens of at least 1, not {self.max_video_tokens}")

    @property
    def factor(self) -> int:
        """The side of the square of pixels that becomes one token."""
        return self.patch_size * self.merge_size

    def image_grid(self, size: Size) -> Grid:
        """The patches of a picture, which is one time step."""
        return self._grid(1, smart_resize(size, 1, 1, factor=self.factor, limits=(self.min_pixels, self.max_pixels)))

    def video_grid(self, frames: int, size: Size) -> Grid:
        """The patches of a video; the last time step is filled up with its last frame."""
        return self._grid(ceil_divide(frames, self.temporal_patch_size), self._video_size(frames, size))

    def image_tokens(self, size: Size) -> int:
        """One token for merge_size x merge_size patches."""
        return self._merged(self.image_grid(size))

    def video_tokens(self, frames: int, size: Size) -> int:
        """One token for merge_size x merge_size patches of each time step."""
        return self._merged(self.video_grid(frames, size))

    def _video_size(self, frames: int, size: Size) -> Size:
        return smart_resize(size, 1, 1, factor=self.factor, limits=(self.min_pixels, self._video_limit(frames)))

    def _video_limit(self, frames: int) -> int:
        """The largest area of a frame."""
        if not self.cap_pixels_per_frame or self.max_video_tokens is None:
            return self.max_pixels
        budget = int(self.max_video_tokens * self.factor**2 * 0.9)
        return max(min(self.max_pixels, budget * self.temporal_patch_size // frames), int(self.min_pixels * 1.05))

    def _grid(self, time: int, resized: Size) -> Grid:
        return Grid(time, resized.height // self.patch_size, resized.width // self.patch_size)

    def _merged(self, grid: Grid) -> int:
        return grid.time * grid.height * grid.width // self.merge_size**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3VL(QwenVL):
    """Qwen3-VL. As Qwen2-VL for pictures; min_pixels and max_pixels of a video bound the pixels of all its frames.

    The model owner's processor is followed in this: the limits are compared with the frames rounded to a whole number
    of time steps, half to even (so 5 frames count as 4, though they fill 6), while the frames as given set the scale.
    """

    def _video_size(self, frames: int, size: Size) -> Size:
        if frames < self.temporal_patch_size:
            raise ValueError(f"a video has at least {self.temporal_patch_size} frames, one time step, not {frames}")
        if min(size.height, size.width) < self.factor:
            scale = max(self.factor / size.height, self.factor / size.width)
            size = Size(int(size.height * scale), int(size.width * scale))
        rounded = round(frames / self.temporal_patch_size) * self.temporal_patch_size
        return smart_resize(size, frames, rounded, factor=self.factor, limits=(self.min_pixels, self._video_limit(frames)))

    def _video_limit(self, frames: int) -> int:
        """The most pixels of all frames together. Capped, no frame has more than max_video_tokens, and its even share."""
        if not self.cap_pixels_per_frame or self.max_video_tokens is None:
            return self.max_pixels
        share = min(self.max_video_tokens * self.factor**2, self.max_pixels // frames)
        return max(share, int(self.min_pixels * 1.05)) * frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm4V(Qwen3VL):
    """GLM-4.1V to GLM-4.6V. As Qwen3-VL, but a picture is resized as a whole time step: its limits are for all its frames.

    So a picture has half the area that the limits of Qwen would give it, and sides below one multiple are scaled up.
    Nothing caps the pixels of its frames.
    """

    def __post_init__(self) -> None:
        Qwen3VL.__post_init__(self)  # `super()` does not know a class with slots
        if self.cap_pixels_per_frame or self.max_video_tokens is not None:
            raise ValueError("glm4v has no setting cap_pixels_per_frame, nor max_video_tokens")

    def image_grid(self, size: Size) -> Grid:
        """The patches of a picture, which fills one time step."""
        return self._grid(1, self._video_size(self.temporal_patch_size, size))


def smart_resize(size: Size, frames: int, rounded_frames: int, *, factor: int, limits: tuple[int, int]) -> Size:
    """The nearest size whose sides are multiples of `factor` and whose pixels, over all frames, lie within the limits.

    Never has a side of 0. In floating point on purpose: where a side divided by the scale is a multiple of the factor,
    exact arithmetic gives another answer than the processor. Raises ValueError for an aspect ratio beyond 200.
    """
    long, short = max(size.height, size.width), min(size.height, size.width)
    if long / short > LARGEST_RATIO:
        raise ValueError(
            f"a picture of {size.height} x {size.width} (height x width) is too thin: its longest side is "
            f"{long / short:g} times its shortest, and may be {LARGEST_RATIO} times"
        )
    fewest, most = limits
    height, width = round(size.height / factor) * factor, round(size.width / factor) * factor
    if rounded_frames * height * width > most:
        shrink = sqrt((frames * size.height * size.width) / most)
        height = max(factor, floor(size.height / shrink / factor) * factor)
        width = max(factor, floor(size.width / shrink / factor) * factor)
    elif rounded_frames * height * width < fewest:
        grow = sqrt(fewest / (frames * size.height * size.width))
        height = ceil(size.height * grow / factor) * factor
        width = ceil(size.width * grow / factor) * factor
    return Size(height, width)


def ceil_divide(number: int, divisor: int) -> int:
    """The quotient rounded up, in integers: a float quotient is off by one for large numbers."""
    return -(-number // divisor)
