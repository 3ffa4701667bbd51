"""The vocabulary of the suite in vLLM's terms."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL.Image import Image

from conformance.adapters.vllm.cpu import Vllm
from reference.items import Item, Modality, Request, Span

OPTIONS_OF = {Modality.IMAGE: "images_kwargs", Modality.VIDEO: "videos_kwargs", Modality.AUDIO: "audio_kwargs"}
"""Where among the arguments of a processor the options of a modality stand."""


def modality(item: Item) -> str:
    """vLLM's name of a modality."""
    return item.modality.name.lower()


def hashed(vllm: Vllm, item: Item, model: str, options: Mapping[str, Any]) -> bytes:
    """`ProcessorInputs.get_mm_hashes`. A picture goes through the data parser first, which makes RGB of it."""
    name = modality(item)
    if isinstance(item.feature, Image):
        data = vllm.parse.MultiModalDataParser().parse_mm_data({name: [item.feature]})
    elif item.embedding is not None:
        data = {name: vllm.parse.EmbeddingItems([item.embedding], name)}
    else:
        data = {name: vllm.parse.ProcessorBatchItems([item.feature], name)}
    inputs = vllm.processing.ProcessorInputs([], data, hf_processor_mm_kwargs=dict(options))
    ((identity,),) = inputs.get_mm_hashes(model, "blake3").values()
    return bytes.fromhex(identity)


def placeholder(vllm: Vllm, spans: Sequence[Span], within: Span | None = None) -> Any:
    """The `PlaceholderRange` from the first span to the last, or of `within`, with a mask where it holds anything else."""
    within = within or Span(spans[0].first, spans[-1].last)
    if spans == (within,):
        return vllm.inputs.PlaceholderRange(offset=within.first, length=len(within))
    is_embed = torch.zeros(len(within), dtype=torch.bool)
    for span in spans:
        is_embed[span.first - within.first : span.stop - within.first] = True
    return vllm.inputs.PlaceholderRange(offset=within.first, length=len(within), is_embed=is_embed)


def kwargs_item(vllm: Vllm, item: Item) -> Any:
    """What the model's encoder is called with for this item: the item itself, or its embedding as the data parser takes it.

    Raises ValueError for an embedding that the data parser refuses.
    """
    name, value = modality(item), item
    if item.embedding is not None:
        name, value = f"{name}_embeds", vllm.parse.EmbeddingItems([item.embedding], name).get(0)
    element = vllm.inputs.MultiModalFieldElem(data=value, field=vllm.inputs.MultiModalBatchedField())
    return vllm.inputs.MultiModalKwargsItem({name: element})


def features(vllm: Vllm, items: Sequence[Item]) -> list[Any]:
    """The `MultiModalFeatureSpec`s of a request, in the order that the input processor gives them.

    An item without spans has no placeholder, and there is no feature without one. Items that interleave share a range,
    as the sound of a video does.
    """
    ranges = _ranges(items)
    named: dict[str, list[Item]] = {}
    for item in items:
        if item.spans:
            named.setdefault(modality(item), []).append(item)
    positions = {name: [placeholder(vllm, item.spans, ranges[item]) for item in group] for name, group in named.items()}
    return [
        vllm.inputs.MultiModalFeatureSpec(
            data=kwargs_item(vllm, named[name][index]),
            modality=name,
            identifier=identifier(named[name][index]),
            mm_position=positions[name][index],
        )
        for name, index in vllm.utils.argsort_mm_positions(positions)
    ]


def _ranges(items: Sequence[Item]) -> dict[Item, Span]:
    """For each item the positions from its first to its last, and those of the items with which it interleaves."""
    ranges: dict[Item, Span] = {}
    group: list[Item] = []
    for item in sorted((item for item in items if item.spans), key=lambda item: item.spans[0].first):
        first, last = item.spans[0].first, item.spans[-1].last
        if group and first <= ranges[group[0]].last:
            first, last = ranges[group[0]].first, max(last, ranges[group[0]].last)
        else:
            group = []
        group.append(item)
        ranges |= dict.fromkeys(group, Span(first, last))
    return ranges


def identifier(item: Item) -> str:
    """The hash by which vLLM knows an item, hexadecimal; a caller's, where there is one, is trusted."""
    if item.caller_hash is not None:
        return f"{item.caller_hash:016x}"
    if item.identity is None:
        raise ValueError("vLLM knows an item by its hash, and this one has none")
    return item.identity.hex()


def modalities(request: Request) -> list[int]:
    """For each position of a prompt the number of the modality that it belongs to, 0 at text."""
    numbers = [0] * len(request.input_ids)
    for item in request.items:
        for span in item.spans:
            numbers[span.first : span.stop] = [int(item.modality)] * len(span)
    return numbers
