"""MEDIA: from the bytes of a recording to one channel of samples."""

import numpy as np

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.media_films import lengths
from conformance.requirement import SHOULD, requirement
from conformance.suite import media_audio_cases as cases
from conformance.suite.media_audio_cases import RATE, Hump, Limited, Resampled, Tone
from conformance.suite.media_checks import is_told_as_the_clients_fault

ENOUGH = 100.0
SAMPLE = "sample {}".format


@requirement("MEDIA-53", needs="decode_audio", cases=cases.SCALED)
def test_samples_at_their_own_rate_are_exact(engine: Engine, case: Exact) -> None:
    """Samples of b bits at their own rate MUST become value / 2**(b - 1) in float32, and floats stay what they are.

    Eight bits are unsigned in a WAV file, and 128 is silence. All of this is exact, or one rounding of an exact value.
    """
    equal(engine.decode_audio(case.given, RATE, ENOUGH), case.expected, "the samples", where=SAMPLE)


@requirement("MEDIA-54", needs="decode_audio", cases=cases.STEREO, bugs=("audio-mask-domain",))
def test_two_channels_become_their_mean(engine: Engine, case: Exact) -> None:
    """Two channels MUST become one, which is their mean: no channel is left out, and nothing is as loud as the sum."""
    equal(engine.decode_audio(case.given, RATE, ENOUGH), case.expected, "the samples", where=SAMPLE)


@requirement("MEDIA-55", needs="decode_audio", cases=cases.MANY_CHANNELS, bugs=("audio-mask-domain",), level=SHOULD)
def test_many_channels_become_their_mean(engine: Engine, case: Exact) -> None:
    """More than two channels SHOULD become one, which is their mean, also where there are fewer samples than channels.

    libswresample mixes them with weights for loudspeakers, and leaves the bass channel of six out.
    """
    equal(engine.decode_audio(case.given, RATE, ENOUGH), case.expected, "the samples", where=SAMPLE)


@requirement("MEDIA-56", needs="decode_audio", cases=cases.LENGTHS, bugs=("A01", "audio-count-before-resample"))
def test_the_length_is_that_of_the_sound(engine: Engine, case: Resampled) -> None:
    """n samples MUST become n * target / rate, rounded either way and at least one: nothing is cut off, nothing added.

    A model counts its placeholders from this number.
    """
    observed = len(engine.decode_audio(case.recording.data, case.target_rate, ENOUGH))
    least, most = lengths(len(case.recording.samples), case.recording.rate, case.target_rate)
    holds(least <= observed <= most, f"there are {observed} samples, where {least} to {most} are right")


@requirement("MEDIA-57", needs="decode_audio", cases=cases.HUMPS)
def test_a_sound_stays_where_it_is(engine: Engine, case: Hump) -> None:
    """A sound MUST stay at its time when the rate changes: the middle of a smooth hump is the sample at that time.

    The hump is symmetrical, and its middle is a sample at both rates; a filter whose delay is not made up for moves it.
    The middle is that of the samples above half its height: at its summit a filter may ripple.
    """
    observed = engine.decode_audio(case.data, case.target_rate, ENOUGH)
    upper = np.flatnonzero(observed >= max(observed, default=0) / 2)
    equal(int(np.median(upper)), case.summit, "the middle of the hump")


def _loudest_within(engine: Engine, case: Tone) -> float:
    samples = engine.decode_audio(case.data, case.target_rate, ENOUGH)
    quarter = len(samples) // 4
    return float(abs(samples[quarter:-quarter]).max())


@requirement("MEDIA-58", needs="decode_audio", cases=cases.ABOVE, level=SHOULD)
def test_what_the_rate_cannot_hold_does_not_turn_up_elsewhere(engine: Engine, case: Tone) -> None:
    """A tone above half the target rate SHOULD be gone: less than half of it turns up as another tone.

    Where samples are only left out, all of it does. Half of the tone of 0.5 is 0.25.
    """
    loudest = _loudest_within(engine, case)
    holds(loudest < 0.25, f"a tone of 0.5 that the rate cannot hold turns up as one of {loudest:.3f}")


@requirement("MEDIA-59", needs="decode_audio", cases=cases.BELOW)
def test_what_the_rate_can_hold_stays(engine: Engine, case: Tone) -> None:
    """A tone far below half of both rates MUST stay: more than half and less than twice of it is heard."""
    loudest = _loudest_within(engine, case)
    holds(0.25 < loudest < 1.0, f"a tone of 0.5 is heard as one of {loudest:.3f}")


@requirement("MEDIA-60", needs="decode_audio", cases=cases.NONE)
def test_what_is_no_recording_is_refused(engine: Engine, case: bytes) -> None:
    """Data that are no recording, have no samples, no rate or no channels, or only name other files MUST be refused."""
    refuses(lambda: engine.decode_audio(case, RATE, ENOUGH), "a recording that is none")


@requirement("MEDIA-61", needs="decode_audio", cases=cases.CUT_OFF)
def test_a_recording_that_ends_early_is_refused_or_heard_as_far_as_it_goes(engine: Engine, case: Exact) -> None:
    """Of a recording that ends early only samples that are there MUST be heard, at their place; or it is refused."""
    for observed in unless_refused(lambda: engine.decode_audio(case.given, RATE, ENOUGH), "a recording that ends early"):
        holds(1 <= len(observed) <= len(case.expected), f"there are {len(observed)} samples")
        equal(observed, case.expected[: len(observed)], "the samples", where=SAMPLE)


@requirement("MEDIA-62", needs="decode_audio", cases=cases.NOT_FINITE, level=SHOULD)
def test_samples_that_are_no_numbers_are_refused(engine: Engine, case: bytes) -> None:
    """A recording with a sample that is no finite number SHOULD be refused: one of them makes all features none."""
    refuses(lambda: engine.decode_audio(case, RATE, ENOUGH), "a sample that is no finite number")


@requirement("MEDIA-63", needs="decode_audio", cases=cases.TOO_LONG, level=SHOULD)
def test_a_recording_beyond_the_limit_is_refused(engine: Engine, case: Limited) -> None:
    """A recording of more seconds than the limit SHOULD be refused, by what is in it and not by its header."""
    refuses(lambda: engine.decode_audio(case.data, RATE, case.max_duration_s), f"more than {case.max_duration_s} seconds")


@requirement("MEDIA-64", needs="decode_audio", cases=cases.JUST_FITS)
def test_a_recording_of_the_limit_is_heard(engine: Engine, case: Limited) -> None:
    """A recording of exactly as many seconds as the limit MUST be heard: the limit is inclusive."""
    equal(len(engine.decode_audio(case.data, RATE, case.max_duration_s)), case.samples, "the number of samples")


@requirement("MEDIA-65", needs="decode_audio", cases=cases.NONE, bugs=("M01",), level=SHOULD)
def test_a_refused_recording_is_told_as_the_clients_fault(engine: Engine, case: bytes) -> None:
    """The refusal of a recording SHOULD be a ValueError without a memory address or a path: the client's fault."""
    is_told_as_the_clients_fault(lambda: engine.decode_audio(case, RATE, ENOUGH), "/etc/", "/usr/", "/tmp/")


@requirement("MEDIA-66", needs="decode_audio", cases=cases.BIG_ENDIAN)
def test_a_big_endian_recording_is_refused_or_heard_as_it_is(engine: Engine, case: Exact) -> None:
    """A WAV file whose numbers are big-endian (RIFX) MUST be heard as it is, or refused: read little-endian it is noise.

    FFmpeg reads its header rightly and its samples in the wrong order.
    """
    for observed in unless_refused(lambda: engine.decode_audio(case.given, RATE, ENOUGH), "a big-endian recording"):
        equal(observed, case.expected, "the samples", where=SAMPLE)
