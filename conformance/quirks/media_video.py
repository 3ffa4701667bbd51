"""Ways in which engines have decoded videos wrongly."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from conformance.protocol.media import VideoLimits
from conformance.quirk import quirk
from reference.media import MediaError
from reference.media import video as right
from reference.media.containers import decoded
from reference.media.decoding import Pixels
from reference.media.sampling import Clip, sample_frames
from reference.media.video import DecodedVideo

ALL = 1 << 20
PATCH = 2
"""How many frames a model's temporal patch has."""


def decode(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    same = right.VideoLimits(limits.max_pixels, limits.max_source_frames, limits.max_duration_s)
    return right.decode_video(data, rate, max_frames, same)


def chosen(whole: DecodedVideo, indices: list[int], **fields: Any) -> DecodedVideo:
    """Some frames of a video, all of which were decoded."""
    times = [whole.times[index] for index in indices]
    return replace(whole, pixels=whole.pixels[indices], indices=indices, times=times, **fields)


@quirk("video-blue-first", replaces="decode_video", bugs=(), caught_by=("MEDIA-38", "MEDIA-45", "MEDIA-46", "MEDIA-48"))
def video_blue_first(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Channels come in the order of OpenCV: blue, green, red."""
    video = decode(data, rate, max_frames, limits)
    return replace(video, pixels=video.pixels[..., ::-1])


@quirk(
    "odd-numbers-of-frames-refused", replaces="decode_video", bugs=("odd-frames-reject",), caught_by=("MEDIA-38", "MEDIA-41")
)
def odd_numbers_refused(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Frames are grouped by two before anybody has padded them; three, five or seven of them fit no shape."""
    video = decode(data, rate, max_frames, limits)
    count = len(video.pixels)
    if count > 1:
        video.pixels.reshape(count // PATCH, PATCH, *video.pixels.shape[1:])
    return video


@quirk(
    "padded-by-a-whole-patch", replaces="decode_video", bugs=("temporal-pad-wrong-count",), caught_by=("MEDIA-40", "MEDIA-41")
)
def padded_by_a_patch(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The last frame is repeated once less than a temporal patch is long, whatever the number of frames."""
    video = decode(data, rate, max_frames, limits)
    return chosen(decode(data, None, ALL, limits), video.indices + [video.indices[-1]] * (PATCH - 1))


@quirk("frames-in-stored-order", replaces="decode_video", bugs=(), caught_by=("MEDIA-39",))
def in_stored_order(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Frames are numbered as their packets come: the one that others refer to is taken before them."""
    video, order = decode(data, rate, max_frames, limits), stored_order(data)
    if order == sorted(order):
        return video
    whole = decode(data, None, ALL, limits)
    return replace(video, pixels=whole.pixels[[order[index] for index in video.indices]])


def stored_order(data: bytes) -> list[int]:
    """Which frame each packet holds, by the times in the container."""
    with decoded(data, right._moving_pictures, len(data)) as (stream, _):
        moments = [packet.pts for packet in stream.container.demux(stream) if packet.pts is not None]
    return [sorted(moments).index(moment) for moment in moments]


@quirk(
    "video-sampled-twice", replaces="decode_video", bugs=("F01", "do-sample-frames-metadata-override"), caught_by=("MEDIA-40",)
)
def video_sampled_twice(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The decoder samples, and the processor samples again what it takes for a whole video at the same rate."""
    video = decode(data, rate, max_frames, limits)
    again, _ = sample_frames(Clip(0, len(video.indices), video.fps), rate, max_frames)
    return chosen(decode(data, None, ALL, limits), [video.indices[place] for place in again])


@quirk("rate-is-the-default", replaces="decode_video", bugs=("video-numframes-vs-fps",), caught_by=("MEDIA-40",))
def rate_is_the_default(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Where a number of frames is asked for and no rate, the default of two frames a second is taken beside it."""
    return decode(data, 2.0 if rate is None else rate, max_frames, limits)


@quirk("numbers-cut-off", replaces="decode_video", bugs=("F05",), caught_by=("MEDIA-40",))
def numbers_cut_off(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The decoder cuts the places of frames off where the sampler rounds them, and the two disagree."""
    video = decode(data, rate, max_frames, limits)
    places = np.linspace(0, video.length - 1, len(video.indices)).astype(int).tolist()
    return chosen(decode(data, None, ALL, limits), places)


@quirk("no-frame-of-a-short-video", replaces="decode_video", bugs=("F04",), caught_by=("MEDIA-41",))
def no_frame_of_a_short_video(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The number of frames is seconds times rate, cut off: nothing is shown of half a second."""
    video = decode(data, rate, max_frames, limits)
    is_short = rate is not None and video.length / video.fps * rate < 1
    return chosen(decode(data, None, ALL, limits), []) if is_short else video


@quirk(
    "rate-of-the-sample",
    replaces="decode_video",
    bugs=("video-metadata-sampled-vs-source", "F02"),
    caught_by=("MEDIA-42",),
)
def rate_of_the_sample(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The rate that is told is that of the frames that are shown, beside numbers in the whole video."""
    video = decode(data, rate, max_frames, limits)
    return replace(video, fps=video.fps * len(video.indices) / video.length)


@quirk(
    "length-of-the-sample",
    replaces="decode_video",
    bugs=("video-metadata-sampled-vs-source", "do-sample-frames-metadata-override"),
    caught_by=("MEDIA-42", "MEDIA-46"),
)
def length_of_the_sample(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The number of frames that is told is that of the frames that are shown."""
    video = decode(data, rate, max_frames, limits)
    return replace(video, length=len(video.indices))


@quirk("numbered-anew", replaces="decode_video", bugs=("video-metadata-sampled-vs-source",), caught_by=("MEDIA-38", "MEDIA-40"))
def numbered_anew(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Frames that were sampled are numbered from 0, as if they were all."""
    video = decode(data, rate, max_frames, limits)
    return replace(video, indices=list(range(len(video.indices))))


@quirk(
    "times-of-the-sample", replaces="decode_video", bugs=("video-metadata-sampled-vs-source", "F02"), caught_by=("MEDIA-43",)
)
def times_of_the_sample(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Times are places among the frames that are shown, divided by the rate of the whole video."""
    video = decode(data, rate, max_frames, limits)
    return replace(video, times=[place / video.fps for place in range(len(video.indices))])


@quirk("times-by-an-even-rate", replaces="decode_video", bugs=("F05",), caught_by=("MEDIA-44",))
def times_by_an_even_rate(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """A time is always number / rate, and the times that are in the file are not looked at."""
    video = decode(data, rate, max_frames, limits)
    return replace(video, times=[index / video.fps for index in video.indices])


@quirk("matrix-ignored", replaces="decode_video", bugs=("M04",), caught_by=("MEDIA-45",))
def matrix_ignored(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Frames stay as they were stored: what a telephone filmed upright lies on its side."""
    with patch.object(right, "turned", lambda pixels, matrix: pixels):
        return decode(data, rate, max_frames, limits)


@quirk("mirrors-in-video-ignored", replaces="decode_video", bugs=("M04",), caught_by=("MEDIA-45",))
def mirrors_in_video_ignored(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The matrix is read as an angle, which a mirror has not."""
    turned = right.turned

    def by_angle(pixels: Pixels, matrix: NDArray[np.int32]) -> Pixels:
        a, b, _, c, d = matrix[:5].tolist()
        return turned(pixels, matrix) if a == d and b == -c else pixels

    with patch.object(right, "turned", by_angle):
        return decode(data, rate, max_frames, limits)


@quirk("header-believed", replaces="decode_video", bugs=("do-sample-frames-metadata-override",), caught_by=("MEDIA-46",))
def header_believed(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Frames are sampled of as many as the header claims, and those that are not there are left out."""
    whole = decode(data, None, ALL, limits)
    with decoded(data, right._moving_pictures, len(data)) as (stream, _):
        claimed = stream.frames or whole.length
    indices, _ = sample_frames(Clip(0, claimed, whole.fps), rate, max_frames)
    return chosen(whole, [index for index in indices if index < whole.length], length=claimed)


@quirk("no-video-is-no-frames", replaces="decode_video", bugs=(), caught_by=("MEDIA-47",))
def no_video_is_no_frames(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """What cannot be decoded is an empty video, and the model is asked about none."""
    try:
        return decode(data, rate, max_frames, limits)
    except MediaError:
        return DecodedVideo(np.empty((0, 1, 1, 3), dtype=np.uint8), [], [], 1.0, 0)


@quirk("missing-frames-are-black", replaces="decode_video", bugs=(), caught_by=("MEDIA-48",))
def missing_frames_are_black(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """There are as many frames as the header of the container promises; those that are not there are black."""
    video = decode(data, rate, max_frames, limits)
    with decoded(data, right._moving_pictures, len(data)) as (stream, _):
        promised = round((stream.container.duration or 0) / 1e6 * video.fps)
    missing = list(range(video.length, min(promised, max_frames)))
    black = np.zeros((len(missing), *video.pixels.shape[1:]), dtype=np.uint8)
    times = [index / video.fps for index in missing]
    return replace(
        video,
        pixels=np.concatenate([video.pixels, black]),
        indices=video.indices + missing,
        times=video.times + times,
        length=video.length + len(missing),
    )


@quirk("no-limit-of-a-frame", replaces="decode_video", bugs=("S01",), caught_by=("MEDIA-49",))
def no_limit_of_a_frame(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Frames of any size are decoded, and scaled down later."""
    return decode(data, rate, max_frames, VideoLimits(1 << 25, limits.max_source_frames, limits.max_duration_s))


@quirk("no-limit-of-length", replaces="decode_video", bugs=(), caught_by=("MEDIA-50",))
def no_limit_of_length(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """Only the frames that are shown are limited; those that are decoded on the way to them are not."""
    return decode(data, rate, max_frames, VideoLimits(limits.max_pixels, 1 << 17, 3600.0))


@quirk("limits-of-video-are-exclusive", replaces="decode_video", bugs=(), caught_by=("MEDIA-51",))
def limits_are_exclusive(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """A video of exactly as many pixels or frames as the limits is refused."""
    return decode(
        data, rate, max_frames, VideoLimits(limits.max_pixels - 1, limits.max_source_frames - 1, limits.max_duration_s)
    )


@quirk("broken-video-is-a-runtime-error", replaces="decode_video", bugs=("M01",), caught_by=("MEDIA-52",))
def broken_video_is_a_runtime_error(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The decoder's own error leaves the engine, which a server answers with 500."""
    try:
        return decode(data, rate, max_frames, limits)
    except MediaError:
        raise RuntimeError(f"[mov @ {id(data):#014x}] moov atom not found") from None


@quirk("place-of-the-video-in-the-refusal", replaces="decode_video", bugs=("M01",), caught_by=("MEDIA-52",))
def place_in_the_refusal(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """The client is told the name of the file that the data were written to, so that a decoder could open it."""
    try:
        return decode(data, rate, max_frames, limits)
    except MediaError:
        raise ValueError("/tmp/tmpab12cd34.mp4: Invalid data found when processing input") from None
