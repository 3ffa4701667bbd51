"""What is obviously right about films and recordings: exact arithmetic, one frame and one sample at a time."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


def rate_of(fps: float) -> Fraction:
    """The rate that a float stands for: those of television are n / 1001."""
    return Fraction(fps).limit_denominator(1001)


def mean_of_channels(rows: Sequence[Sequence[float]]) -> NDArray[np.float32]:
    """The exact mean of each row, rounded once."""
    return np.array([float(sum(map(Fraction, row)) / len(row)) for row in rows], dtype=np.float32)


def lengths(count: int, rate: int, target_rate: int) -> tuple[int, int]:
    """The numbers of samples that `count` may become at another rate: rounded down, but one at least, and up."""
    return max(count * target_rate // rate, 1), -(-count * target_rate // rate)
