"""Processors that are real in everything but their size: transformers' own, with a tokenizer of the 256 bytes.

Ids are the bytes and, behind them, the special tokens of all families in the order of `SPECIAL_TOKENS`. Pictures have
sides of a few patches, so that a prompt has tens of tokens and not thousands.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from conformance.world.checkpoint import SPECIAL_TOKENS as QWEN_TOKENS

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
    "pixtral": "PixtralForConditionalGeneration",
    "qwen2_audio": "Qwen2AudioForConditionalGeneration",
}
"""The families that the suite shows, by `model_type`, and the architecture that a checkpoint of each states."""


def tokenizer(names: Mapping[str, str]) -> Any:
    """A tokenizer of bytes, which knows some of its special tokens by name."""
    from conformance.world import qwen2_vl

    characters = import_module("transformers.convert_slow_tokenizer").bytes_to_unicode()
    vocabulary = {character: byte for byte, character in characters.items()}
    made = qwen2_vl.transformers.Qwen2Tokenizer(vocab=vocabulary, merges=[], extra_special_tokens=dict(names))
    made.add_special_tokens({"additional_special_tokens": list(SPECIAL_TOKENS)})
    return made


def id_of(token: str) -> int:
    """The id of a special token."""
    return int(processor("qwen2_vl").tokenizer.convert_tokens_to_ids(token))


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
    pinpoints = [[28, 56], [56, 28], [56, 56], [28, 84], [84, 28]]
    return library.LlavaOnevisionProcessor(
        library.LlavaOnevisionImageProcessorPil(size=side, image_grid_pinpoints=pinpoints),
        tokenizer({}),
        library.LlavaOnevisionVideoProcessor(size=side, do_sample_frames=False),
        num_image_tokens=4,
        vision_feature_select_strategy="full",
    )


def _internvl(library: Any) -> Any:
    side = {"height": 28, "width": 28}
    return library.InternVLProcessor(
        library.GotOcr2ImageProcessorPil(size=side, crop_to_patches=True, min_patches=1, max_patches=4),
        tokenizer({name: token for name, token in NAMED_TOKENS.items() if "image_token" in name or "video" in name}),
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
    "pixtral": _pixtral,
    "qwen2_audio": _qwen2_audio,
}
