"""What a family of models knows: which id fills the places of its media, and how a bundle of them is taken apart."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reference.items import Span

Ids: TypeAlias = NDArray[np.int64]


class Part(NamedTuple):
    """One medium of a bundle.

    tokens: how many positions it fills. runs: in how many spans; None: in any number.
    rows: what its encoder takes, or gave, as if it were alone. fields: what the model needs beside it.
    """

    tokens: int
    runs: int | None
    rows: Any
    fields: Mapping[str, Any]


class Family(Protocol):
    """A family of models. name: "image", "video" or "audio"."""

    def filling(self, processor: Any, name: str) -> int | None:
        """The id that fills the places of such media in an expanded prompt; None: the family has no such media.

        Where videos have that of pictures, `parts` is asked about videos for a video alone, and about pictures for a bundle.
        """

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        """The media of this kind in a processor's output, in order; none when it holds none."""


def filling(processor: Any, name: str) -> int | None:
    """The id that transformers' processors name `image_token_id`, `video_token_id` or `audio_token_id`."""
    found = getattr(processor, f"{name}_token_id", None)
    return None if found is None else int(found)


def place(ids: Ids, token_id: int, parts: Sequence[Part], name: str) -> list[tuple[Span, ...]]:
    """The spans of each medium: all positions that hold `token_id`, dealt out in order.

    Raises ValueError unless there are as many as all media fill, and each medium lies in as many runs as it says.
    """
    places = np.flatnonzero(ids == token_id)
    counts = [part.tokens for part in parts]
    if len(places) != sum(counts):
        raise ValueError(f"the prompt has {len(places)} placeholders for {name}s; these have {counts} tokens")
    if 0 in counts:
        raise ValueError(f"{name} {counts.index(0)} gets no token, and would be lost without a word")
    dealt = [_runs(own) for own in np.split(places, np.cumsum(counts)[:-1])] if parts else []
    for number, (part, spans) in enumerate(zip(parts, dealt, strict=True)):
        if part.runs not in (None, len(spans)):
            raise ValueError(f"{name} {number} fills {part.runs} spans and not the {len(spans)} from {spans[0]} to {spans[-1]}")
    return dealt


def _runs(places: Ids) -> tuple[Span, ...]:
    """Positions in ascending order as spans without a gap."""
    return tuple(Span(int(run[0]), int(run[-1])) for run in np.split(places, np.flatnonzero(np.diff(places) != 1) + 1))
