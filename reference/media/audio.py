"""Audio: a recording becomes one channel of samples at the rate that a model asks for, float32 [n].

1. A sample of b bits is value / 2**(b - 1); eight bits are unsigned in files, and 128 is silence. Floats are as they are,
   also beyond 1.
2. One channel is the mean of all, whatever they are called: nothing is left out and nothing counts more.
3. Everything up to here is computed in double precision and rounded once.
4. The rate is changed last (`reference.media.resampling`); a recording at the right rate keeps its samples.
5. Samples are counted, not believed, and bounded while they arrive. A file that promises more than it holds is an error
   (`reference.media.chunks`), and Vorbis ends where its last page says (`reference.media.ogg`).
6. A WAV file whose numbers are big-endian (RIFX) is refused: FFmpeg reads its header so, but its samples from the wrong
   end, and a voice becomes noise.

Source: RFC 2361 and Microsoft's multimedia programming interface (1991) for WAV. Disagreements: libswresample
(SGLang 0.5.23 for containers, vLLM 0.33 with PyAV where the rate changes, torchcodec) adds two channels and divides by the
root of two, mixes more by weights for loudspeakers, and leaves out the bass channel; soundfile and librosa's users take the
mean.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.media.chunks import check_byte_order, check_sound_is_whole
from reference.media.containers import MAX_BYTES, decoded
from reference.media.errors import MediaError
from reference.media.ogg import KEEP_ALL, LARGEST_BLOCK, recording_length, to_skip, vorbis_granules
from reference.media.resampling import resample

Samples = NDArray[np.float32]

SCALES = {"u8": (128, 1 << 7), "s16": (0, 1 << 15), "s32": (0, 1 << 31), "s64": (0, 1 << 63), "flt": (0, 1), "dbl": (0, 1)}
"""What silence is and what a whole unit is, by FFmpeg's names; 24 bits are in the upper part of 32."""

MAX_RATE = 768_000
MAX_SAMPLES = 1 << 26


def decode_audio(
    data: bytes,
    target_rate: int,
    max_duration_s: float = 600.0,
    *,
    max_samples: int = MAX_SAMPLES,
    max_bytes: int = MAX_BYTES,
) -> Samples:
    """The first recording in a file, as one channel: float32 [ceil(n * target_rate / its own rate)], at least one sample.

    max_duration_s, max_samples: of the recording before its rate is changed, and the samples after it too; inclusive.
    Raises MediaError for what is beyond a limit, for what is no recording of a known format, is damaged, is empty, or has
    samples that are no numbers.
    """
    if not 1 <= target_rate <= MAX_RATE:
        raise MediaError(f"a rate of {target_rate} samples a second cannot be made; it is between 1 and {MAX_RATE}")
    check_byte_order(data)
    check_sound_is_whole(data)
    samples, rate = _read(data, max_duration_s, max_samples, max_bytes)
    if not np.isfinite(samples).all():
        raise MediaError("the recording has samples that are no finite numbers")
    if len(samples) * target_rate > max_samples * rate:
        raise MediaError(f"the recording would have more than {max_samples} samples at {target_rate} a second")
    return resample(samples, rate, target_rate)


def _read(data: bytes, max_duration_s: float, max_samples: int, max_bytes: int) -> tuple[Samples, int]:
    """The samples of one channel, and how many are in a second."""
    granules = vorbis_granules(data)
    options, spare = (KEEP_ALL, LARGEST_BLOCK) if granules else ({}, 0)
    with decoded(data, lambda container: next(iter(container.streams.audio), None), max_bytes, **options) as (stream, frames):
        rate, count, length, first, parts = stream.rate, 0, 0, None, []
        if not 1 <= (rate or 0) <= MAX_RATE:
            raise MediaError(f"the recording has {rate} samples a second; between 1 and {MAX_RATE} are taken")
        most = min(max_duration_s * rate, max_samples)
        for frame in frames:
            if frame.sample_rate != rate or frame.is_corrupt:
                raise MediaError("the rate of the recording changes, or a part of it is damaged")
            skipped = to_skip(frame) if granules else 0
            first = frame.pts + skipped if first is None and frame.pts is not None else first
            count += frame.samples - skipped
            length = recording_length(granules, first, count)
            if length > most or count > most + spare:
                raise MediaError(f"the recording is longer than {max_duration_s} seconds or {max_samples} samples")
            parts.append(one_channel(frame)[skipped:])
    if not count:
        raise MediaError("the recording has no samples")
    return np.concatenate(parts)[:length], rate


def one_channel(frame: Any) -> Samples:
    """The mean of the channels of a frame."""
    name = frame.format.name.removesuffix("p")
    if name not in SCALES:
        raise MediaError(f"samples of the type {name} are not taken")
    silence, unit = SCALES[name]
    values = frame.to_ndarray().astype(np.float64)
    channels = values if frame.format.is_planar else values.reshape(-1, frame.layout.nb_channels).T
    with np.errstate(over="ignore", invalid="ignore"):  # what is no finite number is told by the caller
        mixed: Samples = ((channels.mean(axis=0) - silence) / unit).astype(np.float32)
    return mixed
