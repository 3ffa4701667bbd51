"""The whole path, from a prompt and its pictures to the logits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from conformance import returns as answer
from conformance.returns import returns
from conformance.world.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, eq=False)
class Prefill:
    """What a model was fed, and what it answered.

    input_ids: int64 [n], as the engine's prefix cache keys them: expanded, and padded where the engine pads.
    embeddings: [n, hidden], what entered the first layer.
    logits: [n, vocabulary].
    """

    input_ids: NDArray[np.int64]
    embeddings: torch.Tensor
    logits: torch.Tensor


def prefilled(value: Any) -> Prefill:
    """A `Prefill`."""
    if not isinstance(value, Prefill):
        raise answer.WrongAnswer("a conformance.protocol.pipeline.Prefill")
    return Prefill(answer.int64_array(value.input_ids), answer.rows(value.embeddings), answer.rows(value.logits))


class Pipeline(Protocol):
    """The whole path, from a prompt and its pictures to the logits."""

    @returns(prefilled)
    def prefill(self, checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
        """The whole path: a prompt and its pictures through the checkpoint, `chunk_length` positions a step (None: all).

        prompt: with `checkpoint.placeholder` for each picture, in order. Raises ValueError when it has more or fewer of
        them than there are pictures. A token of the placeholder that stands for no picture is refused or read as text.

        The checkpoint is an instrument here and not what is tested. That its numbers can be compared to the last bit, it
        is used in one way: its vision tower runs each picture by itself (`get_image_features`), and its language model
        runs one prompt at a time, one call a step, with the keys and values of the steps before.
        """
