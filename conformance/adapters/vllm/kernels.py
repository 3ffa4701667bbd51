"""What vLLM has of its kernels in Python: M-RoPE, the merge of rows, and the mask of what is gathered."""

from collections.abc import Sequence

import torch

from conformance.adapters.vllm import cpu, steps
from conformance.adapters.vllm.cpu import Vllm
from reference.items import Chunk, Item, Modality, Span


def apply_mrope(
    query: torch.Tensor,
    key: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    sections: tuple[int, int, int],
    interleaved: bool,
    neighbours: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`MRotaryEmbedding.forward_native`, of one that is made for these heads and has this table."""
    owner, config = cpu.module("vllm.model_executor.layers.rotary_embedding.mrope"), cpu.module("vllm.config")
    with config.set_current_vllm_config(config.VllmConfig()):
        rotary = owner.MRotaryEmbedding(
            query.shape[2],
            table.shape[1],
            1,
            10000.0,
            not neighbours,
            query.dtype,
            mrope_section=list(sections),
            mrope_interleaved=interleaved,
        )
    rotary.cos_sin_cache = table
    queries, keys = rotary.forward_native(positions, query.flatten(1), key.flatten(1))
    return queries.view(query.shape), keys.view(key.shape)


def scatter_rows(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`_merge_multimodal_embeddings`, which writes into what it is given: here a copy, as the caller's rows of text are."""
    merge = cpu.module("vllm.model_executor.models.utils")._merge_multimodal_embeddings
    merged: torch.Tensor = merge(destination.clone(), [rows], mask)
    return merged


def span_mask(vllm: Vllm, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """The mask that `EncoderRunner.gather_mm_embeddings` makes, for one item in these spans."""
    items = [Item(modality=Modality.IMAGE, spans=tuple(sorted(spans)), caller_hash=0)] if spans else []
    return steps.gathered(vllm, items, [torch.zeros(item.token_count, 1) for item in items], chunk)[1]
