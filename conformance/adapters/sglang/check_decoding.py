"""What SGLang 0.5.23 gets wrong as it decodes videos and recordings: seen without the suite.

Videos go through decord2, which SGLang takes where torchcodec does not load.
"""

import asyncio
import struct
from fractions import Fraction
from io import BytesIO
from typing import Any
from unittest.mock import patch

import av
import numpy as np

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import sg

CHECKS = Checks()
fails = CHECKS.fails


def common() -> Any:
    sg()
    return cpu.module("sglang.srt.utils.common")


def video(count: int, *, times: list[int] | None = None, width: int = 64, height: int = 64) -> bytes:
    """A video of grey frames, at 10 frames a second or at these times in ms."""
    grey = np.full((height, width, 3), 100, np.uint8)
    return recorded([grey] * count, "libx264rgb", "rgb24", {"qp": "0"}, times)


def recorded(frames: list[Any], codec: str, format: str, options: dict[str, str], times: list[int] | None = None) -> bytes:
    """These frames [height, width, 3] in an MP4 file, at 10 frames a second or at these times in ms."""
    file = BytesIO()
    with av.open(file, "w", "mp4") as container:
        stream: Any = container.add_stream(codec, rate=10, options=options)
        (stream.height, stream.width, _), stream.pix_fmt = frames[0].shape, format
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
            frame.pts, frame.time_base = times[number] if times else 100 * number, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def shown(data: bytes) -> dict[str, Any]:
    """What `preprocess_video` tells of a video that is shown whole."""
    loaders, qwen = common(), cpu.module("sglang.srt.multimodal.processors.qwen_vl")
    with patch.object(qwen, "is_cpu", lambda: True), patch.object(loaders, "is_cpu", lambda: True):
        decoder = loaders.load_video(data, use_gpu=False)
        _, metadata = asyncio.run(qwen.preprocess_video(decoder, video_config={"fps": decoder.avg_fps, "min_frames": 2}))
    told: dict[str, Any] = metadata
    return told


def wav(samples: bytes, rate: int, *, channels: int = 1, bits: int = 16, kind: int = 1) -> bytes:
    """A WAV file."""
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * width, width, bits)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def matroska(left: float, right: float) -> bytes:
    """A recording of two channels, each of one level, in a Matroska file."""
    file = BytesIO()
    with av.open(file, "w", "matroska") as container:
        stream = container.add_stream("pcm_f32le", rate=16_000, layout="stereo")
        frame = av.AudioFrame.from_ndarray(np.array([[left, right] * 100], np.float32), "flt", "stereo")
        frame.sample_rate = 16_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def refusal(call: Any) -> str:
    try:
        call()
    except ValueError as raised:
        return str(raised)
    return ""


@fails("MEDIA-38", "MEDIA-40", "MEDIA-41", "MEDIA-42", "MEDIA-43")
def a_video_of_one_frame() -> bool:
    """A video of one frame is refused: 2 is the smallest number."""
    return error(lambda: shown(video(1))) == "ValueError" and shown(video(2))["total_num_frames"] == 2


@fails("MEDIA-44")
def times_at_no_rate() -> bool:
    """Where frames come at no constant rate, their times are made of their number and a rate all the same."""
    told = shown(video(4, times=[0, 10, 20, 3000]))
    return bool(told["frames_indices"].tolist() == [0, 1, 2, 3] and 1 / told["fps"] > 0.5)


@fails("MEDIA-45")
def mirrors() -> bool:
    """A display matrix that mirrors from left to right is not obeyed."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    data = recorded([noise, noise], "libx264rgb", "rgb24", {"qp": "0"})
    matrix = data.index(b"tkhd") + 4 + 40
    mirrored = data[:matrix] + struct.pack(">9i", -1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30) + data[matrix + 36 :]
    first, second = (common().load_video(one, use_gpu=False)[0] for one in (data, mirrored))
    return bool((first == noise).all() and (second != noise[:, ::-1]).any())


@fails("MEDIA-39")
def frames_that_are_stored_in_another_order() -> bool:
    """Of a video with B-frames decord2 gives another frame than the one asked for: of 0, 3, 6 and 10 not the sixth."""
    greys = [np.full((64, 64, 3), 20 * number + 20, np.uint8) for number in range(11)]
    decoder = common().load_video(recorded(greys, "mpeg4", "yuv420p", {"bf": "3"}), use_gpu=False)
    return [round(float(frame.mean()) / 20) - 1 for frame in decoder.get_frames_at([0, 3, 6, 10])] == [0, 3, 9, 10]


@fails("MEDIA-51")
def a_narrow_video() -> bool:
    """A frame of less than 64 pixels in a row, whose colours have to be converted, is an error of decord2's, no ValueError."""
    narrow = recorded([np.zeros((16, 32, 3), np.uint8)] * 2, "libx264", "yuv420p", {})
    decoder = common().load_video(narrow, use_gpu=False)
    return len(decoder) == 2 and error(lambda: decoder.get_frames_at([0])) == "DECORDError"


@fails("MEDIA-49", "MEDIA-50")
def no_limit_of_videos() -> bool:
    """There is no limit of a video's pixels, frames or seconds: 8 million pixels a frame, and an hour, are taken."""
    large, long = video(2, width=4096, height=2160), video(2, times=[0, 3_600_000])
    return len(common().load_video(large, use_gpu=False)) == len(common().load_video(long, use_gpu=False)) == 2


@fails("MEDIA-52", "MEDIA-65")
def refusals_of_videos_and_recordings() -> bool:
    """The refusal of a video names a file of the server, that of a recording the address of a buffer."""
    seen = refusal(lambda: common().load_video(b"no video", use_gpu=False))
    return "/tmp" in seen and " at 0x" in refusal(lambda: common().load_audio(b"no recording"))


@fails("MEDIA-54")
def louder_in_a_container() -> bool:
    """Two channels in a Matroska file become their sum over the root of 2, not their mean: two of 0.5 are 0.707."""
    heard = common().load_audio(matroska(0.5, 0.5), 16_000)
    return bool(np.allclose(heard, 0.5 * 2**0.5, atol=1e-4))


@fails("MEDIA-56")
def rates_without_a_common_divisor() -> bool:
    """The filter of a resampling has as many taps as both rates multiplied, over their divisor: 997 samples, 11 GB."""
    taps: list[int] = []
    functional = cpu.module("torchaudio.functional.functional")
    make = functional._get_sinc_resample_kernel

    def kernel(*arguments: Any, **options: Any) -> Any:
        made = make(*arguments, **options)
        taps.append(made[0].numel())
        return made

    with patch.object(functional, "_get_sinc_resample_kernel", kernel):
        for rate in (2000, 2001):
            common().load_audio(wav(b"\0\0" * 10, rate), 1000)
    return taps[0] < 100 and taps[1] > 2001 * 1000


@fails("MEDIA-60")
def nothing_is_heard() -> bool:
    """A WAV file without samples is a recording of nothing."""
    return len(common().load_audio(wav(b"", 16_000), 16_000)) == 0


@fails("MEDIA-62")
def no_numbers_are_heard() -> bool:
    """A sample that is no number is taken."""
    return bool(np.isnan(common().load_audio(wav(struct.pack("<f", float("nan")), 16_000, bits=32, kind=3), 16_000)).all())


@fails("MEDIA-63")
def hours_are_heard() -> bool:
    """There is no limit of a recording's seconds: ten hours at one sample a second are taken."""
    return len(common().load_audio(wav(b"\0\0" * 36_000, 1), 1)) == 36_000
