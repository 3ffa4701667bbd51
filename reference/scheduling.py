"""Scheduling: which positions are computed in which step.

A prompt is computed in chunks, one a step. A step has a budget of positions, of embeddings that the encoder may make, and
of embeddings that may be kept until the language model has read them; a chunk may have to end at certain positions only.
Careless arithmetic here ends in a step that computes nothing, repeated for ever without an error.

1. Media count like text: every position needs a slot in the KV cache and a share of the step. The encoder's budgets
   count embeddings, which are the positions of an item and not the stretch from its first to its last one.
2. An item is encoded whole, in the first step that computes one of its positions, and kept to the step that computes the
   last one. So it costs its embeddings once in the encoder's budget, and in every step between in that of what is kept.
3. The furthest end that is allowed is always the right one. Whatever may be computed from some start may be computed to
   the same end from a later start, for it is less: so going as far as possible never leads into a dead end, and it takes
   the fewest steps. A request that stalls this way has no plan at all, and is refused before its first step.
4. Of several requests only one is ever half done. It has all of the budget, as if it were alone, and the others see what
   is left: so no two requests keep embeddings or KV slots and wait for those of the other. An attempt that fails
   changes nothing.
5. In a model with cross attention the first positions of a request stand for its encoder part, whose KV entries are made
   in one go: that part is whole in a chunk, or whole in the prefix. The decoder counts its positions without it. Where
   the part is planned as an item, and items are whole, no chunk ends inside it.

Source: SGLang 0.5.23, `ScheduleBatch.prepare_encoder_info_extend` (5); vLLM 0.33, `Scheduler._try_schedule_encoder_inputs`
(budgets in embeddings, `disable_chunked_mm_input`) and `_mamba_block_aligned_split` (alignment).
Disagreements: SGLang has one half-done request too, but no budget for its encoder, and meets half an encoder part with a
bare assertion. vLLM computes parts of many requests in a step. It lets the encoder's budgets cut a chunk that is aligned
already, so that one may end between blocks; the other way round, it once rolled chunks back to nothing for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reference.items import Chunk, Item, span_table

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The knobs of a scheduler; None is no limit.

    tokens_per_step: positions that one step computes, media included.
    embeddings_per_step: embeddings that the encoder makes in one step.
    embeddings_kept: embeddings of the items that were begun, in this step or before it, and end in it or after it.
    kv_tokens: slots of the KV cache, one for each position of the requests in a step.
    alignment_tokens: a chunk ends at a multiple of this, or with the prompt.
    whole_items: no chunk ends between the first and the last position of an item that the cached prefix does not cut.

    Raises ValueError for a limit below 0, and for tokens per step or an alignment below 1.
    """

    tokens_per_step: int
    embeddings_per_step: int | None = None
    embeddings_kept: int | None = None
    kv_tokens: int | None = None
    alignment_tokens: int = 1
    whole_items: bool = False

    def __post_init__(self) -> None:
        for knob in fields(self):
            least = int(knob.name in ("tokens_per_step", "alignment_tokens"))
            value = getattr(self, knob.name)
            if value is not None and value < least:
                raise ValueError(f"{knob.name} is at least {least}, not {value}")


class NeverSchedulable(ValueError):
    """A request that no sequence of steps can compute; the message names the knob that stands in its way."""


@dataclass(frozen=True, slots=True, eq=False)
class DecoderPart:
    """What one step of a model with cross attention means to its decoder.

    encoder_length: positions of the encoder part.
    is_cached: whether the encoder part lies in the prefix (also where there is none); if not, this step computes it.
    chunk: the step in the decoder's own positions.
    input_ids: int64 [chunk.length], the ids of these.
    """

    encoder_length: int
    is_cached: bool
    chunk: Chunk
    input_ids: NDArray[np.int64]


def encoder_lengths(batch: Sequence[tuple[NDArray[np.int64], Chunk, int]]) -> list[DecoderPart]:
    """For each request of a batch (ids of the chunk, chunk, length of the encoder part) what the decoder computes.

    Raises ValueError, with the request's place in the batch, unless the encoder part is whole in the chunk or whole in
    the prefix, and unless there are as many ids as the chunk has positions.
    """
    return [_decoder_part(number, *request) for number, request in enumerate(batch)]


def _decoder_part(number: int, input_ids: NDArray[np.int64], chunk: Chunk, encoder_length: int) -> DecoderPart:
    if len(input_ids) != chunk.length:
        raise ValueError(f"request {number}: {len(input_ids)} ids for {chunk}")
    if encoder_length < 0:
        raise ValueError(f"request {number}: an encoder part has at least 0 positions, not {encoder_length}")
    if chunk.prefix >= encoder_length:
        return DecoderPart(encoder_length, True, Chunk(chunk.prefix - encoder_length, chunk.length), input_ids)
    if chunk.prefix > 0 or chunk.stop < encoder_length:
        raise ValueError(
            f"request {number}: {chunk} divides an encoder part of {encoder_length} positions; a prefix has all or "
            f"none of them, and a chunk that begins with them has {encoder_length} positions or more"
        )
    return DecoderPart(encoder_length, False, Chunk(0, chunk.length - encoder_length), input_ids[encoder_length:])


def plan_chunks(length: int, items: Sequence[Item], budget: Budget, prefix: int = 0) -> list[Chunk]:
    """The chunks of a prompt of `length` positions after a cached `prefix`, each as long as can be.

    Raises NeverSchedulable when there is no plan, and ValueError when spans overlap or end outside the prompt, or the
    prefix does.
    """
    if not 0 <= prefix <= length:
        raise ValueError(f"a prefix of a prompt of {length} positions has 0 to {length} positions, not {prefix}")
    if budget.kv_tokens is not None and length > budget.kv_tokens:
        raise NeverSchedulable(f"kv_tokens={budget.kv_tokens} is too small for {length} positions, media included")
    prompt = _tabulate(length, items, budget, prefix)
    chunks: list[Chunk] = []
    while (start := chunks[-1].stop if chunks else prefix) < length:
        stop = _furthest(prompt, _room(budget), start)
        if stop == start:
            raise NeverSchedulable(_reason(length, items, budget, prefix, start))
        chunks.append(Chunk(start, stop - start))
    return chunks


def plan_steps(requests: Sequence[tuple[int, Sequence[Item]]], budget: Budget) -> list[dict[int, Chunk]]:
    """The steps in which requests (length, items) are computed together, first come first served.

    Each step has, by their numbers, the requests that it computes and a chunk for each. Who does not fit waits, and
    smaller ones may overtake it. Raises as `plan_chunks`, for any of the requests.
    """
    for number, (length, items) in enumerate(requests):
        try:
            plan_chunks(length, items, budget)
        except NeverSchedulable as refused:
            raise NeverSchedulable(f"request {number}: {refused}") from None
    prompts = [_tabulate(length, items, budget) for length, items in requests]
    line = [number for number, prompt in enumerate(prompts) if prompt.length]
    at = 0  # what is done of the first in the line; nothing is done of the others
    steps: list[dict[int, Chunk]] = []
    while line:
        room, step, half_done, waiting = _room(budget), dict[int, Chunk](), list[int](), list[int]()
        for place, number in enumerate(line):
            if not room.tokens:  # nobody behind fits, and looking at everybody in each step would cost their square
                waiting += line[place:]
                break
            prompt, start = prompts[number], at if number == line[0] else 0
            stop = _furthest(prompt, room, start)
            if stop == start or prompt.length > room.slots or (stop < prompt.length and half_done):
                waiting.append(number)
                continue
            step[number] = Chunk(start, stop - start)
            room = _less(room, prompt, start, stop)
            half_done += [number] * (stop < prompt.length)
        steps.append(step)
        at = step[half_done[0]].stop if half_done else 0
        line = half_done + waiting
    return steps


class _Tally(NamedTuple):
    """Embeddings that count from one place on: int64 [places], ascending, and int64 [places + 1], the sum before each."""

    places: NDArray[np.int64]
    sums: NDArray[np.int64]

    def before(self, position: int) -> int:
        """How many embeddings count at places before the position."""
        return int(self.sums[np.searchsorted(self.places, position)])

    def furthest(self, embeddings: int, length: int) -> int:
        """The last of the positions up to `length` before which no more than so many embeddings count."""
        place = int(np.searchsorted(self.sums, embeddings, side="right")) - 1
        return int(self.places[place]) if place < len(self.places) else length


class _Prompt(NamedTuple):
    """A prompt, by position.

    begun, ended: the embeddings of items, where each begins and where it ends, behind the cached prefix; one that it cuts
        begins with the first position that is left.
    ends: int64, the positions before which a chunk may end, ascending.
    """

    length: int
    begun: _Tally
    ended: _Tally
    ends: NDArray[np.int64]


class _Room(NamedTuple):
    """What is left of the budget of a step."""

    tokens: int
    made: int
    kept: int
    slots: int


def _tabulate(length: int, items: Sequence[Item], budget: Budget, prefix: int = 0) -> _Prompt:
    spans = span_table(items, length)
    counts = np.zeros(len(items), dtype=np.int64)
    np.add.at(counts, spans.owners, spans.lengths)
    left = spans.stops > prefix
    owners, begins = np.unique(spans.owners[left], return_index=True)
    lasts = np.zeros(len(items), dtype=np.int64)
    lasts[spans.owners] = spans.stops - 1  # of several spans of an item the last one stays
    begun = _tally(np.maximum(spans.firsts[left], prefix)[begins], counts[owners])
    ended = _tally(lasts[owners], counts[owners])
    ends = np.arange(budget.alignment_tokens, length + budget.alignment_tokens, budget.alignment_tokens)
    ends[-1:] = length
    if budget.whole_items:
        uncut = [(item.spans[0].first, item.spans[-1].last) for item in items if item.spans and item.spans[0].first >= prefix]
        depth = np.zeros(length + 1, dtype=np.int64)
        np.add.at(depth, [first + 1 for first, _ in uncut], 1)
        np.add.at(depth, [last + 1 for _, last in uncut], -1)
        ends = ends[depth.cumsum()[ends] == 0]
    return _Prompt(length, begun, ended, ends)


def _tally(places: NDArray[np.int64], embeddings: NDArray[np.int64]) -> _Tally:
    order = np.argsort(places)
    return _Tally(places[order], np.concatenate([[0], embeddings[order].cumsum()]))


def _room(budget: Budget) -> _Room:
    limits = (budget.embeddings_per_step, budget.embeddings_kept, budget.kv_tokens)
    return _Room(budget.tokens_per_step, *(UNLIMITED if limit is None else limit for limit in limits))


def _less(room: _Room, prompt: _Prompt, start: int, stop: int) -> _Room:
    """The room that a chunk leaves to the others of its step."""
    begun = prompt.begun.before(stop)
    made, kept = begun - prompt.begun.before(start), begun - prompt.ended.before(start)
    return _Room(room.tokens - (stop - start), room.made - made, room.kept - kept, room.slots - prompt.length)


def _furthest(prompt: _Prompt, room: _Room, start: int) -> int:
    """The furthest allowed end of a chunk from `start` on; `start` when there is none."""
    embeddings = min(prompt.begun.before(start) + room.made, prompt.ended.before(start) + room.kept)
    limit = min(start + room.tokens, prompt.begun.furthest(embeddings, prompt.length))
    before = int(np.searchsorted(prompt.ends, limit, side="right"))
    return max(start, int(prompt.ends[before - 1])) if before else start


def _reason(length: int, items: Sequence[Item], budget: Budget, prefix: int, start: int) -> str:
    """Which knobs keep a chunk from starting here: each one that would do alone, else all that are set."""
    open_knobs: dict[str, Any] = {
        "tokens_per_step": length,
        "embeddings_per_step": None,
        "embeddings_kept": None,
        "alignment_tokens": 1,
        "whole_items": False,
    }
    knobs = {name: getattr(budget, name) for name, opened in open_knobs.items() if getattr(budget, name) != opened}

    def helps(name: str) -> bool:
        lifted = replace(budget, **{name: open_knobs[name]})
        return _furthest(_tabulate(length, items, lifted, prefix), _room(lifted), start) > start

    guilty = [name for name in knobs if helps(name)] or list(knobs)
    named = " or ".join(f"{name}={knobs[name]}" for name in guilty)
    near = [item for item in items if item.spans and item.spans[-1].last >= start]
    first = min(near, key=lambda item: item.spans[0].first, default=None)
    beside = f"; the next item fills {first.token_count} positions from {first.spans[0].first} on" if first else ""
    return f"no chunk can begin at position {start} of {length}: {named} does not allow it{beside}"
