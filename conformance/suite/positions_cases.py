"""Prompts and tables that the rules about positions are asked about."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Pair
from conformance.oracles import positions as oracle
from conformance.world.mrope import (
    GLM4V,
    LAYOUTS,
    QWEN2_5_VL,
    QWEN2_VL,
    QWEN3_VL,
    TOKENS,
    Script,
    bare,
    image,
    lacking,
    video,
    write,
)
from reference.items import Chunk

Table = NDArray[np.int64]


class Extension(NamedTuple):
    """A table [3, n], and how many positions it is to have."""

    table: Table
    length: int


class Retractions(NamedTuple):
    """The table [3, n] of a prompt, and how long its reply is at each attempt to schedule it again."""

    table: Table
    replies: tuple[int, ...]


class Turns(NamedTuple):
    """The tables [3, m] and [3, n] of what was before and of the turn."""

    previous: Table
    turn: Table


class Conversation(NamedTuple):
    """Two turns, and the prompt that both are in one."""

    first: Script
    second: Script
    whole: Script


class Chunked(NamedTuple):
    """A table [3, n], and a chunk of it."""

    table: Table
    chunk: Chunk


PICTURES = {
    "one": write(QWEN2_VL, 3, image(2, 3), 2),
    "higher-than-wide": write(QWEN2_VL, 1, image(5, 2), 2),
    "one-position": write(QWEN2_VL, 2, image(1, 1), 3),
    "two": write(QWEN2_VL, 2, image(2, 2), 1, image(1, 4), 2),
    "first": write(QWEN2_VL, image(3, 3), 2),
    "last": write(QWEN2_VL, 4, image(2, 4)),
    "without-an-end": write(QWEN2_VL, 2, image(1, 6)._replace(ended=False)),
    "timed-layout": write(QWEN2_5_VL, 3, image(2, 3), 1, image(3, 1), 2),
    "frames-apart-layout": write(QWEN3_VL, 3, image(2, 3), 1, image(3, 1), 2),
    "glm": write(GLM4V, 3, image(2, 3), 1, image(3, 1), 2),
}
FRAMES = {
    "two-frames": write(QWEN2_VL, 2, video(2, 2, 2), 2),
    "one-frame": write(QWEN2_VL, 2, video(1, 2, 3), 2),
    "longer-than-high-and-wide": write(QWEN2_VL, 3, video(7, 1, 2), 3),
    "two-videos": write(QWEN2_VL, 1, video(3, 1, 2), 2, video(2, 2, 1), 2),
}
TIMED = {
    "one-second-a-frame": write(QWEN2_5_VL, 15, video(3, 1, 2), 3),
    "half-a-second": write(QWEN2_5_VL, 2, video(3, 2, 2, 0.5), 3),
    "an-eighth-of-a-second": write(QWEN2_5_VL, 2, video(9, 1, 1, 0.125), 2),
    "four-fps-and-a-fraction": write(replace(QWEN2_5_VL, tokens_per_second=25), 1, video(3, 2, 2, 0.083), 2),
    "one-and-a-half-seconds": write(replace(QWEN2_5_VL, tokens_per_second=2), 0, video(2, 2, 2, 1.5), 1),
    "two-videos-of-two-speeds": write(QWEN2_5_VL, 2, video(3, 1, 2, 0.25), 1, video(3, 1, 2, 2.0), 2),
    "a-picture-before-it": write(QWEN2_5_VL, 1, image(2, 2), 1, video(2, 2, 2, 0.75), 2),
}
APART = {
    "two-frames": write(QWEN3_VL, 3, video(2, 2, 2), 3),
    "more-frames-than-sides": write(QWEN3_VL, 1, video(6, 1, 2), 2),
    "two-videos": write(QWEN3_VL, 1, video(2, 1, 3), 1, video(3, 2, 1), 2),
    "glm": write(GLM4V, 2, video(3, 2, 2), 2),
    "glm-two-videos": write(GLM4V, 1, video(2, 1, 3), 1, video(3, 2, 1), 2),
}
MIXED = {
    f"picture-and-video-{layout.family.replace('_', '-')}": write(layout, 2, image(2, 3), 1, video(4, 2, 1), 2)
    for layout in LAYOUTS
} | {
    f"video-and-pictures-{layout.family.replace('_', '-')}": write(layout, video(5, 1, 2), 2, image(1, 2), image(4, 1), 3)
    for layout in LAYOUTS
}
TEXT = {"text": write(QWEN2_VL, 6), "text-timed-layout": write(QWEN2_5_VL, 5), "one-position-of-text": write(QWEN3_VL, 1)}
PROMPTS = PICTURES | {f"video-{name}": script for name, script in FRAMES.items()} | MIXED | TEXT
TIMED_PROMPTS = {f"timed-{name}": script for name, script in TIMED.items()}
APART_PROMPTS = {f"apart-{name}": script for name, script in APART.items()}
EVERYTHING = PROMPTS | TIMED_PROMPTS | APART_PROMPTS

WITHOUT_GRID = {
    "picture": write(QWEN2_VL, 2, lacking(image(2, 2), "image_grid_thw"), 1),
    "one-of-two-pictures": write(QWEN2_VL, image(2, 2), 1, lacking(image(2, 2), "image_grid_thw"), 1),
    "video": write(QWEN2_VL, 2, lacking(video(2, 2, 2), "video_grid_thw"), 1),
    "video-beside-a-picture": write(QWEN2_5_VL, image(2, 2), 1, lacking(video(2, 2, 2), "video_grid_thw"), 1),
    "frames-apart": write(QWEN3_VL, 2, lacking(video(2, 2, 2), "video_grid_thw"), 1),
    "glm": write(GLM4V, 2, lacking(image(2, 2), "image_grid_thw"), 1),
}
WITHOUT_SECONDS = {
    "one-video": write(QWEN2_5_VL, 2, lacking(video(3, 2, 2), "second_per_grid_ts"), 1),
    "one-of-two": write(QWEN2_5_VL, video(3, 2, 2), 1, lacking(video(3, 2, 2), "second_per_grid_ts"), 1),
}


def regrid(script: Script, *grids: tuple[int, int, int]) -> Script:
    """The same prompt, but other grids, in patches."""
    items = []
    for item, grid in zip(script.items, grids, strict=True):
        name = f"{item.modality.name.lower()}_grid_thw"
        items.append(replace(item, fields={**item.fields, name: grid}))
    return script._replace(items=tuple(items))


WRONG_GRIDS = {
    "too-large": regrid(write(QWEN2_VL, 2, image(2, 3), 1), (1, 4, 8)),
    "too-small": regrid(write(QWEN2_VL, 2, image(2, 3), 1), (1, 4, 4)),
    "in-positions-and-not-in-patches": regrid(write(QWEN2_VL, 2, image(2, 4), 1), (1, 2, 4)),
    "second-of-two": regrid(write(QWEN2_VL, image(2, 2), 1, image(2, 2), 4), (1, 4, 4), (1, 4, 6)),
    "two-that-make-up-for-each-other": regrid(write(QWEN2_VL, 1, image(2, 2), 1, image(2, 2), 1), (1, 4, 6), (1, 4, 2)),
    "a-frame-too-many": regrid(write(QWEN2_VL, 1, video(2, 2, 2), 5), (3, 4, 4)),
    "frames-apart-one-too-many": regrid(write(QWEN3_VL, 1, video(2, 2, 2), 5), (3, 4, 4)),
    "frames-apart-one-too-few": regrid(write(QWEN3_VL, 1, video(3, 2, 2), 5), (2, 4, 4)),
}


def typed(script: Script, position: int, *names: str) -> Pair:
    """The prompt, and the same with tokens that a user typed at a position of text and behind it."""
    ids = script.input_ids.copy()
    ids[position : position + len(names)] = [TOKENS[name] for name in names]
    return Pair(script, script._replace(input_ids=ids))


TYPED = {
    "before-a-picture": typed(write(QWEN2_VL, 3, image(2, 2), 2), 1, "image"),
    "behind-a-picture": typed(write(QWEN2_VL, 1, image(2, 2), 3), 8, "image"),
    "another-medium": typed(write(QWEN2_VL, 3, image(2, 2), 2), 1, "video"),
    "without-media": typed(write(QWEN2_VL, 4), 1, "image"),
    "with-tokens-around-it": typed(write(QWEN2_VL, 5, image(2, 2), 2), 1, "vision_start", "image", "vision_end"),
    "start-at-the-very-end": typed(write(QWEN2_VL, image(2, 2), 2), 7, "vision_start"),
    "before-a-timed-video": typed(write(QWEN2_5_VL, 3, video(2, 2, 2, 0.5), 2), 1, "video"),
    "before-frames": typed(write(QWEN3_VL, 3, video(2, 2, 2), 2), 1, "video"),
    "glm": typed(write(GLM4V, 3, image(2, 2), 2), 1, "image"),
}
TOUCHING = {
    "two-pictures": write(QWEN2_VL, 2, bare(image(2, 2)), bare(image(1, 3)), 2),
    "picture-and-video": write(QWEN2_VL, 1, bare(image(2, 2)), bare(video(2, 1, 2)), 2),
    "frames": write(QWEN3_VL, 1, bare(video(3, 1, 2)), 2),
}
SEVERAL = {
    "two-pictures": write(QWEN2_VL, 1, image(2, 3), 2, image(3, 1), 1),
    "three-pictures": write(QWEN2_VL, image(1, 1), image(2, 2), image(1, 5)),
    "two-timed-videos": write(QWEN2_5_VL, video(2, 1, 2, 0.5), 1, video(2, 1, 2, 2.0), 1),
    "picture-and-frames": write(QWEN3_VL, image(2, 2), 1, video(2, 1, 2), video(2, 3, 1), 1),
}


ROUNDED = {
    "seven-tenths-of-a-second": write(replace(QWEN2_5_VL, tokens_per_second=25), 1, video(13, 1, 1, 0.7), 2),
    "58-hundredths-of-a-second": write(replace(QWEN2_5_VL, tokens_per_second=10), 1, video(11, 1, 1, 0.58), 2),
    "58-hundredths-at-another-rate": write(replace(QWEN2_5_VL, tokens_per_second=25), 1, video(9, 1, 1, 0.58), 2),
    "a-third-of-a-second": write(replace(QWEN2_5_VL, tokens_per_second=25), 1, video(10, 1, 1, 1 / 3), 2),
}

TABLES = {
    "text": oracle.triples(write(QWEN2_VL, 3)),
    "text-last": oracle.triples(write(QWEN2_VL, 1, image(2, 2), 2)),
    "long-video": oracle.triples(write(QWEN2_5_VL, 1, video(3, 1, 2), 1)),
    "ends-within-a-picture": oracle.triples(write(QWEN2_VL, 1, image(2, 8)))[:, :-3],
    "picture-last-wide": oracle.triples(write(QWEN2_VL, 2, bare(image(1, 6)))),
    "picture-last-high": oracle.triples(write(QWEN2_VL, 2, bare(image(6, 1)))),
    "video-last": oracle.triples(write(QWEN2_VL, 2, bare(video(9, 2, 2)))),
    "empty": oracle.triples(write(QWEN2_VL)),
}
EXTENSIONS = {name: Extension(table, table.shape[1] + 3) for name, table in TABLES.items() if table.size}
BY_NOTHING = {"by-nothing": Extension(TABLES["picture-last-wide"], TABLES["picture-last-wide"].shape[1])}
RETRACTIONS = {
    "once": Retractions(TABLES["text-last"], (3,)),
    "no-room-twice": Retractions(TABLES["text-last"], (2, 2, 2)),
    "retracted-twice": Retractions(TABLES["text-last"], (1, 4)),
    "no-reply-yet": Retractions(TABLES["text-last"], (0, 0, 2)),
    "picture-last": Retractions(TABLES["picture-last-wide"], (2, 2, 5)),
}
TURNS = {f"behind-{name}": Turns(table, TABLES["text-last"]) for name, table in TABLES.items()} | {
    "an-empty-turn": Turns(TABLES["text-last"], TABLES["empty"]),
    "a-picture": Turns(TABLES["long-video"], TABLES["picture-last-wide"]),
}
CONVERSATIONS = {
    name: Conversation(write(layout, *first), write(layout, *second), write(layout, *first, *second))
    for name, (layout, first, second) in {
        "text": (QWEN2_VL, (3,), (4,)),
        "pictures": (QWEN2_VL, (2, image(2, 5), 2), (1, image(3, 2), 2)),
        "picture-last": (QWEN2_VL, (2, image(1, 6)), (image(2, 2), 1)),
        "long-videos": (QWEN2_VL, (1, video(6, 1, 2), 1), (video(5, 2, 1), 1)),
        "timed": (QWEN2_5_VL, (1, video(3, 1, 2, 0.5), 1), (2, video(2, 2, 2, 1.5), 1)),
        "frames-apart": (QWEN3_VL, (1, video(3, 1, 2), 1), (image(3, 1), 2)),
        "glm": (GLM4V, (1, video(2, 2, 2), 1), (image(3, 1), 2)),
    }.items()
}
CHUNKS = {
    "the-first-32-of-40": Chunked(oracle.triples(write(QWEN2_VL, 5, image(3, 3), 24)), Chunk(0, 32)),
    "the-last-8-of-40": Chunked(oracle.triples(write(QWEN2_VL, 5, image(3, 3), 24)), Chunk(32, 8)),
    "within-a-picture": Chunked(oracle.triples(write(QWEN2_VL, 2, image(2, 5), 3)), Chunk(5, 4)),
    "from-text-into-a-video": Chunked(oracle.triples(write(QWEN2_5_VL, 2, video(4, 1, 2), 3)), Chunk(1, 5)),
    "everything": Chunked(oracle.triples(write(QWEN2_VL, 1, image(2, 2), 1)), Chunk(0, 8)),
}
