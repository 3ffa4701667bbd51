"""Checkpoints: real architectures, small enough to build in the test."""

from dataclasses import dataclass
from functools import cache
from typing import Any


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

    It is built once a process. Everything that it needs of transformers is imported here and not before.
    """
    from conformance import qwen2_vl

    tokenizer = qwen2_vl.byte_tokenizer()
    return Checkpoint(qwen2_vl.processor(tokenizer), qwen2_vl.model(tokenizer), qwen2_vl.PLACEHOLDER)
