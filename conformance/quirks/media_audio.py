"""Ways in which engines have decoded recordings wrongly."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from conformance.quirk import quirk
from reference.media import MediaError
from reference.media import audio as right
from reference.media.audio import Samples, decode_audio
from reference.media.resampling import resample

WINDOW_S = 30


def mixed_by(mix: Callable[[Any], Any], data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """A recording whose channels, [channels, n] in whole units, become one in another way."""

    def one_channel(frame: Any) -> Samples:
        silence, unit = right.SCALES[frame.format.name.removesuffix("p")]
        values = (frame.to_ndarray().astype(np.float64) - silence) / unit
        channels = values if frame.format.is_planar else values.reshape(-1, frame.layout.nb_channels).T
        with np.errstate(invalid="ignore"):
            mixed: Samples = mix(channels).astype(np.float32)
        return mixed

    with patch.object(right, "one_channel", one_channel):
        return decode_audio(data, target_rate, max_duration_s)


def resampled_by(change: Callable[[Samples, int, int], Samples], data: bytes, target_rate: int, limit_s: float) -> Samples:
    """A recording whose rate is changed in another way."""
    with patch.object(right, "resample", change):
        return decode_audio(data, target_rate, limit_s)


@quirk("samples-unscaled", replaces="decode_audio", bugs=(), caught_by=("MEDIA-53", "MEDIA-54", "MEDIA-55", "MEDIA-59"))
def samples_unscaled(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Integers are taken as they are: a whisper of 16 bits is a hundred times as loud as a float can be."""
    with patch.object(right, "SCALES", {name: (silence, 1) for name, (silence, _) in right.SCALES.items()}):
        return decode_audio(data, target_rate, max_duration_s)


@quirk("divided-by-the-largest", replaces="decode_audio", bugs=(), caught_by=("MEDIA-53", "MEDIA-54", "MEDIA-55"))
def divided_by_the_largest(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Integers are divided by the largest of them, 2**(b - 1) - 1, so that the least is below -1."""
    with patch.object(right, "SCALES", {name: (zero, max(unit - 1, 1)) for name, (zero, unit) in right.SCALES.items()}):
        return decode_audio(data, target_rate, max_duration_s)


@quirk("eight-bits-are-signed", replaces="decode_audio", bugs=(), caught_by=("MEDIA-53", "MEDIA-54"))
def eight_bits_are_signed(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Eight bits are read like sixteen, with a sign: silence is the loudest of all."""
    with patch.object(right, "SCALES", right.SCALES | {"u8": (0, 1 << 7)}):
        return decode_audio(data, target_rate, max_duration_s)


@quirk("all-bits-to-sixteen", replaces="decode_audio", bugs=(), caught_by=("MEDIA-53", "MEDIA-54"))
def all_bits_to_sixteen(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Everything is made into 16 bits on the way: what was finer is gone, and what was beyond 1 is cut off."""
    samples = decode_audio(data, target_rate, max_duration_s)
    return (np.clip(np.round(samples * 32_768), -32_768, 32_767) / 32_768).astype(np.float32)


@quirk("first-channel-alone", replaces="decode_audio", bugs=(), caught_by=("MEDIA-54", "MEDIA-55"))
def first_channel_alone(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The left channel is heard, and who sits on the right is not."""
    return mixed_by(lambda channels: channels[0], data, target_rate, max_duration_s)


@quirk("channels-added-up", replaces="decode_audio", bugs=(), caught_by=("MEDIA-54", "MEDIA-55"))
def channels_added_up(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Channels are added up and not divided by their number."""
    return mixed_by(lambda channels: channels.sum(axis=0), data, target_rate, max_duration_s)


@quirk("channels-interleaved", replaces="decode_audio", bugs=("audio-mask-domain",), caught_by=("MEDIA-54", "MEDIA-55"))
def channels_interleaved(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The samples of all channels are taken for one, which lasts as many times as long."""
    return mixed_by(lambda channels: channels.T.reshape(-1), data, target_rate, max_duration_s)


@quirk("axis-of-channels-guessed", replaces="decode_audio", bugs=("audio-mask-domain",), caught_by=("MEDIA-55",))
def axis_of_channels_guessed(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The shorter axis is taken for the channels; of a short recording with many channels it is not."""
    return mixed_by(
        lambda channels: channels.mean(axis=0 if channels.shape[0] <= channels.shape[1] else 1),
        data,
        target_rate,
        max_duration_s,
    )


@quirk("mixed-for-loudspeakers", replaces="decode_audio", bugs=(), caught_by=("MEDIA-55",))
def mixed_for_loudspeakers(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Of more than two channels those beyond the second count less, by the square root of a half."""
    return mixed_by(
        lambda channels: np.average(channels, axis=0, weights=[1, 1, *[0.5**0.5] * (len(channels) - 2)][: len(channels)]),
        data,
        target_rate,
        max_duration_s,
    )


@quirk(
    "never-resampled",
    replaces="decode_audio",
    bugs=("audio-count-before-resample",),
    caught_by=("MEDIA-56", "MEDIA-57", "MEDIA-64"),
)
def never_resampled(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Samples keep the rate of the file, and are counted so."""
    return resampled_by(lambda samples, rate, target: samples, data, target_rate, max_duration_s)


@quirk("cut-to-thirty-seconds", replaces="decode_audio", bugs=("A01",), caught_by=("MEDIA-56",))
def cut_to_thirty_seconds(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """What is beyond the window of 30 seconds that an encoder has is dropped, and nobody is told."""
    return decode_audio(data, target_rate, max_duration_s)[: WINDOW_S * target_rate]


@quirk("padded-to-whole-hops", replaces="decode_audio", bugs=("A01",), caught_by=("MEDIA-53", "MEDIA-56", "MEDIA-64"))
def padded_to_whole_hops(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Silence is added up to the next hundredth of a second, so that the sound is longer than it is."""
    samples = decode_audio(data, target_rate, max_duration_s)
    return np.pad(samples, (0, -len(samples) % max(target_rate // 100, 1) or 1))


@quirk("delay-not-made-up-for", replaces="decode_audio", bugs=(), caught_by=("MEDIA-57",))
def delay_not_made_up_for(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The filter's delay stays in the answer: all sound comes 16 samples late, and the last of it is lost."""

    def late(samples: Samples, rate: int, target: int) -> Samples:
        if rate == target:
            return samples
        right_ones = resample(samples, rate, target)
        return np.pad(right_ones, (16, 0))[: len(right_ones)]

    return resampled_by(late, data, target_rate, max_duration_s)


@quirk("samples-left-out", replaces="decode_audio", bugs=(), caught_by=("MEDIA-58",))
def samples_left_out(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The rate is changed by taking the nearest sample, so that what is too high turns up as something low."""

    def nearest(samples: Samples, rate: int, target: int) -> Samples:
        places = np.arange(-(-len(samples) * target // rate)) * rate // target
        return samples[places]

    return resampled_by(nearest, data, target_rate, max_duration_s)


@quirk("faint-when-resampled", replaces="decode_audio", bugs=(), caught_by=("MEDIA-59",))
def faint_when_resampled(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The weights of the filter are not brought to a sum of one: at three times the rate a third of the sound is left."""

    def faint(samples: Samples, rate: int, target: int) -> Samples:
        return resample(samples, rate, target) * np.float32(min(1.0, rate / target, target / rate))

    return resampled_by(faint, data, target_rate, max_duration_s)


@quirk("no-recording-is-silence", replaces="decode_audio", bugs=(), caught_by=("MEDIA-60",))
def no_recording_is_silence(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """What cannot be decoded is a second of silence, and the model hears nothing in it."""
    try:
        return decode_audio(data, target_rate, max_duration_s)
    except MediaError:
        return np.zeros(target_rate, dtype=np.float32)


@quirk("missing-samples-are-silence", replaces="decode_audio", bugs=(), caught_by=("MEDIA-61",))
def missing_samples_are_silence(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """There are as many samples as the header promises, within reason; those that are not there are silence."""
    try:
        return decode_audio(data, target_rate, max_duration_s)
    except MediaError:
        if data[:4] != b"RIFF" or data[36:40] != b"data" or len(data) <= 44:
            raise
    with patch.object(right, "check_sound_is_whole", lambda data: None):
        return np.pad(decode_audio(data, target_rate, max_duration_s), (0, 10_000))


@quirk("every-wav-is-little-endian", replaces="decode_audio", bugs=(), caught_by=("MEDIA-66",))
def every_wav_is_little_endian(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """FFmpeg is given a big-endian WAV file, whose integers it reads from the wrong end: a voice becomes loud noise."""
    with patch.object(right, "check_byte_order", lambda data: None):
        return decode_audio(data, target_rate, max_duration_s)


@quirk("no-numbers-pass", replaces="decode_audio", bugs=(), caught_by=("MEDIA-62",))
def no_numbers_pass(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Floats are not looked at, and one that is no number makes all features none."""
    with patch.object(np, "isfinite", lambda samples: np.ones(1, dtype=bool)):
        return decode_audio(data, target_rate, max_duration_s)


@quirk("no-limit-of-seconds", replaces="decode_audio", bugs=(), caught_by=("MEDIA-63",))
def no_limit_of_seconds(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """Only bytes are limited; a small file of silence lasts for hours."""
    return decode_audio(data, target_rate, 3600.0)


@quirk("limit-of-seconds-is-exclusive", replaces="decode_audio", bugs=(), caught_by=("MEDIA-64",))
def limit_of_seconds_is_exclusive(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """A recording of exactly as many seconds as the limit is refused."""
    return decode_audio(data, target_rate, np.nextafter(max_duration_s, 0.0).item())


@quirk("broken-recording-is-a-runtime-error", replaces="decode_audio", bugs=("M01",), caught_by=("MEDIA-65",))
def broken_recording_is_a_runtime_error(data: bytes, target_rate: int, max_duration_s: float) -> Samples:
    """The decoder's own error leaves the engine, which a server answers with 500."""
    try:
        return decode_audio(data, target_rate, max_duration_s)
    except MediaError:
        raise RuntimeError(f"Error opening <_io.BytesIO object at {id(data):#014x}>: Format not recognised.") from None
