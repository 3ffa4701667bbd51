"""Pipeline ranks: what each part of a model that is split by layers is fed.

1. The first rank alone holds the vision tower and the text embeddings, so it alone encodes and merges. Every other rank
   goes on from the hidden states that it receives; it has no use for the ids of the chunk.
2. Deepstack adds rows of the encoder behind a decoder layer. That layer may stand on any rank, while the rows come into
   being on the first. They travel with the hidden states until the rank that owns the layer has them, and no further.
3. Layers are named by their number in the whole model. A rank that counted from its own first layer would add level 0
   once more.
4. Rows that should have come and did not are an error. Left out, the model would answer as fluently, about a blurred
   picture.

Sources: transformers 5.24, `Qwen3VLTextModel.forward`; vLLM 0.33.0, `GraniteModel` of Granite 4 Vision, which hands rows
on between ranks; SGLang 0.5.23 and vLLM 0.33.0, `Qwen3LLMModel`.
Disagreements: both engines' Qwen3-VL hand nothing on, and assert that the first rank owns all layers with a level. Granite's
hands all levels to all ranks.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from reference.encoding import Encoder, count_in_chunk, encode
from reference.items import Chunk, Modality, Request, all_spans
from reference.merging import merge_deepstack

Deepstack = Mapping[int, torch.Tensor]
"""By layer, the rows that are added behind it: [chunk.length, hidden]."""


def rank_input(
    rank: int,
    split: Sequence[range],
    level_layers: Sequence[int],
    request: Request,
    chunk: Chunk,
    encoders: Mapping[Modality, Encoder],
    table: torch.Tensor | None,
    received: tuple[torch.Tensor, Deepstack] | None = None,
) -> tuple[torch.Tensor, Deepstack, Deepstack]:
    """What the first layer of a rank takes, the deepstack rows of its own layers, and those that it hands on.

    split: the decoder layers of each rank, which join from 0 on. level_layers: the layer that takes each level.
    table: the text embeddings on the first rank, None elsewhere.
    received: what the rank before has made of its hidden states, and what it handed on; None on the first rank.

    A chunk without media has no deepstack rows at all.

    Raises ValueError for a split with empty or missing parts, for levels that share a layer or have one outside the
    split, for rows of another width than the levels need, and for anything that this rank needs and lacks;
    EncodingError when an encoder fails.
    """
    check_split(split, level_layers)
    if not 0 <= rank < len(split):
        raise ValueError(f"there is no rank {rank} of {len(split)}; they count from 0")
    if rank == 0:
        if received is not None or table is None:
            raise ValueError("the first rank embeds: it has the text embeddings, and receives nothing")
        hidden_states, deepstack = _embed(level_layers, request, chunk, encoders, table)
    else:
        if received is None:
            raise ValueError(f"rank {rank} goes on from the hidden states of rank {rank - 1}, and has received none")
        hidden_states, deepstack = received
        if count_in_chunk(all_spans(request.items), chunk):
            _check_received(rank, split, level_layers, deepstack)
    own = {layer: rows for layer, rows in deepstack.items() if layer in split[rank]}
    return hidden_states, own, {layer: rows for layer, rows in deepstack.items() if layer >= split[rank].stop}


def check_split(split: Sequence[range], level_layers: Sequence[int]) -> None:
    """Raise ValueError unless the ranges are consecutive layers from 0 on, and each level has a layer of its own in one."""
    if not split or any(len(layers) == 0 or layers.step != 1 for layers in split):
        raise ValueError(f"each rank owns at least one layer, in a row, and not {[*split]}")
    if split[0].start != 0 or any(before.stop != after.start for before, after in pairwise(split)):
        raise ValueError(f"the layers of the ranks join from 0 on, but are {[*split]}")
    if len({*level_layers}) != len(level_layers):
        raise ValueError(f"each level of deepstack has a layer of its own, but the layers are {[*level_layers]}")
    if strangers := [layer for layer in level_layers if not 0 <= layer < split[-1].stop]:
        raise ValueError(f"no rank owns the layer {strangers[0]}, which takes a level of deepstack: they own {[*split]}")


def _embed(
    level_layers: Sequence[int], request: Request, chunk: Chunk, encoders: Mapping[Modality, Encoder], table: torch.Tensor
) -> tuple[torch.Tensor, Deepstack]:
    """The merged embeddings of a chunk, and by layer the rows of deepstack."""
    width = table.shape[1] * (1 + len(level_layers))
    (rows,) = encode([(request, chunk)], encoders)
    if not isinstance(rows, torch.Tensor):
        raise rows
    without_media = len(rows) == 0
    if without_media:
        rows = table.new_zeros(0, width)
    if rows.shape[1] != width:
        raise ValueError(f"{len(level_layers)} levels of {table.shape[1]} columns need rows of {width}, not of {rows.shape[1]}")
    ids = request.input_ids[chunk.prefix : chunk.stop]
    merged, levels = merge_deepstack(ids, request.items, rows, table, chunk)
    return merged, {} if without_media else dict(zip(level_layers, levels, strict=True))


def _check_received(rank: int, split: Sequence[range], level_layers: Sequence[int], deepstack: Deepstack) -> None:
    missing = sorted(layer for layer in level_layers if layer >= split[rank].start and layer not in deepstack)
    if missing:
        raise ValueError(
            f"rank {rank} has not received the deepstack rows of layer {missing[0]}: the rank before it must hand on those "
            f"of every layer from {split[rank].start} on"
        )
