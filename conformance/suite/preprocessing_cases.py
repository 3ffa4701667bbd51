"""Cases of the rules about preprocessing: what is asked, what must and must not change a key, and scripts."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from PIL import Image

from conformance.cases import Pair
from conformance.oracles.preprocessing import script
from conformance.protocol.preprocessing import Options
from reference.items import Format, Item, Modality, Span

IMAGE, VIDEO, AUDIO = Modality.IMAGE, Modality.VIDEO, Modality.AUDIO


class Asked(NamedTuple):
    """What is submitted."""

    item: Item
    processor: str
    options: Options


def raw(feature: Any, modality: Modality = IMAGE, **parts: Any) -> Item:
    """A raw item."""
    return Item(modality=modality, feature=feature, format=Format.RAW, **parts)


def picture(letter: str = "a", *shape: int) -> np.ndarray:
    """Pixels of one value."""
    return np.full(shape or (2, 2, 3), ord(letter), dtype=np.uint8)


def asked(
    feature: Any = None,
    processor: str = "ImageProcessor 1",
    modality: Modality = IMAGE,
    others: Options | None = None,
    fields: Mapping[str, Any] | None = None,
    **options: Any,
) -> Asked:
    """A picture of one value with options for its modality, and those for `others`."""
    item = raw(picture() if feature is None else feature, modality, fields=fields or {})
    return Asked(item, processor, {**(others or {}), modality: options})


CONTENTS = {
    "pixels": Pair(asked(picture("a")), asked(picture("b"))),
    "last-pixel": Pair(asked(np.arange(12, dtype=np.uint8)), asked(np.array([*range(11), 99], dtype=np.uint8))),
    "shape": Pair(asked(picture("a", 2, 6, 3)), asked(picture("a", 6, 2, 3))),
    "dtype": Pair(asked(np.zeros(4, np.float32)), asked(np.zeros(4, np.int32))),
    "modality": Pair(asked(picture(), modality=IMAGE), asked(picture(), modality=VIDEO)),
    "sound-of-a-video": Pair(
        asked(picture("a", 4, 2, 2, 3), modality=VIDEO, fields={"audio": np.zeros(8, np.float32)}),
        asked(picture("a", 4, 2, 2, 3), modality=VIDEO, fields={"audio": np.ones(8, np.float32)}),
    ),
    "files": Pair(asked(b"first"), asked(b"other")),
}

PROCESSORS = {
    "name": Pair(asked(processor="Qwen2VLImageProcessor 1"), asked(processor="LlavaImageProcessor 1")),
    "version": Pair(asked(processor="Qwen2VLImageProcessor 1"), asked(processor="Qwen2VLImageProcessor 2")),
    "fast-and-slow": Pair(asked(processor="Qwen2VLImageProcessor"), asked(processor="Qwen2VLImageProcessorFast")),
}

OPTIONS = {
    "a-limit": Pair(asked(max_pixels=200_704), asked(max_pixels=1_003_520)),
    "a-limit-or-none": Pair(asked(), asked(max_pixels=200_704)),
    "a-name": Pair(asked(min_pixels=3136), asked(max_pixels=3136)),
    "a-background": Pair(asked(background=[255, 255, 255]), asked(background=[0, 0, 0])),
    "an-order-that-matters": Pair(asked(background=[255, 0, 0]), asked(background=[0, 0, 255])),
    "a-nested-value": Pair(asked(size={"longest_edge": 512}), asked(size={"longest_edge": 1024})),
    "frames-of-a-video": Pair(asked(modality=VIDEO, num_frames=8), asked(modality=VIDEO, num_frames=16)),
    "a-second-option": Pair(asked(fps=2.0), asked(fps=2.0, do_resize=False)),
    "a-fraction": Pair(asked(fps=0.5), asked(fps=0.25)),
    "a-word": Pair(asked(resample="bicubic"), asked(resample="bilinear")),
}

BOUNDARIES = {
    "name-and-value": Pair(asked(a="bc"), asked(ab="c")),
    "processor-and-option": Pair(asked(processor="A1", x="y"), Asked(raw(picture()), "A", {IMAGE: {"1x": "y"}})),
    "two-values": Pair(asked(a="1", b="2"), asked(a="1b2")),
    "lists": Pair(asked(a=[[1], [2]]), asked(a=[[1, 2]])),
    "nested-options": Pair(asked(a={"b": 1}, c=2), asked(a={"b": 1, "c": 2})),
    "content-and-option": Pair(asked(b"PNG", cap=504), asked(b"PNGcap" + (504).to_bytes(4, "little"))),
    "content-and-processor": Pair(asked(b"PNGA", "1"), asked(b"PNG", "A1")),
}

OTHER_MODALITIES = {
    "frames-and-a-picture": Pair(asked(others={VIDEO: {"num_frames": 8}}), asked(others={VIDEO: {"num_frames": 16}})),
    "pixels-and-a-recording": Pair(
        asked(np.zeros(8, np.float32), modality=AUDIO, others={IMAGE: {"max_pixels": 1}}),
        asked(np.zeros(8, np.float32), modality=AUDIO, others={IMAGE: {"max_pixels": 2}}),
    ),
    "some-and-none": Pair(asked(max_pixels=9, others={AUDIO: {"sampling_rate": 16_000}}), asked(max_pixels=9)),
}

ALIKE = {
    "order-of-options": Pair(asked(min_pixels=1, max_pixels=9), asked(max_pixels=9, min_pixels=1)),
    "order-of-nested-options": Pair(asked(size={"height": 1, "width": 2}), asked(size={"width": 2, "height": 1})),
    "order-of-modalities": Pair(
        Asked(raw(picture()), "A", {IMAGE: {"a": 1}, VIDEO: {"b": 2}}),
        Asked(raw(picture()), "A", {VIDEO: {"b": 2}, IMAGE: {"a": 1}}),
    ),
    "place-in-memory": Pair(asked(np.arange(12).reshape(3, 4)), asked(np.arange(12).reshape(4, 3).T.copy().T.reshape(3, 4))),
    "layout-in-memory": Pair(asked(np.arange(12).reshape(3, 4)), asked(np.asfortranarray(np.arange(12).reshape(3, 4)))),
    "place-in-the-prompt": Pair(
        Asked(raw(picture(), spans=(Span(2, 5),)), "A", {}), Asked(raw(picture(), spans=(Span(7, 10),)), "A", {})
    ),
}

SEVERAL = {
    "pictures": [asked(picture("a")), asked(picture("b")), asked(picture("c"))],
    "options": [asked(max_pixels=1), asked(max_pixels=2), asked()],
    "options-of-each-video": [
        asked(picture("a", 4, 1, 1, 3), modality=VIDEO, num_frames=8),
        asked(picture("b", 4, 1, 1, 3), modality=VIDEO, num_frames=16),
        asked(picture("b", 4, 1, 1, 3), modality=VIDEO, num_frames=8),
    ],
    "processors": [asked(processor="A 1"), asked(processor="B 1")],
    "modalities": [asked(max_pixels=7, others={VIDEO: {"fps": 2.0}}), asked(modality=VIDEO, fps=2.0, others={IMAGE: {"x": 1}})],
}

AT_ONCE = {
    "one-worker": script(1, 9, *(f"submit {name}" for name in "abcdefgh")),
    "three-workers": script(3, 30, *(f"submit {name}" for name in "abcdefghijklmnopqrst")),
    "while-some-end": script(
        2, 9, "submit a", "submit b", "submit c", "submit d", "finish b", "submit e", "fail a", "submit f"
    ),
}

FULL = {
    "no-place": script(1, 0, "submit a", "submit b", "finish a"),
    "one-place": script(1, 1, "submit a", "submit b", "submit c", "finish a", "finish b"),
    "several": script(2, 2, *(f"submit {name}" for name in "abcdefgh"), "finish a", "submit g", "submit h"),
    "tried-again": script(1, 0, "submit a", "submit b", "finish a", "submit b", "finish b"),
    "place-of-a-failure": script(1, 0, "submit a", "submit b", "fail a", "submit b", "finish b"),
}

NO_PLACE_NEEDED = {
    "running": script(1, 0, "submit a", "submit a", "finish a"),
    "waiting": script(1, 1, "submit a", "submit b", "submit b", "finish a", "finish b"),
    "kept": script(1, 0, "submit a", "finish a", "submit b", "submit a", "finish b"),
}

IN_ORDER = {
    "one-worker": script(1, 9, "submit d", "submit b", "submit c", "submit a"),
    "two-workers": script(2, 9, "submit d", "submit b", "submit c", "submit a", "submit e", "finish b", "finish d"),
    "after-a-failure": script(1, 9, "submit a", "submit b", "submit c", "fail a", "submit a", "finish b", "finish c"),
}

SHARED = {
    "running": script(2, 9, "submit a", "submit a", "finish a"),
    "waiting": script(1, 9, "submit b", "submit a", "submit a", "submit a", "finish b", "finish a"),
    "after-others": script(1, 9, "submit a", "submit a", "finish a", "submit b", "submit b", "finish b"),
}

KEPT = {
    "once": script(1, 9, "submit a", "finish a", "submit a"),
    "beside-another": script(2, 9, "submit a", "submit b", "finish b", "submit b", "finish a", "submit a", "submit b"),
    "many-times": script(1, 9, "submit a", "finish a", *["submit a"] * 5),
}

ONE_LEAVES = {
    "the-first-of-two": script(1, 9, "submit a", "submit a", "cancel 0", "finish a"),
    "the-second-of-two": script(1, 9, "submit a", "submit a", "cancel 1", "finish a"),
    "two-of-three": script(1, 9, "submit a", "submit a", "submit a", "cancel 0", "cancel 2", "finish a"),
    "before-it-begins": script(1, 9, "submit b", "submit a", "submit a", "cancel 1", "finish b", "finish a"),
    "another-picture": script(2, 9, "submit a", "submit b", "submit b", "cancel 1", "finish a", "finish b"),
    "and-it-fails": script(1, 9, "submit a", "submit a", "cancel 0", "fail a"),
}

ALL_LEAVE = {
    "the-only-one": script(1, 9, "submit a", "submit b", "cancel 1", "finish a"),
    "both": script(1, 9, "submit a", "submit b", "submit b", "cancel 2", "cancel 1", "finish a"),
    "others-come-later": script(1, 9, "submit a", "submit b", "submit c", "cancel 1", "finish a", "submit b", "finish c"),
}

PLACE_AGAIN = {
    "one-place": script(1, 1, "submit a", "submit b", "cancel 1", "submit c", "finish a"),
    "again-and-again": script(
        1, 1, "submit a", *(f"{word}" for n in range(1, 9) for word in (f"submit {'bc'[n % 2]}", f"cancel {n}"))
    ),
    "the-same-again": script(1, 1, "submit a", "submit b", "cancel 1", "submit b", "finish a", "finish b"),
}

BEGUN_AND_LEFT = {
    "comes-back-meanwhile": script(1, 9, "submit a", "cancel 0", "submit a", "finish a"),
    "comes-back-later": script(1, 9, "submit a", "cancel 0", "finish a", "submit b", "finish b", "submit a"),
}

CLEARED = {
    "one": script(1, 9, "submit a", "finish a", "clear", "submit a"),
    "several": script(1, 9, "submit a", "finish a", "submit b", "finish b", "clear", "submit b", "finish b", "submit a"),
    "twice": script(1, 9, "submit a", "finish a", "clear", "clear", "submit a", "finish a", "submit a"),
}

LATE = {
    "running": script(1, 9, "submit a", "clear", "finish a", "submit a"),
    "waiting": script(1, 9, "submit b", "submit a", "clear", "finish b", "finish a", "submit a"),
    "cleared-twice": script(1, 9, "submit a", "clear", "clear", "finish a", "submit a"),
    "handed-to-all": script(1, 9, "submit a", "submit a", "clear", "finish a", "submit a"),
    "failed": script(1, 9, "submit a", "clear", "fail a", "submit a"),
}

FAILED = {
    "tried-again": script(1, 9, "submit a", "fail a", "submit a", "finish a"),
    "fails-again": script(1, 9, "submit a", "fail a", "submit a", "fail a", "submit a", "finish a", "submit a"),
    "others-go-on": script(1, 9, "submit a", "submit b", "fail a", "finish b", "submit b"),
    "two-waiters": script(1, 9, "submit a", "submit a", "fail a", "submit a", "finish a"),
}

LONG = {
    "a-day": script(
        2, 2, "submit a", "submit b", "submit a", "submit c", "cancel 0", "submit d", "submit e", "finish a", "clear",
        "submit a", "fail b", "submit a", "finish c", "cancel 6", "finish d", "submit b",
    ),
    "a-night": script(
        1, 2, "submit a", "submit b", "submit b", "cancel 1", "clear", "submit b", "submit c", "finish a", "submit a",
        "finish b", "submit b", "fail b", "submit a", "submit b",
    ),
    "cleared-while-it-runs": script(2, 9, "submit a", "clear", "submit a", "finish a", "finish a", "submit a"),
    "cleared-again-and-again": script(
        3, 9, "submit a", "clear", "submit a", "clear", "submit a", "finish a", "finish a", "submit a",
    ),
}  # fmt: skip


class Odd(Exception):
    """An error that cannot be made again from what it says."""

    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(f"{code}: {reason}")


class Uses(NamedTuple):
    """Pictures that are asked for in turn, each when the one before is done, with room for so many units of results.

    A small letter is a picture whose result is one unit, a capital letter one whose result is three.
    """

    room: int
    order: str


EVICTIONS = {
    "all-fit": Uses(3, "abcabc"),
    "one-too-many": Uses(2, "abcab"),
    "a-hit-is-a-use": Uses(2, "abacab"),
    "a-large-one-needs-more": Uses(4, "abcdAdcba"),
    "large-ones": Uses(3, "AbABA"),
    "no-room": Uses(0, "aabb"),
}

OVERSIZED = {
    "alone": Uses(2, "AA"),
    "beside-others": Uses(2, "abAab"),
    "again-and-again": Uses(1, "aAaAa"),
}


class Result(NamedTuple):
    """How a result is made: afresh each time, and always of the same values."""

    make: Callable[[], Any]


RESULTS = {
    "array": Result(lambda: {"pixel_values": np.arange(6.0)}),
    "tensor": Result(lambda: {"pixel_values": torch.arange(6.0)}),
    "bare-tensor": Result(lambda: torch.arange(6)),
    "grids-in-lists": Result(lambda: {"grids": [np.array([1, 2, 3]), [torch.ones(2, 2)]]}),
    "list": Result(lambda: {"sizes": [1, 2, 3]}),
    "mapping": Result(lambda: {"size": {"height": 2, "width": 3}}),
    "view-of-a-batch": Result(lambda: {"pixel_values": torch.arange(12.0).reshape(3, 4)[1:2]}),
}


class Rewritten(NamedTuple):
    """What is submitted, and what its caller does to it as soon as it is."""

    asked: Asked
    rewrite: Callable[[Asked], Any]


Rewrites: TypeAlias = Callable[[], Rewritten]
"""Makes it anew each time, for it does not stay what it was."""


def _options(one: Asked) -> Any:
    return one.options[IMAGE]


def _fill(feature: Any) -> Callable[[Asked], Any]:
    return lambda one: feature(one).__setitem__(slice(None), 122)


SNAPSHOTS: dict[str, Rewrites] = {
    "array": lambda: Rewritten(asked(picture("a")), _fill(lambda one: one.item.feature)),
    "tensor": lambda: Rewritten(asked(torch.full((2, 2), 97)), _fill(lambda one: one.item.feature)),
    "frames": lambda: Rewritten(asked([picture("a"), picture("b")], modality=VIDEO), _fill(lambda one: one.item.feature[1])),
    "list-of-frames": lambda: Rewritten(
        asked([picture("a"), picture("b")], modality=VIDEO), lambda one: one.item.feature.reverse()
    ),
    "picture": lambda: Rewritten(
        asked(Image.new("RGB", (2, 2), (97, 97, 97))), lambda one: one.item.feature.paste((122, 122, 122), (0, 0, 2, 2))
    ),
    "field": lambda: Rewritten(
        asked(picture("a"), modality=VIDEO, fields={"audio": np.zeros(4)}), _fill(lambda one: one.item.fields["audio"])
    ),
    "option": lambda: Rewritten(asked(max_pixels=1), lambda one: _options(one).update(max_pixels=2)),
    "nested-option": lambda: Rewritten(asked(size={"height": 1}), lambda one: _options(one)["size"].update(height=2)),
}
