"""The families of the reference, by the architectures that checkpoints state."""

from functools import partial
from importlib import import_module
from typing import Any

from reference.processors.registry import Module


def _load(name: str, kind: str) -> Any:
    return getattr(import_module(f"reference.processors.{name}"), kind)()


MODULES = tuple(
    Module(f"reference.processors.{name}", architectures, partial(_load, name, kind))
    for name, kind, architectures in (
        (
            "qwen_vl",
            "QwenVL",
            (
                "Qwen2VLForConditionalGeneration",
                "Qwen2_5_VLForConditionalGeneration",
                "Qwen3VLForConditionalGeneration",
                "Qwen3VLMoeForConditionalGeneration",
            ),
        ),
        ("llava", "Llava", ("LlavaForConditionalGeneration",)),
        ("llava", "LlavaOnevision", ("LlavaOnevisionForConditionalGeneration",)),
        ("tiles", "InternVL", ("InternVLForConditionalGeneration",)),
        ("tiles", "Gemma3", ("Gemma3ForConditionalGeneration",)),
        ("tiles", "Idefics3", ("Idefics3ForConditionalGeneration",)),
        ("tiles", "SmolVLM", ("SmolVLMForConditionalGeneration",)),
        ("tiles", "Pixtral", ("PixtralForConditionalGeneration", "Mistral3ForConditionalGeneration")),
        ("audio", "Qwen2Audio", ("Qwen2AudioForConditionalGeneration",)),
    )
)
