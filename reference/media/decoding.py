"""Decoding: the bytes of a picture become RGB pixels, uint8 [height, width, 3].

Pillow decodes; what is accepted, and what a picture looks like when it has more than three channels of eight bits, is
decided here.

1. The size is read from the header and checked before a pixel is decoded. What a header promises and the data do not
   hold is an error: a picture that is half black is not the one that was sent. Pillow fills up a PNG whose compressed
   stream ends early but well, so its length is counted here.
2. The shape is explicit. A picture of one row is one row; no axis is guessed from its length.
3. A turn that the EXIF data ask for is made once, after everything else. Pillow makes it by itself for TIFF, and takes
   the tag away; so the tag is read after the pixels are loaded.
4. Transparency is a property of pixels, not of a mode: an alpha channel, a palette with alpha, one transparent entry or
   one transparent colour. All of it is composited on a background, in integers, rounded to the nearest.
5. Sixteen bits become eight by their upper byte. Pillow cuts off at 255 instead, which turns a picture white.
6. Of an animation the first frame is the picture. What follows the end of a picture in the data is not looked at: phones
   put sound and small films there.
7. A colour profile is not applied; CMYK becomes RGB by (255 - colour) * (255 - black) / 255.

Source: Pillow's documentation of its modes; the PNG specification, third edition, sections 11.3.1 (tRNS) and 13.12.
Disagreements: SGLang 0.5.23 composites on a colour that it chooses by the edge of the picture; transformers converts to
RGB after a look at the mode alone, so that the colour under a transparent pixel shows. Limits: the transparent colour of
a PNG with 3 x 16 bits is compared by its upper bytes, for Pillow does not keep the lower ones; a JPEG whose scan ends
early but with an end marker is filled up with grey, for libjpeg only warns of it and Pillow does not pass this on.
"""

import struct
import zlib
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from reference.media.errors import MediaError

Colour = tuple[int, int, int]
Pixels = NDArray[np.uint8]

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
"""What is decoded. Pillow knows more, among them formats that run another program."""

SIGNATURES = (b"BM", b"GIF8", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"II*\0", b"MM\0*")
"""How their files begin, but for WEBP, which is one of many kinds of RIFF."""

DAMAGED = "the picture cannot be decoded: its data are damaged or end early"

WHITE: Colour = (255, 255, 255)
MAX_BYTES = 64 * 2**20
MAX_PIXELS = 64 * 2**20

ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings a picture with this EXIF orientation upright (EXIF 2.32, tag 274); 1 is upright."""

PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""How many channels a PNG of this colour type has."""

ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""The passes of an interlaced PNG: first column, first row, and the steps of both."""

SIXTEEN_BITS = ("I", "I;16", "I;16B", "I;16L", "I;16N")
"""Modes of 16-bit grey. Pillow hands it out in 32 bits too, as "I"."""


def decode_image(
    data: bytes, background: Colour = WHITE, max_pixels: int = MAX_PIXELS, *, max_bytes: int = MAX_BYTES
) -> Pixels:
    """The picture that `data` begins with, upright, on the background: uint8 [height, width, 3], RGB.

    Raises MediaError for more than `max_bytes`, for a header of more than `max_pixels`, for what is no picture of one of
    FORMATS, is damaged or ends early.
    """
    if len(data) > max_bytes:
        raise MediaError(f"the picture has {len(data)} bytes; at most {max_bytes} are taken")
    try:
        picture = Image.open(BytesIO(data), formats=FORMATS)
        check_size(picture, max_pixels)
        picture.load()
        check_size(picture, max_pixels)
        if picture.format == "PNG":
            _check_png_length(data)
        return to_pixels(picture, background, grey_bits=_grey_bits(data))
    except MediaError:
        raise
    except Image.DecompressionBombError:
        raise MediaError(f"the picture has more pixels than the {max_pixels} that are taken") from None
    except UnidentifiedImageError:  # also for a file whose beginning is a picture's, and no more
        if not data.startswith(SIGNATURES) and (data[:4], data[8:12]) != (b"RIFF", b"WEBP"):
            raise MediaError(f"the data are no picture of a known format; these are {', '.join(FORMATS)}") from None
        raise MediaError(DAMAGED) from None
    except Exception:  # a damaged file makes Pillow raise anything, while it decodes or later
        raise MediaError(DAMAGED) from None


def check_size(picture: Image.Image, max_pixels: int) -> None:
    """Raises MediaError when the picture has no pixel, or more than `max_pixels`."""
    width, height = picture.size
    if not 1 <= width * height <= max_pixels:
        raise MediaError(f"the picture has {width} x {height} pixels; between 1 and {max_pixels} are taken")


def to_pixels(picture: Image.Image, background: Colour = WHITE, *, grey_bits: int = 8) -> Pixels:
    """A picture in any mode of Pillow, upright, on the background: uint8 [height, width, 3], RGB.

    grey_bits: the depth of the file, by which one transparent grey of a PNG is meant.
    Raises MediaError for a mode without a stated range (F, LAB) and for "I" outside 16 bits.
    """
    picture.load()
    pixels = composite(*_split(picture, grey_bits), np.array(background, dtype=np.uint16))
    turn = TURNS.get(_orientation(picture))
    return pixels if turn is None else np.array(Image.fromarray(pixels).transpose(turn))


def _split(picture: Image.Image, grey_bits: int) -> tuple[Pixels, Pixels | None]:
    """The colours [height, width, 3], and the alpha [height, width] if there is any."""
    if picture.mode in SIXTEEN_BITS:
        return _split_sixteen_bits(picture)
    if picture.mode in ("F", "LAB"):
        raise MediaError(f"a picture of the pixel type {picture.mode} has no stated range")
    if not picture.has_transparency_data:
        return np.array(picture.convert("RGB")), None
    key = picture.info.get("transparency")
    if picture.mode in ("1", "L", "RGB") and key is not None:
        colours = np.array(picture.convert("RGB"))
        is_clear = (colours == _key_colour(key, picture.mode, grey_bits)).all(axis=-1)
        return colours, np.where(is_clear, 0, 255).astype(np.uint8)
    with_alpha = np.array((picture.convert("LA") if picture.mode == "La" else picture).convert("RGBA"))
    return with_alpha[..., :3], with_alpha[..., 3]


def _split_sixteen_bits(picture: Image.Image) -> tuple[Pixels, Pixels | None]:
    values = np.array(picture)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise MediaError("a grey picture has values beyond 16 bits, and no stated range")
    colours = np.repeat((values >> 8).astype(np.uint8)[..., None], 3, axis=-1)
    key = picture.info.get("transparency")
    return colours, None if key is None else np.where(values == key, 0, 255).astype(np.uint8)


def _key_colour(key: int | Colour, mode: str, grey_bits: int) -> NDArray[np.int64]:
    """The transparent colour in eight bits; Pillow gives it as the file has it, and pixels scaled to eight bits."""
    if mode == "RGB":
        colour = np.array(key)
        return colour if colour.max() <= 0xFF and grey_bits <= 8 else colour >> 8
    return np.array(key) * (255 // (2**grey_bits - 1)) if mode == "L" else np.array(key)


def _grey_bits(data: bytes) -> int:
    """The depth of a channel in a PNG file, which stands in its header; 8 for every other format."""
    return data[24] if data.startswith(b"\x89PNG") else 8


def _check_png_length(data: bytes) -> None:
    """Raises MediaError unless the compressed pixels of a PNG, which Pillow has read, are as many as its header says."""
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    bits = depth * PNG_CHANNELS[colour]
    expected = sum(
        rows * (1 + (columns * bits + 7) // 8)
        for x, y, dx, dy in (ADAM7 if interlaced else ((0, 0, 1, 1),))
        if (columns := -(-(width - x) // dx)) > 0 and (rows := -(-(height - y) // dy)) > 0
    )
    inflater, found, position = zlib.decompressobj(), 0, 8
    while found < expected and position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        waiting = data[position + 8 : position + 8 + length] if kind == b"IDAT" else b""
        while waiting and found < expected and not inflater.eof:
            found += len(inflater.decompress(waiting, 1 << 20))
            waiting = inflater.unconsumed_tail
        position += 12 + length if kind != b"IEND" else len(data)
    found += len(inflater.flush()) if found < expected else 0
    if found < expected:
        raise MediaError(f"the header of the PNG promises {expected} bytes of pixels, but there are {found}")


def composite(colours: Pixels, alpha: Pixels | None, background: NDArray[np.uint16]) -> Pixels:
    """round((colour * alpha + background * (255 - alpha)) / 255), which fits 16 bits on the way."""
    if alpha is None:
        return colours
    weight = alpha[..., None].astype(np.uint16)
    return ((colours * weight + background * (255 - weight) + 127) // 255).astype(np.uint8)


def _orientation(picture: Image.Image) -> int:
    """The EXIF orientation; 1 where there is none or it cannot be read."""
    try:
        return int(picture.getexif().get(ORIENTATION, 1))
    except Exception:  # notes that cannot be read are no fault of the picture
        return 1
