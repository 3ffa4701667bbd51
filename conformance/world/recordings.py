"""Recordings written by hand, so that every sample in them is known; FLAC and Matroska come from FFmpeg, without loss."""

import struct
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

INTEGERS, FLOATS = 1, 3
"""The two kinds of samples in a WAV file."""


class Recording(NamedTuple):
    """A file, the samples in it as [n, channels] of units, and its rate."""

    data: bytes
    samples: Sequence[Sequence[float]]
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


def packed(values: Sequence[int], bits: int) -> bytes:
    """Samples of 16, 24 or 32 bits, little-endian; of 8 bits with 128 for silence."""
    if bits == 8:
        return bytes(value + 128 for value in values)
    return b"".join(value.to_bytes(bits // 8, "little", signed=True) for value in values)


def recording(rows: Sequence[Sequence[int]], bits: int = 16, rate: int = 16_000) -> Recording:
    """A WAV file of integers, one row of channels for each sample."""
    flat = [value for row in rows for value in row]
    data = wav(packed(flat, bits), bits=bits, channels=len(rows[0]) if rows else 1, rate=rate)
    return Recording(data, [[value / 2 ** (bits - 1) for value in row] for row in rows], rate)


def floats(values: Sequence[float], bits: int = 32) -> Recording:
    """A WAV file of floats, one channel."""
    raw = struct.pack(f"<{len(values)}{'f' if bits == 32 else 'd'}", *values)
    return Recording(wav(raw, bits=bits, kind=FLOATS), [[value] for value in values])


def aiff(rows: Sequence[Sequence[int]]) -> Recording:
    """An AIFF file of 16 bits, big-endian, at 16,000 samples a second."""
    rate = struct.pack(">HQ", 16383 + 13, 16_000 << 50)  # an 80-bit float: 2**13 * 1.953125
    raw = b"".join(value.to_bytes(2, "big", signed=True) for row in rows for value in row)
    common = b"COMM" + struct.pack(">IhIh", 18, len(rows[0]), len(rows), 16) + rate
    body = b"AIFF" + common + b"SSND" + struct.pack(">III", len(raw) + 8, 0, 0) + raw
    return Recording(b"FORM" + struct.pack(">I", len(body)) + body, [[value / 2**15 for value in row] for row in rows])


def flac(values: Sequence[int], rate: int = 16_000) -> Recording:
    """A FLAC file of 16 bits, one channel."""
    data = sound("flac", "flac", np.array(values, dtype=np.int16)[:, None], rate)
    return Recording(data, [[value / 2**15] for value in values], rate)


def matroska(rows: Sequence[Sequence[int]], rate: int = 16_000) -> Recording:
    """The same samples as in a WAV file, in the container of a film."""
    data = sound("matroska", "pcm_s16le", np.array(rows, dtype=np.int16), rate)
    return Recording(data, [[value / 2**15 for value in row] for row in rows], rate)


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
