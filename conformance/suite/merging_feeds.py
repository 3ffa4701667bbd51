"""Feeds: what a merge is asked. A drawn prompt, a chunk of it, and rows and a table whose values all differ."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.compare import equal
from conformance.engine import Engine
from conformance.oracles.placeholders import media_positions
from conformance.world.prompts import VOCABULARY, Prompt, draw
from reference.items import Chunk

HIDDEN = 4


class Feed(NamedTuple):
    """One chunk of a prompt, the rows of its media [positions, width] and the text embeddings [vocabulary, hidden]."""

    prompt: Prompt
    chunk: Chunk
    rows: torch.Tensor
    table: torch.Tensor

    def __repr__(self) -> str:
        spans = [(item.modality.name.lower(), *((span.first, span.last) for span in item.spans)) for item in self.prompt.items]
        return (
            f"Feed({self.prompt.input_ids.tolist()}, {spans}, {self.chunk}, rows {list(self.rows.shape)} {self.rows.dtype}, "
            f"table {self.table.dtype})"
        )

    @property
    def media(self) -> list[int]:
        """The positions of media, counted from the beginning of the chunk."""
        return [position - self.chunk.prefix for position in _media(self.prompt, self.chunk)]

    @property
    def text(self) -> list[int]:
        """The positions of text, counted from the beginning of the chunk."""
        return sorted({*range(self.chunk.length)} - {*self.media})

    @property
    def text_ids(self) -> NDArray[np.int64]:
        """The ids at the positions of text."""
        return self.prompt.input_ids[self.chunk.prefix : self.chunk.stop][self.text]


class Chunked(NamedTuple):
    """A prompt and the lengths of the chunks that it is cut into."""

    prompt: Prompt
    lengths: tuple[int, ...]


class Fit(NamedTuple):
    """How many rows there are, and how many are wanted."""

    there: int
    wanted: int


def feed(
    prompt: str | Prompt,
    chunk: Chunk | None = None,
    *,
    levels: int = 0,
    rows: torch.dtype = torch.float32,
    table: torch.dtype = torch.float32,
) -> Feed:
    """A feed; chunk: the whole prompt unless given; levels: of deepstack; rows and table: their dtypes."""
    prompt = draw(prompt) if isinstance(prompt, str) else prompt
    chunk = Chunk(0, len(prompt.input_ids)) if chunk is None else chunk
    width = HIDDEN * (1 + levels)
    places = torch.tensor(_media(prompt, chunk), dtype=torch.float64).reshape(-1, 1)
    values = (1 + places * width + torch.arange(width)).sin()
    return Feed(prompt, chunk, values.to(rows), (1 + torch.arange(VOCABULARY * HIDDEN)).cos().reshape(-1, HIDDEN).to(table))


def chunk_ids(engine: Engine, prompt: Prompt, chunk: Chunk) -> NDArray[np.int64]:
    """The ids of the chunk as the engine's own padding makes them, or with raw placeholder ids where it has none.

    Only the media positions are taken from its padding, so that no fault of that stage is held against this one.
    """
    ids = prompt.input_ids.copy()
    if engine.can("pad_spans"):
        padded = engine.pad_spans(ids.copy(), prompt.items)
        equal(len(padded), len(ids), "the length of the padded prompt")
        media = media_positions(len(ids), prompt.items)
        ids[media] = padded[media]
    return ids[chunk.prefix : chunk.stop].copy()


def merged(engine: Engine, case: Feed) -> torch.Tensor:
    """What the engine merges for a feed."""
    ids = chunk_ids(engine, case.prompt, case.chunk)
    observed: torch.Tensor = engine.merge(ids, case.prompt.items, case.rows.clone(), case.table.clone(), case.chunk)
    equal(list(observed.shape), [case.chunk.length, HIDDEN], "the shape of the merged chunk", where="axis {}".format)
    return observed


def stacked(engine: Engine, case: Feed) -> tuple[torch.Tensor, torch.Tensor]:
    """What the engine merges for a feed with deepstack: the first layer's input, and that of the deeper ones."""
    ids = chunk_ids(engine, case.prompt, case.chunk)
    base, levels = engine.merge_deepstack(ids, case.prompt.items, case.rows.clone(), case.table.clone(), case.chunk)
    shape = [case.rows.shape[1] // HIDDEN - 1, case.chunk.length, HIDDEN]
    equal(list(levels.shape), shape, "the shape of the deeper levels", where="axis {}".format)
    return base, levels


def _media(prompt: Prompt, chunk: Chunk) -> list[int]:
    return [p for p in media_positions(len(prompt.input_ids), prompt.items) if chunk.prefix <= p < chunk.stop]
