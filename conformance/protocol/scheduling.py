"""Which positions are computed in which step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.returns import WrongAnswer, returns
from reference.items import Chunk, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one step may do; None is no limit.

    tokens_per_step: positions that it computes, media included; at least 1.
    embeddings_per_step: embeddings that the encoder makes. An item is encoded whole, in the first step that computes one
        of its positions. It has one embedding for each position of its spans, and none for what lies between them.
    embeddings_kept: embeddings of the items that were begun, in the step or before it, and have a position in it or
        after it.
    kv_tokens: slots of the KV cache, one for each position that was computed of a request that is not done yet.
    alignment_tokens: a chunk ends at a multiple of it, or with the prompt; at least 1.
    whole_items: no chunk ends after the first position of an item and before its last one, unless the cached prefix does
        so already.
    """

    tokens_per_step: int
    embeddings_per_step: int | None = None
    embeddings_kept: int | None = None
    kv_tokens: int | None = None
    alignment_tokens: int = 1
    whole_items: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DecoderPart:
    """What one step of a request means to the decoder of a model with cross attention.

    encoder_length: positions of the encoder part, with which the request begins.
    is_cached: whether the encoder part lies in the prefix (also where there is none); if not, this step computes it.
    chunk: the step in the decoder's own positions, which are counted from the end of the encoder part.
    input_ids: int64 [chunk.length], the ids of these.
    """

    encoder_length: int
    is_cached: bool
    chunk: Chunk
    input_ids: NDArray[np.int64]


def chunk(value: Any) -> Chunk:
    """A `Chunk`, or a prefix and a length."""
    pair = (value.prefix, value.length) if isinstance(value, Chunk) else answer.integers(value)
    if len(pair) != 2:
        raise WrongAnswer("a chunk: a prefix and a length")
    try:
        return Chunk(*pair)
    except ValueError as error:
        raise WrongAnswer(f"a chunk; {error}") from error


def chunks(value: Any) -> tuple[Chunk, ...]:
    """A sequence of chunks."""
    if not isinstance(value, Sequence):
        raise WrongAnswer("a sequence of chunks")
    return tuple(map(chunk, value))


def steps(value: Any) -> tuple[dict[int, Chunk], ...]:
    """A sequence of mappings from a request's number to a chunk."""
    if not isinstance(value, Sequence) or not all(isinstance(step, Mapping) for step in value):
        raise WrongAnswer("a sequence of mappings, from a request's number to its chunk")
    return tuple({answer.integer(number): chunk(part) for number, part in step.items()} for step in value)


def decoder_parts(value: Any) -> tuple[DecoderPart, ...]:
    """A `DecoderPart` for each request."""
    if not isinstance(value, Sequence) or not all(isinstance(part, DecoderPart) for part in value):
        raise WrongAnswer("a conformance.protocol.scheduling.DecoderPart for each request")
    return tuple(
        DecoderPart(
            answer.integer(part.encoder_length),
            answer.boolean(part.is_cached),
            chunk(part.chunk),
            answer.int64_array(part.input_ids),
        )
        for part in value
    )


class Scheduling(Protocol):
    """Which positions are computed in which step."""

    @returns(decoder_parts)
    def encoder_lengths(self, batch: Sequence[tuple[NDArray[np.int64], Chunk, int]]) -> Sequence[DecoderPart]:
        """For each request of a prefill batch what its step means to the decoder of a model with cross attention.

        A request is given by the ids of its chunk, int64 [chunk.length], the chunk in its whole prompt, and the number of
        positions at the beginning of that prompt that stand for the encoder part (0: it has none). Their KV entries are
        made in one go. Raises ValueError unless the encoder part is whole in the prefix, or the prefix is empty and the
        encoder part whole in the chunk (which may end with it).
        """

    @returns(chunks)
    def plan_chunks(self, length: int, items: Sequence[Item], budget: Budget, prefix: int) -> Sequence[Chunk]:
        """The chunks in which a request is computed that is alone in the engine, one a step, none of them empty.

        length: positions of the whole prompt, media included. items: with disjoint spans inside it, in any order, all of
        different content.
        prefix: positions at the beginning that are in the cache; the first chunk begins there, the last one ends at
        `length`. An engine without one of the knobs refuses a budget that sets it.

        Raises ValueError, at admission, for a request that cannot be computed within the budget.
        """

    @returns(steps)
    def plan_steps(self, requests: Sequence[tuple[int, Sequence[Item]]], budget: Budget) -> Sequence[Mapping[int, Chunk]]:
        """The steps in which several requests are computed that came at once, listed by arrival, until all are done.

        A request is the length of its prompt and its items, all of different content. Nothing of it is cached, and it
        leaves when its prompt is computed. Each step names the requests that it computes by their numbers in the list,
        from 0 on, and gives each a chunk, none of them empty. The limits of the budget hold for all requests of a step
        together. Raises ValueError for a request that cannot be computed even if it is alone.
        """
