"""What SGLang 0.5.23 gets wrong as it decodes media and picks frames: seen without the suite."""

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import sg

CHECKS = Checks()
fails = CHECKS.fails


@fails("PIPELINE-09")
def surplus_pictures() -> bool:
    """A picture for which the prompt has no placeholder is left out, with a line in the log."""
    processors = cpu.module("sglang.srt.multimodal.processors.base_processor")
    tokens = processors.MultimodalSpecialTokens(image_token="<image>")
    with ThreadPoolExecutor(1) as pool:
        loader = type("Loader", (), {"io_executor": pool, "_load_single_item": staticmethod(lambda *arguments: None)})()
        loaded, _ = processors.BaseMultimodalProcessor.submit_data_loading_tasks(
            loader, ["Look: ", "<image>"], tokens, {sg().batch.Modality.IMAGE: iter(["one", "other"])}
        )
    return len(loaded) == 1


def shown(picture: Image.Image, format: str = "PNG", **options: Any) -> np.ndarray:
    """The pixels that most models are shown of this picture."""
    file = BytesIO()
    picture.save(file, format, **options)
    processors = cpu.module("sglang.srt.multimodal.processors.base_processor")
    loaded = processors.BaseMultimodalProcessor._load_single_item(file.getvalue(), sg().batch.Modality.IMAGE)
    return np.array(loaded)


@fails("MEDIA-03")
def orientation() -> bool:
    """Most models are shown a picture as it was stored, whatever its EXIF orientation."""
    notes = Image.Exif()
    notes[0x0112] = 6
    return shown(Image.new("RGB", (24, 16)), "JPEG", exif=notes).shape == (16, 24, 3)


@fails("MEDIA-04")
def hidden_colour() -> bool:
    """Most models are shown the colour that was stored under a transparent pixel."""
    return bool((shown(Image.new("RGBA", (1, 1), (200, 100, 50, 0))) == (200, 100, 50)).all())


@fails("MEDIA-05", "MEDIA-07")
def sixteen_bits() -> bool:
    """Grey of 16 bits is cut off at 255: what is dark is white."""
    return bool((shown(Image.new("I;16", (1, 1), 0x2000)) == 255).all())


@fails("MEDIA-10")
def header_without_rows() -> bool:
    """A PNG with one row of the two that its header promises is filled up with black."""
    rows = zlib.compress(b"\0\xff")
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 1, 2, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    body = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks]
    picture, _ = cpu.module("sglang.srt.utils.common").load_image(b"\x89PNG\r\n\x1a\n" + b"".join(body), False)
    return list(picture.tobytes()) == [255, 0]


@fails("MEDIA-11")
def pixel_limit() -> bool:
    """There is no limit of pixels: 64 million of them, in a file of some kilobytes, are decoded."""
    return shown(Image.new("1", (8000, 8000))).shape == (8000, 8000, 3)


@fails("MEDIA-13")
def address() -> bool:
    """The refusal of what is no picture shows the memory address of a buffer."""
    try:
        cpu.module("sglang.srt.utils.common").load_image(b"not an image", False)
    except ValueError as refusal:
        return " at 0x" in str(refusal)
    return False


def frames_shown(total: int, own_rate: float, rate: float, most: int = 100) -> int:
    """How many frames of a video of so many are shown at this rate, two at least."""
    config = {"fps": rate, "max_frames": most, "min_frames": 2}
    return int(cpu.module("sglang.srt.multimodal.processors.qwen_vl").smart_nframes(config, total, own_rate))


@fails("MEDIA-32", "MEDIA-34", "MEDIA-36")
def one_frame_is_no_video() -> bool:
    """A video of one frame, and a limit of one frame, are refused: 2 is the smallest number."""
    return {error(lambda: frames_shown(1, 25.0, 2.0)), error(lambda: frames_shown(9, 9.0, 2.0, 1))} == {"ValueError"}


@fails("MEDIA-37")
def rates_are_not_checked() -> bool:
    """A video without a rate of its own is a division by zero; a negative or endless rate is taken."""
    rates = [frames_shown(100, -25.0, 2.0), frames_shown(100, float("inf"), 2.0), frames_shown(100, 25.0, 0.0)]
    return (error(lambda: frames_shown(100, 0.0, 2.0)), rates) == ("ZeroDivisionError", [2, 2, 2])
