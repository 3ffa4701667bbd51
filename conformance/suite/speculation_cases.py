"""Cases for SPECULATION: chunks of prompts with the token that was sampled behind them, and repeated text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.compare import equal
from conformance.engine import Engine
from conformance.oracles import speculation as oracle
from conformance.suite.merging_feeds import HIDDEN, Feed, chunk_ids, feed
from conformance.world.prompts import VOCABULARY, Prompt, draw
from reference.items import Chunk

SAMPLED = VOCABULARY - 1
"""What the target samples: an id that no drawn prompt has."""


class Draft(NamedTuple):
    """A chunk of a prompt, and the id that the target sampled behind it."""

    prompt: Prompt
    chunk: Chunk
    sampled: int = SAMPLED
    rows: torch.dtype = torch.float32
    table: torch.dtype = torch.float32

    @property
    def whole(self) -> Feed:
        """The feed of the whole prompt."""
        return feed(self.prompt, rows=self.rows, table=self.table)

    @property
    def rows_behind(self) -> torch.Tensor:
        """The rows of the media one position later than the chunk, by position."""
        whole, first = self.whole, self.chunk.prefix + 1
        return whole.rows[torch.tensor([first <= place < first + self.chunk.length for place in whole.media], dtype=torch.bool)]

    @property
    def expected(self) -> torch.Tensor:
        """What stands behind each position of the chunk, as the oracle has it: [chunk.length, hidden]."""
        whole = self.whole
        behind = oracle.next_rows(*self.prompt, dict(zip(whole.media, whole.rows, strict=True)), whole.table, SAMPLED)
        return torch.stack([*behind, whole.table[0]])[self.chunk.prefix : self.chunk.stop]

    def places(self, media: bool) -> list[int]:
        """The positions, counted in the chunk, with a medium behind them, or without.

        What stands behind the chunk is left out, unless it is the sampled token.
        """
        length, known = self.chunk.length, self.whole.media
        seen = length if self.chunk.stop == len(self.prompt.input_ids) else length - 1
        return [place for place in range(seen) if (self.chunk.prefix + place + 1 in known) == media]


class Placed(NamedTuple):
    """Positions of a prompt, a chunk of it and how many tokens are proposed behind."""

    positions: NDArray[np.int64]
    chunk: Chunk
    steps: int = 0


class Lookup(NamedTuple):
    """A prompt with the reply so far, how many of its last ids must have occurred before, and how many are proposed."""

    prompt: Prompt
    shortest: int = 1
    longest: int = 3
    most: int = 4


def draft(prompt: str | Prompt, prefix: int = 0, length: int | None = None, **other: object) -> Draft:
    """A draft over a chunk; all that is left of the prompt unless a length is given."""
    prompt = draw(prompt) if isinstance(prompt, str) else prompt
    chunk = Chunk(prefix, len(prompt.input_ids) - prefix if length is None else length)
    return Draft(prompt, chunk, **other)  # type: ignore[arg-type]


def spoken(drawing: str) -> Prompt:
    """A drawn prompt in which each capital letter is one word wherever it stands."""
    prompt = draw(drawing)
    words = [60 + ord(letter) - ord("A") if letter.isupper() else None for letter in drawing]
    ids = [known if word is None else word for word, known in zip(words, prompt.input_ids.tolist(), strict=True)]
    return Prompt(np.array(ids, dtype=np.int64), prompt.items)


def embedded(engine: Engine, case: Draft) -> torch.Tensor:
    """What the engine's draft model takes for a chunk."""
    chunk, table = case.chunk, case.whole.table
    ids = chunk_ids(engine, case.prompt, Chunk(0, len(case.prompt.input_ids)))
    observed: torch.Tensor = engine.draft_embeddings(ids, case.prompt.items, case.rows_behind, table, chunk, case.sampled)
    equal(list(observed.shape), [chunk.length, HIDDEN], "the shape of the draft's embeddings", where="axis {}".format)
    return observed


def proposed(engine: Engine, case: Lookup) -> list[int]:
    """What the engine proposes."""
    ids = chunk_ids(engine, case.prompt, Chunk(0, len(case.prompt.input_ids)))
    return [*engine.propose_ngram(ids, case.prompt.items, case.shortest, case.longest, case.most)]


def joined(engine: Engine, prompt: Prompt, lengths: Sequence[int], sampled: int = SAMPLED) -> torch.Tensor:
    """What the engine's draft model takes for all chunks of a prompt; behind each but the last something else is sampled."""
    starts = [sum(lengths[:n]) for n in range(len(lengths))]
    ends = [start + length == len(prompt.input_ids) for start, length in zip(starts, lengths, strict=True)]
    parts = [
        embedded(engine, draft(prompt, start, length, sampled=sampled if end else 2 + n))
        for n, (start, length, end) in enumerate(zip(starts, lengths, ends, strict=True))
    ]
    return torch.cat(parts)
