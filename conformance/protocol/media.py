"""From a URL, a data URI, a file or bytes to decoded pixels, and the frames of a video that are worth decoding."""

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


class Media(Protocol):
    """From a URL, a data URI, a file or bytes to decoded pixels, and the frames of a video that are worth decoding."""

    @returns(pixels)
    def decode_image(self, data: bytes, background: Colour, max_pixels: int) -> NDArray[np.uint8]:
        """The picture that `data` begins with, upright, as RGB: uint8 [height, width, 3].

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
        which the clip is a part of. Raises ValueError for a clip without frames, and for rates that are not positive.
        """
