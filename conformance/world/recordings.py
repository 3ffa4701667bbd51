"""Recordings written by hand, so that every sample in them is known; FLAC and Matroska come from FFmpeg, without loss."""

import struct
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import ArrayLike, NDArray

INTEGERS, FLOATS = 1, 3
"""The two kinds of samples in a WAV file."""


class Recording(NamedTuple):
    """A file, the samples in it as [n, channels] of units, and its rate."""

    data: bytes
    samples: NDArray[np.float64]
    rate: int = 16_000


def wav(
    raw: bytes, *, bits: int, channels: int = 1, rate: int = 16_000, kind: int = INTEGERS, length: int | None = None
) -> bytes:
    """A WAV file. raw: its packed samples, little-endian, channel by channel. length: what the header says of them."""
    frame = channels * bits // 8
    length = len(raw) if length is None else length
    about = struct.pack("<HHIIHH", kind, channels, rate, rate * frame, frame, bits)
    body = b"WAVEfmt " + struct.pack("<I", len(about)) + about + b"data" + struct.pack("<I", length) + raw
    return b"RIFF" + struct.pack("<I", min(length + 36, 0xFFFFFFFF)) + body + b"\0" * (len(raw) % 2)


def packed(values: ArrayLike, bits: int) -> bytes:
    """Samples of 16, 24 or 32 bits, little-endian; of 8 bits with 128 for silence."""
    if bits == 8:
        return (np.asarray(values) + 128).astype(np.uint8).tobytes()
    return np.asarray(values, dtype="<i4").reshape(-1, 1).view(np.uint8)[:, : bits // 8].tobytes()


def units(rows: ArrayLike, bits: int = 16) -> NDArray[np.float64]:
    """Integers of so many bits as samples between -1 and 1, [n, channels], one row of channels for each sample."""
    whole = np.asarray(rows, dtype=np.float64)
    return (whole if whole.ndim == 2 else whole[:, None]) / 2.0 ** (bits - 1)


def recording(rows: ArrayLike, bits: int = 16, rate: int = 16_000) -> Recording:
    """A WAV file of integers, one row of channels for each sample."""
    samples = units(rows, bits)
    return Recording(wav(packed(rows, bits), bits=bits, channels=samples.shape[1], rate=rate), samples, rate)


def big_endian(one: Recording, bits: int = 16) -> Recording:
    """The same WAV file of so many bits with all its numbers big-endian, which is called RIFX."""
    length, *about, held = struct.unpack("<4xI8xIHHIIHH4xI", one.data[:44])
    header = struct.pack(">4sI8sIHHIIHH4sI", b"RIFX", length, b"WAVEfmt ", *about, b"data", held)
    raw = np.frombuffer(one.data[44 : 44 + held], dtype=np.uint8).reshape(-1, bits // 8)[:, ::-1]
    return one._replace(data=header + raw.tobytes() + b"\0" * (held % 2))


def floats(values: Sequence[float], bits: int = 32) -> Recording:
    """A WAV file of floats, one channel."""
    raw = struct.pack(f"<{len(values)}{'f' if bits == 32 else 'd'}", *values)
    return Recording(wav(raw, bits=bits, kind=FLOATS), np.array(values, dtype=np.float64)[:, None])


def aiff(rows: Sequence[Sequence[int]]) -> Recording:
    """An AIFF file of 16 bits, big-endian, at 16,000 samples a second."""
    rate = struct.pack(">HQ", 16383 + 13, 16_000 << 50)  # an 80-bit float: 2**13 * 1.953125
    raw = np.array(rows, dtype=">i2").tobytes()
    common = b"COMM" + struct.pack(">IhIh", 18, len(rows[0]), len(rows), 16) + rate
    body = b"AIFF" + common + b"SSND" + struct.pack(">III", len(raw) + 8, 0, 0) + raw
    return Recording(b"FORM" + struct.pack(">I", len(body)) + body, units(rows))


def rf64(rows: ArrayLike, bits: int = 16) -> Recording:
    """The same WAV file with its length in 64 bits, as files of more than 4 GiB have it."""
    one = recording(rows, bits)
    held = len(one.data) - 44
    lengths = b"ds64" + struct.pack("<IQQQI", 28, held + 72, held, len(one.samples), 0)
    unknown = struct.pack("<I", 0xFFFFFFFF)
    return one._replace(data=b"RF64" + unknown + b"WAVE" + lengths + one.data[12:36] + b"data" + unknown + one.data[44:])


def flac(values: Sequence[int], rate: int = 16_000) -> Recording:
    """A FLAC file of 16 bits, one channel."""
    data = sound("flac", "flac", np.array(values, dtype=np.int16)[:, None], rate)
    return Recording(data, units(values), rate)


def matroska(rows: Sequence[Sequence[int]], rate: int = 16_000) -> Recording:
    """The same samples as in a WAV file, in the container of a film."""
    data = sound("matroska", "pcm_s16le", np.array(rows, dtype=np.int16), rate)
    return Recording(data, units(rows), rate)


def sound(container_format: str, codec: str, samples: NDArray[np.int16], rate: int) -> bytes:
    """A file of these samples, [n, 1 or 2 channels], by a codec that loses nothing."""
    to, layout = BytesIO(), ("mono", "stereo")[samples.shape[1] - 1]
    with av.open(to, "w", format=container_format) as container:
        stream: Any = container.add_stream(codec, rate=rate, layout=layout, format="s16")
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout=layout)
        frame.sample_rate, frame.pts = rate, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return to.getvalue()
