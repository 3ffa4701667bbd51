"""How many tokens transformers plans, from a size alone.

A processor is made without its tokenizer, with the parts that count. It says how many tokens a picture is in the prompt,
markers and breaks included. The suite asks for those alone that the encoder fills, so that what is written around them is
taken off again.
"""

import wave
from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.transformers_cpu import bare, named, prepare
from reference.items import Size

Settings = Mapping[str, Any]

FAMILIES = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_next", "llava_onevision", "internvl", "idefics3", "smolvlm",
    "pixtral", "gemma3", "whisper", "qwen2_audio",
)  # fmt: skip
"""The families that transformers plans; DeepSeek-VL2 is not among its models."""

PROCESSORS = {
    "qwen2_vl": "Qwen2VLProcessor",
    "qwen2_5_vl": "Qwen2_5_VLProcessor",
    "qwen3_vl": "Qwen3VLProcessor",
    "llava": "LlavaProcessor",
    "llava_next": "LlavaNextProcessor",
    "llava_onevision": "LlavaOnevisionProcessor",
    "internvl": "InternVLProcessor",
    "idefics3": "Idefics3Processor",
    "smolvlm": "SmolVLMProcessor",
    "pixtral": "PixtralProcessor",
    "gemma3": "Gemma3Processor",
    "qwen2_audio": "Qwen2AudioProcessor",
}
MARK = "#"
"""Stands for a placeholder in the text that a processor writes."""


def image_tokens(family: str, settings: Settings, size: Size) -> int:
    """`_get_num_multimodal_tokens` of the family's processor; of SmolVLM, which has none, `get_number_of_image_patches`."""
    processor = _processor(family, settings, image_processor=_images(family, settings))
    if family in ("idefics3", "smolvlm"):
        _, rows, columns = processor.image_processor.get_number_of_image_patches(size.height, size.width)
        return int(settings["image_seq_len"] * (rows * columns + 1))
    (count,) = processor._get_num_multimodal_tokens(image_sizes=[(size.height, size.width)]).num_image_tokens
    if family == "internvl":
        return int(count) - 2
    return int(count) - (_breaks(settings, size) if family == "pixtral" else 0)


def video_tokens(family: str, settings: Settings, frames: int, size: Size) -> int:
    """`_get_num_multimodal_tokens` of the family's processor; InternVL's plans no videos, and writes their placeholders."""
    if family == "internvl":
        written = _processor(family, settings).replace_video_token({"pixel_values_videos": [np.zeros(frames)]}, 0)
        return int(written.count(MARK))
    processor = _processor(family, settings, video_processor=_videos(family, settings))
    (count,) = processor._get_num_multimodal_tokens(video_sizes=[(frames, size.height, size.width)]).num_video_tokens
    return int(count)


def image_grid(family: str, settings: Settings, size: Size) -> tuple[int, ...]:
    """The `image_grid_thw` of a blank picture."""
    blank = torch.zeros(3, size.height, size.width, dtype=torch.uint8)
    made = _images(family, settings)(images=[blank], return_tensors="pt", input_data_format="channels_first")
    return tuple(made["image_grid_thw"][0].tolist())


def video_grid(family: str, settings: Settings, frames: int, size: Size) -> tuple[int, ...]:
    """The `video_grid_thw` of blank frames, all of them."""
    blank = torch.zeros(frames, 3, size.height, size.width, dtype=torch.uint8)
    made = _videos(family, settings)(videos=[blank], return_tensors="pt", do_sample_frames=False)
    return tuple(made["video_grid_thw"][0].tolist())


def audio_tokens(family: str, settings: Settings, samples: int, rate: int) -> int:
    """What the processor of Qwen2-Audio writes for silence; for Whisper, which writes nothing, the rows of its encoder.

    A recording at another rate is given as a file, which the feature extractor loads and resamples.
    """
    extractor = prepare().WhisperFeatureExtractor(feature_size=2, n_fft=16, **settings)  # lengths are those of any spectrum
    recording: Any = np.zeros(samples, dtype=np.float32)
    if rate != settings["sampling_rate"]:
        recording = extractor.fetch_audio(_file(recording, rate))
    if family == "whisper":
        heard = extractor(recording, sampling_rate=extractor.sampling_rate)["input_features"]
        encoder = bare(named("models.whisper.modeling_whisper:WhisperEncoder"))
        return int(encoder._get_feat_extract_output_lengths(heard.shape[-1]))
    processor = _processor(family, settings, feature_extractor=extractor)
    _, (written,) = processor._process_audio([recording], sampling_rate=extractor.sampling_rate)
    return int(written.count(MARK))


def _processor(family: str, settings: Settings, **parts: Any) -> Any:
    """The processor of a family. Raises transformers' own ValueError for one that it does not know."""
    if family not in PROCESSORS:
        prepare().AutoConfig.for_model(family)
    tokens = {"image_token": MARK, "video_token": MARK, "audio_token": MARK, "start_image_token": "", "end_image_token": ""}
    return bare(getattr(prepare(), PROCESSORS[family]), tokenizer=None, **settings, **tokens, **parts)


def _images(family: str, settings: Settings) -> Any:
    """The image processor, with the settings under the names that it has for them."""
    side = settings.get("image_size")
    square, edge = {"height": side, "width": side}, {"shortest_edge": side}
    match family:
        case "qwen2_vl" | "qwen2_5_vl" | "qwen3_vl":
            return prepare().Qwen2VLImageProcessor(**settings)
        case "llava":
            return prepare().LlavaImageProcessor(size=edge, crop_size=square)
        case "llava_next":
            canvases = settings["image_grid_pinpoints"]
            return prepare().LlavaNextImageProcessor(size=edge, crop_size=square, image_grid_pinpoints=canvases)
        case "llava_onevision":
            canvases = settings["image_grid_pinpoints"]
            return prepare().LlavaOnevisionImageProcessor(size=square, image_grid_pinpoints=canvases)
        case "internvl":
            tiles = {name: settings[name] for name in ("min_patches", "max_patches")}
            return prepare().GotOcr2ImageProcessor(size=square, crop_to_patches=True, **tiles)
        case "idefics3" | "smolvlm":
            owner = {"idefics3": "Idefics3ImageProcessor", "smolvlm": "SmolVLMImageProcessor"}[family]
            return getattr(prepare(), owner)(
                size={"longest_edge": settings["longest_edge"]},
                max_image_size={"longest_edge": settings["max_image_size"]},
                do_image_splitting=settings["do_image_splitting"],
            )
        case "pixtral":
            return prepare().PixtralImageProcessor(size={"longest_edge": settings["longest_edge"]})
    return None


def _videos(family: str, settings: Settings) -> Any:
    match family:
        case "qwen2_vl" | "qwen2_5_vl":
            return prepare().Qwen2VLVideoProcessor(**settings)
        case "qwen3_vl":
            patches = {name: settings[name] for name in ("patch_size", "merge_size", "temporal_patch_size")}
            limits = {"shortest_edge": settings["min_pixels"], "longest_edge": settings["max_pixels"]}
            return prepare().Qwen3VLVideoProcessor(size=limits, **patches)
    return None


def _breaks(settings: Settings, size: Size) -> int:
    """How many rows of tokens a picture of Pixtral has; behind each the processor writes a break, or the end."""
    stride, longest = settings["patch_size"] * settings["spatial_merge_size"], settings["longest_edge"]
    resized = named("models.pixtral.image_processing_pixtral:get_resize_output_image_size")
    height, _ = resized(np.zeros((size.height, size.width, 3)), size=(longest, longest), patch_size=(stride, stride))
    return int(height // stride)


def _file(samples: NDArray[np.float32], rate: int) -> str:
    """A recording as a WAV file in base64."""
    data = BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return b64encode(data.getvalue()).decode()
