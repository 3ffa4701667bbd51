"""How many tokens transformers plans, from a size alone.

A processor is made without its tokenizer, with the parts that count. It says how many tokens a picture is in the prompt,
markers and breaks included. The suite asks for those alone that the encoder fills, so that what is written around them is
taken off again.
"""

import wave
from ast import literal_eval
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.transformers.cpu import bare, named, prepare
from reference.items import Size

Settings = Mapping[str, Any]

FAMILIES = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_next", "llava_onevision", "internvl", "idefics3", "smolvlm",
    "pixtral", "gemma3", "whisper", "qwen2_audio", "glm4v", "llava_next_video", "qwen2_5_omni", "qwen3_omni_moe",
)  # fmt: skip
"""The families that transformers plans. DeepSeek-VL2 is not among its models, and Llama 4 has no such plan."""

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
    "glm4v": "Glm4vProcessor",
    "llava_next_video": "LlavaNextVideoProcessor",
    "qwen2_5_omni": "Qwen2_5OmniProcessor",
    "qwen3_omni_moe": "Qwen3OmniMoeProcessor",
}
MARK = "#"
"""Stands for a placeholder in the text that a processor writes."""


def image_tokens(family: str, settings: Settings, size: Size) -> int:
    """`_get_num_multimodal_tokens` of the family's processor; of SmolVLM, which has none, `get_number_of_image_patches`.

    That plans every picture as the only one of its prompt; of several, LLaVA-OneVision's processor writes the placeholders.
    """
    processor = _of_images(family, repr(dict(settings)))
    if (count := settings.get("pictures_in_prompt", 1)) > 1:
        return int(processor.replace_image_token({"batch_num_images": [count]}, 0).count(MARK))
    if family in ("idefics3", "smolvlm"):
        _, rows, columns = processor.image_processor.get_number_of_image_patches(size.height, size.width)
        return int(settings["image_seq_len"] * (rows * columns + 1))
    (count,) = processor._get_num_multimodal_tokens(image_sizes=[(size.height, size.width)]).num_image_tokens
    if family == "internvl":
        return int(count) - 2
    return int(count) - (_breaks(settings, size) if family == "pixtral" else 0)


def video_tokens(family: str, settings: Settings, frames: int, size: Size) -> int:
    """`_get_num_multimodal_tokens` of the family's processor; those that plan no videos write their placeholders."""
    if family in ("internvl", "llava_next_video"):
        return int(_processor(family, settings).replace_video_token(_whole_video(settings, frames), 0).count(MARK))
    if family == "smolvlm":
        return _smolvlm_video(settings, frames)
    processor = _of_videos(family, repr(dict(settings)))
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
    """What the processor of Qwen2-Audio writes for silence, and those of the Omni models plan.

    Whisper has no placeholders: its are the rows of its encoder.

    A recording at another rate is given as a file, which the feature extractor loads and resamples.
    """
    extractor = _extractor(repr(dict(settings)))
    recording: Any = np.zeros(samples, dtype=np.float32)
    if rate != settings["sampling_rate"]:
        recording = extractor.fetch_audio(_file(recording, rate))
    if family == "whisper":
        heard = extractor(recording, sampling_rate=extractor.sampling_rate)["input_features"]
        encoder = bare(named("models.whisper.modeling_whisper:WhisperEncoder"))
        return int(encoder._get_feat_extract_output_lengths(heard.shape[-1]))
    processor = _processor(family, settings, feature_extractor=extractor)
    if family in ("qwen2_5_omni", "qwen3_omni_moe"):
        (count,) = processor._get_num_multimodal_tokens(audio_lengths=[len(recording)]).num_audio_tokens
        return int(count)
    _, (written,) = processor._process_audio([recording], sampling_rate=extractor.sampling_rate)
    return int(written.count(MARK))


@cache
def _of_images(family: str, stated: str) -> Any:
    """The processor of a family with its image processor, made once for each family and what a checkpoint states."""
    settings = literal_eval(stated)
    return _processor(family, settings, image_processor=_images(family, settings))


@cache
def _of_videos(family: str, stated: str) -> Any:
    """The same with its video processor."""
    settings = literal_eval(stated)
    return _processor(family, settings, video_processor=_videos(family, settings))


@cache
def _extractor(stated: str) -> Any:
    """The feature extractor of Whisper, of two frequencies: lengths are those of any spectrum."""
    settings = {name: value for name, value in literal_eval(stated).items() if name != "n_window"}
    return prepare().WhisperFeatureExtractor(feature_size=2, n_fft=16, **settings)


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
        case "qwen2_vl" | "qwen2_5_vl" | "qwen3_vl" | "qwen2_5_omni" | "qwen3_omni_moe":
            return prepare().Qwen2VLImageProcessor(**settings)
        case "glm4v":
            return prepare().Glm4vImageProcessor(**_of_all_frames(settings))
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
        case "qwen2_vl" | "qwen2_5_vl" | "qwen2_5_omni" | "qwen3_omni_moe":
            return prepare().Qwen2VLVideoProcessor(**settings)
        case "qwen3_vl":
            return prepare().Qwen3VLVideoProcessor(**_of_all_frames(settings))
        case "glm4v":
            return prepare().Glm4vVideoProcessor(**_of_all_frames(settings))
    return None


def _of_all_frames(settings: Settings) -> dict[str, Any]:
    """The settings of processors that bound the pixels of all frames together."""
    names = ("patch_size", "merge_size", "temporal_patch_size", "cap_pixels_per_frame", "max_video_tokens")
    patches = {name: settings[name] for name in names if name in settings}
    return {"size": {"shortest_edge": settings["min_pixels"], "longest_edge": settings["max_pixels"]}, **patches}


def _whole_video(settings: Settings, frames: int) -> dict[str, Any]:
    """What a video processor gives for a video of blank frames, as far as placeholders depend on it."""
    side = settings["image_size"]
    return {"pixel_values_videos": [np.broadcast_to(np.uint8(0), (frames, side, side, 3))]}


def _smolvlm_video(settings: Settings, frames: int) -> int:
    """What the processor of SmolVLM writes for a video of a frame a second, without the words around its frames."""
    metadata = named("video_utils:VideoMetadata")(frames, 1.0, duration=float(frames), frames_indices=list(range(frames)))
    made = {"pixel_values": np.broadcast_to(np.uint8(0), (1, frames)), "video_metadata": [metadata]}
    apart = {"fake_image_token": "", "global_image_token": ""}
    return int(_processor("smolvlm", settings, **apart).replace_video_token(made, 0).count(MARK))


def _breaks(settings: Settings, size: Size) -> int:
    """How many rows of tokens a picture of Pixtral has; behind each the processor writes a break, or the end."""
    stride, longest = settings["patch_size"] * settings["spatial_merge_size"], settings["longest_edge"]
    resized = named("models.pixtral.image_processing_pixtral:get_resize_output_image_size")
    blank = np.broadcast_to(np.uint8(0), (size.height, size.width, 3))
    height, _ = resized(blank, size=(longest, longest), patch_size=(stride, stride))
    return int(height // stride)


def _file(samples: NDArray[np.float32], rate: int) -> str:
    """A recording as a WAV file in base64."""
    data = BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return b64encode(data.getvalue()).decode()
