"""What each rank of a pipeline-parallel model is fed: embeddings on the first one, deepstack where it is needed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from conformance import returns as answer
from conformance.protocol.encoding import Encoder
from conformance.returns import WrongAnswer, returns
from reference.items import Chunk, Modality, Request


class Received(NamedTuple):
    """What a rank has from the one before it.

    hidden_states: [chunk.length, hidden]. deepstack: by layer, what that rank handed on.
    """

    hidden_states: torch.Tensor
    deepstack: Mapping[int, torch.Tensor]


class RankInput(NamedTuple):
    """What a rank works with.

    hidden_states: [chunk.length, hidden], what its first layer takes.
    deepstack: by layer of this rank, [chunk.length, hidden].
    handed_on: by layer of a later rank, [chunk.length, hidden]: goes to the next rank beside the hidden states.
    """

    hidden_states: torch.Tensor
    deepstack: Mapping[int, torch.Tensor]
    handed_on: Mapping[int, torch.Tensor]


def rank_input(value: Any) -> RankInput:
    """A triple: a tensor [chunk.length, hidden], and two mappings from layers to such tensors."""
    if not isinstance(value, list | tuple) or len(value) != 3 or not all(isinstance(one, Mapping) for one in value[1:]):
        raise WrongAnswer("a triple: a tensor [chunk.length, hidden], and two mappings from layers to such tensors")
    own, later = ({answer.integer(layer): answer.rows(rows) for layer, rows in one.items()} for one in value[1:])
    return RankInput(answer.rows(value[0]), own, later)


class PipelineRanks(Protocol):
    """What each rank of a pipeline-parallel model is fed: embeddings on the first one, deepstack where it is needed."""

    @returns(rank_input)
    def rank_input(
        self,
        rank: int,
        split: Sequence[range],
        level_layers: Sequence[int],
        request: Request,
        chunk: Chunk,
        encoders: Mapping[Modality, Encoder],
        table: torch.Tensor | None,
        received: Received | None,
    ) -> RankInput:
        """What one rank of a pipeline works with in one step: hidden states, and rows for those of its layers that take some.

        rank: counts from 0.
        split: the decoder layers of each rank, at least one: `range(0, 3), range(3, 5)` for five layers on two ranks.
        level_layers: the layer that takes each level of deepstack, in the order of the levels; no layer twice; empty
        for models without deepstack.
        request: with the ids that this engine's `pad_spans` made; items have an identity.
        encoders: they give rows [token_count, hidden * (1 + levels)]. Only the first rank has a vision tower: on any
        other they must not be called.
        table: the text embeddings [vocabulary, hidden] on the first rank; None on the others, which have none.
        received: None on the first rank; on the others what the rank before it made of its hidden states, and its
        `handed_on` as this engine returned it.

        The first rank's hidden states are what `merge` gives; those of the others are the received ones. A layer's rows
        are the columns of its level at media and zeros at text; layers without a level have none. Where the chunk has no
        media there are no rows, or zeros.

        Raises ValueError for a split without ranks, or whose ranges are empty or do not join from 0 on, for a level whose
        layer no rank has or that another level has, and when rows that this rank or a later one needs were not received.
        A level on another rank than the first may be refused, see `Traits.deepstack_ranks`.
        """
