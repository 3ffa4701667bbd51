"""Ways in which engines have shown the wrong frames of a video, or told the wrong times."""

from dataclasses import replace

import numpy as np

from conformance.quirk import quirk
from reference.media import MediaError
from reference.media import sampling as right
from reference.media.sampling import Clip

Frames = tuple[list[int], list[float]]


@quirk("short-clips-vanish", replaces="sample_frames", bugs=("F04",), caught_by=("MEDIA-32", "MEDIA-36"))
def short_clips_vanish(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """The number of frames is rounded down, to none for a clip shorter than one step."""
    indices, times = right.sample_frames(clip, rate, max_frames)
    return (indices, times) if rate is None or clip.length * rate >= clip.fps else ([], [])


@quirk("frames-counted-from-the-clip", replaces="sample_frames", bugs=("F06",), caught_by=("MEDIA-32", "MEDIA-36"))
def counted_from_the_clip(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """One backend numbers frames from the beginning of the part that is shown, another from that of the video."""
    return right.sample_frames(replace(clip, first=0), rate, max_frames)


@quirk("one-frame-too-far", replaces="sample_frames", bugs=(), caught_by=("MEDIA-32",))
def one_too_far(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """Frames are spread up to the number of frames, which is one behind the last."""
    indices, _ = right.sample_frames(replace(clip, length=clip.length + 1) if clip.length else clip, rate, max_frames)
    return indices, [frame / clip.fps for frame in indices]


@quirk("cap-of-numbers-only", replaces="sample_frames", bugs=("video-jpeg-frame-cap",), caught_by=("MEDIA-33",))
def cap_of_numbers_only(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """The limit holds on one path of two: frames sampled by rate are as many as they are."""
    return right.sample_frames(clip, rate, max_frames if rate is None or max_frames < 1 else 1 << 40)


@quirk("times-of-another-sampler", replaces="sample_frames", bugs=("F05",), caught_by=("MEDIA-34",))
def times_of_another_sampler(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """Times are those of frames at the rate that was asked for; which frames were shown, under a limit, they do not know."""
    indices, times = right.sample_frames(clip, rate, max_frames)
    return indices, [number / rate for number in range(len(indices))] if rate else times


@quirk("times-at-a-default-rate", replaces="sample_frames", bugs=("F02",), caught_by=("MEDIA-34",))
def times_at_a_default_rate(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """The video's own rate was lost on the way, and 24 frames a second stand in for it."""
    indices, _ = right.sample_frames(clip, rate, max_frames)
    return indices, [frame / 24 for frame in indices]


@quirk("times-from-the-clip", replaces="sample_frames", bugs=("F06",), caught_by=("MEDIA-34",))
def times_from_the_clip(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """Frames are numbered in the video, and times count from the beginning of the part that is shown."""
    indices, times = right.sample_frames(clip, rate, max_frames)
    return indices, [time - clip.first / clip.fps for time in times]


@quirk("sampled-twice", replaces="sample_frames", bugs=("F01",), caught_by=("MEDIA-35", "MEDIA-36"))
def sampled_twice(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """The engine samples, and the processor samples again what it takes for a whole video."""
    indices, times = right.sample_frames(clip, rate, max_frames)
    again, _ = right.sample_frames(Clip(0, len(indices), clip.fps), rate and clip.fps / 2, max_frames)
    return [indices[place] for place in again], [times[place] for place in again]


@quirk("the-beginning-only", replaces="sample_frames", bugs=(), caught_by=("MEDIA-36",))
def the_beginning_only(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """The right number of frames is shown, in a row from the first."""
    indices, _ = right.sample_frames(clip, rate, max_frames)
    first = list(range(clip.first, clip.first + len(indices)))
    return first, [frame / clip.fps for frame in first]


@quirk("rates-divide-by-zero", replaces="sample_frames", bugs=(), caught_by=("MEDIA-37",))
def rates_divide_by_zero(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """A video that does not tell its rate is divided by it."""
    if clip.fps == 0:
        raise ZeroDivisionError("float division by zero")
    return right.sample_frames(clip, rate, max_frames)


@quirk("no-frames-of-an-empty-clip", replaces="sample_frames", bugs=(), caught_by=("MEDIA-37",))
def no_frames_of_an_empty_clip(clip: Clip, rate: float | None, max_frames: int) -> Frames:
    """A clip without frames shows none of them, and the processor fails on an empty array."""
    try:
        return right.sample_frames(clip, rate, max_frames)
    except MediaError:
        return np.empty(0, dtype=np.int64).tolist(), []
