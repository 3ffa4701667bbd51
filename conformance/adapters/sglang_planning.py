"""How many tokens SGLang's own processors give a blank picture.

For most families SGLang runs the model owner's processor, and plans nothing. These two it preprocesses itself.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from PIL import Image

from conformance.adapters import sglang_cpu
from reference.items import Size

Settings = Mapping[str, Any]


def image_tokens(family: str, settings: Settings, size: Size) -> int:
    """The count of the family's processor. Raises ValueError for other families, and for settings that it cannot be given."""
    if family not in COUNTERS:
        raise ValueError(f"SGLang counts no tokens for {family} itself; it does for {', '.join(COUNTERS)}")
    count, known = COUNTERS[family]
    if set(settings) != known:
        raise ValueError(f"SGLang's processor of {family} takes {', '.join(sorted(known))}, not {', '.join(sorted(settings))}")
    return count(settings, size)


def _internvl(settings: Settings, size: Size) -> int:
    """`InternVLProcessor.dynamic_preprocess`, called as `process_qwen_mm_data_async` calls it. It has no `min_patches`."""
    processor = sglang_cpu.module("sglang.srt.multimodal.processors.internvl").InternVLProcessor
    most = {"max_num": settings["max_patches"], "use_thumbnail": True}
    tiles = processor.dynamic_preprocess(torch.zeros(3, size.height, size.width), image_size=settings["image_size"], **most)
    return len(tiles) * int(settings["image_seq_length"])


def _deepseek_vl2(settings: Settings, size: Size) -> int:
    """`DeepseekVLV2Processor.tokenize_with_images`, without a tokenizer. Its canvases are a width and a height."""
    module = sglang_cpu.module("sglang.srt.configs.deepseekvl2")
    processor = module.DeepseekVLV2Processor.__new__(module.DeepseekVLV2Processor)
    vars(processor).update(
        {name: settings[name] for name in ("image_size", "patch_size", "downsample_ratio")},
        candidate_resolutions=[(width, height) for height, width in settings["candidate_resolutions"]],
        image_transform=module.ImageTransform(),
        image_token="<image>",
        image_token_id=1,
        encode=lambda text, **_: [],
    )
    picture = Image.new("RGB", (size.width, size.height))
    tokens, *_ = processor.tokenize_with_images("<image>", [picture], bos=False, eos=False)
    return len(tokens)


COUNTERS: dict[str, tuple[Callable[[Settings, Size], int], set[str]]] = {
    "internvl": (_internvl, {"image_size", "min_patches", "max_patches", "image_seq_length"}),
    "deepseek_vl2": (_deepseek_vl2, {"image_size", "patch_size", "downsample_ratio", "candidate_resolutions"}),
}
"""For each family its processor and the settings of it."""
