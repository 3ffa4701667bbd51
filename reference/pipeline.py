"""Pipeline: a prompt and its pictures through the whole input path, and on through a real model.

    prompt, pictures -> read -> Request -> feed, chunk by chunk -> embeddings -> answer -> logits

1. Each picture becomes one item: its rows of `pixel_values`, with its grid as a field. Which positions are its own
   follows from its number of tokens and not from runs of placeholders: pictures without a token between them are one
   run. Numbers that do not agree are an error, for a picture in the wrong place is read as fluently as one in the right.
2. The encoder runs each picture by itself. Encoded together with others, a picture may get slightly other numbers (4e-8
   apart in float32), and which pictures are together depends on how a prompt is cut. So the embeddings of any chunking
   are those of no chunking to the last bit, and so are those of any batch.
3. The embeddings of a chunk depend on the request and the chunk alone. Encoder and cache make them faster, not other.
4. M-RoPE positions are computed once, for the whole prompt, and then cut like everything else.

Source: transformers 5.24, `Qwen2VLProcessor` and `Qwen2VLModel.forward`. Written for Qwen2-VL; other models differ in the
fields of an item, in the layout of positions and in the names of their parts.
Disagreements: engines encode all pictures of a step in one call, so that their embeddings vary in the last bits with the
batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from reference import positions as mrope
from reference.encoder_cache import EncoderCache
from reference.encoding import encode
from reference.items import Chunk, Item, Modality, MropeLayout, Request
from reference.merging import check_padding, merge
from reference.placeholders import pad_spans
from reference.processors import bind_output
from reference.scheduling import Budget, plan_chunks

ARCHITECTURE = "Qwen2VLForConditionalGeneration"


@dataclass(frozen=True, slots=True, eq=False)
class Prefilled:
    """What a model was fed and what it answered.

    input_ids: int64 [n], expanded and padded with sentinels: the keys of a prefix cache.
    embeddings: [n, hidden], what entered the first layer.
    logits: [n, vocabulary].
    """

    input_ids: NDArray[np.int64]
    embeddings: torch.Tensor
    logits: torch.Tensor


@torch.no_grad()
def prefill(
    processor: Any,
    model: Any,
    prompt: str,
    images: Sequence[Image],
    *,
    chunk_length: int | None = None,
    encoder_cache_bytes: int = 64 << 20,
) -> Prefilled:
    """The whole path, `chunk_length` positions a step; None computes all of them in one.

    processor, model: Qwen2-VL's, of transformers; the model in evaluation mode.
    prompt: with one placeholder token of the processor for each picture, in order.

    Raises ValueError when there are more or fewer placeholders than pictures (a placeholder that a user typed counts
    like any other), for an empty prompt, and for a chunk length below 1.
    """
    request = read(processor, prompt, images)
    cache = EncoderCache(encoder_cache_bytes)
    fed = [feed(model, request, chunk, cache) for chunk in cut(request, chunk_length)]
    return Prefilled(request.input_ids, torch.cat(fed), answer(model, fed, mrope_positions(model, request)))


def read(processor: Any, prompt: str, images: Sequence[Image]) -> Request:
    """The request of a prompt and its pictures: expanded, with identified items, and padded with their sentinels."""
    made = processor(text=[prompt], images=list(images) or None, return_tensors="pt")
    input_ids = made["input_ids"][0].numpy()
    if not input_ids.size:
        raise ValueError("an empty prompt has no position to compute")
    items = bind_output(ARCHITECTURE, processor, input_ids, made) if images else ()
    return Request(id="prefill", input_ids=pad_spans(input_ids, items), items=items)


def cut(request: Request, chunk_length: int | None) -> list[Chunk]:
    """A request in chunks of `chunk_length` positions, the last one of what is left; None: in one.

    Raises ValueError for a chunk length below 1.
    """
    length = len(request.input_ids)
    return plan_chunks(length, request.items, Budget(tokens_per_step=length if chunk_length is None else chunk_length))


def feed(model: Any, request: Request, chunk: Chunk, cache: EncoderCache | None = None) -> torch.Tensor:
    """What enters the language model for one chunk: [chunk.length, hidden].

    Raises EncodingError when the rows of a picture cannot be had, and ValueError when ids and spans disagree.
    """
    input_ids = request.input_ids[chunk.prefix : chunk.stop]
    check_padding(input_ids, request.items, chunk)
    (rows,) = encode([(request, chunk)], {Modality.IMAGE: lambda items: [vision_rows(model, item) for item in items]}, cache)
    if isinstance(rows, Exception):
        raise rows
    table = model.get_input_embeddings().weight
    if not len(rows):
        rows = table.new_empty(0, table.shape[1])
    return merge(input_ids, request.items, rows, table, chunk)


def vision_rows(model: Any, item: Item) -> torch.Tensor:
    """The embedding [token_count, hidden] of one picture, from the model's vision tower."""
    grid = torch.tensor([item.read("image_grid_thw")])
    rows: torch.Tensor = model.get_image_features(item.feature, grid).pooler_output[0]
    return rows


def mrope_positions(model: Any, request: Request) -> torch.Tensor:
    """The positions of a whole prompt along time, height and width: int64 [3, 1, n]."""
    merge_size = model.config.vision_config.spatial_merge_size
    layout = MropeLayout(family=model.config.model_type, spatial_merge_size=merge_size)
    return torch.from_numpy(mrope.positions(request.input_ids, request.items, layout)[0])[:, None]


def answer(model: Any, embeddings: Iterable[torch.Tensor], positions: torch.Tensor) -> torch.Tensor:
    """The logits [n, vocabulary] of the language model, one step for each tensor [length, hidden] of `embeddings`."""
    logits: list[torch.Tensor] = []
    done, cache = 0, None
    for step in embeddings:
        placed = positions[..., done : done + len(step)]
        said = model.model.language_model(inputs_embeds=step[None], position_ids=placed, cache=cache, use_cache=True)
        logits.append(model.lm_head(said.last_hidden_state)[0])
        done, cache = done + len(step), said.cache
    return torch.cat(logits)
