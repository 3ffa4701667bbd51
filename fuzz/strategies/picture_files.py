"""Picture files of any content, and bytes that are none, as `conformance.world.picture_files` writes them."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from conformance.cases import Exact, Pair
from conformance.oracles import media as oracle
from conformance.suite.media_cases import Limited, Tagged, Veiled, hiding
from conformance.world.picture_files import (
    GREY,
    RGB,
    RGB_ALPHA,
    bmp,
    chunk,
    exif,
    interlaced_png,
    jpeg,
    png,
    tiff,
    with_exif,
)

BYTE = st.integers(0, 255)


@st.composite
def colours(draw: st.DrawFn, longest: int = 6) -> NDArray[np.uint8]:
    """Any pixels of 1 to `longest` rows and columns; shrinks to one black pixel."""
    height, width = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    content = draw(st.binary(min_size=height * width * 3, max_size=height * width * 3))
    return np.frombuffer(bytearray(content), np.uint8).reshape(height, width, 3)


def rows(pixels: NDArray[np.uint8]) -> list[bytes]:
    return [row.tobytes() for row in pixels]


@st.composite
def lossless(draw: st.DrawFn) -> Exact:
    """Any small picture as PNG, interlaced PNG, BMP or TIFF, with its pixels; shrinks to a black pixel in a PNG."""
    pixels = draw(colours())
    height, width = pixels.shape[:2]
    write = {
        "png": lambda: png(width, height, RGB, rows(pixels)),
        "interlaced": lambda: interlaced_png(width, height, RGB, [[bytes(pixel) for pixel in row] for row in pixels]),
        "bmp": lambda: bmp(width, height, rows(pixels[..., ::-1])),
        "tiff": lambda: tiff(width, height, pixels.tobytes(), channels=3, photometric=2),
    }
    return Exact(write[draw(st.sampled_from(sorted(write, reverse=True)))](), pixels)


@st.composite
def oriented(draw: st.DrawFn) -> Tagged:
    """A picture of any small size with any orientation, in any format that has one; shrinks to an upright PNG."""
    orientation, pixels = draw(st.integers(1, 8)), draw(colours())
    height, width = pixels.shape[:2]
    format = draw(st.sampled_from(["png", "tiff", "jpeg"]))
    if format == "jpeg":
        return Tagged(jpeg(width, height), with_exif(jpeg(width, height), orientation), orientation)
    if format == "tiff":
        plain, turned = (
            tiff(width, height, pixels.tobytes(), channels=3, photometric=2, orientation=one) for one in (1, orientation)
        )
        return Tagged(plain, turned, orientation)
    notes = chunk(b"eXIf", exif(orientation))
    return Tagged(png(width, height, RGB, rows(pixels)), png(width, height, RGB, rows(pixels), notes), orientation)


def hidings(shapes: tuple[str, ...]) -> SearchStrategy[Pair]:
    """Two pictures that differ in the colour under a transparent pixel, and not in the opaque grey 90."""
    hidden = st.lists(BYTE.filter(lambda value: value != 90), min_size=2, max_size=2, unique=True)
    return st.builds(lambda shape, two: Pair(hiding(shape, two[0]), hiding(shape, two[1])), st.sampled_from(shapes), hidden)


@st.composite
def glasses(draw: st.DrawFn, alphas: SearchStrategy[int] = BYTE) -> Veiled:
    """Any small picture with any opacity in each pixel; shrinks to one black, transparent pixel."""
    pixels = draw(colours())
    height, width = pixels.shape[:2]
    row = st.lists(alphas, min_size=width, max_size=width)
    opacities = np.array(draw(st.lists(row, min_size=height, max_size=height)), dtype=np.uint8)
    data = png(width, height, RGB_ALPHA, rows(np.dstack([pixels, opacities])))
    return Veiled(data, pixels, opacities)


@st.composite
def deep_greys(draw: st.DrawFn) -> Exact:
    """One row of grey of 16 bits, as PNG or TIFF of either byte order; shrinks to one black pixel in a PNG."""
    values = draw(st.lists(st.integers(0, 65535), min_size=1, max_size=9))
    order = draw(st.sampled_from([">", "<"]))
    samples = np.array(values, dtype=f"{order}u2").tobytes()
    as_png = order == ">" and draw(st.booleans())
    data = (
        png(len(values), 1, GREY, [samples], depth=16)
        if as_png
        else tiff(len(values), 1, samples, channels=1, photometric=1, bits=16, order=order)
    )
    return Exact(data, oracle.eight_bits([[[value] * 3 for value in values]]))


@st.composite
def cut_off(draw: st.DrawFn) -> bytes:
    """A picture file of several formats that ends before its last pixel; shrinks to the shortest."""
    made: bytes = draw(lossless()).given
    spared = 24 if made.startswith(b"\x89PNG") else 200 if made[:2] == b"II" else 1
    return made[: draw(st.integers(0, max(len(made) - spared, 0)))]


@st.composite
def too_large(draw: st.DrawFn) -> Limited:
    """A PNG whose header has more pixels than the limit, with data or without; shrinks to 1 x 2 and 1."""
    limit = draw(st.integers(1, 5000))
    width = draw(st.integers(1, 2**31 - 1))
    least = limit // width + 1
    height = draw(st.integers(least, max(least, min(2**31 - 1, 10 * least))))
    return Limited(png(width, height, GREY, []), limit)


@st.composite
def trailed(draw: st.DrawFn) -> Pair:
    """A PNG, and the same with any bytes after its end."""
    pixels = draw(colours(3))
    made = png(pixels.shape[1], pixels.shape[0], RGB, rows(pixels))
    return Pair(made, made + draw(st.binary(min_size=1, max_size=40)))
