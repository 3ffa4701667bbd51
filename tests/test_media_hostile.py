"""Hostile files, each in a process that has nothing else to do: right pixels or a typed error, in bounded time and memory."""

import struct
import subprocess
import sys
import zlib
from functools import cache
from pathlib import Path

import pytest

from conformance.suite.media_cases import DAMAGED, JUST_FITS, SHORT, TOO_LARGE, TRAILED
from conformance.world.picture_files import GREY, PNG_SIGNATURE, RGB, animation, bmp, chunk, jpeg, png, tiff, with_exif

HOME = Path(__file__).parent.parent
SECONDS = 2
BYTES = 512 * 2**20

DECODE = """
import resource, sys, time, warnings
from pathlib import Path
from reference.media import MediaError
from reference.media.decoding import decode_image
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for path in sorted(Path(sys.argv[1]).iterdir()):
    started = time.process_time()
    try:
        outcome = str(decode_image(path.read_bytes()).shape)
    except MediaError as error:
        outcome = "MediaError"
    print(path.name, outcome, time.process_time() - started, sep="|")
print("memory", "", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, sep="|")
"""


def header(width: int, height: int, depth: int = 8, colour: int = GREY) -> bytes:
    return PNG_SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))


def end(rows: bytes) -> bytes:
    return chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@cache
def zeros(count: int) -> bytes:
    """The compressed form of many zeros."""
    return zlib.compress(bytes(count), 9)


def sized_jpeg(width: int, height: int) -> bytes:
    """A JPEG whose frame header says another size than its data have."""
    made = bytearray(jpeg(24, 16))
    frame = made.index(b"\xff\xc0")
    made[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(made)


def sized_bmp(width: int, height: int) -> bytes:
    """A BMP whose header says another size than its data have."""
    made = bmp(1, 1, [b"abc"])
    return made[:18] + struct.pack("<ii", width, height) + made[26:]


BOMBS = {
    "a-hundred-million-pixels": header(10_000, 10_000, 1) + chunk(b"IDAT", zeros(12_510_000)) + chunk(b"IEND", b""),
    "a-picture-as-wide-as-can-be": header(2**31 - 1, 1) + end(b"\0"),
    "more-pixels-than-64-bits": header(2**32 - 1, 2**32 - 1) + end(b"\0"),
    "more-data-than-pixels": header(1, 1) + chunk(b"IDAT", zeros(100_000_000)) + chunk(b"IEND", b""),
    "a-text-of-zeros": header(1, 1) + chunk(b"zTXt", b"a\0\0" + zeros(100_000_000)) + end(b"\0\7"),
    "an-international-text": header(1, 1) + chunk(b"iTXt", b"a\0\1\0\0\0" + zeros(100_000_000)) + end(b"\0\7"),
    "a-profile-of-zeros": header(1, 1) + chunk(b"iCCP", b"a\0\0" + zeros(100_000_000)) + end(b"\0\7"),
    "many-texts": header(1, 1) + chunk(b"zTXt", b"a\0\0" + zeros(1_000_000)) * 200 + end(b"\0\7"),
    "ten-thousand-empty-chunks": header(1, 1) + chunk(b"IDAT", b"") * 10_000 + end(b"\0\7"),
    "a-chunk-longer-than-the-file": header(1, 1) + b"\xff\xff\xff\xf0IDAT" + zeros(100),
    "a-palette-without-entries": header(1, 1, 8, 3) + end(b"\0\7"),
    "a-depth-that-is-none": header(1, 1, 7) + end(b"\0\7"),
    "a-colour-that-is-none": header(1, 1, 8, 5) + end(b"\0\7"),
    "jpeg-of-four-thousand-million": sized_jpeg(65_500, 65_500),
    "jpeg-of-no-rows": sized_jpeg(24, 0),
    "jpeg-larger-than-its-data": sized_jpeg(4000, 4000),
    "jpeg-with-a-ring-in-its-notes": with_exif(jpeg(24, 16), 6).replace(b"\0\0\0\x08\0\x01", b"\0\0\0\x08\xff\xff"),
    "gif-of-four-thousand-million": b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0) + animation("GIF")[13:],
    "gif-without-pictures": b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0) + b";",
    "bmp-of-four-thousand-million": sized_bmp(65_500, 65_500),
    "bmp-of-a-negative-width": sized_bmp(-5, 5),
    "tiff-larger-than-its-data": tiff(60_000, 1000, b"abc", channels=1, photometric=1),
    "tiff-of-no-columns": tiff(0, 5, b"abc", channels=1, photometric=1),
    "tiff-with-a-ring-of-pictures": tiff(1, 1, b"a", channels=1, photometric=1)[:-4] + b"\x0b\0\0\0",
    "tiff-alone": b"II*\0\xff\xff\xff\x7f",
    "webp-alone": b"RIFF\x24\0\0\0WEBPVP8L\x10\0\0\0\x2f\xff\xff\xff\xff" + bytes(12),
    "webp-of-no-length": b"RIFF\0\0\0\0WEBP",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "an-icon": b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0" + bytes(60),
    "a-portable-map": b"P6 99999 99999 255\n",
    "a-vector-graphic": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "a-document": b"%PDF-1.7\n" + bytes(100),
    "an-archive": b"PK\x03\x04" + bytes(100),
    "an-archive-before-a-picture": b"PK\x05\x06" + bytes(18) + png(1, 1, RGB, [b"abc"]),
}  # fmt: skip
CORPUS = {
    **BOMBS,
    **{f"damaged-{name}": data for name, data in DAMAGED.items()},
    **{f"short-{name}": data for name, data in SHORT.items()},
    **{f"large-{name}": case.data for name, case in TOO_LARGE.items() if name.endswith("header")},
    **{f"trailed-{name}": case.second for name, case in TRAILED.items()},
    **{f"fits-{name}": case.data for name, case in JUST_FITS.items()},
}
HAVE_PIXELS = (
    "trailed-",
    "fits-",
    "ten-thousand-",
    "more-data-than",
    "a-chunk-longer",
    "tiff-with-a-ring",
    "jpeg-with-a-ring",
    "jpeg-larger",
)
"""What is harmless, and one that cannot be told: see the limits in `reference.media.decoding`."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:
    """Of each file what became of it and how many seconds it took, and under "memory" the most bytes there ever were."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, data in CORPUS.items():
        (folder / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", DECODE, str(folder)], cwd=HOME, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in done.stdout.splitlines()]
    return {name: (outcome, float(number)) for name, outcome, number in lines}


def test_there_are_enough_of_them() -> None:
    assert len(CORPUS) >= 60


@pytest.mark.parametrize("name", CORPUS)
def test_a_hostile_file_has_its_error_or_its_pixels_in_time(name: str, outcomes: dict[str, tuple[str, float]]) -> None:
    outcome, seconds = outcomes[name]
    assert seconds < SECONDS
    if not name.startswith(HAVE_PIXELS):
        assert outcome == "MediaError"


def test_all_of_them_take_a_bounded_memory(outcomes: dict[str, tuple[str, float]]) -> None:
    assert outcomes["memory"][1] < BYTES
