"""Items: the vocabulary of the pipeline, shared by every room.

A *request* is a prompt and its *items*; an item is one picture, video or recording; the positions of the prompt that
an item fills are its *spans*; a *chunk* is the part of a prompt that is computed in one step. Everything here is plain,
frozen data that checks itself when it is made: whatever passed through a constructor needs no second look downstream.

1. A span names its first and its last position, both inclusive. Pairs of bare numbers are the classic bug of this
   field: SGLang's offsets are inclusive pairs, vLLM's are an offset and a length.
2. An item may have several spans (the frames of a video, with text between them) and they never overlap. Its rows
   follow the order of the positions.
3. An item carries a raw feature or a precomputed embedding, never both. What else a model wants to know (grids, frame
   times, masks) are open *fields*: generic code carries them without knowing them, and they are part of the identity.

Source: SGLang 0.5.23, `MultimodalDataItem` and `Modality` (whose numbers travel between processes, hence fixed here).
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from itertools import chain, pairwise
from operator import attrgetter, index
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IDENTITY_BYTES = 32
LONGEST = 1 << 62
"""Positions: no prompt is longer, and all of them fit into 64 bits."""


class Modality(IntEnum):
    """The kind of a medium. The numbers are stable: they are written to wires and hashed into identities."""

    IMAGE = 1
    VIDEO = 2
    AUDIO = 3


class Format(Enum):
    """How far a medium was processed when it reached the engine."""

    RAW = "raw"
    """Decoded pixels, frames or samples, before the model's processor."""
    PROCESSOR_OUTPUT = "processor_output"
    """What the model's processor made: `pixel_values`, `input_features`."""
    PRECOMPUTED = "precomputed_embedding"
    """What the model's encoder made: one row a token."""


@dataclass(frozen=True, slots=True)
class Handle:
    """What stands for a tensor that lies elsewhere: whoever made these bytes can say where, and nobody else needs to.

    Raises TypeError unless the token is bytes, ValueError when it is empty.
    """

    token: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.token, bytes):
            raise TypeError(f"the token of a handle is bytes, not {type(self.token).__name__}")
        if not self.token:
            raise ValueError("the token of a handle has at least one byte")


class UnknownField(KeyError):
    """An item was asked for a field that it does not carry."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The positions `first` to `last` of a prompt, both inclusive; never empty.

    Raises ValueError unless 0 <= first <= last, TypeError for what is not an integer.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        if type(self.first) is not int or type(self.last) is not int:
            object.__setattr__(self, "first", _integer(self.first, "a position"))
            object.__setattr__(self, "last", _integer(self.last, "a position"))
        if not 0 <= self.first <= self.last:
            raise ValueError(f"a span runs from 0 <= first to first <= last, not from {self.first} to {self.last}")

    @property
    def stop(self) -> int:
        """The first position after the span."""
        return self.last + 1

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Size:
    """The height and the width of a picture in pixels.

    Raises ValueError unless both are at least 1, TypeError for what is not an integer.
    """

    height: int
    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", _integer(self.height, "a height"))
        object.__setattr__(self, "width", _integer(self.width, "a width"))
        if self.height < 1 or self.width < 1:
            raise ValueError(f"a picture has at least one pixel each way, not {self.height} x {self.width} (height x width)")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The `length` positions of a prompt that one step computes, after the `prefix` positions that are done.

    Raises ValueError unless prefix >= 0 and length >= 0, TypeError for what is not an integer.
    """

    prefix: int
    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", _integer(self.prefix, "a prefix"))
        object.__setattr__(self, "length", _integer(self.length, "a length"))
        if self.prefix < 0 or self.length < 0:
            raise ValueError(f"a chunk has a prefix and a length of at least 0, not {self.prefix} and {self.length}")

    @property
    def stop(self) -> int:
        """The first position after the chunk."""
        return self.prefix + self.length


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """One picture, video or recording of a request.

    modality: what it is.
    spans: the positions that it fills, in ascending order; its k-th row belongs to the k-th of these positions.
    feature: what the encoder takes: a tensor, an array, a picture, bytes, or nested lists of these.
    embedding: instead of a feature, the encoder's own output, a tensor [token_count, hidden]. While an item travels, a
        `Handle` may stand for a tensor of either.
    fields: whatever the model needs beside it (`image_grid_thw`, `second_per_grid_ts`), all part of the identity.
    format: derived from what was given unless stated.
    identity: 32 bytes that stand for the content, once known (`reference.identity.identify`).
    caller_hash: an unsigned 64-bit hash by which the caller wants the item known to the prefix cache.

    Raises ValueError when both feature and embedding are given, when spans overlap or descend, when the format
    contradicts the content, when the identity has not 32 bytes or the hash not 64 bits; TypeError for parts of another type.
    """

    modality: Modality
    spans: tuple[Span, ...] = ()
    feature: Any = None
    embedding: Any = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    format: Format | None = None
    identity: bytes | None = None
    caller_hash: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "modality", Modality(self.modality))
        object.__setattr__(self, "spans", tuple(self.spans))
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))
        if self.feature is not None and self.embedding is not None:
            raise ValueError("an item carries a feature or a precomputed embedding, not both")
        natural = Format.PROCESSOR_OUTPUT if self.embedding is None else Format.PRECOMPUTED
        stated = natural if self.format is None else Format(self.format)
        if (stated is Format.PRECOMPUTED) != (natural is Format.PRECOMPUTED):
            raise ValueError(f"an item of the format {stated.value!r} cannot carry this kind of content")
        object.__setattr__(self, "format", stated)
        if self.identity is not None:
            _check_identity(self.identity)
        if self.caller_hash is not None:
            object.__setattr__(self, "caller_hash", _integer(self.caller_hash, "an item's hash"))
            if not 0 <= self.caller_hash < 1 << 64:
                raise ValueError(f"an item's hash is an unsigned 64-bit number, not {self.caller_hash}")
        for span in self.spans:
            if not isinstance(span, Span):
                raise TypeError(f"each of an item's spans is a Span(first, last), not {span!r}")
        check_disjoint(self.spans)

    @property
    def token_count(self) -> int:
        """How many positions the item fills, and so how many rows its encoder must give."""
        return sum(map(len, self.spans))

    @property
    def is_empty(self) -> bool:
        """Whether the item carries neither a feature nor an embedding (lists with nothing in them count as nothing)."""
        return self.embedding is None and (self.feature is None or _is_hollow(self.feature))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Item":
        parts = {one.name: getattr(self, one.name) for one in fields(self)}
        return Item(**deepcopy(parts | {"fields": dict(self.fields)}, memo))

    def read(self, name: str) -> Any:
        """The field of this name. Raises UnknownField, which lists the fields that there are."""
        if name not in self.fields:
            known = ", ".join(sorted(self.fields)) or "none"
            raise UnknownField(f"this {self.modality.name.lower()} has no field {name!r}; its fields: {known}")
        return self.fields[name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """A prompt and its media.

    id: unique among the requests that are alive.
    input_ids: int64 [n], with one placeholder or sentinel for each position of a span.
    items: in any order; their spans are disjoint and inside the prompt.

    Raises ValueError otherwise, TypeError when the ids are not 64-bit integers: narrower ones cannot hold a sentinel.
    """

    id: str
    input_ids: NDArray[np.int64]
    items: tuple[Item, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        if not isinstance(self.input_ids, np.ndarray) or self.input_ids.dtype != np.int64 or self.input_ids.ndim != 1:
            raise TypeError(f"request {self.id}: input_ids is a one-dimensional int64 array")
        check_within(all_spans(self.items), len(self.input_ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class MropeLayout:
    """How a family of models numbers the positions of its media along time, height and width.

    family: its name, as transformers' `model_type`.
    spatial_merge_size: how many patches of a grid, each way, are one position.
    tokens_per_second: how much the time of a video advances in a second (Qwen2.5-VL); None: by 1 a frame.
    frames_apart: whether each frame of a video is a span of its own, with text between them (Qwen3-VL, GLM-4V).
    token_ids: what the family calls its tokens ("image", "video", "vision_start", "vision_end", and for GLM-4V
    "video_start", "video_end"), for engines that look for media in the ids.

    Raises ValueError for a merge size below 1 and for tokens per second that are not positive.
    """

    family: str
    spatial_merge_size: int = 2
    tokens_per_second: float | None = None
    frames_apart: bool = False
    token_ids: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_ids", MappingProxyType(dict(self.token_ids)))
        if self.spatial_merge_size < 1:
            raise ValueError(f"at least 1 patch each way is one position, not {self.spatial_merge_size}")
        if self.tokens_per_second is not None and not self.tokens_per_second > 0:
            raise ValueError(f"the time of a video advances by a positive number a second, not by {self.tokens_per_second}")


def all_spans(items: Iterable[Item]) -> list[Span]:
    """The spans of all items by position."""
    return sorted([span for item in items for span in item.spans], key=attrgetter("first"))


class SpanTable(NamedTuple):
    """The spans of a prompt by position, int64 [spans] each: the numbers of their items, their firsts and their stops."""

    owners: NDArray[np.int64]
    firsts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many positions each span has."""
        return self.stops - self.firsts


def span_table(items: Sequence[Item], length: int = LONGEST) -> SpanTable:
    """The spans of all items. Raises ValueError, naming the span, unless they are disjoint and end before `length`."""
    by_item = [item.spans for item in items]
    spans = [*chain.from_iterable(by_item)]
    try:
        firsts = np.fromiter([span.first for span in spans], np.int64, len(spans))
        lasts = np.fromiter([span.last for span in spans], np.int64, len(spans))
    except OverflowError:
        check_within(all_spans(items), length)
        raise
    owners = np.arange(len(items))
    if len(spans) != len(items) or not all(by_item):
        owners = np.repeat(owners, [len(spans) for spans in by_item])
    order = np.argsort(firsts, kind="stable")
    owners, firsts, lasts = owners[order], firsts[order], lasts[order]
    if (firsts[1:] <= lasts[:-1]).any() or (lasts[-1:] >= length).any():
        check_within(all_spans(items), length)
    return SpanTable(owners, firsts, lasts + 1)


def make_spans(firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> tuple[Span, ...]:
    """A span for each first and last position, all checked at once. Raises ValueError as `Span` does."""
    if len(wrong := np.flatnonzero((firsts < 0) | (lasts < firsts))):
        Span(int(firsts[wrong[0]]), int(lasts[wrong[0]]))
    spans = tuple([object.__new__(Span) for _ in range(len(firsts))])
    set_first, set_last = vars(Span)["first"].__set__, vars(Span)["last"].__set__
    for span, first, last in zip(spans, firsts.tolist(), lasts.tolist(), strict=True):
        set_first(span, first)
        set_last(span, last)
    return spans


def check_disjoint(spans: Iterable[Span]) -> None:
    """Raise ValueError, naming the two spans, unless each one starts after the one before it ends."""
    spans = list(spans)
    for earlier, later in pairwise(spans):
        if later.first <= earlier.last:
            raise ValueError(f"{later} starts before {earlier} ends: spans are disjoint and in ascending order")


def check_within(spans: Iterable[Span], length: int) -> None:
    """Raise ValueError, naming the span, unless spans are disjoint and end before `length`."""
    spans = list(spans)
    check_disjoint(spans)
    if spans and spans[-1].last >= length:
        raise ValueError(f"{spans[-1]} ends outside a prompt of {length} positions: its last position is {length - 1}")


def drop_empty(items: Iterable[Item]) -> tuple[Item, ...]:
    """The items that carry content.

    Raises ValueError for an empty item that claims positions: they would be left without rows.
    """
    items = tuple(items)
    for number, item in enumerate(items):
        if item.is_empty and item.spans:
            raise ValueError(f"item {number} carries no content, yet claims {item.token_count} positions")
    return tuple(item for item in items if not item.is_empty)


def _integer(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is an integer, not {value!r}")
    return index(value)


def _check_identity(identity: Any) -> None:
    if not isinstance(identity, bytes):
        raise TypeError(f"an identity is bytes, not {type(identity).__name__}")
    if len(identity) != IDENTITY_BYTES:
        raise ValueError(f"an identity has {IDENTITY_BYTES} bytes, this one has {len(identity)}")


def _is_hollow(value: Any) -> bool:
    """Whether a value is a list with nothing in it, or with such lists alone; they may be deep, or contain themselves."""
    seen: set[int] = set()
    left = [value]
    while left:
        part = left.pop()
        if not isinstance(part, list | tuple):
            return False
        if id(part) not in seen:
            seen.add(id(part))
            left.extend(part)
    return True
