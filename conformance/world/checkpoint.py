"""Checkpoints: real architectures, small enough to build in the test."""

from dataclasses import dataclass
from functools import cache
from typing import Any

PLACEHOLDER = "<|vision_start|><|image_pad|><|vision_end|>"
"""What stands for one picture in a Qwen2-VL prompt."""

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
"""Qwen2-VL's, in the order of their ids."""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A model that an engine is asked to serve.

    processor: the model owner's transformers processor, with its tokenizer.
    model: the transformers model, in evaluation mode on a CPU.
    placeholder: the text that stands for one picture in a prompt.
    """

    processor: Any
    model: Any
    placeholder: str


@cache
def tiny_qwen2_vl() -> Checkpoint:
    """A small Qwen2-VL: the real processor, the real architecture, 0.2 million weights that are equal on every machine.

    The tokenizer's ids are the 256 bytes, followed by the special tokens. It is built once a process, and everything
    that it needs of transformers is imported then.
    """
    from conformance.world import qwen2_vl

    tokenizer = qwen2_vl.byte_tokenizer(SPECIAL_TOKENS)
    return Checkpoint(qwen2_vl.processor(tokenizer), qwen2_vl.model(tokenizer), PLACEHOLDER)
