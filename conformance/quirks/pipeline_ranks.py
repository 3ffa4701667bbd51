"""Ways in which engines have fed the ranks of a pipeline wrongly."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.protocol.pipeline_ranks import RankInput, Received
from conformance.quirk import quirk
from reference import pipeline_ranks as right
from reference.encoding import encode
from reference.items import Chunk, Request

_kept: dict[str, torch.Tensor] = {}
_levels: dict[int, torch.Tensor] = {}
_buffers: dict[int, torch.Tensor] = {}


def _right(rank: int, *arguments: Any) -> RankInput:
    return RankInput(*right.rank_input(rank, *arguments))


def _complete(split: Sequence[range], layers: Sequence[int], chunk: Chunk, received: Received | None) -> Received | None:
    """What was received, with zeros for all that was not."""
    if received is None:
        return None
    zeros = {layer: torch.zeros_like(received.hidden_states) for layer in layers}
    return Received(received.hidden_states, {**zeros, **received.deepstack})


@quirk(
    "deepstack-on-the-first-rank-only",
    replaces="rank_input",
    bugs=("D04", "pp-deepstack-lost"),
    caught_by=("PIPELINE_RANKS-04", "PIPELINE_RANKS-06", "PIPELINE_RANKS-07"),
)
def not_sent(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """The rows are built on the first rank and are no part of what goes to the next: its layers run without them."""
    full = _complete(split, layers, chunk, received)
    observed = _right(rank, split, layers, request, chunk, encoders, table, full)
    return RankInput(observed.hidden_states, observed.deepstack if rank == 0 else {}, {})


@quirk(
    "missing-deepstack-is-skipped",
    replaces="rank_input",
    bugs=("D04", "pp-deepstack-lost"),
    caught_by=("PIPELINE_RANKS-07",),
)
def skipped(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """A rank looks whether rows came for its layers, and goes on without them when they did not."""
    came = [layer for layer in layers if received is None or layer in received.deepstack]
    right.check_split(split, layers)
    return _right(rank, split, came, request, chunk, encoders, table, received)


@quirk("every-rank-encodes", replaces="rank_input", bugs=(), caught_by=("PIPELINE_RANKS-03",))
def encodes(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """The runner encodes the media of a step before it asks which rank it is; later ranks throw the rows away."""
    if rank > 0:
        encode([(request, chunk)], encoders)
    return _right(rank, split, layers, request, chunk, encoders, table, received)


@quirk(
    "embeddings-instead-of-hidden-states",
    replaces="rank_input",
    bugs=(),
    caught_by=("PIPELINE_RANKS-02", "PIPELINE_RANKS-06"),
)
def embedded_again(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """A later rank that finds input embeddings takes them, as the first one does, and drops what it received."""
    observed = _right(rank, split, layers, request, chunk, encoders, table, received)
    if rank == 0:
        _kept["embeddings"] = observed.hidden_states
    return observed._replace(hidden_states=_kept["embeddings"])


@quirk(
    "layers-counted-within-the-rank",
    replaces="rank_input",
    bugs=("D04",),
    caught_by=("PIPELINE_RANKS-04", "PIPELINE_RANKS-06"),
)
def counted_from_zero(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """Each rank numbers its layers from 0, so that the first levels are added once more on every rank."""
    full = _complete(split, layers, chunk, received)
    observed = _right(rank, split, layers, request, chunk, encoders, table, full)
    known: Mapping[int, torch.Tensor] = {**observed.deepstack, **observed.handed_on}
    if rank == 0:
        _levels.clear()
        _levels.update(known)
        return observed
    own = {split[rank].start + layer: rows for layer, rows in _levels.items() if layer < len(split[rank])}
    return observed._replace(deepstack=own)


@quirk(
    "level-at-the-border-lost",
    replaces="rank_input",
    bugs=("D04", "pp-deepstack-lost"),
    caught_by=("PIPELINE_RANKS-04", "PIPELINE_RANKS-06"),
)
def off_by_one(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """The end of a rank's layers is taken for its last one: the first layer of the next rank goes without its rows."""
    full = _complete(split, layers, chunk, received)
    observed = _right(rank, split, layers, request, chunk, encoders, table, full)
    handed = {layer: rows for layer, rows in observed.handed_on.items() if layer > split[rank].stop}
    own = observed.deepstack if rank == 0 else {k: v for k, v in observed.deepstack.items() if k != split[rank].start}
    return RankInput(observed.hidden_states, own, handed)


@quirk(
    "levels-on-the-first-layers",
    replaces="rank_input",
    bugs=(),
    caught_by=("PIPELINE_RANKS-04",),
)
def first_layers(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """The l-th level goes to layer l, whatever layers the model has for its levels."""
    right.check_split(split, layers)
    return _right(rank, split, [*range(len(layers))], request, chunk, encoders, table, received)


@quirk("everything-handed-on", replaces="rank_input", bugs=(), caught_by=("PIPELINE_RANKS-05",))
def all_handed_on(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """Each rank hands on all rows that it knows, those of its own layers included."""
    observed = _right(rank, split, layers, request, chunk, encoders, table, received)
    known = dict(observed.deepstack) if received is None else dict(received.deepstack)
    return observed._replace(handed_on={**known, **observed.handed_on})


@quirk(
    "rows-left-from-the-chunk-before",
    replaces="rank_input",
    bugs=("D01", "K06", "deepstack-buffer-short"),
    caught_by=("PIPELINE_RANKS-09",),
)
def left_over(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """A later rank receives into buffers that only rows of media are written to: text shows what was there before."""
    observed = _right(rank, split, layers, request, chunk, encoders, table, received)
    own = dict(observed.deepstack)
    for layer in layers if rank > 0 else ():
        if layer in split[rank]:
            buffer = _buffers.setdefault(layer, torch.zeros(256, observed.hidden_states.shape[1]))
            fresh = own.get(layer, torch.zeros(chunk.length, buffer.shape[1]))
            written = fresh.ne(0).any(dim=1)
            buffer[: chunk.length][written] = fresh[written].float()
            own[layer] = buffer[: chunk.length].to(fresh.dtype)
    return observed._replace(deepstack=own)


@quirk("levels-without-text", replaces="rank_input", bugs=("K06", "deepstack-buffer-short"), caught_by=("PIPELINE_RANKS-04",))
def media_only(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """The rows of a level are those of media alone, fewer than the chunk has positions."""
    observed = _right(rank, split, layers, request, chunk, encoders, table, received)
    own = {layer: rows[rows.ne(0).any(dim=1)] for layer, rows in observed.deepstack.items()}
    return observed._replace(deepstack=own)


@quirk("text-alone-embedded", replaces="rank_input", bugs=("D02",), caught_by=("PIPELINE_RANKS-01", "PIPELINE_RANKS-06"))
def no_media(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """The batch for the first rank is built without its media: their positions are embedded as some word."""
    observed = _right(rank, split, layers, request, chunk, encoders, table, received)
    if rank > 0:
        return observed
    media = [p - chunk.prefix for item in request.items for span in item.spans for p in range(span.first, span.stop)]
    states = observed.hidden_states.clone()
    states[[place for place in media if 0 <= place < chunk.length]] = table[0]
    return observed._replace(hidden_states=states)


@quirk("any-split-is-taken", replaces="rank_input", bugs=("D04",), caught_by=("PIPELINE_RANKS-08",))
def unchecked(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """Nobody looks whether the ranks own all layers, nor whether each level has one: its rows go nowhere."""
    if rank == 0 and received is None:
        whole = [range(max([1, *(part.stop for part in split), *(layer + 1 for layer in layers)]))]
        kept = [*dict.fromkeys(layer for layer in layers if layer >= 0)]
        width = table.shape[1] * (1 + len(kept))
        narrow = {
            kind: lambda items, tower=tower: [rows[:, :width] for rows in tower(items)] for kind, tower in encoders.items()
        }
        observed = _right(0, whole, kept, request, chunk, narrow, table, None)
        own = {layer: rows for layer, rows in observed.deepstack.items() if split and layer in split[0]}
        later = {layer: rows for layer, rows in observed.deepstack.items() if split and layer >= split[0].stop}
        return RankInput(observed.hidden_states, own, later)
    return _right(rank, split, layers, request, chunk, encoders, table, received)


@quirk("only-asserted-that-levels-fit", replaces="rank_input", bugs=("L01",), caught_by=("PIPELINE_RANKS-08",))
def asserted(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """A split that does not fit the levels runs into an assertion while the model is built."""
    try:
        right.check_split(split, layers)
    except ValueError as error:
        raise AssertionError(*error.args) from None
    return _right(rank, split, layers, request, chunk, encoders, table, received)


@quirk("received-buffer-written-to", replaces="rank_input", bugs=(), caught_by=("PIPELINE_RANKS-10",))
def written_to(
    rank: int, split: Any, layers: Any, request: Request, chunk: Chunk, encoders: Any, table: Any, received: Any
) -> RankInput:
    """A rank takes its rows out of what it received, and adds to the received hidden states in place."""
    observed = _right(rank, split, layers, request, chunk, encoders, table, received)
    if received is None:
        return observed
    states = received.hidden_states.clone()
    received.hidden_states.add_(1)
    return observed._replace(hidden_states=states)
