"""Processors that are real in everything but their size: transformers' own, with a tokenizer of the 256 bytes.

Ids are the bytes and, behind them, the special tokens of all families. Pictures have sides of a few patches, so that a
prompt has tens of tokens and not thousands.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.world.checkpoint import SPECIAL_TOKENS as QWEN_TOKENS
from conformance.world.families import GEMMA3
from conformance.world.pictures import TOKENS as PICTURES
from conformance.world.pictures import picture
from reference.items import Format, Item, Modality

NAMED_TOKENS = {
    "image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>",
    "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
    "video_token": "<video>",
}  # fmt: skip
"""The tokens that Gemma 3 and InternVL look up in their tokenizers by name."""

SPECIAL_TOKENS = (
    *QWEN_TOKENS, *NAMED_TOKENS.values(), "<image>", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "<fake_token_around_image>",
    "<global-img>", "<end_of_utterance>", *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
    "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>",
)  # fmt: skip

ARCHITECTURES = {
    "qwen2_vl": "Qwen2VLForConditionalGeneration",
    "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3_vl": "Qwen3VLForConditionalGeneration",
    "llava": "LlavaForConditionalGeneration",
    "llava_onevision": "LlavaOnevisionForConditionalGeneration",
    "internvl": "InternVLForConditionalGeneration",
    "gemma3": "Gemma3ForConditionalGeneration",
    "idefics3": "Idefics3ForConditionalGeneration",
    "smolvlm": "SmolVLMForConditionalGeneration",
    "pixtral": "PixtralForConditionalGeneration",
    "qwen2_audio": "Qwen2AudioForConditionalGeneration",
}
"""The families that the suite shows, by `model_type`, and the architecture that a checkpoint of each states."""

_QWEN = {"patch_size": 14, "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 28**2, "max_pixels": 16 * 28**2}
_IDEFICS = {"longest_edge": 84, "max_image_size": 28, "image_seq_len": 4, "do_image_splitting": True}
_PINPOINTS = [[28, 56], [56, 28], [56, 56], [28, 84], [84, 28]]

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "qwen2_vl": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen3_vl": {**_QWEN, "patch_size": 16, "min_pixels": 32**2, "max_pixels": 16 * 32**2},
    "llava": {
        "image_size": 28, "patch_size": 14, "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default",
    },
    "llava_onevision": {
        "image_size": 28, "image_grid_pinpoints": _PINPOINTS, "num_image_tokens": 4, "vision_aspect_ratio": "anyres_max_9",
        "vision_feature_select_strategy": "full",
    },
    "internvl": {"image_size": 28, "min_patches": 1, "max_patches": 4, "image_seq_length": 4},
    "gemma3": GEMMA3.but(image_seq_length=4).settings,
    "idefics3": _IDEFICS,
    "smolvlm": _IDEFICS,
    "pixtral": {"longest_edge": 64, "patch_size": 16, "spatial_merge_size": 1},
    "qwen2_audio": {"sampling_rate": 16_000, "hop_length": 160, "chunk_length": 1},
}  # fmt: skip
"""What the checkpoints state, as `Planning` takes it; for pictures and recordings."""

CLIPS = {"clip": (4, 40, 60), "film": (6, 56, 56), "flash": (2, 40, 60)}
TONES = {"tone": 9_000, "hum": 4_000, "beep": 700}
MEDIA = (*PICTURES, *CLIPS, *TONES)
RATE = 16_000


MARKERS = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen3_vl"), ("<|vision_start|>", "<|vision_end|>")),
    "qwen2_audio": ("<|audio_bos|>", "<|audio_eos|>"),
}
"""The tokens that a chat template writes around each medium; other families have none, or their processor adds them."""


class Prompt(NamedTuple):
    """A family, and a prompt that names its media in braces: pictures, videos of `CLIPS`, recordings of `TONES`."""

    family: str
    text: str


@cache
def medium(name: str) -> Item:
    """A raw medium by its name."""
    if name in PICTURES:
        return Item(modality=Modality.IMAGE, feature=picture(name).convert("RGB"), format=Format.RAW)
    if name in CLIPS:
        frames, height, width = CLIPS[name]
        colours = np.arange(frames * height * width * 3, dtype=np.int64).reshape(frames, height, width, 3)
        pixels = (colours // 3 * 7 % 251).astype(np.uint8)
        return Item(modality=Modality.VIDEO, feature=pixels, format=Format.RAW, fields={"fps": 2.0})
    samples = np.sin(np.arange(TONES[name]) / (3 + len(name))).astype(np.float32)
    return Item(modality=Modality.AUDIO, feature=samples, format=Format.RAW, fields={"sampling_rate": RATE})


def marked(family: str, text: str) -> Prompt:
    """A prompt with the family's markers around its media."""
    start, end = MARKERS.get(family, ("", ""))
    return Prompt(family, text.replace("{", start + "{").replace("}", "}" + end))


def spelled(family: str, text: str) -> list[int]:
    """The ids of a text without media: its bytes, and the family's markers."""
    pieces = re.split("|".join(f"({re.escape(token)})" for token in MARKERS[family]), text) if family in MARKERS else [text]
    tokens = MARKERS.get(family, ())
    return [id for one in pieces if one for id in ([id_of(family, one)] if one in tokens else one.encode())]


def names(text: str) -> list[str]:
    """The names of a prompt's media, in order."""
    return [name for _, name, _, _ in Formatter().parse(text) if name is not None]


def parts(text: str) -> list[str | Item]:
    """A prompt as text and raw media."""
    pieces: list[str | Item] = []
    for written, name, _, _ in Formatter().parse(text):
        pieces += [written] * bool(written) + ([] if name is None else [medium(name)])
    return pieces


def id_parts(prompt: Prompt) -> list[NDArray[np.int64] | Item]:
    """A prompt as ids and raw media."""
    pieces = parts(prompt.text)
    return [np.array(spelled(prompt.family, one), dtype=np.int64) if isinstance(one, str) else one for one in pieces]


def tokenizer(names: Mapping[str, str]) -> Any:
    """A tokenizer of bytes, which knows some of its special tokens by name."""
    from conformance.world import qwen2_vl

    characters = import_module("transformers.convert_slow_tokenizer").bytes_to_unicode()
    vocabulary = {character: byte for byte, character in characters.items()}
    made = qwen2_vl.transformers.Qwen2Tokenizer(vocab=vocabulary, merges=[], extra_special_tokens=dict(names))
    made.add_special_tokens({"additional_special_tokens": list(SPECIAL_TOKENS)})
    return made


def id_of(family: str, token: str) -> int:
    """The id of a special token; it differs between families, for tokens that are known by name come first."""
    return int(processor(family).tokenizer.convert_tokens_to_ids(token))


@cache
def processor(family: str) -> Any:
    """The processor of a family, built once a process."""
    from conformance.world import qwen2_vl

    return _BUILDERS[family](qwen2_vl.transformers)


def _qwen(name: str, pictures: str, patch: int) -> Callable[[Any], Any]:
    def build(library: Any) -> Any:
        side = 2 * patch
        size = {"shortest_edge": side**2, "longest_edge": 16 * side**2}
        settings = {"patch_size": patch, "temporal_patch_size": 2, "merge_size": 2}
        films = getattr(library, "Qwen3VLVideoProcessor" if patch == 16 else "Qwen2VLVideoProcessor")
        video = films(size={"shortest_edge": side**2, "longest_edge": 64 * side**2}, do_sample_frames=False, **settings)
        return getattr(library, name)(getattr(library, pictures)(size=size, **settings), tokenizer({}), video)

    return build


def _llava(library: Any) -> Any:
    side = {"height": 28, "width": 28}
    pictures = library.CLIPImageProcessorPil(size=side, crop_size=side)
    return library.LlavaProcessor(
        pictures,
        tokenizer({}),
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )


def _llava_onevision(library: Any) -> Any:
    side = {"height": 28, "width": 28}
    return library.LlavaOnevisionProcessor(
        library.LlavaOnevisionImageProcessorPil(size=side, image_grid_pinpoints=_PINPOINTS),
        tokenizer({}),
        library.LlavaOnevisionVideoProcessor(size=side, do_sample_frames=False),
        num_image_tokens=4,
        vision_feature_select_strategy="full",
    )


def _internvl(library: Any) -> Any:
    side = {"height": 28, "width": 28}
    return library.InternVLProcessor(
        library.GotOcr2ImageProcessorPil(size=side, crop_to_patches=True, min_patches=1, max_patches=4),
        tokenizer(
            {name: NAMED_TOKENS[name] for name in NAMED_TOKENS if name.endswith("_image_token") or name == "video_token"}
        ),
        library.InternVLVideoProcessor(size=side, do_sample_frames=False),
        image_seq_length=4,
    )


def _gemma3(library: Any) -> Any:
    side = {"height": 28, "width": 28}
    names = {name: NAMED_TOKENS[name] for name in ("image_token", "boi_token", "eoi_token")}
    return library.Gemma3Processor(library.Gemma3ImageProcessorPil(size=side), tokenizer(names), image_seq_length=4)


def _idefics3(library: Any) -> Any:
    pictures = library.Idefics3ImageProcessorPil(size={"longest_edge": 84}, max_image_size={"longest_edge": 28})
    return library.Idefics3Processor(pictures, tokenizer({}), image_seq_len=4)


def _smolvlm(library: Any) -> Any:
    size = {"size": {"longest_edge": 84}, "max_image_size": {"longest_edge": 28}}
    films = library.SmolVLMVideoProcessor(**size, do_sample_frames=False)
    return library.SmolVLMProcessor(library.SmolVLMImageProcessorPil(**size), tokenizer({}), films, image_seq_len=4)


def _pixtral(library: Any) -> Any:
    pictures = library.PixtralImageProcessorPil(size={"longest_edge": 64}, patch_size={"height": 16, "width": 16})
    return library.PixtralProcessor(pictures, tokenizer({}), patch_size=16, spatial_merge_size=1)


def _qwen2_audio(library: Any) -> Any:
    return library.Qwen2AudioProcessor(library.WhisperFeatureExtractor(feature_size=8, chunk_length=1), tokenizer({}))


_BUILDERS: Mapping[str, Callable[[Any], Any]] = {
    "qwen2_vl": _qwen("Qwen2VLProcessor", "Qwen2VLImageProcessorPil", 14),
    "qwen2_5_vl": _qwen("Qwen2_5_VLProcessor", "Qwen2VLImageProcessorPil", 14),
    "qwen3_vl": _qwen("Qwen3VLProcessor", "Qwen2VLImageProcessorPil", 16),
    "llava": _llava,
    "llava_onevision": _llava_onevision,
    "internvl": _internvl,
    "gemma3": _gemma3,
    "idefics3": _idefics3,
    "smolvlm": _smolvlm,
    "pixtral": _pixtral,
    "qwen2_audio": _qwen2_audio,
}
