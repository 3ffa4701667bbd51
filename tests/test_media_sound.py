"""Recordings in containers that say in a place of their own where the sound ends."""

from io import BytesIO
from typing import Any

import av
import numpy as np
import pytest

from conformance.protocol.media import DecodedVideo as AskedVideo
from conformance.world.recordings import aiff, rf64
from reference.media import MediaError
from reference.media.audio import decode_audio
from reference.media.ogg import pages, vorbis_granules
from reference.media.video import DecodedVideo

RATE = 16_000


def vorbis(count: int) -> bytes:
    """An Ogg file of so many samples of a tone, and of silence in front of it, by FFmpeg's own encoder."""
    to = BytesIO()
    with av.open(to, "w", format="ogg") as container:
        stream: Any = container.add_stream("vorbis", rate=RATE, layout="stereo", options={"strict": "experimental"})
        tone = np.sin(np.arange(count) / 8) * (np.arange(count) >= count // 2)
        frame = av.AudioFrame.from_ndarray(np.stack([tone, tone]).astype(np.float32), format="fltp", layout="stereo")
        frame.sample_rate, frame.pts = RATE, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return to.getvalue()


@pytest.mark.parametrize("count", [100, 1000, 4096, 16_000, 20_001, 200_000])
def test_vorbis_has_as_many_samples_as_its_last_page_says(count: int) -> None:
    data = vorbis(count)
    samples = decode_audio(data, RATE)
    assert len(samples) == vorbis_granules(data)[-1]
    loud = np.abs(samples[: count // 2 - 2000]).max(initial=0), np.abs(samples[count // 2 : count // 2 + 500]).max()
    assert loud[0] < 0.05 < loud[1]


def test_the_limit_of_seconds_is_that_of_the_recording_and_not_of_its_blocks() -> None:
    data = vorbis(16_000)
    count = vorbis_granules(data)[-1]
    assert len(decode_audio(data, RATE, count / RATE)) == count
    with pytest.raises(MediaError, match="longer than"):
        decode_audio(data, RATE, (count - 1) / RATE)


def test_pages_end_where_the_file_does() -> None:
    data = vorbis(1000)
    assert len(list(pages(data))) > len(list(pages(data[:-1]))) > 0
    assert vorbis_granules(b"OggS" + bytes(60)) == ()


@pytest.mark.parametrize(
    "data", [aiff([[n] for n in range(90)]).data, rf64([[n] for n in range(90)]).data], ids=["aiff", "rf64"]
)
def test_a_file_that_ends_before_its_header_says_is_refused(data: bytes) -> None:
    assert len(decode_audio(data, RATE)) == 90
    with pytest.raises(MediaError, match=r"promises \d+ bytes of samples, but there are \d+"):
        decode_audio(data[:-10], RATE)


@pytest.mark.parametrize("kind", [DecodedVideo, AskedVideo])
def test_a_video_is_shown_without_its_pixels(kind: Any) -> None:
    video = kind(np.zeros((2, 30, 40, 3), dtype=np.uint8), [0, 5], [0.0, 0.5], 10.0, 11)
    assert repr(video) == "DecodedVideo([2, 30, 40, 3] of 11 frames, 10 a second, indices=[0, 5])"
