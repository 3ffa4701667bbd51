"""Prompts for models with M-RoPE, written as lists: how much text, then a picture, a video or a recording, and so on.

write(QWEN2_VL, 3, image(2, 3), 2, video(2, 1, 4), 1) is the prompt

    t t t < i i i i i i > t t < v v v v v v v v > t

with the vision start and end tokens that a chat template writes, and items with spans and grids. Where frames are apart,
each has tokens of its own and a timestamp of two tokens before it. GLM-4V has the pictures' placeholder in videos, too.

write(QWEN3_OMNI, 1, film(2, 1, 2, sound=6), 1) is a video with its recording, by time, those seen first before those heard:

    t < { v v a a a a v v a a } > t

In Qwen2.5-Omni those seen in two seconds come before those heard in them.
"""

from itertools import groupby
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
OMNI_TOKENS = TOKENS | {"audio": 4, "audio_start": 11, "audio_end": 12}
QWEN2_5_OMNI = MropeLayout(family="qwen2_5_omni", tokens_per_second=4, token_ids=OMNI_TOKENS)
QWEN3_OMNI = MropeLayout(family="qwen3_omni_moe", tokens_per_second=4, token_ids=OMNI_TOKENS)
SECONDS_A_PIECE = 2
TIMESTAMP = 2
_FIRST_TEXT_ID = 20


class Medium(NamedTuple):
    """A picture or a video of `frames` times `height` times `width` tokens, or a recording of `frames` tokens.

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


class Film(NamedTuple):
    """A video, and the recording in it of `sound` tokens."""

    video: Medium
    sound: int


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


def audio(length: int) -> Medium:
    """A recording of so many tokens."""
    return Medium(Modality.AUDIO, length, 1, 1)


def film(frames: int, height: int, width: int, seconds: float = 1.0, *, sound: int) -> Film:
    """A video with its recording."""
    return Film(video(frames, height, width, seconds), sound)


def bare(medium: Medium) -> Medium:
    """The same, without start and end tokens and timestamps."""
    return medium._replace(started=False, ended=False)


def lacking(medium: Medium, *fields: str) -> Medium:
    """The same, but its item is without these fields."""
    return medium._replace(lacking=fields)


def write(layout: MropeLayout, *parts: int | Medium | Film) -> Script:
    """The prompt of these parts: a number is so much text."""
    ids: list[int] = []
    items: list[Item] = []
    for part in parts:
        if isinstance(part, int):
            _text(ids, part)
        elif isinstance(part, Film):
            items += _film(ids, layout, part)
        else:
            items.append(_medium(ids, layout, part))
    return Script(np.array(ids, dtype=np.int64), tuple(items), layout)


def _medium(ids: list[int], layout: MropeLayout, part: Medium) -> Item:
    kind = part.modality.name.lower()
    tokens, spans = layout.token_ids, []
    apart = layout.frames_apart and part.modality is Modality.VIDEO
    around = [tokens[name] for name in ("video_start", "video_end") if name in tokens and apart and part.started]
    started, ended = ("audio_start", "audio_end") if kind == "audio" else ("vision_start", "vision_end")
    ids += around[:1]
    for _ in range(part.frames if apart else 1):
        _text(ids, TIMESTAMP * (apart and part.started))
        ids += [tokens[started]] * part.started
        length = part.height * part.width * (1 if apart else part.frames)
        spans.append(Span(len(ids), len(ids) + length - 1))
        ids += [tokens[kind]] * length
        ids += [tokens[ended]] * part.ended
    ids += around[1:]
    return Item(modality=part.modality, spans=tuple(spans), fields=_fields(layout, part))


def _fields(layout: MropeLayout, part: Medium) -> dict[str, object]:
    merge = layout.spatial_merge_size
    fields: dict[str, object] = {}
    if part.modality is Modality.AUDIO:
        fields["audio_feature_lengths"] = feature_length(layout, part.frames)
    else:
        fields[f"{part.modality.name.lower()}_grid_thw"] = (part.frames, part.height * merge, part.width * merge)
    if part.modality is Modality.VIDEO and layout.tokens_per_second is not None:
        fields["second_per_grid_ts"] = part.seconds
    return {name: value for name, value in fields.items() if name not in part.lacking}


def feature_length(layout: MropeLayout, tokens: int) -> int:
    """How long a spectrogram is of which the family's encoder makes so many tokens."""
    return 4 * tokens if layout.family == "qwen2_5_omni" else tokens // 13 * 100 + tokens % 13 * 8


def _film(ids: list[int], layout: MropeLayout, part: Film) -> list[Item]:
    seen, tokens = part.video, layout.token_ids
    assert layout.tokens_per_second is not None
    piece = int(SECONDS_A_PIECE * layout.tokens_per_second) if layout.family == "qwen2_5_omni" else 1
    times = [int(frame * seen.seconds * layout.tokens_per_second) for frame in range(seen.frames)]
    kinds = [(time // piece, Modality.VIDEO) for time in times for _ in range(seen.height * seen.width)]
    kinds += [(time // piece, Modality.AUDIO) for time in range(part.sound)]
    ids += [tokens["vision_start"], tokens["audio_start"]]
    spans: dict[Modality, list[Span]] = {Modality.VIDEO: [], Modality.AUDIO: []}
    for modality, run in groupby(modality for _, modality in sorted(kinds)):
        count = len(list(run))
        spans[modality].append(Span(len(ids), len(ids) + count - 1))
        ids += [tokens[modality.name.lower()]] * count
    ids += [tokens["audio_end"], tokens["vision_end"]]
    fields = {Modality.VIDEO: _fields(layout, seen) | {"use_audio_in_video": True}}
    fields[Modality.AUDIO] = _fields(layout, audio(part.sound))
    return [Item(modality=modality, spans=tuple(spans[modality]), fields=fields[modality]) for modality in spans]


def _text(ids: list[int], length: int) -> None:
    ids += [_FIRST_TEXT_ID + (len(ids) + step) % 97 for step in range(length)]
