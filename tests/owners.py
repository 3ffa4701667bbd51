"""The classes of transformers whose `get_rope_index` numbers positions."""

from functools import cache
from importlib import import_module
from typing import Any

from conformance.world.torchvision_cpu import complete_torchvision

NAMES = {
    "qwen2_vl": "Qwen2VLModel",
    "qwen2_5_vl": "Qwen2_5_VLModel",
    "qwen3_vl": "Qwen3VLModel",
    "glm4v": "Glm4vModel",
    "qwen2_5_omni": "Qwen2_5OmniPreTrainedModelForConditionalGeneration",
    "qwen3_omni_moe": "Qwen3OmniMoePreTrainedModelForConditionalGeneration",
}


@cache
def owner(family: str) -> Any:
    """The class of transformers' model."""
    complete_torchvision()
    return getattr(import_module(f"transformers.models.{family}.modeling_{family}"), NAMES[family])
