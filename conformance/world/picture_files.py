"""Picture files written by hand, so that every sample, header and flag in them is known.

What Pillow would write is not asked where its own decoder is on trial; JPEG and GIF alone come from its encoders.
"""

import struct
import zlib
from collections.abc import Sequence
from functools import cache
from io import BytesIO

from PIL import Image

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
"""The colour types of PNG."""


def chunk(kind: bytes, data: bytes) -> bytes:
    """One chunk of a PNG file, with its length and its checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, colour: int, rows: Sequence[bytes], *chunks: bytes, depth: int = 8) -> bytes:
    """A PNG file of these dimensions; `rows` are its packed samples, which need not be as many as the header says."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return PNG_SIGNATURE + header + b"".join(chunks) + body + chunk(b"IEND", b"")


def interlaced_png(width: int, height: int, colour: int, rows: Sequence[Sequence[bytes]]) -> bytes:
    """The same with the seven passes of Adam7; `rows` are pixels, of whole bytes each."""
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    raw = b"".join(b"\0" + b"".join(row[x::dx]) for x, y, dx, dy in passes if x < width for row in rows[y::dy])
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 1))
    return PNG_SIGNATURE + header + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def exif(orientation: int) -> bytes:
    """EXIF data with this orientation and nothing else."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


@cache
def jpeg(width: int, height: int) -> bytes:
    """A JPEG file with a ramp along each axis: no two corners look alike."""
    ramp = bytes(value for y in range(height) for x in range(width) for value in (x * 255 // width, y * 255 // height, 128))
    return encoded(Image.frombytes("RGB", (width, height), ramp), "JPEG", quality=90)


def ink_jpeg(values: Sequence[int], transform: int) -> bytes:
    """A JPEG file of 16 x 8 pixels with these four stored values each, as Adobe's programs write CMYK: 255 is no ink.

    transform: 0, they are cyan, magenta, yellow and black; 2, the first three are stored as luminance and two differences
    of colour, of which 128 is none (YCCK). Coefficients of a flat picture are exact at the best quality.
    """
    flat = Image.new("CMYK", (16, 8), tuple(255 - value for value in values))
    file = bytearray(encoded(flat, "JPEG", quality=100, subsampling=0))
    file[file.index(b"Adobe\0") + 11] = transform
    return bytes(file)


def with_exif(jpeg_file: bytes, orientation: int) -> bytes:
    """A JPEG file with EXIF data directly after its first marker; the compressed pixels stay the same."""
    notes = b"Exif\0\0" + exif(orientation)
    return jpeg_file[:2] + b"\xff\xe1" + struct.pack(">H", len(notes) + 2) + notes + jpeg_file[2:]


def tiff(
    width: int,
    height: int,
    samples: bytes,
    *,
    channels: int,
    photometric: int,
    bits: int = 8,
    order: str = "<",
    orientation: int = 1,
) -> bytes:
    """An uncompressed TIFF file. photometric: 1 grey, 2 RGB, 5 CMYK. order: "<" for little-endian, ">" for big."""
    depths = struct.pack(f"{order}{channels}H", *[bits] * channels)
    first = 8 + len(samples)
    tags = (
        (256, width), (257, height), (258, bits if channels == 1 else first), (259, 1), (262, photometric), (273, 8),
        (274, orientation), (277, channels), (278, height), (279, len(samples)),
    )  # fmt: skip
    entries = b"".join(
        struct.pack(f"{order}HHII", tag, 4, 1, value)
        if tag not in (258, 274)
        else struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0)
        if tag == 274 or channels == 1
        else struct.pack(f"{order}HHII", tag, 3, channels, value)
        for tag, value in tags
    )
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", first + len(depths))
    return head + samples + depths + struct.pack(f"{order}H", len(tags)) + entries + bytes(4)


def bmp(width: int, height: int, rows: Sequence[bytes]) -> bytes:
    """A BMP file of 24 bits a pixel: blue first, the last row first, rows padded to four bytes."""
    body = b"".join(row + bytes(-len(row) % 4) for row in reversed(rows))
    return (
        b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(body), 0, 54, 40, width, height, 1, 24, 0, len(body), 0, 0, 0, 0) + body
    )


def encoded(picture: Image.Image, format: str, **options: object) -> bytes:
    """A picture as Pillow writes it."""
    file = BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


@cache
def animation(format: str) -> bytes:
    """Three frames of 4 x 2 pixels, black, then red, then white, as a GIF or an animated PNG."""
    frames = [Image.new("RGB", (4, 2), colour) for colour in ("black", "red", "white")]
    return encoded(frames[0], format, save_all=True, append_images=frames[1:], duration=100, loop=0)
