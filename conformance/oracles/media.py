"""What is obviously right about pictures: index arithmetic for turns, integer formulas for colours."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]
Bounds: TypeAlias = tuple[Pixels, Pixels]
"""The least and the greatest value that rounding one exact value may give, pixel by pixel."""


def upright(pixels: Pixels, orientation: int) -> Pixels:
    """Where each pixel of a picture goes that was stored with this EXIF orientation, one pixel at a time."""
    height, width = pixels.shape[:2]
    rows, columns = (height, width) if orientation <= 4 else (width, height)
    turned = np.zeros((rows, columns, 3), dtype=np.uint8)
    for y in range(rows):
        for x in range(columns):
            source = {
                1: (y, x),
                2: (y, width - 1 - x),
                3: (height - 1 - y, width - 1 - x),
                4: (height - 1 - y, x),
                5: (x, y),
                6: (height - 1 - x, y),
                7: (height - 1 - x, width - 1 - y),
                8: (x, width - 1 - y),
            }[orientation]
            turned[y, x] = pixels[source]
    return turned


def composited(colours: Pixels, alphas: NDArray[np.uint8], background: tuple[int, int, int]) -> Bounds:
    """colour * alpha / 255 + background * (255 - alpha) / 255, rounded down and up."""
    numerators = [
        [
            [int(c) * int(alpha) + b * (255 - int(alpha)) for c, b in zip(colour, background, strict=True)]
            for colour, alpha in zip(row, opacities, strict=True)
        ]
        for row, opacities in zip(colours, alphas, strict=True)
    ]
    return _bounds(numerators, 255)


def eight_bits(samples: Sequence[Sequence[Sequence[int]]]) -> Bounds:
    """value * 255 / 65535, rounded down and up. The upper byte of a value lies within."""
    return _bounds(samples, 257)


def _bounds(numerators: Sequence[Sequence[Sequence[int]]], denominator: int) -> Bounds:
    lowest = [[[value // denominator for value in pixel] for pixel in row] for row in numerators]
    highest = [[[-(-value // denominator) for value in pixel] for pixel in row] for row in numerators]
    return np.array(lowest, dtype=np.uint8), np.array(highest, dtype=np.uint8)
