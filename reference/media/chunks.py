"""Files made of chunks, WAV and AIFF: whether the sound that the header promises is there.

FFmpeg reads such a file as far as it goes, and nobody is told that the rest is missing. A file that was written to a pipe
promises nothing.

Source: Microsoft's multimedia programming interface (1991) for WAV; EBU Tech 3306 for RF64, whose chunk `ds64` has the
lengths that do not fit 32 bits; Apple's AIFF specification, version 1.3.
"""

import struct
from collections.abc import Iterator

from reference.media.errors import MediaError

UNKNOWN = 0x7FFF0000
"""Lengths of this and more are those of a WAV file that was written to a pipe, and could not know its own."""

KINDS = {(b"RIFF", b"WAVE"): "WAV", (b"RF64", b"WAVE"): "WAV", (b"FORM", b"AIFF"): "AIFF", (b"FORM", b"AIFC"): "AIFF"}


def check_byte_order(data: bytes) -> None:
    """Raises MediaError for a WAV file whose numbers are big-endian."""
    if data[:4] == b"RIFX":
        raise MediaError("the WAV file is big-endian (RIFX); only little-endian ones (RIFF) are taken")


def check_sound_is_whole(data: bytes) -> None:
    """Raises MediaError when the samples of a WAV or AIFF file end before its header says."""
    kind = KINDS.get((data[:4], data[8:12]))
    if kind is None:
        return
    large = None
    for name, length, place in _chunks(data, "<" if kind == "WAV" else ">"):
        held = len(data) - place
        if name == b"ds64" and data[:4] == b"RF64" and held >= 16:
            (large,) = struct.unpack_from("<Q", data, place + 8)
        if name == b"data" and length == 0xFFFFFFFF and large is not None:
            length = large
        elif name == b"data" and length >= UNKNOWN:
            return
        if name in (b"data", b"SSND") and held < length:
            raise MediaError(f"the header of the {kind} file promises {length} bytes of samples, but there are {held}")


def _chunks(data: bytes, order: str) -> Iterator[tuple[bytes, int, int]]:
    """The name of each chunk, its stated length, and where it begins."""
    place = 12
    while place + 8 <= len(data):
        name, length = struct.unpack_from(f"{order}4sI", data, place)
        yield name, length, place + 8
        place += 8 + length + length % 2
