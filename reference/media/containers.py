"""Containers: opening a file of video or sound, in memory, and reading one of its streams to the end.

1. The formats are named. FFmpeg knows others that open further files and addresses (playlists, lists of files, session
   descriptions), or that take any text for a picture.
2. No address can be opened from within a file: there is no protocol.
3. What the decoder complains of is an error. A frame that it mends, or calls corrupt, is not the one that was sent.
4. One thread decodes and converts: others that FFmpeg starts stay, with their memory, until Python collects its garbage.
5. What ends early without a complaint is read as far as it goes; nothing is filled up.

Source: FFmpeg's documentation of `format_whitelist`, `protocol_whitelist`, `err_detect` and `max_pixels`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import av

from reference.media.errors import MediaError

FORMATS = ("aac", "aiff", "avi", "flac", "flv", "gif", "matroska", "mov", "mp3", "mpeg", "mpegts", "ogg", "w64", "wav")
"""What is opened, by FFmpeg's names; `mov` stands for MP4 too, and `matroska` for WebM."""

MAX_BYTES = 256 * 2**20
OPTIONS = {"format_whitelist": ",".join(FORMATS), "protocol_whitelist": ""}
STRICT = {"err_detect": "explode"}


@contextmanager
def decoded(data: bytes, choose: Callable[[Any], Any], max_bytes: int, **options: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """A stream of a container, as `choose` finds it there, and its frames.

    Raises MediaError for more than `max_bytes`, for what is no container of FORMATS, has no such stream, or is damaged.
    """
    if len(data) > max_bytes:
        raise MediaError(f"the medium has {len(data)} bytes; at most {max_bytes} are taken")
    try:
        with av.open(BytesIO(data), "r", options=dict(OPTIONS), metadata_errors="replace") as container:
            stream = choose(container)
            if stream is None or stream.codec_context is None:
                raise MediaError("the medium has no stream of this kind that could be decoded")
            stream.codec_context.options = STRICT | options
            stream.codec_context.thread_count = 1
            yield stream, container.decode(stream)
    except (MediaError, MemoryError):
        raise
    except Exception:  # a damaged file makes FFmpeg raise anything, with names and places in its text
        raise MediaError("the medium cannot be decoded: its format is not a known one, or its data are damaged") from None
