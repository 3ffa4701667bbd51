"""What the reference promises of video and audio beyond the requirements: what it says, keeps and leaves alone."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from conformance.suite.media_audio_cases import LENGTHS, Resampled
from conformance.world.films import film, turned_film
from conformance.world.recordings import floats, recording, wav
from reference.media import MediaError
from reference.media.audio import decode_audio
from reference.media.resampling import resample
from reference.media.video import VideoLimits, decode_video, turned


@pytest.mark.parametrize("case", LENGTHS.values(), ids=LENGTHS)
def test_samples_are_rounded_up_in_number(case: Resampled) -> None:
    count, rate = len(case.recording.samples), case.recording.rate
    assert len(decode_audio(case.recording.data, case.target_rate)) == -(-count * case.target_rate // rate)


@pytest.mark.parametrize(("rate", "target"), [(44_100, 16_000), (8_000, 16_000), (44_101, 16_000)])
def test_a_level_stays_to_the_last_bit_but_one_of_a_float(rate: int, target: int) -> None:
    inside = resample(np.full(4 * rate // 10, 0.5, dtype=np.float32), rate, target)[1000:-1000]
    assert np.abs(inside - 0.5).max() <= 2.0**-25


def test_the_shown_pixels_are_bounded_together() -> None:
    with pytest.raises(MediaError, match="3 frames of 308 pixels are shown; at most 900"):
        decode_video(film(3).data, None, 3, max_shown_pixels=900)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (VideoLimits(max_source_frames=2), "more than 2 frames"),
        (VideoLimits(max_duration_s=0.05), "longer than 0.05 seconds"),
        (VideoLimits(max_pixels=307), "frames have 22 x 14 pixels; between 1 and 307"),
    ],
)
def test_a_refused_video_says_what_is_wrong(limits: VideoLimits, message: str) -> None:
    with pytest.raises(MediaError, match=message):
        decode_video(film(3).data, None, 3, limits)


def test_a_file_beyond_the_byte_limit_is_not_opened() -> None:
    for decode in (lambda: decode_video(bytes(9), None, 1, max_bytes=8), lambda: decode_audio(bytes(9), 16_000, max_bytes=8)):
        with pytest.raises(MediaError, match="9 bytes; at most 8"):
            decode()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted by Linux")
def test_no_thread_is_left() -> None:
    before = len(list(Path("/proc/self/task").iterdir()))
    assert len(decode_video(film(11).data, None, 11).pixels) == 11
    assert len(list(Path("/proc/self/task").iterdir())) == before


@pytest.mark.parametrize("rate", [0, -1, 1 << 30])
def test_a_rate_that_cannot_be_made_is_refused(rate: int) -> None:
    with pytest.raises(MediaError, match="cannot be made"):
        decode_audio(recording([[1]]).data, rate)


def test_a_double_that_no_float_holds_is_refused() -> None:
    with pytest.raises(MediaError, match="no finite numbers"):
        decode_audio(floats([1e300], 64).data, 16_000)


def test_a_wav_file_that_promises_too_much_is_refused() -> None:
    with pytest.raises(MediaError, match="promises 100 bytes of samples, but there are 4"):
        decode_audio(wav(bytes(4), bits=16, length=100), 16_000)


def test_a_turn_by_half_a_right_angle_is_refused() -> None:
    with pytest.raises(MediaError, match="right angle"):
        turned(np.zeros((2, 2, 3), dtype=np.uint8), np.array([46341, 46341, 0, -46341, 46341], dtype=np.int32))


def test_a_turned_film_has_its_sides_exchanged() -> None:
    assert decode_video(turned_film(3, 6).data, None, 3).pixels.shape == (3, 22, 14, 3)


def test_a_rate_of_television_is_kept() -> None:
    assert decode_video(film(31, "mkv", Fraction(30_000, 1001)).data, 6.0, 99).fps == 30_000 / 1001
