"""What enters the language model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.returns import returns
from reference.items import Chunk, Item


class Merging(Protocol):
    """What enters the language model."""

    @returns(answer.rows)
    def fit_length(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """`rows` [m, hidden] made `count` long, 0 included. Fewer rows than `count` are an error; for more see
        `Traits.surplus_rows`."""

    @returns(answer.rows)
    def merge(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
    ) -> torch.Tensor:
        """What enters the language model for one chunk: a tensor [chunk.length, hidden] of the table's dtype.

        input_ids: the ids of the chunk, int64 [chunk.length], as this engine's `pad_spans` made them; placeholder ids
        where it has no such method.
        rows: [positions of media in the chunk, hidden], by position. Fewer are an error; for more see
        `Traits.surplus_rows`. Another width is an error.
        table: the text embeddings [vocabulary, hidden].
        """

    @returns(answer.rows_and_levels)
    def merge_deepstack(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`merge` for encoders that also feed deeper layers: rows are [media, hidden * (1 + levels)].

        Returns what `merge` would for the first `hidden` columns, and [levels, chunk.length, hidden] for the others:
        level l holds the l-th further `hidden` columns at the positions of media and zeros at text.
        """
