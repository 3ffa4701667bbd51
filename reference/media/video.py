"""Video: the frames that a model is shown, as pixels, each with its number and its time.

1. Frames are counted, not believed: one pass decodes all of them, one more takes those that are sampled. Headers say
   other numbers, and so do packets.
2. Frames are numbered in the order in which they are shown, which is not that in which they are stored.
3. The rate is that of the whole video, and so is the number of frames: both belong to the numbers, whatever is sampled.
   A rate that the container states counts where the times of the frames agree with it to one tick of the clock.
4. Times count from the first frame. Where they keep no rate, they are the ones that the frames have.
5. A turn or a mirror that the display matrix asks for is made once. Transparency is composited on the background.
6. Every bound holds while frames arrive: their size, their number, their time; and no pixel beyond what is shown is kept.

Source: `reference.media.sampling` for which frames; ISO 14496-12, 6.2.2 for the matrix; FFmpeg decodes and converts, by
the colour matrix and range that the frames state. Disagreements: vLLM 0.33 takes the number of frames from the header,
unless that has none, and computes each time as number / rate, also where frames come at no rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.media.containers import MAX_BYTES, decoded
from reference.media.decoding import WHITE, Colour, Pixels, composite
from reference.media.errors import MediaError
from reference.media.sampling import Clip, sample_frames

ROOM = 1 << 20
"""By how many pixels a frame within a decoder may exceed what it shows: it is made of blocks of up to 16 x 16."""

MAX_SHOWN_PIXELS = 1 << 28

COVER = 0x400
"""FFmpeg's AV_DISPOSITION_ATTACHED_PIC."""


@dataclass(frozen=True, slots=True)
class VideoLimits:
    """The largest numbers that are taken, all inclusive: pixels of a frame, frames of the whole video, its seconds."""

    max_pixels: int = 1 << 25
    max_source_frames: int = 1 << 17
    max_duration_s: float = 3600.0


@dataclass(frozen=True, slots=True, repr=False)
class DecodedVideo:
    """The frames that are shown, and the video that they are from.

    pixels: uint8 [n, height, width, 3], RGB, upright. indices: the number of each in the whole video.
    times: the seconds from the first frame of the video to each. fps, length: the rate and the number of frames of the
    whole video.
    """

    pixels: NDArray[np.uint8]
    indices: list[int]
    times: list[float]
    fps: float
    length: int

    def __repr__(self) -> str:
        return f"DecodedVideo({list(self.pixels.shape)} of {self.length} frames, {self.fps:g} a second, indices={self.indices})"


def decode_video(
    data: bytes,
    rate: float | None,
    max_frames: int,
    limits: VideoLimits = VideoLimits(),
    *,
    background: Colour = WHITE,
    max_shown_pixels: int = MAX_SHOWN_PIXELS,
    max_bytes: int = MAX_BYTES,
) -> DecodedVideo:
    """The frames of a video that `sample_frames` chooses of all of them, at `rate` a second or as many as may be.

    max_shown_pixels: of all frames that are shown together. Raises MediaError for what is beyond a limit, for what is no
    video of a known format, and for what the decoder calls damaged.
    """
    moments, stated, tick, area = _survey(data, limits, max_bytes)
    fps, is_constant = _rate(moments, stated, tick)
    indices, times = sample_frames(Clip(0, len(moments), float(fps)), rate, max_frames)
    if len(indices) * area > max_shown_pixels:
        raise MediaError(f"{len(indices)} frames of {area} pixels are shown; at most {max_shown_pixels} pixels are taken")
    if not is_constant:
        times = [float(moments[index]) for index in indices]
    pixels = _take(data, indices, limits, background, max_bytes)
    return DecodedVideo(pixels, indices, times, float(fps), len(moments))


def _survey(data: bytes, limits: VideoLimits, max_bytes: int) -> tuple[list[Fraction], Fraction | None, Fraction, int]:
    """When each frame is shown, the rate that the container states, the tick of its clock, and the pixels of a frame."""
    with _opened(data, limits, max_bytes) as (stream, frames):
        stated, tick = stream.average_rate or stream.guessed_rate, Fraction(stream.time_base or 0)
        moments: list[Fraction] = []
        shape = first = None
        for frame in frames:
            if frame.is_corrupt:
                raise MediaError(f"frame {len(moments)} of the video is damaged")
            shape = shape or _checked_size(frame, limits)
            if (frame.width, frame.height) != shape:
                raise MediaError(f"the size of the frames changes at frame {len(moments)}")
            first = frame.pts if first is None else first
            moments.append(_moment(frame, first, len(moments), stated))
            _check_length(moments, limits)
    if shape is None:
        raise MediaError("the video has no frames")
    return moments, stated or None, tick, shape[0] * shape[1]


def _opened(data: bytes, limits: VideoLimits, max_bytes: int) -> Any:
    return decoded(data, _moving_pictures, max_bytes, max_pixels=str(limits.max_pixels + ROOM))


def _moving_pictures(container: Any) -> Any:
    """The first stream of video that is not the cover of a recording."""
    return next((one for one in container.streams.video if not one.disposition.value & COVER), None)


def _checked_size(frame: Any, limits: VideoLimits) -> tuple[int, int]:
    if not 1 <= frame.width * frame.height <= limits.max_pixels:
        raise MediaError(f"frames have {frame.width} x {frame.height} pixels; between 1 and {limits.max_pixels} are taken")
    return frame.width, frame.height


def _moment(frame: Any, first: int | None, number: int, stated: Fraction | None) -> Fraction:
    """The time of a frame since the first one; by its number where the container has no times."""
    if frame.pts is not None and first is not None:
        return Fraction(frame.time_base) * int(frame.pts - first)
    if not stated:
        raise MediaError("the video says neither when its frames are shown nor how many are in a second")
    return number / stated


def _check_length(moments: Sequence[Fraction], limits: VideoLimits) -> None:
    if len(moments) > limits.max_source_frames:
        raise MediaError(f"the video has more than {limits.max_source_frames} frames")
    if moments[-1] > limits.max_duration_s:
        raise MediaError(f"the video is longer than {limits.max_duration_s} seconds")
    if moments[-1] < (moments[-2] if len(moments) > 1 else 0):
        raise MediaError(f"frame {len(moments) - 1} of the video is shown before its predecessor")


def _rate(moments: Sequence[Fraction], stated: Fraction | None, tick: Fraction) -> tuple[Fraction, bool]:
    """How many frames there are in a second, and whether all of them keep to it within one tick."""
    last = len(moments) - 1
    measured = last / moments[-1] if last and moments[-1] else None
    rates = [rate for rate in (stated, measured) if rate]
    if not rates:
        raise MediaError("the video does not say how many of its frames are in a second")
    for rate in rates:
        if all(abs(moment - number / rate) <= tick for number, moment in enumerate(moments)):
            return rate, True
    return rates[-1], False


def _take(data: bytes, indices: Sequence[int], limits: VideoLimits, background: Colour, max_bytes: int) -> Pixels:
    """The pixels of the frames with these numbers."""
    with _opened(data, limits, max_bytes) as (_, frames):
        wanted = set(indices)
        taken = {
            number: _upright(frame, background)
            for number, frame in zip(range(indices[-1] + 1), frames, strict=False)
            if number in wanted
        }
    return np.stack([taken[number] for number in indices])


def _upright(frame: Any, background: Colour) -> Pixels:
    """The pixels of a frame, turned as its display matrix asks."""
    if any(component.is_alpha for component in frame.format.components) or frame.format.has_palette:
        veiled = frame.to_ndarray(format="rgba", threads=1)
        pixels = composite(veiled[..., :3], veiled[..., 3], np.array(background, dtype=np.uint16))
    else:
        pixels = frame.to_ndarray(format="rgb24", threads=1)
    matrix = next((one for one in frame.side_data if one.type.name == "DISPLAYMATRIX"), None)
    return pixels if matrix is None else turned(pixels, np.frombuffer(bytes(matrix), dtype=np.int32))


def turned(pixels: Pixels, matrix: NDArray[np.int32]) -> Pixels:
    """Pixels under a display matrix: (x, y) goes to (a x + c y, b x + d y), whose first row begins with a, b."""
    a, b, _, c, d = matrix[:5].tolist()
    if (a == 0) == (b == 0) or (a == 0) != (d == 0) or (b == 0) != (c == 0):
        raise MediaError("the video is to be turned by something else than a right angle")
    if a == 0:
        pixels, a, d = pixels.swapaxes(0, 1), c, b
    return np.ascontiguousarray(pixels[:: 1 if d > 0 else -1, :: 1 if a > 0 else -1])
