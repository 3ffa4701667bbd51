"""Parts of vLLM, made by hand: what several checks need."""

from typing import Any

import torch

from conformance.adapters.vllm import cpu


def named(name: str) -> Any:
    """What `module:name` is in vLLM."""
    cpu.prepare()
    module, _, attribute = name.partition(":")
    return getattr(cpu.module(f"vllm.{module}"), attribute)


def column(*values: float) -> torch.Tensor:
    """Rows of one number each."""
    return torch.tensor(values)[:, None]


def feature(offset: int, length: int, identifier: str = "a", modality: str = "image", **data: Any) -> Any:
    """An item at these positions."""
    elem, field = named("multimodal.inputs:MultiModalFieldElem"), named("multimodal.inputs:MultiModalBatchedField")()
    values = {name: elem(data=value, field=field) for name, value in data.items()}
    return named("multimodal.inputs:MultiModalFeatureSpec")(
        data=named("multimodal.inputs:MultiModalKwargsItem")(values),
        modality=modality,
        identifier=identifier,
        mm_position=named("multimodal.inputs:PlaceholderRange")(offset, length),
    )


def runner(model: Any = None) -> Any:
    """An encoder runner whose cache is empty."""
    cache = named("v1.worker.gpu.mm.encoder_cache:EncoderCache")()
    made = named("v1.worker.gpu.mm.encoder_runner:EncoderRunner")
    return made(model, 1, 1, cache, torch.float32, torch.device("cpu"))


def merged(rows: list[torch.Tensor], mask: list[bool], width: int = 1) -> list[Any]:
    """Zeros, with rows at the positions of a mask."""
    merge = named("model_executor.models.utils:_merge_multimodal_embeddings")
    values: list[Any] = merge(torch.zeros(len(mask), width), rows, torch.tensor(mask)).tolist()
    return values
