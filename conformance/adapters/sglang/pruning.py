"""SGLang's efficient video sampling, from the prompt of a processor to the rows of a step."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu, steps
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from conformance.protocol.encoding import Encoder
from reference.items import Chunk, Item, Modality, Request

MARK = 1 << 40
"""Ids from here on stand for the items of a prompt while it is laid out, as the placeholder tokens of a processor do."""


def core() -> Any:
    """The functions of EVS."""
    return cpu.module("sglang.srt.multimodal.evs.evs_core")


def config(rate: float) -> Any:
    """`EVSConfig`, which looks at the rate when a model is made."""
    return cpu.module("sglang.srt.multimodal.evs").EVSConfig(video_pruning_rate=rate)


def encode_pruned(
    sglang: Sglang, batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder], cache: Any, rate: float
) -> list[tuple[NDArray[np.int64], torch.Tensor]]:
    """`embed_mm_inputs` with the video encoder of a model that inherits from `EVS`, after the layout of `EVSProcessor`.

    As in Nemotron's processor and model, all videos of a request are one item, which keeps the padded ids of the prompt.
    The ids are those that `embed_mm_inputs` works with, with the placeholder where they are an item's sentinel.
    """
    if config(rate).video_pruning_rate == 0:
        plain = steps.encode(sglang, batch, encoders, cache)
        return [(r.input_ids[c.prefix : c.stop], rows) for (r, c), rows in zip(batch, plain, strict=True)]
    laid_out = [_laid_out(sglang, request, rate) for request, _ in batch]
    originals = {id(item): given for _, _, named in laid_out for item, given in named}
    evs = cpu.module("sglang.srt.multimodal.evs").EVS
    model = SimpleNamespace(evs_config=config(rate))

    def encode(encoder: Encoder) -> Callable[[Sequence[Any]], Any]:
        return lambda made: torch.cat(list(encoder([one for item in made for one in originals[id(item)]])))

    encode_all = {kind: encode(encoder) for kind, encoder in encoders.items()}
    model.original_get_video_feature = encode_all[Modality.VIDEO]
    ids = [np.array(padded[chunk.prefix : chunk.stop]) for (padded, _, _), (_, chunk) in zip(laid_out, batch, strict=True)]
    final = torch.from_numpy(np.concatenate(ids))
    scattered, media = torch.empty(0, 0), torch.zeros(len(final), dtype=torch.bool)
    ask, scatter = sglang.utils.get_embedding_and_mask, sglang.utils._scatter_mm_embedding

    def recorded(**arguments: Any) -> Any:
        nonlocal final
        answer = ask(**arguments)
        final = answer[2].clone()  # it is clamped in place later
        return answer

    def scatter_into_nothing(dest: torch.Tensor, mask: torch.Tensor, src: torch.Tensor) -> None:
        nonlocal scattered, media
        scattered = scattered if scattered.numel() else src.new_zeros(len(mask), src.shape[1])
        media = media | mask.flatten()
        scatter(dest=scattered, mask=mask, src=src)

    with (
        steps.cache_in_place(sglang, cache),
        patch.object(sglang.utils, "get_embedding_and_mask", recorded),
        patch.object(sglang.utils, "_scatter_mm_embedding", scatter_into_nothing),
    ):
        sglang.utils.embed_mm_inputs(
            [inputs for _, inputs, _ in laid_out],
            [chunk.prefix for _, chunk in batch],
            [chunk.length for _, chunk in batch],
            final.clone(),
            torch.nn.Embedding(1, 1),
            data_embedding_func_mapping=translate.by_modality(
                sglang, encode_all | {Modality.VIDEO: lambda items: evs.evs_video(model, items)}
            ),
        )
    answers, first = [], 0
    for (_, chunk), (_, _, named) in zip(batch, laid_out, strict=True):
        part = slice(first, first + chunk.length)
        placeholder = {value: _placeholder(given, batch) for item, given in named for value in item.padding_values()}
        own = [placeholder.get(token, token) for token in final[part].tolist()]
        answers.append((np.array(own, dtype=np.int64), scattered[part][media[part]] if scattered.numel() else scattered))
        first += chunk.length
    return answers


def _laid_out(sglang: Sglang, request: Request, rate: float) -> tuple["array[int]", Any, list[tuple[Any, list[Item]]]]:
    """The padded prompt with the retained tokens spread over the frames, its inputs, and which items each of them is."""
    marked = request.input_ids.copy()
    marks = {
        id(item): MARK + (n if item.modality is not Modality.VIDEO else len(request.items))
        for n, item in enumerate(request.items)
    }
    for item in request.items:
        for span in item.spans:
            marked[span.first : span.stop] = marks[id(item)]
    ids: Any = marked.tolist()
    videos = [item for item in request.items if item.modality is Modality.VIDEO]
    for video in sorted(videos, key=lambda item: item.spans[0], reverse=True):
        frames, size = _frames(video)
        shares = core().tokens_per_frame(q=rate, num_frames=frames, frame_num_tokens=size)
        ids = core().replace_offsets_with_tokens_per_frame(ids, shares, translate.offsets(video.spans), marks[id(video)])
    find = cpu.module("sglang.srt.multimodal.processors.base_processor").BaseMultimodalProcessor.get_mm_items_offset
    named = [([item], translate.data_item(sglang, item)) for item in request.items if item.modality is not Modality.VIDEO]
    if videos:
        whole = b"".join(item.identity or b"" for item in videos)
        bundle = Item(modality=Modality.VIDEO, feature=videos[0].feature, identity=sha256(whole).digest())
        named.append((videos, translate.data_item(sglang, bundle)))
    for given, made in named:
        made.offsets = find(torch.tensor(ids), marks[id(given[0])])
    output = sglang.batch.MultimodalProcessorOutput(
        mm_items=[made for _, made in named], im_token_id=0, video_token_id=0, audio_token_id=0
    )
    inputs = sglang.batch.MultimodalInputs.from_processor_output(output)
    padded: array[int] = sglang.utils.pad_mm_tokens(array("q", ids), inputs)
    kept = [(made, given) for made, (given, _) in zip(inputs.mm_items, named, strict=True)]
    for made, given in kept:
        if given[0].modality is Modality.VIDEO:
            made.set("pre_chunked_input_ids", padded)
            made.set("thw_grids", [(frames, 1, size) for frames, size in map(_frames, given)])
    return padded, inputs, kept


def _frames(video: Item) -> tuple[int, int]:
    """The number of frames, and of tokens in each."""
    frames = video.fields["video_grid_thw"][0]
    return frames, video.token_count // frames


def _placeholder(given: Sequence[Item], batch: Sequence[tuple[Request, Chunk]]) -> int:
    """The id that stands for these items in their prompt."""
    (request,) = {id(r): r for r, _ in batch if any(item is given[0] for item in r.items)}.values()
    return int(request.input_ids[given[0].spans[0].first])
