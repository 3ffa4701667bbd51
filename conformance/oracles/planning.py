"""What is obviously right about planning: what comes out of the model owner's processor, given a blank medium, is counted.

The processors are those of transformers, with their Pillow backends where they have one, and without tokenizers: these
expand a placeholder into a string, in which the placeholders are counted. What transformers lacks, or has only beside
packages that are not there, is written out step by step.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from conformance.world.families import Family
from reference.items import Size

MARK = "#"
"""Stands for a placeholder in the expanded prompt."""

Counter = Callable[[Any, Size], int]


@cache
def image_tokens(family: Family, size: Size) -> int:
    """The placeholders that the processor of the family puts into the prompt for a blank picture of this size."""
    return _COUNTERS[family.name](family.settings, size)


def image_grid(family: Family, size: Size) -> tuple[int, ...]:
    """The grid that the image processor gives for a blank picture: that of Qwen2-VL, for its successors too, or GLM-4V."""
    numbers = family.settings
    limits = {"shortest_edge": numbers["min_pixels"], "longest_edge": numbers["max_pixels"]}
    patches = {name: numbers[name] for name in ("patch_size", "merge_size", "temporal_patch_size")}
    owner = "Glm4vImageProcessorPil" if family.name == "glm4v" else "Qwen2VLImageProcessorPil"
    made = _images(owner, size=limits, **patches)
    return tuple(made(images=_blank(size), return_tensors="np", **_RAW)["image_grid_thw"][0].tolist())


def video_grid(family: Family, frames: int, size: Size) -> tuple[int, ...]:
    """The grid of a video of Qwen2-VL: its frames in groups, the last one filled up, each like a picture."""
    if family.name == "glm4v":
        return _glm_video_grid(family, frames, size)
    groups = len(range(0, frames, family.settings["temporal_patch_size"]))
    return (groups, *image_grid(family, size)[1:])


def video_tokens(family: Family, frames: int, size: Size) -> int:
    """The placeholders that the processor of the family puts into the prompt for a video."""
    if family.name in ("qwen2_vl", "qwen2_5_vl"):
        return len(range(0, frames, family.settings["temporal_patch_size"])) * image_tokens(family, size)
    if family.name == "glm4v":
        time, height, width = video_grid(family, frames, size)
        merge = family.settings["merge_size"]
        return time * len(range(0, height, merge)) * len(range(0, width, merge))
    if family.name == "smolvlm":
        whole = import_module("transformers.models.smolvlm.processing_smolvlm")._prompt_single_image
        return sum(whole(family.settings["image_seq_len"], "", MARK, "").count(MARK) for _ in range(frames))
    side = family.settings["image_size"] if family.name == "llava_next_video" else 1
    processor = _bare(_VIDEO_PROCESSORS[family.name], family.settings)
    vars(processor).update(image_token=MARK, video_token=MARK, start_image_token="", end_image_token="")
    return int(processor.replace_video_token({"pixel_values_videos": [_frames(frames, Size(side, side))]}, 0).count(MARK))


def capped_tokens(family: Family, frames: int, size: Size) -> int:
    """The tokens of the grid that the video processor of a family of Qwen gives for blank frames, pixels capped."""
    numbers = family.settings
    limits = {"shortest_edge": numbers["min_pixels"], "longest_edge": numbers["max_pixels"]}
    names = ("patch_size", "merge_size", "temporal_patch_size", "cap_pixels_per_frame", "max_video_tokens")
    owner = "Qwen3VLVideoProcessor" if family.name == "qwen3_vl" else "Qwen2VLVideoProcessor"
    made = _images(owner, size=limits, do_sample_frames=False, **{name: numbers[name] for name in names})
    raw = {**_RAW, "input_data_format": "channels_first"}
    time, height, width = made(videos=[_frames(frames, size)], return_tensors="pt", **raw)["video_grid_thw"][0].tolist()
    return int(time * len(range(0, height, numbers["merge_size"])) * len(range(0, width, numbers["merge_size"])))


def audio_tokens(family: Family, samples: int, rate: int) -> int:
    """One mark for each hop of the resampled recording; two steps halve them.

    The first is a convolution of width 3, stride 2 and padding 1, the second a pooling of width and stride 2. Whisper has
    the first step only, and hears silence to the end of its window.
    """
    if family.name == "qwen3_omni_moe":
        return _qwen3_omni(family.settings, samples, rate)
    target, window = family.settings["sampling_rate"], family.settings["chunk_length"] * family.settings["sampling_rate"]
    heard = window if family.name == "whisper" else min(next(_at_least(samples * target, rate)), window)
    convolved = np.zeros(heard, dtype=np.uint8)[:: family.settings["hop_length"]][::2]
    return len(convolved) if family.name == "whisper" else len(convolved[1::2])


def _qwen3_omni(settings: Any, samples: int, rate: int) -> int:
    """What the whole processor makes of silence, resampled."""
    target, hop = settings["sampling_rate"], settings["hop_length"]
    owner = _transformers().WhisperFeatureExtractor(sampling_rate=target, hop_length=hop)
    processor = _bare("Qwen3OmniMoeProcessor", {"feature_extractor": owner, "audio_token": MARK})
    silence = [np.zeros(next(_at_least(samples * target, rate)), dtype=np.float32)]
    asked = {**processor.audio_kwargs, "sampling_rate": target, "n_window": settings["n_window"], "return_tensors": "pt"}
    return int(processor._process_audio(silence, **asked)[1][0].count(MARK))


def _glm_video_grid(family: Family, frames: int, size: Size) -> tuple[int, ...]:
    """The grid that the video processor of GLM-4V gives for blank frames."""
    numbers = family.settings
    limits = {"shortest_edge": numbers["min_pixels"], "longest_edge": numbers["max_pixels"]}
    patches = {name: numbers[name] for name in ("patch_size", "merge_size", "temporal_patch_size")}
    made = _images("Glm4vVideoProcessor", size=limits, do_sample_frames=False, **patches)
    blank, raw = _frames(frames, size), {**_RAW, "input_data_format": "channels_first"}
    return tuple(made(videos=[blank], return_tensors="pt", **raw)["video_grid_thw"][0].tolist())


def _frames(frames: int, size: Size) -> np.ndarray:
    return np.zeros((frames, 3, size.height, size.width), dtype=np.uint8)


def _at_least(number: int, divisor: int) -> Iterator[int]:
    """The integers whose product with the divisor is not less than the number."""
    return (n for n in count(number // divisor) if n * divisor >= number)


def _qwen(settings: Any, size: Size, name: str = "") -> int:
    grid = image_grid(Family(name, settings), size)
    return len(range(0, grid[1], settings["merge_size"])) * len(range(0, grid[2], settings["merge_size"]))


def _llava(settings: Any, size: Size) -> int:
    side = settings["image_size"]
    made = _images("LlavaImageProcessorPil", size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    return _expanded("LlavaProcessor", made, size, _llava_names(settings))


def _llava_next(settings: Any, size: Size) -> int:
    side = settings["image_size"]
    canvases = {"image_grid_pinpoints": settings["image_grid_pinpoints"]}
    square = {"height": side, "width": side}
    made = _images("LlavaNextImageProcessorPil", size={"shortest_edge": side}, crop_size=square, **canvases)
    return _expanded("LlavaNextProcessor", made, size, _llava_names(settings))


def _llava_onevision(settings: Any, size: Size) -> int:
    if settings.get("pictures_in_prompt", 1) > 1:
        return _llava_onevision_among(settings, size, settings["pictures_in_prompt"])
    side = settings["image_size"]
    canvases = {"image_grid_pinpoints": settings["image_grid_pinpoints"]}
    made = _images("LlavaOnevisionImageProcessorPil", size={"height": side, "width": side}, **canvases)
    names = ("num_image_tokens", "vision_aspect_ratio", "vision_feature_select_strategy")
    return _expanded("LlavaOnevisionProcessor", made, size, {name: settings[name] for name in names})


def _llava_onevision_among(settings: Any, size: Size, count: int) -> int:
    """The placeholders of the last of `count` pictures of one prompt."""
    side = settings["image_size"]
    canvases = {"image_grid_pinpoints": settings["image_grid_pinpoints"]}
    made = _images("LlavaOnevisionImageProcessorPil", size={"height": side, "width": side}, **canvases)
    names = ("num_image_tokens", "vision_aspect_ratio", "vision_feature_select_strategy")
    processor = _bare("LlavaOnevisionProcessor", {**{name: settings[name] for name in names}, "image_token": MARK})
    inputs = made(images=[[_blank(size)] * count], **_RAW)
    return int(processor.replace_image_token(inputs, count - 1).count(MARK))


def _internvl(settings: Any, size: Size) -> int:
    side = settings["image_size"]
    tiles = {name: settings[name] for name in ("min_patches", "max_patches")}
    made = _images("GotOcr2ImageProcessorPil", size={"height": side, "width": side}, crop_to_patches=True, **tiles)
    names = {"image_seq_length": settings["image_seq_length"], "start_image_token": "", "end_image_token": ""}
    return _expanded("InternVLProcessor", made, size, names)


def _idefics3(settings: Any, size: Size) -> int:
    made = _images(
        "Idefics3ImageProcessorPil",
        size={"longest_edge": settings["longest_edge"]},
        max_image_size={"longest_edge": settings["max_image_size"]},
        do_image_splitting=settings["do_image_splitting"],
        do_pad=False,
    )
    tiles = made(images=_blank(size), **_RAW)["pixel_values"][0]
    return len(tiles) * int(settings["image_seq_len"])


def _pixtral(settings: Any, size: Size) -> int:
    """One mark a patch of the picture that comes out; transformers has the step from there only beside torchvision."""
    longest = {"longest_edge": settings["longest_edge"]}
    stride = settings["patch_size"] * settings["spatial_merge_size"]
    made = _images("PixtralImageProcessorPil", size=longest, patch_size={"height": stride, "width": stride})
    height, width = made(images=_blank(size), return_tensors="np", **_RAW)["image_sizes"][0]
    return len(range(0, int(height), stride)) * len(range(0, int(width), stride))


def _gemma3(settings: Any, size: Size) -> int:
    crops = {name: value for name, value in settings.items() if "pan_and_scan" in name}
    made = _images("Gemma3ImageProcessorPil", size={"height": 28, "width": 28}, **crops)
    return _expanded("Gemma3Processor", made, size, {"full_image_sequence": MARK * settings["image_seq_length"]})


def _glm4v(settings: Any, size: Size) -> int:
    return _qwen(settings, size, "glm4v")


def _llama4(settings: Any, size: Size) -> int:
    side = settings["image_size"]
    tiles = {name: settings[name] for name in ("max_patches", "resize_to_max_canvas")}
    made = _images("Llama4ImageProcessor", size={"height": side, "width": side}, **tiles)
    names = {name: settings[name] for name in ("patch_size", "downsample_ratio")}
    return _expanded("Llama4Processor", made, size, names, mark="<|patch|>")


def _deepseek_vl2(settings: Any, size: Size) -> int:
    """Drawn from the paper: the whole in rows that end with a newline, a separator, the canvas in such rows."""
    side, kept = settings["image_size"], {}
    for height, width in settings["candidate_resolutions"]:
        scale = min(height / size.height, width / size.width)
        pixels = min(int(size.height * scale) * int(size.width * scale), size.height * size.width)
        kept[height, width] = (pixels, -(height * width - pixels))
    height, width = next(canvas for canvas, merit in kept.items() if merit == max(kept.values()))
    patches = len(range(0, side // settings["patch_size"], settings["downsample_ratio"]))
    whole = ([MARK] * patches + [MARK]) * patches
    canvas = ([MARK] * patches * (width // side) + [MARK]) * patches * (height // side)
    return len([*whole, MARK, *canvas])


_COUNTERS: dict[str, Counter] = {
    "qwen2_vl": _qwen,
    "qwen2_5_vl": _qwen,
    "qwen3_vl": _qwen,
    "llava": _llava,
    "llava_next": _llava_next,
    "llava_onevision": _llava_onevision,
    "internvl": _internvl,
    "idefics3": _idefics3,
    "smolvlm": _idefics3,
    "pixtral": _pixtral,
    "gemma3": _gemma3,
    "deepseek_vl2": _deepseek_vl2,
    "glm4v": _glm4v,
    "llama4": _llama4,
}

_VIDEO_PROCESSORS = {
    "internvl": "InternVLProcessor",
    "llava_onevision": "LlavaOnevisionProcessor",
    "llava_next_video": "LlavaNextVideoProcessor",
}

_RAW = {"do_rescale": False, "do_normalize": False, "input_data_format": "channels_last"}
"""Only sizes count, so pixels stay as they are; a picture of one row must not be taken for one channel."""


def _llava_names(settings: Any) -> dict[str, Any]:
    names: Iterable[str] = ("patch_size", "num_additional_image_tokens", "vision_feature_select_strategy")
    return {name: settings[name] for name in names}


@cache
def _transformers() -> Any:
    """transformers, which is slow to import."""
    return import_module("conformance.world.qwen2_vl").transformers


def _images(name: str, **settings: Any) -> Any:
    return getattr(_transformers(), name)(**settings)


def _expanded(name: str, images: Any, size: Size, settings: dict[str, Any], mark: str = MARK) -> int:
    """How many placeholders a processor makes of one, for a blank picture. It is made without a tokenizer."""
    processor = _bare(name, {**settings, "image_processor": images, "image_token": MARK})
    inputs = images(images=[_blank(size)], **_RAW)
    return int(processor.replace_image_token(inputs, 0).count(mark))


def _bare(name: str, settings: Any) -> Any:
    """A processor without a tokenizer."""
    kind = getattr(_transformers(), name)
    processor = kind.__new__(kind)
    vars(processor).update(settings)
    return processor


def _blank(size: Size) -> np.ndarray:
    return np.zeros((size.height, size.width, 3), dtype=np.uint8)
