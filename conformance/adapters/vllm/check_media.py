"""What vLLM 0.33.0 gets wrong about media: what pictures, videos and recordings are decoded to.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

import io
import wave
import zlib
from importlib import import_module
from typing import Any

import numpy as np

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails
FRAMES = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)


def png(width: int, height: int, depth: int, colour: int, rows: bytes, key: bytes = b"") -> bytes:
    """A PNG; colour is 0 for grey and 2 for RGB, and `key` the colour that is transparent."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + name + body + zlib.crc32(name + body).to_bytes(4)

    header = width.to_bytes(4) + height.to_bytes(4) + bytes((depth, colour, 0, 0, 0))
    parts = [(b"IHDR", header), (b"tRNS", key), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts if part[1] or part[0] == b"IEND")


def pixels(data: bytes) -> list[Any]:
    """The pixels that a file is read as, row by row."""
    values: list[Any] = np.array(named("multimodal.media.image:ImageMediaIO")().load_bytes(data).media).tolist()
    return values


def wav(*samples: int, channels: int) -> io.BytesIO:
    """A recording of 16 bits, 16,000 samples a second, little-endian."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(16_000)
        writer.writeframes(np.array(samples, dtype="<i2").tobytes())
    return io.BytesIO(file.getvalue())


def heard(file: io.BytesIO) -> list[float]:
    """The samples of a recording through PyAV, at its own rate, as `AudioMediaIO` asks for them."""
    values: list[float] = named("multimodal.media.audio:load_audio")(file, sr=None, backend="pyav")[0].tolist()
    return values


def movie(frames: Any, codec: str = "rawvideo", container: str = "avi", rate: int = 25) -> bytearray:
    """A video with these frames, [n, height, width, 3]."""
    library: Any = import_module("av")
    file = io.BytesIO()
    with library.open(file, "w", format=container) as writer:
        stream = writer.add_stream(codec, rate=rate)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "bgr24" if codec == "rawvideo" else "rgb24"
        for frame in frames:
            writer.mux(stream.encode(library.VideoFrame.from_ndarray(frame, format="rgb24")))
        writer.mux(stream.encode(None))
    return bytearray(file.getvalue())


def watched(data: bytes | bytearray, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The frames of a video through OpenCV, and what is known of it."""
    pictures = named("multimodal.media.image:ImageMediaIO")()
    loaded = named("multimodal.media.video:VideoMediaIO")(pictures, num_frames=-1, **options).load_bytes(bytes(data))
    frames, about = loaded.media
    return frames, about


@fails("MEDIA-05")
def transparent_grey() -> bool:
    """Grey of 2 bits whose darker half is transparent shows no background: Pillow has scaled the grey, and not the key."""
    return pixels(png(2, 1, 2, 0, b"\0\x70", key=b"\0\1")) == [[[85] * 3, [255] * 3]]


@fails("MEDIA-07")
def sixteen_bits() -> bool:
    """Grey of 16 bits is cut off at 255: all but the darkest 256th of it is white."""
    return pixels(png(2, 1, 16, 0, b"\0\x01\x00\x80\x00")) == [[[255] * 3, [255] * 3]]


@fails("MEDIA-09")
def damaged_pictures() -> bool:
    """A damaged picture is black from the damage on: turning it reads it, its error is suppressed, and Pillow has but one."""
    data = bytearray(png(3, 2, 8, 2, b"\0\xff\0\0\0\xff\0\0\0\xff\0" + b"\xff" * 9))
    data[-20] ^= 0xFF
    picture = named("multimodal.image:open_image")(io.BytesIO(data))
    return error(picture.load) == "OSError" and pixels(bytes(data))[1] == [[0] * 3] * 3


@fails("MEDIA-10")
def missing_rows() -> bool:
    """A picture of two rows, of which one is there, is black in the other."""
    return pixels(png(1, 2, 8, 2, b"\0\1\2\3")) == [[[1, 2, 3]], [[0, 0, 0]]]


@fails("MEDIA-37")
def nothing_to_show() -> bool:
    """Of a video without frames the first one is shown; a rate of 0 or below counts as none."""
    decoders = "multimodal.video_decoders"
    source, target = named(f"{decoders}:VideoSourceMetadata"), named(f"{decoders}:VideoTargetMetadata")
    sample = named("multimodal.video:VideoBackend").compute_frames_index_to_sample
    rates = [sample(source(2, 1.0, 2.0), target(num_frames=-1, fps=rate, max_duration=9)) for rate in (0, -2)]
    return sample(source(0, 1.0, 0.0), target(num_frames=8, fps=2, max_duration=9)) == [0] and rates == [[0, 1]] * 2


@fails("MEDIA-44")
def times_by_number() -> bool:
    """A frame's time is its number by the mean rate: of when a file shows its frames nothing is kept."""
    _, about = watched(movie(FRAMES))
    info = named("model_executor.models.qwen3_vl:Qwen3VLProcessingInfo")
    known = {"total_num_frames", "fps", "duration", "video_backend", "frames_indices", "do_sample_frames"}
    times: list[float] = info._calculate_timestamps(None, [0, 1, 50], 25.0, 1)
    return set(about) <= known and times == [0.0, 0.04, 2.0]


@fails("MEDIA-45")
def mirrored_films() -> bool:
    """A display matrix that mirrors is followed as one that turns: left and right changed, a film is upside down as well."""
    film = movie(FRAMES, "qtrle", "mov")
    start = film.index(b"tkhd") + 44

    def shown(a: int, d: int) -> Any:
        numbers = (a, 0, 0, 0, d, 0, 0, 0, 1 << 14)
        film[start : start + 36] = b"".join((number << 16).to_bytes(4, signed=True) for number in numbers)
        return watched(film)[0]

    return all(bool((shown(-1, d) == FRAMES[:, ::-1, ::-1]).all()) for d in (-1, 1))


@fails("MEDIA-46")
def frames_that_a_header_claims() -> bool:
    """Of a video whose header claims one frame, one is shown."""
    film = movie(FRAMES)
    for place in (film.index(b"avih") + 24, film.index(b"strh") + 40):
        film[place : place + 4] = (1).to_bytes(4, "little")
    frames, about = watched(film)
    return (len(frames), about["total_num_frames"]) == (1, 1)


@fails("MEDIA-47")
def pictures_as_videos() -> bool:
    """A still picture is a video of one frame."""
    return len(watched(png(2, 2, 8, 2, bytes([0, 1, 2, 3, 4, 5, 6] * 2)))[0]) == 1


@fails("MEDIA-48")
def frames_that_are_not_there() -> bool:
    """Of a video of three frames that ends within the last one two are shown, and three counted."""
    film = movie(FRAMES)
    frames, about = watched(film[: film.index(b"idx1") - FRAMES[0].size // 2])
    return (len(frames), about["total_num_frames"], about["duration"]) == (2, 3, 3 / 25)


@fails("MEDIA-50")
def videos_of_any_length() -> bool:
    """A video of three seconds is shown, though one second is the limit; there is none for the frames of the source."""
    return len(watched(movie(FRAMES, rate=1), max_duration=1)[0]) == 3


@fails("MEDIA-53", "MEDIA-58", "MEDIA-59", "MEDIA-61")
def integers_as_they_are() -> bool:
    """Through PyAV a recording of 16 bits that needs no other rate is 32,768 times too loud."""
    return heard(wav(0, 16_384, -32_768, channels=1)) == [0.0, 16_384.0, -32_768.0]


@fails("MEDIA-54", "MEDIA-55")
def channels_one_after_another() -> bool:
    """Through PyAV two channels of a WAV are one that lasts twice as long."""
    return heard(wav(1, 2, 3, 4, channels=2)) == [1.0, 2.0, 3.0, 4.0]


@fails("MEDIA-66")
def big_endian_recordings() -> bool:
    """Through PyAV a sample of 1 in a big-endian WAV, RIFX, is one of 256."""
    sizes = [(38).to_bytes(4), b"WAVEfmt ", (16).to_bytes(4), *(part.to_bytes(2) for part in (1, 1))]
    sizes += [(16_000).to_bytes(4), (32_000).to_bytes(4), (2).to_bytes(2), (16).to_bytes(2)]
    return heard(io.BytesIO(b"".join([b"RIFX", *sizes, b"data", (2).to_bytes(4), (1).to_bytes(2)]))) == [256.0]


@fails("MEDIA-62")
def not_a_number() -> bool:
    """A recording with a NaN is parsed without a word."""
    parser = named("multimodal.parse:MultiModalDataParser")(target_sr=16_000)
    samples = np.array([0.0, np.nan], dtype=np.float32)
    return bool(np.isnan(parser.parse_mm_data({"audio": [(samples, 16_000)]})["audio"].get(0)[1]))
