"""Text and media through a model's processor: ids, and items with spans, grids and rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.returns import returns
from reference.items import Item


@dataclass(frozen=True, slots=True)
class Module:
    """A module that serves some architectures. load: imports it, and gives what processes for them; it may raise."""

    name: str
    architectures: tuple[str, ...]
    load: Callable[[], Any]


def items(value: Any) -> tuple[Item, ...]:
    """A sequence of `Item`."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, Item) for one in value):
        raise answer.WrongAnswer("a sequence of items")
    return tuple(value)


def processed(value: Any) -> tuple[NDArray[np.int64], tuple[Item, ...]]:
    """A pair: an int64 array [n] and a sequence of `Item`."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise answer.WrongAnswer("a pair: an int64 array [n] and a sequence of items")
    return answer.int64_array(value[0]), items(value[1])


FAMILIES = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_onevision", "internvl", "gemma3", "idefics3", "smolvlm",
    "pixtral", "qwen2_audio",
)  # fmt: skip
"""transformers' `model_type` of the models whose prompts the suite knows."""


class Processors(Protocol):
    """Text and media through a model's processor: ids, and items with spans, grids and rows.

    architecture: as a checkpoint's `architectures` state it. processor: the transformers processor of the checkpoint. The
    families are those of `FAMILIES`. An engine says in the traits `processed_families` and `bound_families` for which of them
    it has `process` and `bind_output`.

    The spans of an item are the positions that its encoder fills (see `Planning`). Its `feature` is what the processor
    returns of rows for this medium alone: `pixel_values`, `pixel_values_videos` or `input_features`, without padding;
    leading dimensions of length 1 do not matter. The frames of a video for InternVL or SmolVLM are pictures of one tile, with
    text between them: it has a span for each frame, filled with the token of pictures or, where the trait
    `frame_placeholders` says so, of videos, and `pixel_values`. Grids are fields, a tuple of three ints: `image_grid_thw`,
    `video_grid_thw`. Items have identities. Other fields are free.
    """

    @returns(answer.anything)
    def find_processor(self, modules: Sequence[Module], architectures: Sequence[str]) -> Any:
        """What `load` of the module gives that serves the first of the architectures that any module serves.

        A module that raises as it is loaded fails its own architectures and no others. Raises an error that names
        the architecture and lists the known ones when none is served, and one that names the module and the cause when it
        cannot be loaded.
        """

    @returns(processed)
    def process(
        self, architecture: str, processor: Any, parts: Sequence[str | NDArray[np.int64] | Item]
    ) -> tuple[NDArray[np.int64], tuple[Item, ...]]:
        """The expanded ids of a prompt, and its media as items in the order of the parts.

        parts: text, ids int64 [n], and raw media (`Format.RAW`): a PIL picture; frames uint8 [n, height, width, 3] with the
        field "fps", which are not sampled again; samples float32 [n] with the field "sampling_rate". An adapter whose
        engine takes a whole prompt puts the processor's own placeholder token where a medium stands. To text no special
        token is added; those in it count, but the text of a placeholder in a text part stands for no medium: it is
        refused or read as text. So is its id in a part of ids.

        Raises ValueError for a medium without content, and for one that the processor cannot take.
        """

    @returns(items)
    def bind_output(
        self, architecture: str, processor: Any, input_ids: NDArray[np.int64], output: Mapping[str, Any]
    ) -> tuple[Item, ...]:
        """The media of a prompt that the processor has expanded already, as items by position, each with its own rows.

        input_ids: int64 [n]. output: what the processor returned beside them for all media of the prompt, pictures given
        as a flat list; or, in place of the rows, `image_embeds`, `video_embeds` or `audio_embeds`, for each medium a
        tensor [tokens, hidden] from the encoder, which its item carries as `embedding`. Videos of InternVL and SmolVLM are
        not among them, for nothing tells their frames from pictures.

        Raises ValueError unless the placeholders in the ids are, medium by medium, those of the output.
        """
