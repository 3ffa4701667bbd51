"""Families of models: what their published checkpoints state in their preprocessor configurations.

Settings are plain data under the names that transformers uses (`min_pixels` and `max_pixels` for what it calls the
shortest and longest edge of Qwen, `longest_edge` for that of Idefics3 and Pixtral, `image_size` for the side of a tile).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A family by its `model_type`, and its settings."""

    name: str
    settings: Mapping[str, Any]

    def but(self, **overrides: Any) -> "Family":
        """The family with some settings overridden."""
        return Family(self.name, {**self.settings, **overrides})


def _up_to(most: int, tile: int) -> list[list[int]]:
    """The canvases of up to `most` tiles, each a height and a width: few tiles first, then long ones, then tall ones."""
    shapes = [(rows, columns) for rows, columns in product(range(1, most + 1), repeat=2) if rows * columns <= most]
    shapes.sort(key=lambda shape: (shape[0] * shape[1], min(shape), shape[1]))
    return [[rows * tile, columns * tile] for rows, columns in shapes]


_PATCHES = {"patch_size": 14, "merge_size": 2, "temporal_patch_size": 2}
_CLASS_TOKEN = {"num_additional_image_tokens": 1, "vision_feature_select_strategy": "default"}
_SPEECH = {"sampling_rate": 16_000, "hop_length": 160, "chunk_length": 30}

QWEN2_VL = Family("qwen2_vl", {**_PATCHES, "min_pixels": 56 * 56, "max_pixels": 12_845_056})
QWEN2_VL_VIDEO = Family("qwen2_vl", {**_PATCHES, "min_pixels": 128 * 28 * 28, "max_pixels": 768 * 28 * 28})
QWEN2_5_VL = Family("qwen2_5_vl", {**_PATCHES, "min_pixels": 56 * 56, "max_pixels": 12_845_056})
QWEN2_5_VL_VIDEO = Family("qwen2_5_vl", {**_PATCHES, "min_pixels": 128 * 28 * 28, "max_pixels": 768 * 28 * 28})
QWEN3_VL = Family("qwen3_vl", {**_PATCHES, "patch_size": 16, "min_pixels": 65_536, "max_pixels": 16_777_216})
QWEN3_VL_VIDEO = Family("qwen3_vl", {**_PATCHES, "patch_size": 16, "min_pixels": 4_096, "max_pixels": 25_165_824})
LLAVA = Family("llava", {"image_size": 336, "patch_size": 14, **_CLASS_TOKEN})
LLAVA_NEXT = Family(
    "llava_next",
    {
        "image_size": 336,
        "patch_size": 14,
        "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
        **_CLASS_TOKEN,
    },
)
LLAVA_ONEVISION = Family(
    "llava_onevision",
    {
        "image_size": 384,
        "image_grid_pinpoints": [list(pair) for pair in product(range(384, 2305, 384), repeat=2)],
        "num_image_tokens": 729,
        "vision_aspect_ratio": "anyres_max_9",
        "vision_feature_select_strategy": "full",
    },
)
DEEPSEEK_VL2 = Family(
    "deepseek_vl2",
    {"image_size": 384, "patch_size": 14, "downsample_ratio": 2, "candidate_resolutions": _up_to(9, 384)},
)
INTERNVL = Family("internvl", {"image_size": 448, "min_patches": 1, "max_patches": 12, "image_seq_length": 256})
IDEFICS3 = Family("idefics3", {"longest_edge": 1456, "max_image_size": 364, "image_seq_len": 169, "do_image_splitting": True})
SMOLVLM = Family("smolvlm", {"longest_edge": 2048, "max_image_size": 512, "image_seq_len": 64, "do_image_splitting": True})
PIXTRAL = Family("pixtral", {"longest_edge": 1024, "patch_size": 16, "spatial_merge_size": 1})
MISTRAL3 = Family("pixtral", {"longest_edge": 1540, "patch_size": 14, "spatial_merge_size": 2})
_PAN_AND_SCAN = {
    "pan_and_scan_min_crop_size": 256,
    "pan_and_scan_max_num_crops": 4,
    "pan_and_scan_min_ratio_to_activate": 1.2,
}
GEMMA3 = Family("gemma3", {"image_seq_length": 256, "do_pan_and_scan": False, **_PAN_AND_SCAN})
GLM4V = Family("glm4v", {**_PATCHES, "min_pixels": 112 * 112, "max_pixels": 28 * 28 * 15_000})
GLM4V_VIDEO = Family("glm4v", {**_PATCHES, "min_pixels": 112 * 112, "max_pixels": 28 * 28 * 2 * 30_000})
LLAMA4 = Family(
    "llama4",
    {"image_size": 336, "patch_size": 14, "downsample_ratio": 4, "max_patches": 16, "resize_to_max_canvas": False},
)
LLAVA_NEXT_VIDEO = Family("llava_next_video", {"image_size": 336, "patch_size": 14})
WHISPER = Family("whisper", _SPEECH)
QWEN2_AUDIO = Family("qwen2_audio", _SPEECH)
QWEN2_5_OMNI = Family("qwen2_5_omni", {**_SPEECH, "chunk_length": 300})
QWEN3_OMNI = Family("qwen3_omni_moe", {"sampling_rate": 16_000, "hop_length": 160, "n_window": 50})
