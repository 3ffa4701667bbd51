"""Speculative decoding as far as it touches media: what a draft model is fed, and what it may propose."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.protocol.positions import triples
from conformance.returns import returns
from reference.items import Chunk, Item


class Speculation(Protocol):
    """Speculative decoding as far as it touches media: what a draft model is fed, and what it may propose.

    A draft model of the EAGLE or MTP kind takes, for each position p of a chunk, the target's hidden state of p and the
    embedding of position p + 1. Behind the last position of the prompt stands the token that the target sampled. A chunk has
    at least one position: no scheduler makes another.
    """

    @returns(answer.rows)
    def draft_embeddings(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
        next_id: int,
    ) -> torch.Tensor:
        """The embeddings that the draft model takes for one chunk: a tensor [chunk.length, hidden] of the table's dtype.

        input_ids: the ids of the whole prompt, int64 [n], as this engine's `pad_spans` made them; placeholder ids where
        it has no such method. The chunk ends with the prompt at the latest.
        rows: of the media at the positions chunk.prefix + 1 to chunk.stop, by position, [media, hidden]. The item at
        chunk.stop may begin there: its rows are there before the target takes them.
        table: the draft model's text embeddings [vocabulary, hidden].
        next_id: the token that the target sampled behind the chunk. It stands at position n where the chunk ends with the
        prompt; behind any other chunk it means nothing, and may be any number. Where it is fed and is no id of the table it
        should be refused.
        """

    @returns(triples)
    def draft_positions(self, positions: NDArray[np.int64], chunk: Chunk, steps: int) -> NDArray[np.int64]:
        """The M-RoPE positions of the draft model, int64 [3, chunk.length + steps] in a new array: of one pass over the
        chunk, and of `steps` further ones, each with the token that the one before it proposed.

        positions: those of the prompt, int64 [3, n], n >= 1. The chunk ends with the prompt at the latest, and does
        where `steps` is not 0.

        See `Traits.draft_positions`: the k-th of them is the position of prompt position chunk.prefix + k, or of
        chunk.prefix + k + 1. Behind the prompt positions are those of text: the largest number on any axis + 1, and so on.
        """

    @returns(answer.integers)
    def propose_ngram(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], shortest: int, longest: int, count: int
    ) -> Sequence[int]:
        """Proposals of a drafter without a model: up to `count` ids that followed where the text ended alike before.

        input_ids: the ids of the prompt and the reply so far, int64 [n], as this engine's `pad_spans` made them;
        placeholder ids where it has no such method. items: as in `merge`.
        shortest, longest: how many of the last ids, at least and at most, must have occurred before; 1 <= shortest <=
        longest. count: at least 1.

        Positions of media are no text: they match nothing, and a proposal ends before them. The longest match counts;
        of several that are as long the engine may take any. Without a match there are no proposals.
        """
