"""SGLang's processors on a prompt and its media.

An architecture is served by what `get_mm_processor` finds for it: a processor of SGLang's own, or the generic one of its
transformers backend where SGLang has no model of that name. What these read of a checkpoint's config are ids of its tokenizer
and the sizes of its pictures; the config here has them from the checkpoint's processor.

SGLang lists items by modality, each with its offsets. Here these lists are merged by where their next item stands.
"""

import asyncio
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from heapq import merge
from importlib import import_module
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import av
import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from reference.items import IDENTITY_BYTES, Item, Modality, Span

Part = str | NDArray[np.int64] | Item

OWN = {
    "Qwen2VLForConditionalGeneration": ("qwen_vl", "QwenVLImageProcessor"),
    "Qwen2_5_VLForConditionalGeneration": ("qwen_vl", "QwenVLImageProcessor"),
    "Qwen3VLForConditionalGeneration": ("qwen_vl", "QwenVLImageProcessor"),
    "Gemma3ForConditionalGeneration": ("gemma3", "Gemma3SGLangImageProcessor"),
    "PixtralForConditionalGeneration": ("pixtral", "PixtralProcessor"),
    "Qwen2AudioForConditionalGeneration": ("qwen_audio", "Qwen2AudioMultimodalProcessor"),
}
"""The architectures that the suite shows and SGLang has a processor for: its module and name."""

GENERIC = (
    "LlavaOnevisionForConditionalGeneration",
    "Idefics3ForConditionalGeneration",
    "InternVLForConditionalGeneration",
    "SmolVLMForConditionalGeneration",
)
"""Those that SGLang has no model for, and serves through its transformers backend."""

BOUND = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3", "pixtral", "qwen2_audio")
"""The families of these whose processor's output SGLang takes."""

PROCESSED = (*BOUND, "llava_onevision", "idefics3", "internvl", "smolvlm")
"""Not LLaVA: SGLang's code for it leaves half of the work to the model."""

MODEL_TYPES = {
    "Qwen2VLForConditionalGeneration": "qwen2_vl",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
    "Qwen3VLForConditionalGeneration": "qwen3_vl",
}
"""The `model_type` of a config, where a processor asks for it."""

_QWEN = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}
TOKENS = {
    **dict.fromkeys(MODEL_TYPES, _QWEN),
    "Gemma3ForConditionalGeneration": {
        "image_token_index": "<image_soft_token>",
        "boi_token_index": "<start_of_image>",
        "eoi_token_index": "<end_of_image>",
    },
    "PixtralForConditionalGeneration": {"image_token_index": "[IMG]"},
    "LlavaOnevisionForConditionalGeneration": {"image_token_id": "<image>", "video_token_id": "<video>"},
    "Idefics3ForConditionalGeneration": {"image_token_id": "<image>"},
    "SmolVLMForConditionalGeneration": {"image_token_id": "<image>"},
    "InternVLForConditionalGeneration": {"image_token_id": "<IMG_CONTEXT>", "video_token_id": "<video>"},
}
"""The tokens whose ids a config states."""


def process(sglang: Sglang, architecture: str, processor: Any, parts: Sequence[Part]) -> tuple[NDArray[np.int64], list[Item]]:
    """`process_mm_data_async` and what the scheduler makes of its output; for text alone the tokenizer.

    A prompt with a part of ids is given as ids.
    """
    server = _served(architecture, processor)
    written = [_placeholder(server, one) if isinstance(one, Item) else one for one in parts]
    prompt: str | list[int] = "".join(one for one in written if isinstance(one, str))
    if not all(isinstance(one, str) for one in written):
        prompt = [id for one in written for id in (_ids(server, one) if isinstance(one, str) else one.tolist())]
    media = [one for one in parts if isinstance(one, Item)]
    if not media:
        return np.array(_ids(server, prompt) if isinstance(prompt, str) else prompt, dtype=np.int64), []
    return _run(sglang, server, prompt, {kind: [_given(one) for one in media if one.modality is kind] for kind in Modality})


def bind_output(
    sglang: Sglang, architecture: str, processor: Any, input_ids: NDArray[np.int64], output: Mapping[str, Any]
) -> list[Item]:
    """`process_mm_data_async` for ids and, by modality, what the processor returned, in the format "processor_output".

    Rows of an encoder come in the format "precomputed_embedding", which takes one tensor for all media of a modality.
    """
    server = _served(architecture, processor)
    given: dict[Modality, list[Any]] = {}
    for kind in Modality:
        own = {name: value for name, value in output.items() if _belongs(server, name, kind)}
        rows = output.get(f"{kind.name.lower()}_embeds")
        if rows is not None:
            given[kind] = [{**own, "format": "precomputed_embedding", "feature": torch.cat(list(rows))}]
        elif own:
            given[kind] = [{**own, "format": "processor_output"}]
    return _run(sglang, server, input_ids.tolist(), given)[1] if given else []


@lru_cache(maxsize=32)
def _served(architecture: str, processor: Any) -> Any:
    """The processor of a server for this checkpoint, which has a copy of the checkpoint's own to itself."""
    registry = cpu.module("sglang.srt.managers.multimodal_processor")
    module, name = OWN.get(architecture, ("transformers_auto", "TransformersAutoMultimodalProcessor"))
    served = getattr(cpu.module(f"sglang.srt.multimodal.processors.{module}"), name)
    implementations = cpu.module("sglang.srt.configs.model_config").ModelImpl
    model = SimpleNamespace(_resolved_model_impl=implementations.TRANSFORMERS) if architecture in GENERIC else None
    arguments = cpu.module("sglang.srt.runtime_context").get_server_args()
    own = deepcopy(processor)
    with patch.dict(registry.PROCESSOR_MAPPING, dict.fromkeys(served.models, served), clear=True):
        return registry.get_mm_processor(
            _config(architecture, own), arguments, own, "default", model_config=model, skip_mm_pool=True
        )


def _config(architecture: str, processor: Any) -> Any:
    """A checkpoint's config, as far as a processor reads it."""
    pictures = getattr(processor, "image_processor", None)
    tokenizer = getattr(processor, "tokenizer", processor)
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in TOKENS.get(architecture, {}).items()}
    patch_size = getattr(pictures, "patch_size", None)
    vision = SimpleNamespace(
        spatial_merge_size=getattr(pictures, "merge_size", getattr(processor, "spatial_merge_size", 1)),
        image_size=getattr(pictures, "size", {}).get("longest_edge"),
        patch_size=patch_size["height"] if isinstance(patch_size, Mapping) else patch_size,
        tokens_per_second=2,
    )
    stated = import_module("transformers").PretrainedConfig(architectures=[architecture], **ids)
    stated.model_type, stated.vision_config = MODEL_TYPES.get(architecture, "other"), vision
    return stated


def _run(
    sglang: Sglang, server: Any, prompt: str | list[int], media: Mapping[Modality, Sequence[Any]]
) -> tuple[NDArray[np.int64], list[Item]]:
    """Ids and items of a request, the items with the hashes that they get as it comes to the scheduler."""
    given = {kind: list(media.get(kind, ())) or None for kind in Modality}
    request = SimpleNamespace(video_data=given[Modality.VIDEO], audio_data=given[Modality.AUDIO], modalities=None)
    output = asyncio.run(
        server.process_mm_data_async(
            image_data=given[Modality.IMAGE], audio_data=given[Modality.AUDIO], input_text=prompt, request_obj=request
        )
    )
    inputs = sglang.batch.MultimodalInputs.from_processor_output(output)
    by_kind = [[_item(one) for one in inputs.mm_items if one.modality.name == kind.name] for kind in Modality]
    items = list(merge(*by_kind, key=lambda item: item.spans[0].first if item.spans else -1))
    return np.array(output.input_ids, dtype=np.int64), items


def _ids(server: Any, text: str) -> list[int]:
    """What the tokenizer manager makes of text."""
    ids: list[int] = server._tokenizer(text)["input_ids"]
    return ids


def _placeholder(server: Any, item: Item) -> str:
    """The placeholder of the checkpoint's processor; nothing where it has none."""
    return getattr(server._processor, f"{item.modality.name.lower()}_token", None) or ""


def _given(item: Item) -> Any:
    """A medium as SGLang takes it: a picture, frames [n, 3, height, width], or the bytes of a file with these samples."""
    if item.modality is Modality.VIDEO:
        return torch.from_numpy(np.asarray(item.feature)).permute(0, 3, 1, 2)
    if item.modality is Modality.AUDIO:
        return _recording(item.feature, item.fields["sampling_rate"])
    return item.feature


def _recording(samples: NDArray[np.float32], rate: int) -> bytes:
    """A Matroska file of these samples."""
    file = BytesIO()
    with av.open(file, "w", "matroska") as container:
        stream = container.add_stream("pcm_f32le", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate = rate
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return file.getvalue()


def _belongs(server: Any, name: str, kind: Modality) -> bool:
    """Whether SGLang knows this part of a processor's output as one of this modality."""
    owner = server.ATTR_NAME_TO_MODALITY.get(name)
    return owner is not None and owner.name == kind.name


def _item(made: Any) -> Item:
    """An item of SGLang's. What stands for rows of an encoder is marked by its format."""
    rows = made.feature if made.is_precomputed_embedding() else made.precomputed_embeddings
    fields: dict[str, Any] = {
        name: tuple(torch.as_tensor(value).flatten().tolist())
        for name, value in made.model_specific_data.items()
        if name.endswith("_grid_thw")
    }
    if "second_per_grid_ts" in made.model_specific_data:
        fields["second_per_grid_ts"] = float(made.model_specific_data["second_per_grid_ts"][0])
    try:
        spans = tuple(Span(first, last) for first, last in made.offsets or ())
        return Item(
            modality=Modality[made.modality.name],
            spans=spans,
            feature=made.feature if rows is None else None,
            embedding=rows,
            fields=fields,
            identity=translate.octets(made.hash).rjust(IDENTITY_BYTES, b"\0"),
        )
    except ValueError as error:  # which SGLang did not notice
        raise AssertionError(f"SGLang has made an item at {made.offsets}: {error}") from error
