"""Resampling: sound at another rate, by the interpolation that a bandlimited signal has.

    y[m] = sum over k of x[k] h(m source / target - k),   h(t) = w(t) sinc(c t)

1. n samples become ceil(n target / source): the first stands at time 0, the last before the end. Beyond both ends there
   is silence.
2. c is a little less than the lower rate's share of the source's, so that what the target cannot hold is gone.
3. w is a Hann window of ZEROS zero crossings on each side; each set of weights has the sum 1, so that a level stays.
4. The weights depend on the fraction of m source / target alone, of which there are target / gcd: one product for each.

Source: J. O. Smith, "Digital Audio Resampling" (ccrma.stanford.edu/~jos/resample). Disagreements: every library has its
own window (torchaudio 6 zero crossings, soxr and libswresample steeper filters), so no two of them give the same samples;
they agree on the length and on where a sound is.
"""

from itertools import count
from math import ceil, gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

ZEROS = 24
ROLL_OFF = 0.95

BLOCK = 1024
"""How many sets of weights are kept at once."""


def resample(samples: NDArray[np.float32], source_rate: int, target_rate: int) -> NDArray[np.float32]:
    """The same sound at another rate: float32 [ceil(n * target_rate / source_rate)]."""
    if source_rate == target_rate:
        return samples
    common = gcd(source_rate, target_rate)
    up, down = target_rate // common, source_rate // common
    resampled = np.empty(-(-len(samples) * up // down), dtype=np.float32)
    cutoff = ROLL_OFF * min(1.0, up / down)
    half = ceil(ZEROS / cutoff)
    windows = sliding_window_view(np.pad(samples, (half, half + 1)), 2 * half + 1)
    phases = min(up, len(resampled))
    for first in range(0, phases, BLOCK):
        wholes, parts = np.divmod(np.arange(first, min(first + BLOCK, phases)) * down, up)
        for phase, whole, weight in zip(count(first), wholes, weights(parts / up, cutoff, half), strict=False):
            places = resampled[phase::up]
            places[:] = np.einsum("ij,j->i", windows[whole::down][: len(places)], weight)
    return resampled


def weights(fractions: NDArray[np.float64], cutoff: float, half: int) -> NDArray[np.float64]:
    """[f, 2 * half + 1]: what each of the samples around a place counts that lies a fraction behind the middle one."""
    distance = cutoff * (np.arange(-half, half + 1) - fractions[:, None])
    window = np.where(abs(distance) < ZEROS, 0.5 + 0.5 * np.cos(np.pi * distance / ZEROS), 0.0)
    weighted: NDArray[np.float64] = np.sinc(distance) * window
    weighted /= weighted.sum(axis=1, keepdims=True)
    return weighted
