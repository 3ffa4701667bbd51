"""Recordings for the rules about decoding audio."""

from typing import NamedTuple

import numpy as np

from conformance.cases import Exact
from conformance.oracles.media_films import mean_of_channels
from conformance.world.films import film
from conformance.world.picture_files import jpeg
from conformance.world.recordings import (
    FLOATS,
    Recording,
    aiff,
    big_endian,
    flac,
    floats,
    matroska,
    packed,
    recording,
    rf64,
    units,
    wav,
)

RATE = 16_000


class Resampled(NamedTuple):
    """A recording, and the rate at which it is asked for."""

    recording: Recording
    target_rate: int


class Hump(NamedTuple):
    """A recording of one smooth hump, the rate that is asked for, and the number of its highest sample there."""

    data: bytes
    target_rate: int
    summit: int


class Tone(NamedTuple):
    """A recording of a tone of half a unit, and the rate that is asked for."""

    data: bytes
    target_rate: int


class Limited(NamedTuple):
    """A recording, and how many seconds are taken."""

    data: bytes
    max_duration_s: float
    samples: int = 0


def exact(one: Recording) -> Exact:
    return Exact(one.data, mean_of_channels(one.samples))


ENDS = {bits: [[0], [1], [-1], [2 ** (bits - 1) - 1], [-(2 ** (bits - 1))], [2 ** (bits - 2)]] for bits in (8, 16, 24, 32)}
RAMP = list(range(-32_768, 32_768, 97))
SCALED = {f"wav-of-{bits}-bits": exact(recording(rows, bits)) for bits, rows in ENDS.items()} | {
    "floats": exact(floats([0.0, 0.1, -0.5, 1.0, -1.0, 2.0**-30])),
    "double-floats": exact(floats([0.0, 0.1, -0.5, 1.0, 1e-9], 64)),
    "beyond-one": exact(floats([1.5, -3.0])),
    "ramp": exact(recording([[value] for value in RAMP])),
    "flac": exact(flac(RAMP)),
    "aiff": exact(aiff([[value] for value in RAMP[:50]])),
    "matroska": exact(matroska([[value] for value in RAMP])),
    "wav-of-64-bit-lengths": exact(rf64([[value] for value in RAMP])),
    "one-sample": exact(recording([[-5]])),
    "longer-than-a-block": exact(recording([[n * 7919 % 65536 - 32768] for n in range(5000)])),
    "from-a-pipe": Exact(
        wav(packed([1, -2, 3], 16), bits=16, length=0xFFFFFFFF), mean_of_channels([[1 / 2**15], [-2 / 2**15], [3 / 2**15]])
    ),
}

STEREO = {
    "left-alone": exact(recording([[n * 100, 0] for n in range(50)])),
    "right-alone": exact(recording([[0, n * 100] for n in range(50)])),
    "opposite": exact(recording([[n * 100, -n * 100] for n in range(50)])),
    "loudest": exact(recording([[32_767, 32_767], [-32_768, -32_768]])),
    "odd-sums": exact(recording([[n, n + 1] for n in range(50)])),
    "one-sample": exact(recording([[300, -100]])),
    "two-samples": exact(recording([[300, -100], [7, 9]])),
    "eight-bits": exact(recording([[10, 20], [-128, 127]], 8)),
    "matroska": exact(matroska([[n * 100, 7 - n] for n in range(50)])),
    "twenty-four-bits": exact(recording([[8_388_607, 1], [-8_388_608, -2]], 24)),
}
MANY_CHANNELS = {
    f"{channels}-channels": exact(recording([[(n * channel * 64) % 4096 for channel in range(channels)] for n in range(40)]))
    for channels in (4, 8)
} | {"fewer-samples-than-channels": exact(recording([[8, 16, 24, 32, 40, 48, 56, 64], [0] * 8, [800] + [0] * 7]))}


def counted(count: int, rate: int) -> Recording:
    return recording([[n * 31 % 2000 - 1000] for n in range(count)], 16, rate)


LENGTHS = {
    f"{count}-from-{rate}-to-{target}": Resampled(counted(count, rate), target)
    for count, rate, target in (
        (1, 16_000, 16_000), (1, 48_000, 16_000), (1, 8_000, 16_000), (2, 48_000, 16_000), (4, 48_000, 16_000),
        (441, 44_100, 16_000), (442, 44_100, 16_000), (443, 44_100, 16_000), (44_100, 44_100, 16_000),
        (1001, 22_050, 16_000), (11_025, 11_025, 16_000), (3201, 32_000, 16_000), (480, 16_000, 48_000),
        (31 * 8000, 8_000, 8_000), (31 * 8000 + 1, 8_000, 16_000), (997, 44_101, 16_000),
    )
}  # fmt: skip


def hump(rate: int, target_rate: int, middle: int, half: int, total: int) -> Hump:
    """Half a cosine squared, much wider than what the lower rate can hold, around sample `middle` of `total`."""
    distance = np.clip((np.arange(total) - middle) / half, -1, 1)
    rows = [[round(16_000 * value)] for value in np.cos(np.pi / 2 * distance) ** 2]
    assert middle * target_rate % rate == 0, "the summit is a sample at both rates"
    return Hump(recording(rows, 16, rate).data, target_rate, middle * target_rate // rate)


HUMPS = {
    "to-a-third": hump(48_000, 16_000, 3000, 300, 9000),
    "to-a-half": hump(32_000, 16_000, 2000, 200, 6000),
    "to-the-double": hump(8_000, 16_000, 500, 50, 1500),
    "to-the-triple": hump(16_000, 48_000, 1000, 100, 3000),
    "from-a-disc": hump(44_100, 16_000, 4410, 300, 13_000),
    "near-the-beginning": hump(48_000, 16_000, 330, 300, 9000),
    "near-the-end": hump(48_000, 16_000, 8670, 300, 9000),
}


def tone(frequency: int, rate: int, target_rate: int = RATE) -> Tone:
    wave = np.sin(2 * np.pi * frequency / rate * np.arange(rate // 5))
    return Tone(recording([[round(16_384 * value)] for value in wave], 16, rate).data, target_rate)


ABOVE = {"to-a-third": tone(15_000, 48_000), "to-a-half": tone(13_000, 32_000), "from-a-disc": tone(14_000, 44_100)}
BELOW = {
    "to-a-third": tone(1000, 48_000),
    "to-a-half": tone(3000, 32_000),
    "from-a-disc": tone(2000, 44_100),
    "to-the-double": tone(1000, 8_000),
}

PLAIN = counted(2000, RATE).data
NONE = {
    "empty": b"",
    "text": b"not a recording at all, but some words\n" * 20,
    "picture": jpeg(24, 16),
    "silent-film": film(5).data,
    "header-alone": PLAIN[:44],
    "half-a-header": PLAIN[:20],
    "no-rate": wav(b"\1\0" * 100, bits=16, rate=0),
    "no-channels": wav(b"\1\0" * 100, bits=16, channels=0),
    "playlist": b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
    "list-of-files": b"ffconcat version 1.0\nfile /etc/hostname\n",
}
CUT_OFF = {
    "wav": Exact(PLAIN[:3000], mean_of_channels(counted(2000, RATE).samples)),
    "wav-within-a-sample": Exact(PLAIN[:3001], mean_of_channels(counted(2000, RATE).samples)),
    "promises-much": Exact(
        wav(packed([1, 2, 3], 16), bits=16, length=1 << 30), mean_of_channels([[n / 2**15] for n in (1, 2, 3)])
    ),
    "aiff": Exact(aiff([[n] for n in RAMP]).data[:900], mean_of_channels(units(RAMP))),
    "wav-of-64-bit-lengths": Exact(rf64(RAMP).data[:900], mean_of_channels(units(RAMP))),
    "flac": Exact(flac(RAMP).data[:-60], mean_of_channels(flac(RAMP).samples)),
}
BIG_ENDIAN = {f"{bits}-bits": exact(big_endian(recording(rows, bits), bits)) for bits, rows in ENDS.items() if bits > 8} | {
    "floats": exact(big_endian(floats([0.5, -0.25, 1.0, 0.0]), 32)),
    "two-channels": exact(big_endian(recording([[n * 100, -n] for n in range(50)]))),
}
NOT_FINITE = {
    "no-number": floats([0.0, float("nan"), 0.5]).data,
    "endless": floats([0.0, float("inf")]).data,
    "endless-below": floats([float("-inf"), 0.25], 64).data,
    "opposites": wav(np.array([np.inf, -np.inf], dtype="<f4").tobytes(), bits=32, channels=2, kind=FLOATS),
}
TOO_LONG = {
    "a-sample-too-many": Limited(counted(1601, RATE).data, 0.1),
    "at-a-lower-rate": Limited(counted(801, 8_000).data, 0.1),
    "from-a-pipe": Limited(wav(packed([0] * 1601, 16), bits=16, length=0xFFFFFFFF), 0.1),
    "flac": Limited(flac([0] * 8000).data, 0.25),
}
JUST_FITS = {
    "wav": Limited(counted(1600, RATE).data, 0.1, 1600),
    "at-a-lower-rate": Limited(counted(800, 8_000).data, 0.1, 1600),
    "flac": Limited(flac([0] * 4000).data, 0.25, 4000),
}
