"""From a URL, a data URI, a file or bytes to decoded pixels, the frames of a video and the samples of a recording."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.returns import returns

Colour = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """What may be fetched, and the two doors to the world. What it does not name is refused.

    schemes: of "data", "file", "http" and "https"; a bare path counts as "file".
    hosts: the only host names, lower-case and exact; None for every host with a public address.
    ports: the only ports.
    folders: absolute paths; files are taken from inside them alone.
    networks: address blocks ("127.0.0.0/8") that are taken although they are not public.
    max_bytes, max_redirects: the largest numbers that are taken. timeout_s: for the whole fetch.
    resolve: a host name -> its addresses as text. dial: an address, a port and the seconds left -> a connected socket. An
        engine looks names up and connects through these two alone; its adapter puts them into the place of its own.
    """

    schemes: tuple[str, ...]
    hosts: tuple[str, ...] | None = None
    ports: tuple[int, ...] = (80, 443)
    folders: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    max_bytes: int = 1 << 20
    max_redirects: int = 3
    timeout_s: float = 10.0
    resolve: Callable[[str], Sequence[str]]
    dial: Callable[[str, int, float], socket.socket]


@dataclass(frozen=True, slots=True)
class Clip:
    """The part of a video that is shown: `length` frames from number `first` on, of a video of `fps` frames a second."""

    first: int
    length: int
    fps: float


@dataclass(frozen=True, slots=True)
class VideoLimits:
    """The largest numbers that are taken, all inclusive: pixels of a frame, frames of the whole video, its seconds."""

    max_pixels: int
    max_source_frames: int
    max_duration_s: float


@dataclass(frozen=True, slots=True, repr=False)
class DecodedVideo:
    """The frames that are shown, and the video that they are from.

    pixels: uint8 [n, height, width, 3], RGB, upright; n is at least 1. indices: the number of each in the whole video, from
    0, in the order in which frames are shown, ascending. times: the seconds from the first frame of the video to each.
    fps: the frames in a second of the whole video. length: their number.
    """

    pixels: NDArray[np.uint8]
    indices: Sequence[int]
    times: Sequence[float]
    fps: float
    length: int

    def __repr__(self) -> str:
        return f"DecodedVideo({list(self.pixels.shape)} of {self.length} frames, {self.fps:g} a second, indices={self.indices})"


def frames_and_times(value: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """A pair: frame numbers, and as many times in seconds."""
    wanted = "a pair: the numbers of frames, and as many times in seconds"
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise answer.WrongAnswer(wanted)
    indices, times = answer.integers(value[0]), tuple(map(float, value[1]))
    if len(indices) != len(times):
        raise answer.WrongAnswer(wanted)
    return indices, times


def pixels(value: Any) -> NDArray[np.uint8]:
    """A uint8 array [height, width, 3]."""
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.ndim != 3 or value.shape[2] != 3:
        raise answer.WrongAnswer("a uint8 array [height, width, 3]")
    return np.ascontiguousarray(value)


def video(value: Any) -> DecodedVideo:
    """A `DecodedVideo`, or anything with its fields."""
    wanted = "an object with the fields of DecodedVideo: pixels, indices, times, fps and length"
    try:
        frames, indices, times = value.pixels, answer.integers(value.indices), tuple(map(float, value.times))
        fps, length = float(value.fps), answer.integer(value.length)
    except (AttributeError, TypeError, ValueError):
        raise answer.WrongAnswer(wanted) from None
    if not isinstance(frames, np.ndarray) or frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
        raise answer.WrongAnswer(f"{wanted}; pixels are a uint8 array [n, height, width, 3]")
    if not len(frames) == len(indices) == len(times):
        raise answer.WrongAnswer(f"{wanted}; there are as many indices and times as frames")
    return DecodedVideo(np.ascontiguousarray(frames), indices, times, fps, length)


def samples(value: Any) -> NDArray[np.float32]:
    """A float32 array [n]."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.ndim != 1:
        raise answer.WrongAnswer("a float32 array [n]")
    return np.ascontiguousarray(value)


class Media(Protocol):
    """From a URL, a data URI, a file or bytes to decoded pixels, the frames of a video and the samples of a recording."""

    @returns(pixels)
    def decode_image(self, data: bytes, background: Colour, max_pixels: int) -> NDArray[np.uint8]:
        """The picture that `data` begins with, upright, as RGB: uint8 [height, width, 3].

        data: a BMP, GIF, JPEG, PNG or TIFF file, which more may follow.
        background: the colour behind pixels that are not opaque (see the trait `backgrounds`).
        max_pixels: width times height, inclusive; an adapter sets the engine's own limit to it.
        Raises ValueError for more pixels than that, judged by the header, and for data that are no picture, are damaged
        or end early. Of an animation the first frame is the picture (see the trait `animations`). Colour profiles are
        not applied.
        """

    @returns(answer.octets)
    def fetch_media(self, reference: str, policy: FetchPolicy) -> bytes:
        """The bytes that a URL (data, file, http, https) or an absolute path stands for, at least one.

        Raises ValueError for what the policy does not allow, before anything is sent where it must not go; for a host
        with an address that is not public (private, loopback, link-local, multicast, reserved, or an IPv4 address in an
        IPv6 one), at the first URL and at each redirect; for URLs that two parsers may read in two ways; for a status
        other than 200, a body that is cut off, too long or empty, and when time is up.
        """

    @returns(frames_and_times)
    def sample_frames(self, clip: Clip, rate: float | None, max_frames: int) -> tuple[Sequence[int], Sequence[float]]:
        """The numbers of the frames that are shown, in ascending order and at least one, and the time of each in seconds.

        rate: frames to show for each second of the clip (see the trait `frame_multiple`); None: as many as may be.
        max_frames: never more than this many. Frames are numbered, and times counted, from the beginning of the video,
        which the clip is a part of. Raises ValueError for a clip without frames, and for rates, the clip's own too, that are
        not positive and finite.
        """

    @returns(video)
    def decode_video(self, data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
        """The frames of a video that a model is shown: those that `sample_frames` chooses of the whole video.

        data: an MP4, QuickTime, Matroska, AVI or MPEG-TS file.
        rate, max_frames: as for `sample_frames`; a clip of less than one sampled frame shows one. Frames are turned as their
        display matrix asks. limits: an adapter sets the engine's own limits to them, and leaves out those that it has not.
        Raises ValueError for what is beyond a limit, for data that are no video (a still picture is none), and for data
        without frames. A video that ends early or is damaged is refused, or shown as far as it is whole.
        """

    @returns(samples)
    def decode_audio(self, data: bytes, target_rate: int, max_duration_s: float) -> NDArray[np.float32]:
        """The recording in a file as one channel, the mean of its channels: float32 [n], a full unit being 1.0.

        data: a WAV, AIFF, FLAC or Matroska file. A big-endian WAV file (RIFX) may be refused.
        target_rate: samples in a second of the answer; n is the number of samples in the file times this and divided by
        the file's own rate, rounded either way, and at least 1. max_duration_s: inclusive, of the recording.
        Raises ValueError for more seconds than that, for data that are no recording, and for one without samples. A
        recording that ends early is refused, or heard as far as it is there.
        """
