"""Hostile files, each in a process that has nothing else to do: right pixels or a typed error, in bounded time and memory."""

import struct
import subprocess
import sys
import zlib
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from conformance.suite import media_audio_cases as audio_cases
from conformance.suite import media_video_cases as video_cases
from conformance.suite.media_cases import DAMAGED, JUST_FITS, SHORT, TOO_LARGE, TRAILED
from conformance.world.films import encoded, film, uneven_film
from conformance.world.picture_files import GREY, PNG_SIGNATURE, RGB, animation, bmp, chunk, jpeg, png, tiff, with_exif
from conformance.world.recordings import flac, recording, sound, wav

HOME = Path(__file__).parent.parent
SECONDS = 2
BYTES = 512 * 2**20

DECODE = """
import resource, sys, time, warnings
from pathlib import Path
from reference.media import MediaError
from reference.media.audio import decode_audio
from reference.media.decoding import decode_image
from reference.media.video import VideoLimits, decode_video
warnings.simplefilter("ignore")
BYTES = int(sys.argv[2])
decode_image(Path(sys.argv[1], "fits-square").read_bytes())
if sys.platform == "linux":
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + BYTES, held + BYTES))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
decoders = {
    "video": lambda data: decode_video(data, None, 32, VideoLimits(1 << 20, 2000, 600.0)).pixels,
    "audio": lambda data: decode_audio(data, 16_000, 600.0),
}
for path in sorted(Path(sys.argv[1]).iterdir()):
    started = time.process_time()
    try:
        outcome = str(decoders.get(path.name.partition("-")[0], decode_image)(path.read_bytes()).shape)
    except MediaError as error:
        outcome = f"MediaError: {error}"
    print(path.name, outcome, time.process_time() - started, sep="|")
status = Path("/proc/self/status")  # ru_maxrss begins with that of the process that started this one
peak = int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024 if status.exists() else 0
print("memory", "", peak, sep="|")
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


def huge_film() -> bytes:
    """A small file of two black frames of four million pixels."""
    return encoded(np.zeros((2, 2048, 2048, 3), dtype=np.uint8), "mp4", Fraction(25))


def long_film() -> bytes:
    """More frames than are taken, of four pixels each."""
    return encoded(np.zeros((3000, 2, 2, 3), dtype=np.uint8), "avi", Fraction(25))


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


MP4 = film(11).data
MKV = film(11, "mkv").data
WAV = recording([[n] for n in range(500)]).data
FLAC = flac(list(range(500))).data
FILMS = {
    "huge-frames": huge_film(),
    "too-many-frames": long_film(),
    "avi-of-four-thousand-million-pixels": film(3, "avi").data.replace(
        struct.pack("<IIi", 40, 22, -14), struct.pack("<III", 40, 65_535, 65_535)
    ),
    "avi-of-no-columns": film(3, "avi").data.replace(struct.pack("<IIi", 40, 22, -14), struct.pack("<III", 40, 0, 14)),
    "ten-years-of-slides": uneven_film((0, 1000, 2_000_000)).data,
    "a-session": b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
    "a-box-longer-than-the-file": b"\0\0\0\x18ftypisom\0\0\0\0isommp41\x7f\xff\xff\xffmoov" + bytes(64),
    "a-box-in-itself": b"\0\0\0\x18ftypisom\0\0\0\0isommp41" + b"\0\0\1\0moov" * 200,
    "a-page-before-a-film": b"<!doctype html><script>alert(1)</script>" + bytes(300) + MP4,
    "zeros": bytes(100_000),
    **{f"none-{name}": data for name, data in video_cases.NONE.items()},
    **{f"cut-{name}": case.data for name, case in video_cases.CUT_OFF.items()},
    **{f"claims-{name}": case.film.data for name, case in video_cases.MISCOUNTED.items()},
    **{f"flipped-mp4-{place}": flipped(MP4, place) for place in range(0, len(MP4), len(MP4) // 20)},
    **{f"flipped-mkv-{place}": flipped(MKV, place) for place in range(0, len(MKV), len(MKV) // 20)},
}
SOUNDS = {
    "an-hour-of-silence": sound("flac", "flac", np.zeros((3600 * 8000, 1), dtype=np.int16), 8000),
    "two-thousand-million-a-second": wav(bytes(4000), bits=16, rate=2**31 - 1),
    "one-a-second": wav(bytes(400), bits=16, rate=1),
    "one-a-second-for-long": wav(bytes(4000), bits=16, rate=1),
    "eight-thousand-channels": wav(bytes(64_000), bits=8, channels=8000),
    "seven-bits": wav(bytes(4000), bits=7),
    "zeros": bytes(100_000),
    "a-chunk-longer-than-the-file": WAV[:16] + b"\xff\xff\xff\xff" + WAV[20:],
    "a-negative-number-of-samples": wav(bytes(100), bits=16, length=0xFFFFFFF0),
    "a-page-before-a-recording": b"<!doctype html>" + bytes(300) + WAV,
    **{f"none-{name}": data for name, data in audio_cases.NONE.items()},
    **{f"cut-{name}": case.given for name, case in audio_cases.CUT_OFF.items()},
    **{f"not-finite-{name}": data for name, data in audio_cases.NOT_FINITE.items()},
    **{f"flipped-wav-{place}": flipped(WAV, place) for place in range(44)},
    **{f"flipped-flac-{place}": flipped(FLAC, place) for place in range(0, len(FLAC), len(FLAC) // 20)},
}
CORPUS = {
    **{f"video-{name}": data for name, data in FILMS.items()},
    **{f"audio-{name}": data for name, data in SOUNDS.items()},
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

MAY_HAVE_FRAMES = (
    "video-cut-",
    "video-claims-",
    "video-flipped-",
    "audio-flipped-",
    "audio-cut-",
    "audio-one-a-second",
    "audio-a-negative",
    "audio-eight-thousand",
    "audio-seven-bits",
    "audio-a-page",
    "video-a-page",
)
"""What may be whole as far as a container without checksums can tell, or stops early: see `reference.media.containers`."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:
    """Of each file what became of it and how many seconds it took, and under "memory" the most bytes there ever were."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, data in CORPUS.items():
        (folder / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", DECODE, str(folder), str(BYTES)],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
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
    assert "0x" not in outcome
    assert "/" not in outcome
    if not name.startswith(HAVE_PIXELS + MAY_HAVE_FRAMES):
        assert outcome.startswith("MediaError: ")


def test_all_of_them_take_a_bounded_memory(outcomes: dict[str, tuple[str, float]]) -> None:
    assert outcomes["memory"][1] < BYTES
