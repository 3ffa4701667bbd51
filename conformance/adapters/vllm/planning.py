"""How many tokens vLLM plans, from a size alone: `get_num_image_tokens` and `get_num_video_tokens` of a family's info.

A family's info reads the config of a checkpoint and the processor of its owner; both are made of the suite's settings.
"""

from ast import literal_eval
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from conformance.adapters.vllm import cpu
from reference.items import Size

Settings = Mapping[str, Any]

INFOS = {
    "qwen2_vl": "qwen2_vl:Qwen2VLProcessingInfo",
    "qwen2_5_vl": "qwen2_5_vl:Qwen2_5_VLProcessingInfo",
    "qwen3_vl": "qwen3_vl:Qwen3VLProcessingInfo",
    "llava": "llava:LlavaProcessingInfo",
    "llava_next": "llava_next:LlavaNextProcessingInfo",
    "llava_onevision": "llava_onevision:LlavaOnevisionProcessingInfo",
    "llava_next_video": "llava_next_video:LlavaNextVideoProcessingInfo",
    "idefics3": "idefics3:Idefics3ProcessingInfo",
}
FAMILIES = tuple(INFOS)
"""The families whose tokens vLLM counts from a size and that need no tokenizer for it."""

QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
CAPS = ("cap_pixels_per_frame", "max_video_tokens")
"""What a request says of its video, and no checkpoint."""


def image_tokens(family: str, settings: Settings, size: Size) -> int:
    """`get_num_image_tokens`."""
    made = _info(family, repr(dict(settings)))
    more: dict[str, Any] = {}
    if family in QWEN:
        more = {"image_processor": made.pictures, "mm_kwargs": {}}
    if family == "idefics3":
        more = {"processor": made.processor, "mm_kwargs": {}}
    return int(made.info.get_num_image_tokens(image_width=size.width, image_height=size.height, **more))


def video_tokens(family: str, settings: Settings, frames: int, size: Size) -> int:
    """`get_num_video_tokens`, of Qwen with the video processor, as `_get_prompt_updates` of Qwen3-VL calls it."""
    made = _info(family, repr({name: value for name, value in settings.items() if name not in CAPS}))
    more: dict[str, Any] = {}
    if family in QWEN:
        asked = {name: settings[name] for name in CAPS if name in settings}
        more = {"image_processor": made.films, "mm_kwargs": {"videos_kwargs": asked} if asked else {}}
    return int(made.info.get_num_video_tokens(image_width=size.width, image_height=size.height, num_frames=frames, **more))


def grid(family: str, settings: Settings, frames: int | None, size: Size) -> tuple[int, int, int]:
    """What `_get_vision_info` makes of a size: the patches of the resized picture, and in time what its tokens leave.

    frames: None for a picture.
    """
    made = _info(family, repr(dict(settings)))
    resized, tokens = made.info._get_vision_info(
        image_width=size.width,
        image_height=size.height,
        num_frames=1 if frames is None else frames,
        image_processor=made.pictures if frames is None else made.films,
        mm_kwargs={},
        modality="image" if frames is None else "video",
    )
    height, width = (side // settings["patch_size"] for side in (resized.height, resized.width))
    return tokens * settings["merge_size"] ** 2 // (height * width), height, width


@cache
def _info(family: str, stated: str) -> Any:
    """The info of a family for a checkpoint that states this, with its processors."""
    if family not in INFOS:
        raise ValueError(f"vLLM is not asked about {family}; it is about {', '.join(FAMILIES)}")
    settings = literal_eval(stated)
    module, _, name = INFOS[family].partition(":")
    pictures, films = _processors(family, settings)
    processor = SimpleNamespace(image_processor=pictures, video_processor=films, image_seq_len=settings.get("image_seq_len"))
    config = _config(family, settings)
    context = SimpleNamespace(
        get_hf_config=lambda kind: config,
        get_hf_processor=lambda kind, **options: processor,
        get_merged_mm_kwargs=lambda given, **options: dict(given),
    )
    info = getattr(cpu.module(f"vllm.model_executor.models.{module}"), name)(context)
    vars(info)["supported_mm_processor_kwargs"] = None
    return SimpleNamespace(info=info, pictures=pictures, films=films, processor=processor)


def _processors(family: str, settings: Settings) -> tuple[Any, Any]:
    """The owner's image processor and video processor, where an info reads them."""
    library = import_module("transformers")
    if family in ("qwen2_vl", "qwen2_5_vl"):
        return library.Qwen2VLImageProcessor(**settings), library.Qwen2VLVideoProcessor(**settings)
    if family == "qwen3_vl":
        patches = {name: settings[name] for name in ("patch_size", "merge_size", "temporal_patch_size")}
        area = {"shortest_edge": settings["min_pixels"], "longest_edge": settings["max_pixels"]}
        return library.Qwen2VLImageProcessor(**settings), library.Qwen3VLVideoProcessor(size=area, **patches)
    if family == "idefics3":
        return library.Idefics3ImageProcessor(
            size={"longest_edge": settings["longest_edge"]},
            max_image_size={"longest_edge": settings["max_image_size"]},
            do_image_splitting=settings["do_image_splitting"],
        ), None
    return None, None


def _config(family: str, settings: Settings) -> Any:
    """The config of a checkpoint, as far as an info reads it."""
    library = import_module("transformers")
    if family in QWEN:
        names = {"patch_size": "patch_size", "merge_size": "spatial_merge_size", "temporal_patch_size": "temporal_patch_size"}
        vision = SimpleNamespace(**{theirs: settings[ours] for ours, theirs in names.items()})
        return SimpleNamespace(vision_config=vision)
    if family == "idefics3":
        return SimpleNamespace()
    sides = {"image_size": settings["image_size"]}
    if family == "llava_onevision":
        patch = settings["image_size"] // int(settings["num_image_tokens"] ** 0.5)
        vision = library.SiglipVisionConfig(patch_size=patch, **sides)
    else:
        has_class_token = settings.get("num_additional_image_tokens", 1)
        kind = library.CLIPVisionConfig if has_class_token else library.SiglipVisionConfig
        vision = kind(patch_size=settings["patch_size"], **sides)
    return SimpleNamespace(
        vision_config=vision,
        spatial_pool_stride=2,
        vision_feature_select_strategy=settings.get("vision_feature_select_strategy", "default"),
        image_grid_pinpoints=settings.get("image_grid_pinpoints"),
    )
