"""Pictures for the rules about decoding, each with the pixels that are in it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from conformance.cases import Exact, Pair
from conformance.oracles import media as oracle
from conformance.world.picture_files import (
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGB_ALPHA,
    animation,
    bmp,
    chunk,
    encoded,
    exif,
    ink_jpeg,
    interlaced_png,
    jpeg,
    png,
    tiff,
    with_exif,
)

BACKGROUND = (10, 120, 250)


class Tagged(NamedTuple):
    """A picture file, the same with an EXIF orientation, and that orientation."""

    plain: bytes
    tagged: bytes
    orientation: int


class Veiled(NamedTuple):
    """A picture file, the colours in it, and how opaque they are."""

    data: bytes
    colours: NDArray[np.uint8]
    alphas: NDArray[np.uint8]


class Limited(NamedTuple):
    """A picture file, and how many pixels may be decoded."""

    data: bytes
    max_pixels: int


def pixels(*rows: Sequence[Sequence[int]] | Sequence[int]) -> NDArray[np.uint8]:
    return np.array(rows, dtype=np.uint8)


def grey(*rows: Sequence[int]) -> NDArray[np.uint8]:
    return np.repeat(np.array(rows, dtype=np.uint8)[..., None], 3, axis=-1)


COLOURS = pixels([(255, 0, 0), (0, 255, 0), (0, 0, 255)], [(1, 2, 3), (200, 100, 50), (255, 255, 254)])
ROWS = [row.tobytes() for row in COLOURS]
TABLE = chunk(b"PLTE", bytes((9, 8, 7, 60, 50, 40, 255, 254, 253)))
ENTRIES = pixels([(9, 8, 7), (60, 50, 40), (255, 254, 253)])

LOSSLESS = {
    "rgb": Exact(png(3, 2, RGB, ROWS), COLOURS),
    "rgb-interlaced": Exact(interlaced_png(3, 2, RGB, [[bytes(p) for p in row] for row in COLOURS]), COLOURS),
    "rgb-opaque": Exact(png(1, 1, RGB_ALPHA, [bytes((7, 8, 9, 255))]), pixels([(7, 8, 9)])),
    "grey": Exact(png(3, 1, GREY, [bytes((0, 100, 255))]), grey((0, 100, 255))),
    "grey-of-two-bits": Exact(png(4, 1, GREY, [b"\x1b"], depth=2), grey((0, 85, 170, 255))),
    "one-bit": Exact(png(4, 1, GREY, [b"\xa0"], depth=1), grey((255, 0, 255, 0))),
    "palette": Exact(png(3, 1, PALETTE, [b"\0\1\2"], TABLE), ENTRIES),
    "palette-of-two-bits": Exact(png(3, 1, PALETTE, [b"\x18"], TABLE, depth=2), ENTRIES),
    "bmp": Exact(bmp(3, 2, [row[:, ::-1].tobytes() for row in COLOURS]), COLOURS),
    "tiff": Exact(tiff(3, 2, COLOURS.tobytes(), channels=3, photometric=2), COLOURS),
    "gif": Exact(encoded(Image.fromarray(COLOURS).quantize(8), "GIF"), COLOURS),
}

SIZES = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (3, 3), (1, 7), (7, 1), (4, 3), (1, 1000))


def stripes(width: int, height: int) -> NDArray[np.uint8]:
    """A picture in which each pixel differs from its neighbours, and no channel equals another."""
    return np.arange(width * height * 3, dtype=np.int64).reshape(height, width, 3).astype(np.uint8)


THIN = {
    f"rgb-{width}-by-{height}": Exact(
        png(width, height, RGB, [row.tobytes() for row in stripes(width, height)]), stripes(width, height)
    )
    for width, height in SIZES
} | {
    f"grey-{width}-by-{height}": Exact(png(width, height, GREY, [bytes(range(width))] * height), grey(*[range(width)] * height))
    for width, height in SIZES[:7]
}


def tagged(format: str, orientation: int) -> Tagged:
    """A picture of 3 x 2 (a JPEG: 24 x 16) pixels in which no two corners look alike."""
    if format == "jpeg":
        return Tagged(jpeg(24, 16), with_exif(jpeg(24, 16), orientation), orientation)
    if format == "tiff":
        plain, turned = (tiff(3, 2, COLOURS.tobytes(), channels=3, photometric=2, orientation=one) for one in (1, orientation))
        return Tagged(plain, turned, orientation)
    return Tagged(png(3, 2, RGB, ROWS), png(3, 2, RGB, ROWS, chunk(b"eXIf", exif(orientation))), orientation)


ORIENTED = {
    f"{format}-{orientation}": tagged(format, orientation) for format in ("jpeg", "png", "tiff") for orientation in range(1, 9)
} | {"png-with-a-wrong-value": Tagged(png(3, 2, RGB, ROWS), png(3, 2, RGB, ROWS, chunk(b"eXIf", exif(9))), 1)}


def key(*values: int) -> bytes:
    """The one transparent colour of a PNG without a palette."""
    return chunk(b"tRNS", b"".join(value.to_bytes(2, "big") for value in values))


def hiding(shape: str, hidden: int) -> bytes:
    """Two pixels, a transparent one over the colour `hidden` and an opaque one of the grey 90 (in 16 bits: 90 * 257)."""
    deep = hidden.to_bytes(2, "big") + (90 * 257).to_bytes(2, "big")
    palette = chunk(b"PLTE", bytes((hidden, hidden, hidden, 90, 90, 90)))
    return {
        "rgba": lambda: png(2, 1, RGB_ALPHA, [bytes((hidden, hidden, hidden, 0, 90, 90, 90, 255))]),
        "grey-alpha": lambda: png(2, 1, GREY_ALPHA, [bytes((hidden, 0, 90, 255))]),
        "rgb-key": lambda: png(2, 1, RGB, [bytes([hidden] * 3 + [90] * 3)], key(hidden, hidden, hidden)),
        "grey-key": lambda: png(2, 1, GREY, [bytes((hidden, 90))], key(hidden)),
        "grey-key-of-16-bits": lambda: png(2, 1, GREY, [deep], key(hidden), depth=16),
        "palette-one-entry": lambda: png(2, 1, PALETTE, [b"\0\1"], palette, chunk(b"tRNS", b"\0\xff")),
        "palette-first-entries": lambda: png(2, 1, PALETTE, [b"\0\1"], palette, chunk(b"tRNS", b"\0")),
    }[shape]()


SHAPES = (
    "rgba", "grey-alpha", "rgb-key", "grey-key", "grey-key-of-16-bits", "palette-one-entry", "palette-first-entries",
)  # fmt: skip
HIDING = {shape: Pair(hiding(shape, 0), hiding(shape, 200)) for shape in SHAPES}

VEILED = {
    f"{shape}-over-{hidden}": Veiled(hiding(shape, hidden), grey((hidden, 90)), pixels([0, 255]))
    for shape in SHAPES
    for hidden in (0, 200)
} | {
    "grey-key-of-two-bits": Veiled(
        png(4, 1, GREY, [b"\x1b"], key(2), depth=2), grey((0, 85, 170, 255)), pixels([255, 255, 0, 255])
    ),
    "one-bit-key": Veiled(png(4, 1, GREY, [b"\xa0"], key(1), depth=1), grey((255, 0, 255, 0)), pixels([0, 255, 0, 255])),
    "nothing-visible": Veiled(png(2, 1, RGB_ALPHA, [bytes(8)]), grey((0, 0)), pixels([0, 0])),
}


def glass(colours: Sequence[tuple[int, int, int]], alphas: Sequence[int]) -> Veiled:
    """One row of pixels that are more or less opaque."""
    row = b"".join(bytes((*colour, alpha)) for colour, alpha in zip(colours, alphas, strict=True))
    return Veiled(png(len(alphas), 1, RGB_ALPHA, [row]), pixels(colours), pixels(alphas))


GLASS = {
    "rgba": glass([(200, 100, 0), (0, 0, 0), (255, 255, 255), (10, 120, 250)], [128, 1, 254, 77]),
    "every-alpha": glass([(255, 0, 33)] * 256, range(256)),
    "grey-alpha": Veiled(png(2, 1, GREY_ALPHA, [bytes((40, 60, 220, 200))]), grey((40, 220)), pixels([60, 200])),
    "palette": Veiled(
        png(3, 1, PALETTE, [b"\0\1\2"], TABLE, chunk(b"tRNS", b"\x20\x80\xff")), ENTRIES, pixels([0x20, 0x80, 0xFF])
    ),
}

RAMP = [value * 65535 // 255 + (7 * value) % 200 if value < 255 else 65535 for value in range(256)]
DEEP = [(0, 65535, 32768), (256, 255, 257), (1, 65279, 40000)]


def wide(values: Sequence[int], order: str = ">") -> bytes:
    return np.array(values, dtype=f"{order}u2").tobytes()


def deep(data: bytes, samples: Sequence[Sequence[int]]) -> Exact:
    """A file of one row of 16-bit samples, and what these may become."""
    return Exact(data, oracle.eight_bits([[list(pixel) for pixel in samples]]))


SIXTEEN_BITS = {
    "grey-png": deep(png(256, 1, GREY, [wide(RAMP)], depth=16), [[v] * 3 for v in RAMP]),
    "grey-tiff": deep(tiff(256, 1, wide(RAMP, "<"), channels=1, photometric=1, bits=16), [[v] * 3 for v in RAMP]),
    "grey-tiff-big-endian": deep(
        tiff(256, 1, wide(RAMP), channels=1, photometric=1, bits=16, order=">"), [[v] * 3 for v in RAMP]
    ),
    "rgb-png": deep(png(3, 1, RGB, [b"".join(map(wide, DEEP))], depth=16), DEEP),
    "rgb-opaque-png": deep(png(3, 1, RGB_ALPHA, [b"".join(wide((*one, 65535)) for one in DEEP)], depth=16), DEEP),
    "grey-opaque-png": deep(
        png(3, 1, GREY_ALPHA, [wide((0, 65535, 40000, 65535, 65535, 65535))], depth=16), [[v] * 3 for v in (0, 40000, 65535)]
    ),
}

INKS = {
    "no-ink": ((0, 0, 0, 0), (255, 255, 255)),
    "cyan": ((255, 0, 0, 0), (0, 255, 255)),
    "magenta": ((0, 255, 0, 0), (255, 0, 255)),
    "yellow": ((0, 0, 255, 0), (255, 255, 0)),
    "black": ((0, 0, 0, 255), (0, 0, 0)),
    "half-black": ((0, 0, 0, 127), (128, 128, 128)),
    "all-inks": ((255, 255, 255, 255), (0, 0, 0)),
}
STORED = {
    "without-a-colour": ((0, 128, 128, 255), (255, 255, 255)),
    "all-inks-but-black": ((255, 128, 128, 255), (0, 0, 0)),
    "grey": ((100, 128, 128, 255), (155, 155, 155)),
    "half-black": ((0, 128, 128, 128), (128, 128, 128)),
    "green": ((100, 128, 228, 255), (15, 226, 155)),
}
"""What a JPEG of the kind YCCK stores: red is 255 - (100 + 1.402 * 100), and so on."""

CMYK = (
    {
        name: Exact(tiff(2, 1, bytes(inks * 2), channels=4, photometric=5), pixels([colour, colour]))
        for name, (inks, colour) in INKS.items()
    }
    | {
        f"jpeg-{name}": Exact(ink_jpeg([255 - ink for ink in inks], 0), pixels(*[[colour] * 16] * 8))
        for name, (inks, colour) in INKS.items()
    }
    | {f"ycck-{name}": Exact(ink_jpeg(stored, 2), pixels(*[[colour] * 16] * 8)) for name, (stored, colour) in STORED.items()}
)

WHOLE = png(3, 2, RGB, ROWS)
FLIPPED = bytearray(WHOLE)
FLIPPED[-20] ^= 0xFF
DAMAGED = {
    "text": b"not an image",
    "html": b"<!doctype html><title>404</title>",
    "base64-text": b"aGVsbG8gd29ybGQ" * 50_000,
    "empty": b"",
    "signature-alone": WHOLE[:8],
    "header-alone": WHOLE[:33],
    "pixels-cut-off": WHOLE[:-24],
    "a-byte-changed": bytes(FLIPPED),
    "no-rows": png(3, 0, RGB, []),
    "no-pixel-data": WHOLE[:33] + chunk(b"IEND", b""),
    "jpeg-cut-off": jpeg(24, 16)[:-40],
    "jpeg-header-alone": jpeg(24, 16)[:200],
    "gif-cut-off": LOSSLESS["gif"].given[:-8],
    "gif-header-alone": LOSSLESS["gif"].given[:13],
    "bmp-cut-off": LOSSLESS["bmp"].given[:-6],
    "tiff-cut-off": LOSSLESS["tiff"].given[:-30],
    "tiff-header-alone": LOSSLESS["tiff"].given[:8],
}
SHORT = {
    "half-of-the-rows": png(3, 2, RGB, ROWS[:1]),
    "one-row-of-a-thousand": png(3, 1000, RGB, ROWS[:1]),
    "one-byte-too-few": png(3, 2, RGB, [ROWS[0], ROWS[1][:-1]]),
}


def blank(width: int, height: int) -> bytes:
    """A whole file of a white picture."""
    return png(width, height, GREY, [b"\xff" * width] * height)


TOO_LARGE = {
    "one-row-too-many": Limited(blank(10, 11), 100),
    "one-pixel-too-many": Limited(blank(101, 1), 100),
    "a-tall-line": Limited(blank(1, 101), 100),
    "jpeg": Limited(jpeg(24, 16), 24 * 16 - 1),
    "tiff": Limited(LOSSLESS["tiff"].given, 5),
    "gif": Limited(LOSSLESS["gif"].given, 5),
    "bmp": Limited(LOSSLESS["bmp"].given, 5),
    "a-huge-header": Limited(png(20_000, 20_000, GREY, [b"\0"]), 1 << 20),
    "the-largest-header": Limited(png(2**31 - 1, 2**31 - 1, GREY, [b"\0"]), 1 << 20),
    "a-small-file": Limited(png(512, 256, GREY, [bytes(64)] * 256, depth=1), 1 << 16),
}
JUST_FITS = {
    "square": Limited(blank(10, 10), 100),
    "a-line": Limited(blank(100, 1), 100),
    "a-tall-line": Limited(blank(1, 100), 100),
    "jpeg": Limited(jpeg(24, 16), 24 * 16),
}


FIRST_FRAME = grey((0, 0, 0, 0), (0, 0, 0, 0))
ANIMATED = {"gif": Exact(animation("GIF"), FIRST_FRAME), "png": Exact(animation("PNG"), FIRST_FRAME)}

TRAILED = {
    "another-picture": Pair(WHOLE, WHOLE + blank(3, 2)),
    "an-archive": Pair(WHOLE, WHOLE + b"PK\x05\x06" + bytes(18)),
    "a-page": Pair(jpeg(24, 16), jpeg(24, 16) + b"<script>alert(1)</script>"),
    "a-film": Pair(jpeg(24, 16), jpeg(24, 16) + bytes(8) + b"ftypmp42" + bytes(64)),
    "another-jpeg": Pair(jpeg(24, 16), jpeg(24, 16) + with_exif(jpeg(24, 16), 3)),
}
