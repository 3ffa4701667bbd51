"""Prompts for models with M-RoPE, written as lists: how much text, then a picture or a video, and so on.

write(QWEN2_VL, 3, image(2, 3), 2, video(2, 1, 4), 1) is the prompt

    t t t < i i i i i i > t t < v v v v v v v v > t

with the vision start and end tokens that a chat template writes, and items with spans and grids. Where frames are apart,
each has tokens of its own and a timestamp of two tokens before it. GLM-4V has the pictures' placeholder in videos, too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference.items import Item, Modality, MropeLayout, Span

TOKENS = {"image": 5, "video": 6, "vision_start": 9, "vision_end": 10}
QWEN2_VL = MropeLayout(family="qwen2_vl", token_ids=TOKENS)
QWEN2_5_VL = MropeLayout(family="qwen2_5_vl", tokens_per_second=4, token_ids=TOKENS)
QWEN3_VL = MropeLayout(family="qwen3_vl", frames_apart=True, token_ids=TOKENS)
GLM4V = MropeLayout(
    family="glm4v", frames_apart=True, token_ids=TOKENS | {"video": TOKENS["image"], "video_start": 7, "video_end": 8}
)
LAYOUTS = (QWEN2_VL, QWEN2_5_VL, QWEN3_VL, GLM4V)
TIMESTAMP = 2
_FIRST_TEXT_ID = 20


class Medium(NamedTuple):
    """A picture or a video of `frames` times `height` times `width` tokens.

    started, ended: whether its start token stands before it and its end token behind it. lacking: fields that its item is
    without.
    """

    modality: Modality
    frames: int
    height: int
    width: int
    seconds: float = 1.0
    started: bool = True
    ended: bool = True
    lacking: tuple[str, ...] = ()


class Script(NamedTuple):
    """What `positions` is asked."""

    input_ids: NDArray[np.int64]
    items: tuple[Item, ...]
    layout: MropeLayout


def image(height: int, width: int) -> Medium:
    """A picture of so many rows and columns of tokens."""
    return Medium(Modality.IMAGE, 1, height, width)


def video(frames: int, height: int, width: int, seconds: float = 1.0) -> Medium:
    """A video; a frame takes so many seconds."""
    return Medium(Modality.VIDEO, frames, height, width, seconds)


def bare(medium: Medium) -> Medium:
    """The same, without start and end tokens and timestamps."""
    return medium._replace(started=False, ended=False)


def lacking(medium: Medium, *fields: str) -> Medium:
    """The same, but its item is without these fields."""
    return medium._replace(lacking=fields)


def write(layout: MropeLayout, *parts: int | Medium) -> Script:
    """The prompt of these parts: a number is so much text."""
    ids: list[int] = []
    items: list[Item] = []
    for part in parts:
        if isinstance(part, int):
            _text(ids, part)
        else:
            items.append(_medium(ids, layout, part))
    return Script(np.array(ids, dtype=np.int64), tuple(items), layout)


def _medium(ids: list[int], layout: MropeLayout, part: Medium) -> Item:
    kind = part.modality.name.lower()
    tokens, spans = layout.token_ids, []
    apart = layout.frames_apart and part.modality is Modality.VIDEO
    around = [tokens[name] for name in ("video_start", "video_end") if name in tokens and apart and part.started]
    ids += around[:1]
    for _ in range(part.frames if apart else 1):
        _text(ids, TIMESTAMP * (apart and part.started))
        ids += [tokens["vision_start"]] * part.started
        length = part.height * part.width * (1 if apart else part.frames)
        spans.append(Span(len(ids), len(ids) + length - 1))
        ids += [tokens[kind]] * length
        ids += [tokens["vision_end"]] * part.ended
    ids += around[1:]
    fields: dict[str, object] = {
        f"{kind}_grid_thw": (part.frames, part.height * layout.spatial_merge_size, part.width * layout.spatial_merge_size)
    }
    if part.modality is Modality.VIDEO and layout.tokens_per_second is not None:
        fields["second_per_grid_ts"] = part.seconds
    kept = {name: value for name, value in fields.items() if name not in part.lacking}
    return Item(modality=part.modality, spans=tuple(spans), fields=kept)


def _text(ids: list[int], length: int) -> None:
    ids += [_FIRST_TEXT_ID + (len(ids) + step) % 97 for step in range(length)]
