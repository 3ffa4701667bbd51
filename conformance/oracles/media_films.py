"""What is obviously right about films and recordings: exact arithmetic, one frame and one sample at a time."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray


def rate_of(fps: float) -> Fraction:
    """The rate that a float stands for: those of television are n / 1001."""
    return Fraction(fps).limit_denominator(1001)


def mean_of_channels(rows: ArrayLike) -> NDArray[np.float32]:
    """The exact mean of each row of channels, rounded once."""
    return np.array([math.fsum(row) / len(row) for row in np.asarray(rows).tolist()], dtype=np.float32)


def lengths(count: int, rate: int, target_rate: int) -> tuple[int, int]:
    """The numbers of samples that `count` may become at another rate: rounded down, but one at least, and up."""
    return max(count * target_rate // rate, 1), -(-count * target_rate // rate)
