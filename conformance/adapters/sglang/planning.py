"""How many tokens SGLang plans for a picture, where it counts by itself.

For most families transformers' processors count. SGLang has code of its own for LLaVA and LLaVA-NeXT in their original form
(`pad_input_ids` of the model), for InternVL (`dynamic_preprocess` of the processor) and for DeepSeek-VL2 (its processor).
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.cpu import Sglang
from reference.items import Size

Settings = Mapping[str, Any]


def image_tokens(sglang: Sglang, family: str, settings: Settings, size: Size) -> int:
    """The count of the family's code; a family that is none has no processor, as `get_mm_processor` says."""
    if family not in _COUNTS:
        registry = cpu.module("sglang.srt.managers.multimodal_processor")
        registry.get_mm_processor(SimpleNamespace(architectures=[family]), None, None, "default")
    return _COUNTS[family](sglang, settings, size)


def _llava(aspect_ratio: str) -> Callable[[Sglang, Settings, Size], int]:
    def count(sglang: Sglang, settings: Settings, size: Size) -> int:
        """`LlavaBaseForCausalLM.pad_input_ids` of a prompt with this picture alone."""
        model = cpu.module("sglang.srt.models.llava").LlavaBaseForCausalLM
        side = settings["image_size"] // settings["patch_size"]
        class_tokens = settings["num_additional_image_tokens"] * (settings["vision_feature_select_strategy"] == "full")
        itself = SimpleNamespace(
            image_size=settings["image_size"],
            patch_size=settings["patch_size"],
            num_patches_per_side=side,
            image_feature_len=side**2 + class_tokens,
            image_grid_pinpoints=_canvases(settings.get("image_grid_pinpoints", ())),
            vision_tower=SimpleNamespace(config=SimpleNamespace(image_size=settings["image_size"])),
            config=SimpleNamespace(image_aspect_ratio=aspect_ratio, image_token_index=0),
            _infer_image_aspect_ratio=model._infer_image_aspect_ratio,
        )
        item = sglang.batch.MultimodalDataItem(
            modality=sglang.batch.Modality.IMAGE,
            model_specific_data={"image_sizes": [(size.width, size.height)], "image_aspect_ratio": aspect_ratio},
        )
        item.set_hash(0)
        return len(model.pad_input_ids(itself, array("q", [0]), sglang.batch.MultimodalInputs(mm_items=[item])))

    return count


def _internvl(sglang: Sglang, settings: Settings, size: Size) -> int:
    """`InternVLProcessor.dynamic_preprocess`, with a thumbnail, as it is called for pictures; here a tile is one pixel."""
    processor = cpu.module("sglang.srt.multimodal.processors.internvl").InternVLProcessor
    picture = torch.zeros(1).expand(1, size.height, size.width)
    tiles = processor.dynamic_preprocess(picture, image_size=1, max_num=settings["max_patches"], use_thumbnail=True)
    return int(len(tiles) * settings["image_seq_length"])


def _deepseek_vl2(sglang: Sglang, settings: Settings, size: Size) -> int:
    """`DeepseekVLV2Processor.tokenize_with_images` of a prompt with this picture alone, whose pixels are left out."""
    owner = cpu.module("sglang.srt.configs.deepseekvl2")
    itself = SimpleNamespace(
        image_token="<image>",
        image_token_id=0,
        image_size=settings["image_size"],
        patch_size=settings["patch_size"],
        downsample_ratio=settings["downsample_ratio"],
        candidate_resolutions=_canvases(settings["candidate_resolutions"]),
        image_transform=_Picture(),
        encode=lambda *_, **__: [],
    )
    picture = SimpleNamespace(size=(size.width, size.height))
    with patch.object(owner, "ImageOps", SimpleNamespace(pad=lambda *_, **__: _Picture())):
        ids, *_ = owner.DeepseekVLV2Processor.tokenize_with_images(itself, "<image>", [picture], bos=False, eos=False)
    return len(ids)


class _Picture:
    """A picture without pixels, and what makes nothing of it."""

    mean = (0.5, 0.5, 0.5)

    def crop(self, box: tuple[int, int, int, int]) -> "_Picture":
        return self

    def __call__(self, picture: "_Picture") -> None:
        pass


def _canvases(sizes: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """SGLang's canvases: the width first."""
    return [(width, height) for height, width in sizes]


_COUNTS: Mapping[str, Callable[[Sglang, Settings, Size], int]] = {
    "llava": _llava("pad"),
    "llava_next": _llava("anyres"),
    "internvl": _internvl,
    "deepseek_vl2": _deepseek_vl2,
}

FAMILIES = tuple(_COUNTS)
