"""Ogg: where a Vorbis recording ends.

The blocks of Vorbis have fixed lengths, so the last one nearly always holds more than the recording. How many samples there
are is the granule position of the last page. FFmpeg cuts the end off by it, but counts from a wrong beginning where all
sound is in one page: some hundred samples too many are left, or some hundred of the recording are lost. So it is kept from
cutting, and the length is taken from the pages.

Source: RFC 3533, section 6 (pages); the Vorbis I specification, A.2 (granule positions).
Limits: files with several recordings, one after the other or side by side, are left to FFmpeg.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

KEEP_ALL = {"flags2": "skip_manual"}
"""The option of FFmpeg's decoders that has nothing cut off."""

BEGINS = 2
LARGEST_BLOCK = 8192
"""Of Vorbis, in samples."""


class Page(NamedTuple):
    """A page: what its flags are, up to which sample its blocks go, and how its content begins."""

    flags: int
    granule: int
    beginning: bytes


def vorbis_granules(data: bytes) -> tuple[int, ...]:
    """The granule positions of the pages that end a block of sound; none unless the file is one Vorbis recording."""
    read = list(pages(data))
    begun = [page for page in read if page.flags & BEGINS]
    if len(begun) != 1 or begun[0].beginning != b"\x01vorbis":
        return ()
    return tuple(page.granule for page in read if page.granule > 0)


def pages(data: bytes) -> Iterator[Page]:
    """The pages of a file, up to the first that is none or is cut off."""
    place = 0
    while data[place : place + 4] == b"OggS" and place + 27 <= len(data):
        flags, granule, count = struct.unpack_from("<Bq12xB", data, place + 5)
        lengths = data[place + 27 : place + 27 + count]
        stop = place + 27 + count + sum(lengths)
        if len(lengths) < count or stop > len(data):
            return
        yield Page(flags, granule, data[place + 27 + count : min(stop, place + 34 + count)])
        place = stop


def recording_length(granules: tuple[int, ...], first: int | None, decoded: int) -> int:
    """How many of the samples that were decoded belong to the recording: all of them where there are no granules.

    first: the time of the first sample, by FFmpeg; other than 0 where the beginning of the recording was cut off.
    """
    if not granules:
        return decoded
    begins = max(first or 0, 0) if len(granules) > 1 else 0
    return min(decoded, max(granules[-1] - begins, 0)) or decoded


def to_skip(frame: Any) -> int:
    """How many samples at the beginning of a frame only prepare the ones behind them."""
    told = next((bytes(one) for one in frame.side_data if one.type.name == "SKIP_SAMPLES"), bytes(4))
    return int.from_bytes(told[:4], "little")
