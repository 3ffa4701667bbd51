"""Films made in memory, every pixel and every time of which is known.

`film(7)` is noise without loss: no frame looks like another, and a decoder gives back the very pixels. Where frames are
stored in another order than they are shown, coding is lossy: `grey_film` has frames of one grey each, GREY_STEP apart.
What headers say is changed by hand. Files are made once for each process; those of Matroska differ between processes.
"""

import struct
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.uint8]

CODINGS = {
    "mp4": ("mp4", "libx264rgb", "rgb24", {"qp": "0"}),
    "mov": ("mov", "qtrle", "rgb24", {}),
    "mkv": ("matroska", "ffv1", "bgr0", {}),
    "avi": ("avi", "rawvideo", "bgr24", {}),
    "mpeg4": ("mp4", "mpeg4", "yuv420p", {}),
    "ts": ("mpegts", "mpeg2video", "yuv420p", {}),
}
"""Container, codec, pixel format and options; the first four lose nothing, the other two are lossy and reorder frames."""

MATRICES = {
    1: (1, 0, 0, 1), 2: (-1, 0, 0, 1), 3: (-1, 0, 0, -1), 4: (1, 0, 0, -1),
    5: (0, 1, 1, 0), 6: (0, 1, -1, 0), 7: (0, -1, -1, 0), 8: (0, -1, 1, 0),
}  # fmt: skip
"""What a display matrix begins with, (a, b, c, d), for each EXIF orientation: (x, y) goes to (a x + c y, b x + d y)."""

GREY_STEP = 20
MILLISECONDS = Fraction(1, 1000)


class Film(NamedTuple):
    """A film file and the frames in it, [n, height, width, 3], at so many a second."""

    data: bytes
    frames: Frames
    fps: Fraction = Fraction(25)


@cache
def noise(count: int, width: int, height: int) -> Frames:
    """Frames no two of which are alike, and no two channels or corners of one."""
    return np.random.default_rng(count).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@cache
def film(count: int, coding: str = "mp4", fps: Fraction = Fraction(25), width: int = 22, height: int = 14) -> Film:
    """A film of noise, without loss, at a constant rate."""
    frames = noise(count, width, height)
    return Film(encoded(frames, coding, fps), frames, fps)


@cache
def grey_film(count: int, coding: str) -> Film:
    """A film of at most 11 frames, each of one grey, stored in another order than shown."""
    greys = np.arange(count, dtype=np.uint8) * GREY_STEP + GREY_STEP
    frames = np.broadcast_to(greys[:, None, None, None], (count, 16, 64, 3))
    return Film(encoded(frames, coding, Fraction(25), reorder=3), frames)


@cache
def uneven_film(milliseconds: tuple[int, ...], coding: str = "mp4") -> Film:
    """A film whose frames are shown at these times."""
    frames = noise(len(milliseconds), 22, 14)
    return Film(encoded(frames, coding, Fraction(25), milliseconds=milliseconds), frames)


@cache
def turned_film(count: int, orientation: int) -> Film:
    """A film with a display matrix; its frames are as they are stored."""
    plain = film(count)
    start = plain.data.index(b"tkhd") + 44  # version and flags, five numbers, two reserved ones, and four short ones
    a, b, c, d = (65536 * one for one in MATRICES[orientation])
    matrix = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    return plain._replace(data=plain.data[:start] + matrix + plain.data[start + 36 :])


@cache
def boasting_film(count: int, claimed: int) -> Film:
    """An AVI whose two headers claim another number of frames."""
    plain = film(count, "avi")
    data = bytearray(plain.data)
    for place in (data.index(b"avih") + 24, data.index(b"strh") + 40):
        data[place : place + 4] = struct.pack("<I", claimed)
    return plain._replace(data=bytes(data))


@cache
def piped_film(count: int) -> Film:
    """A Matroska that was written to a pipe, and states no length."""
    frames = noise(count, 22, 14)
    return Film(encoded(frames, "mkv", Fraction(25), to=Pipe()), frames)


class Pipe:
    """Something that can be written to, and not be gone back in."""

    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, data: bytes) -> int:
        self.written += data
        return len(data)

    def getvalue(self) -> bytes:
        return bytes(self.written)


def encoded(
    frames: Frames,
    coding: str,
    fps: Fraction,
    *,
    milliseconds: Sequence[int] | None = None,
    reorder: int = 0,
    to: BytesIO | Pipe | None = None,
) -> bytes:
    """A film file. milliseconds: when each frame is shown. reorder: how many frames may be stored behind a later one."""
    container_format, codec, pixel_format, options = CODINGS[coding]
    to = to or BytesIO()
    with av.open(to, "w", format=container_format) as container:
        stream: Any = container.add_stream(codec, rate=fps, options=options)
        stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], pixel_format
        stream.codec_context.max_b_frames = reorder
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            if milliseconds is not None:
                frame.pts, frame.time_base = milliseconds[number], MILLISECONDS
                stream.codec_context.time_base = MILLISECONDS
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return to.getvalue()
