"""What is obviously right about processors: transformers' processor by itself, once on each medium and once on a prompt.

Where a medium stands is counted: each part of a prompt takes as many ids as it has when it is alone.
"""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from conformance.world.processors import Prompt, id_of, medium, names, parts, processor, spelled
from reference.items import Item, Modality, Span

PLACEHOLDERS = {
    "gemma3": {"image": "<start_of_image>"},
    "internvl": {"image": "<IMG_CONTEXT>", "video": "<video>"},
    "pixtral": {"image": "[IMG]"},
    "llava": {"image": "<image>"},
    "idefics3": {"image": "<image>"},
    "smolvlm": {"image": "<image>", "video": "<video>"},
    "llava_onevision": {"image": "<image>", "video": "<video>"},
    "qwen2_audio": {"audio": "<|AUDIO|>"},
    **{family: {"image": "<|image_pad|>", "video": "<|video_pad|>"} for family in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")},
}
"""What stands for a medium in a prompt."""

FILLING = {
    **PLACEHOLDERS,
    "gemma3": {"image": "<image_soft_token>"},
    "internvl": dict.fromkeys(("image", "video"), "<IMG_CONTEXT>"),
    "smolvlm": dict.fromkeys(("image", "video"), "<image>"),
}
"""What fills its places when it is expanded."""

ROWS = {"image": "pixel_values", "video": "pixel_values_videos", "audio": "input_features"}


def kind(name: str) -> str:
    """What a medium is, as processors name it."""
    return Modality(medium(name).modality).name.lower()


def run(family: str, text: str) -> Mapping[str, Any]:
    """What the owner's processor makes of a prompt: pictures in a flat list, videos whose frames are not sampled again."""
    arguments: dict[str, Any] = {}
    for one in [medium(name) for name in names(text)]:
        if one.modality is Modality.IMAGE:
            arguments.setdefault("images", []).append(one.feature)
        elif one.modality is Modality.AUDIO:
            arguments.setdefault("audio", []).append(one.feature)
            arguments["sampling_rate"] = one.read("sampling_rate")
        else:
            count = len(one.feature)
            about = {"fps": one.read("fps"), "total_num_frames": count, "frames_indices": list(range(count))}
            arguments.setdefault("videos", []).append(one.feature)
            arguments.setdefault("video_metadata", []).append(about)
            arguments["do_sample_frames"] = False
    written = [one if isinstance(one, str) else PLACEHOLDERS[family][one.modality.name.lower()] for one in parts(text)]
    return processor(family)(text=["".join(written)], return_tensors="pt", **arguments)  # type: ignore[no-any-return]


@cache
def whole(family: str, text: str) -> Mapping[str, Any]:
    """What the owner's processor makes of a whole prompt."""
    return run(family, text)


@cache
def alone(family: str, name: str) -> Mapping[str, Any]:
    """What the owner's processor makes of one medium."""
    return run(family, "{" + name + "}")


def ids(case: Prompt) -> np.ndarray:
    """The expanded ids of a prompt."""
    if not names(case.text):
        return np.array(spelled(*case), dtype=np.int64)
    return whole(*case)["input_ids"][0].numpy().copy()  # type: ignore[no-any-return]


def spans(case: Prompt) -> list[tuple[Span, ...]]:
    """Where each medium of a prompt stands."""
    found, before = [], 0
    for one in parts(case.text):
        if isinstance(one, str):
            before += len(spelled(case.family, one))
            continue
        name = next(name for name in names(case.text) if medium(name) is one)
        own = alone(case.family, name)["input_ids"][0].tolist()
        places = [before + n for n, token in enumerate(own) if token == id_of(case.family, FILLING[case.family][kind(name)])]
        cuts = [0, *(n for n, (one, other) in enumerate(pairwise(places), 1) if other != one + 1), len(places)]
        found.append(tuple(Span(places[first], places[stop - 1]) for first, stop in pairwise(cuts)))
        before += len(own)
    return found


def rows(family: str, name: str) -> torch.Tensor:
    """The rows of one medium, without leading dimensions of length 1; a video may be rows of pictures."""
    made = alone(family, name)
    return squeezed(made[ROWS[kind(name)] if ROWS[kind(name)] in made else "pixel_values"])


def squeezed(value: Any) -> torch.Tensor:
    """A tensor without leading dimensions of length 1."""
    tensor = torch.as_tensor(value)
    while tensor.ndim > 1 and len(tensor) == 1:
        tensor = tensor[0]
    return tensor


def grid(family: str, name: str) -> tuple[int, ...]:
    """The patches of a medium in time, height and width (families of Qwen)."""
    return tuple(alone(family, name)[f"{kind(name)}_grid_thw"][0].tolist())


def output(case: Prompt) -> dict[str, Any]:
    """What the owner's processor returned for a prompt beside its ids."""
    made = whole(*case)
    return {key: made[key] for key in made if key not in ("input_ids", "attention_mask")}


def precomputed(case: Prompt, hidden: int = 8) -> dict[str, Any]:
    """The same output, but with the rows of an encoder, numbered through, in place of what it takes."""
    made = {key: value for key, value in output(case).items() if key not in ROWS.values()}
    for name, own in zip(names(case.text), spans(case), strict=True):
        count = sum(map(len, own))
        made.setdefault(f"{kind(name)}_embeds", []).append(
            torch.arange(count * hidden, dtype=torch.float32).reshape(count, hidden) + len(name)
        )
    return made


def where(items: tuple[Item, ...]) -> list[tuple[Span, ...]]:
    """The spans of each item."""
    return [item.spans for item in items]
