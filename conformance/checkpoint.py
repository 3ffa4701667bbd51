"""Checkpoints: real architectures, small enough to build in the test."""

from dataclasses import dataclass
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
