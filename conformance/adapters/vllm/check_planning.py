"""What vLLM 0.33.0 gets wrong about the number of tokens of a picture or video, which it plans from its size.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

from conformance.adapters.checks import Checks
from conformance.adapters.vllm import cpu
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails


def named_owner(name: str) -> Any:
    """What transformers has under this name."""
    cpu.prepare()
    return getattr(import_module("transformers"), name)


def owner(name: str, **settings: Any) -> Any:
    """The same, made with these settings."""
    return named_owner(name)(**settings)


def info(name: str, config: Any) -> Any:
    """The info of a model with this config, whose request says nothing but what is given with a call."""
    context = SimpleNamespace(
        get_hf_config=lambda kind: config, get_merged_mm_kwargs=lambda given, **options: dict(given), get_hf_processor=bool
    )
    made = named(f"model_executor.models.{name}")(context)
    vars(made)["supported_mm_processor_kwargs"] = None
    return made


def onevision(pinpoints: list[list[int]]) -> Any:
    vision = owner("SiglipVisionConfig", image_size=384, patch_size=14)
    config = SimpleNamespace(vision_config=vision, vision_feature_select_strategy="full", image_grid_pinpoints=pinpoints)
    return info("llava_onevision:LlavaOnevisionProcessingInfo", config)


def counted(name: str, processor: Any, frames: int, height: int, width: int, **asked: Any) -> int:
    """The tokens of a video of Qwen with patches of 14, where a request asks for something."""
    config = SimpleNamespace(vision_config=SimpleNamespace(patch_size=14, spatial_merge_size=2, temporal_patch_size=2))
    return int(
        info(name, config).get_num_video_tokens(
            image_width=width,
            image_height=height,
            num_frames=frames,
            image_processor=processor,
            mm_kwargs={"videos_kwargs": asked},
        )
    )


@fails("PLANNING-05")
def always_nine_tiles() -> bool:
    """LLaVA-OneVision is planned as `anyres_max_9`, whatever its checkpoint states: with `anyres_max_2` there are fewer."""
    processor = object.__new__(named_owner("LlavaOnevisionProcessor"))
    vars(processor).update(num_image_tokens=729, vision_aspect_ratio="anyres_max_2", vision_feature_select_strategy="full")
    vars(processor)["image_processor"] = SimpleNamespace(image_grid_pinpoints=[[768, 768]])
    made = processor._get_number_of_features(768, 768, 384, 384)
    planned = onevision([[768, 768]]).get_num_image_tokens(image_width=768, image_height=768)
    return bool(planned > made)


@fails("PLANNING-07")
def tiles_that_are_not_cut() -> bool:
    """Idefics3 is planned by a formula that counts other tiles than its processor cuts: longest edge no multiple of a tile."""
    processor = owner("Idefics3ImageProcessor", size={"longest_edge": 700}, max_image_size={"longest_edge": 256})
    cut = processor(images=[torch.zeros(3, 100, 70, dtype=torch.uint8)], do_pad=False, return_tensors="pt")["pixel_values"]
    whole = SimpleNamespace(image_processor=processor, image_seq_len=1)
    planned = info("idefics3:Idefics3ProcessingInfo", None).get_num_image_tokens(
        image_width=70, image_height=100, processor=whole, mm_kwargs={}
    )
    return bool(planned != cut.shape[1])


@fails("PLANNING-17")
def settings_of_nobody() -> bool:
    """A setting of a video that does not exist is planned with nothing said."""
    name, processor = "qwen2_vl:Qwen2VLProcessingInfo", owner("Qwen2VLVideoProcessor")
    return counted(name, processor, 2, 100, 100, max_pixel=4) == counted(name, processor, 2, 100, 100)


@fails("PLANNING-26")
def a_video_without_frames() -> bool:
    """A video without frames has the tokens of one with two."""
    name, processor = "qwen2_vl:Qwen2VLProcessingInfo", owner("Qwen2VLVideoProcessor")
    return counted(name, processor, 0, 100, 100) == counted(name, processor, 2, 100, 100) > 0


@fails("PLANNING-38")
def pooled_upwards() -> bool:
    """A frame of LLaVA-NeXT-Video with 15 by 15 patches is planned as 8 by 8: its pooler leaves 7 by 7."""
    vision = owner("CLIPVisionConfig", image_size=210, patch_size=14)
    config = SimpleNamespace(vision_config=vision, spatial_pool_stride=2)
    made = info("llava_next_video:LlavaNextVideoProcessingInfo", config)
    pooled = torch.nn.AvgPool2d(2)(torch.zeros(1, 1, 15, 15))
    return bool(made.get_num_video_tokens(image_width=100, image_height=100, num_frames=1) == 64 and pooled.numel() == 49)


@fails("PLANNING-41", "PLANNING-42")
def a_cap_that_only_the_processor_sees() -> bool:
    """A request that caps the pixels of a frame is planned as if it had not said so."""
    asked = {"cap_pixels_per_frame": True, "max_video_tokens": 4}
    small = {"shortest_edge": 784, "longest_edge": 78400}
    for name, kind in (
        ("qwen2_vl:Qwen2VLProcessingInfo", "Qwen2VLVideoProcessor"),
        ("qwen3_vl:Qwen3VLProcessingInfo", "Qwen3VLVideoProcessor"),
    ):
        processor = owner(kind, size=small, patch_size=14, merge_size=2, temporal_patch_size=2)
        if counted(name, processor, 4, 280, 280, **asked) != counted(name, processor, 4, 280, 280):
            return False
    return True


@fails("PLANNING-43")
def each_as_if_alone() -> bool:
    """Nobody can say how many pictures a prompt has: of several, LLaVA-OneVision's processor tiles none, and each is planned
    in tiles."""
    planned = onevision([[768, 768]]).get_num_image_tokens(image_width=640, image_height=480)
    return bool(planned > 730)
