"""vLLM's processors on a prompt and its media.

A prompt is rendered as the server renders it, by `BaseRenderer`: text goes through the tokenizer, with the processor's own
placeholder token where a medium stands; a prompt with a part of ids is a prompt of ids. The model of the architecture
processes it, with the config and the processor of a checkpoint; what models read of a config is here as the checkpoint's
processor has it.

One check of transformers is left out, as in the versions that vLLM 0.33 asks for, below 5.21: since then a processor counts
placeholders in `validate_inputs`, and refuses every video of vLLM's Qwen3-VL.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from importlib import import_module, invalidate_caches
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.vllm import cpu
from conformance.adapters.vllm import items as translate
from conformance.protocol.processors import Module
from reference.items import Item, Modality, Span

Part = str | NDArray[np.int64] | Item

ROWS = {Modality.IMAGE: "pixel_values", Modality.VIDEO: "pixel_values_videos", Modality.AUDIO: "input_features"}

FAMILIES = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_onevision", "internvl", "idefics3", "pixtral", "qwen2_audio",
)  # fmt: skip
"""All but two: for Gemma 3 vLLM wants tokens of one to four newlines, and a tokenizer of bytes has none; of SmolVLM it takes
pictures and no videos ("At most 0 video(s) may be provided"), and a family is asked about with all of its media."""

MISTRAL, LLAVA = "PixtralForConditionalGeneration", "LlavaForConditionalGeneration"
"""By the first name vLLM knows Mistral's own format. A checkpoint with transformers' processor for it states the second."""


MARKERS = {"vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}
"""Tokens that a config has and not every processor."""


SOURCE = """
from {here} import loads

class Model:
    served = loads[{name!r}]()
"""
"""A module with a model, which is loaded as it is imported."""

loads: dict[str, Any] = {}
checkpoints: list[Any] = []
renderers: list[tuple[tuple[str, Any], Any]] = []
starting = Lock()


def find_processor(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """`register_model` of a registry of its own for each architecture, and `resolve_model_cls`."""
    registry = cpu.module("vllm.model_executor.models.registry")._ModelRegistry()
    package = modules[0].name.partition(".")[0]
    with (
        TemporaryDirectory() as folder,
        patch.object(sys, "path", [folder, *sys.path]),
        patch.dict(sys.modules),
        patch.dict(loads, {module.name: module.load for module in modules}),
    ):
        (Path(folder) / package).mkdir()
        for module in modules:
            (Path(folder) / f"{module.name.replace('.', '/')}.py").write_text(SOURCE.format(here=__name__, name=module.name))
            for architecture in module.architectures:
                registry.register_model(architecture, f"{module.name}:Model")
        invalidate_caches()
        model, _ = registry.resolve_model_cls(list(architectures), SimpleNamespace(model_impl="vllm"))
        return model.served


def process(architecture: str, processor: Any, parts: Sequence[Part]) -> tuple[NDArray[np.int64], list[Item]]:
    """`tokenize_prompt_async` and `process_for_engine_async` of `BaseRenderer`, which calls `BaseMultiModalProcessor.apply`."""
    media = [one for one in parts if isinstance(one, Item)]
    given: dict[str, list[Any]] = {}
    for one in media:
        given.setdefault(translate.modality(one), []).append(_medium(one))
    params = cpu.module("vllm.renderers").TokenizeParams(max_total_tokens=None, add_special_tokens=False)
    renderer = _renderer(LLAVA if architecture == MISTRAL else architecture, processor)
    prompt = {**_written(processor, parts), **({"multi_modal_data": given} if given else {})}

    async def rendered() -> Any:
        return await renderer.process_for_engine_async(await renderer.tokenize_prompt_async(prompt, params), 0.0)

    made = asyncio.run(rendered())
    counted = [[one.modality for one in media[:number]].count(one.modality) for number, one in enumerate(media)]
    items = [_item(made, one.modality, number) for one, number in zip(media, counted, strict=True)]
    return np.array(made["prompt_token_ids"], dtype=np.int64), items


def _written(processor: Any, parts: Sequence[Part]) -> dict[str, Any]:
    """The prompt as text, or as ids where a part of it is."""
    written = [_placeholder(processor, one) if isinstance(one, Item) else one for one in parts]
    texts = [one for one in written if isinstance(one, str)]
    if len(texts) == len(written):
        return {"prompt": "".join(texts)}
    tokenizer = getattr(processor, "tokenizer", processor)
    pieces = [tokenizer.encode(one, add_special_tokens=False) if isinstance(one, str) else one.tolist() for one in written]
    return {"prompt_token_ids": [id for piece in pieces for id in piece]}


def _placeholder(processor: Any, item: Item) -> str:
    """What stands for a medium in a text; nothing where the processor has no token for it."""
    return getattr(processor, f"{translate.modality(item)}_token", None) or ""


def _medium(item: Item) -> Any:
    """A raw medium as the data parser takes it. The frames of a video are sampled already, as its loader would say."""
    match item.modality:
        case Modality.AUDIO:
            return item.feature, item.fields["sampling_rate"]
        case Modality.VIDEO:
            frames, rate = len(item.feature), item.fields["fps"]
            numbers = {"total_num_frames": frames, "frames_indices": list(range(frames)), "duration": frames / rate}
            return item.feature, {"fps": rate, **numbers, "do_sample_frames": False}
        case _:
            return item.feature


def _item(made: Mapping[str, Any], modality: Modality, number: int) -> Item:
    """The medium of this number among those of its modality."""
    name = modality.name.lower()
    data = made["mm_kwargs"][name][number].get_data()
    grid = f"{name}_grid_thw"
    return Item(
        modality=modality,
        spans=tuple(Span(first, last) for first, last in made["mm_placeholders"][name][number].extract_embeds_range()),
        feature=data[ROWS[modality]],
        fields={grid: tuple(data[grid].tolist())} if grid in data else {},
        identity=bytes.fromhex(made["mm_hashes"][name][number]),
    )


def _renderer(architecture: str, processor: Any) -> Any:
    """The renderer of a server for this checkpoint, which is made once."""
    loading = cpu.module("vllm.transformers_utils.processor")
    loading.cached_get_processor = _load
    loading.cached_get_video_processor = lambda name, **options: checkpoints[int(name)].video_processor
    with starting:
        for (name, one), made in renderers:
            if one is processor and name == architecture:
                return made
        checkpoints.append(processor)
        renderers.append(((architecture, processor), _started(architecture, processor, str(len(checkpoints) - 1))))
        return renderers[-1][1]


def _started(architecture: str, processor: Any, name: str) -> Any:
    """A renderer without a cache, which leaves nothing of a picture to the device."""
    registry = cpu.module("vllm.model_executor.models.registry").ModelRegistry
    if architecture in registry.models:
        cpu.module(registry.models[architecture].module_name)
    settings = cpu.module("vllm.config.multimodal").MultiModalConfig(mm_processor_cache_gb=0, mm_device_do_normalize=False)
    model: Any = _Nothing()
    model.__dict__ |= {
        "model": name,
        "model_impl": "auto",
        "registry": registry,
        "convert_type": "none",
        "dtype": torch.float32,
        "renderer_num_workers": 1,
        "is_multimodal_model": True,
        "supports_multimodal_inputs": True,
        "multimodal_config": settings,
        "get_multimodal_config": lambda: settings,
        "hf_config": _config(processor),
        "_get_transformers_backend_cls": lambda: "",
    }
    model.hf_config.architectures = [architecture]
    config = _Nothing()
    config.__dict__ |= {"model_config": model, "cache_config": SimpleNamespace(enable_prefix_caching=True)}
    config.__dict__ |= {"parallel_config": _Nothing(), "observability_config": None}
    return cpu.module("vllm.renderers.hf").HfRenderer(config, getattr(processor, "tokenizer", processor))


class _Nothing:
    """Settings that have none of what is asked for."""

    def __getattr__(self, name: str) -> Any:
        return None


def _config(processor: Any) -> Any:
    """The config of a checkpoint with this processor, as far as processors read it."""
    library = import_module("transformers")
    tokenizer = getattr(processor, "tokenizer", processor)
    kinds = {f"{kind}_token": getattr(processor, f"{kind}_token", None) for kind in ("image", "video", "audio")}
    named = {**{name: token for name, token in kinds.items() if token}, **MARKERS}
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in named.items()}
    indices = {f"{name}_index": id for name, id in ids.items()}
    ids = {f"{name}_id": id for name, id in ids.items()}
    pictures: Any = getattr(processor, "image_processor", None)
    match type(processor).__name__:
        case "LlavaProcessor":
            vision = {
                "model_type": "clip_vision_model",
                "image_size": pictures.crop_size["height"],
                "patch_size": processor.patch_size,
            }
            return library.LlavaConfig(vision_config=vision, **indices)
        case "LlavaOnevisionProcessor":
            side = pictures.size["height"]
            patch = side // int(processor.num_image_tokens**0.5)
            vision = {"model_type": "siglip_vision_model", "image_size": side, "patch_size": patch}
            return library.LlavaOnevisionConfig(
                vision_config=vision, image_grid_pinpoints=pictures.image_grid_pinpoints, **indices
            )
        case "PixtralProcessor":
            vision = {"model_type": "pixtral", "image_size": pictures.size["longest_edge"], "patch_size": processor.patch_size}
            return library.LlavaConfig(vision_config=vision, **indices)
        case "Qwen2AudioProcessor":
            return library.Qwen2AudioConfig(**indices)
        case name:
            return getattr(library, name.replace("Processor", "Config"), library.PreTrainedConfig)(**ids)


def _load(name: str, *, processor_cls: Any, **options: Any) -> Any:
    """`get_processor`, for the processors that were given."""
    processor = copy(checkpoints[int(name)])
    if not isinstance(processor, processor_cls):
        raise TypeError(f"Invalid type of HuggingFace processor: {type(processor)}")
    processor.validate_inputs = lambda *media, **options: None
    return processor
