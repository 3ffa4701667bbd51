"""What SGLang has of its kernels in Python: M-RoPE, the mask of placeholders, and the scatter of rows."""

from unittest.mock import patch

import torch

from conformance.adapters.sglang import cpu


def apply_mrope(
    query: torch.Tensor,
    key: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    sections: tuple[int, int, int],
    interleaved: bool,
    neighbours: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`MRotaryEmbedding.forward_native`, of one that is made for these heads and has this table.

    It is made as on a machine whose engine is the CPU (SGLANG_USE_CPU_ENGINE), where it imports no kernel.
    """
    with patch.object(cpu.module("sglang.srt.layers.rotary_embedding.base"), "_is_cpu", True):
        rotary = cpu.module("sglang.srt.layers.rotary_embedding.mrope").MRotaryEmbedding(
            query.shape[2],
            table.shape[1],
            1,
            10000,
            not neighbours,
            query.dtype,
            mrope_section=list(sections),
            mrope_interleaved=interleaved,
        )
    rotary.cos_sin_cache = table
    queries, keys = rotary.forward_native(positions, query.flatten(1), key.flatten(1))
    return queries.view(query.shape), keys.view(key.shape)


def placeholder_mask(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
    """`_get_multimodal_mask`, of one column."""
    mask: torch.Tensor = cpu.module("sglang.srt.managers.mm_schedule")._get_multimodal_mask(input_ids, sentinels)
    return mask[:, 0]


def scatter_rows(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """`_scatter_mm_embedding`, which writes into what it is given: here a copy, as the caller's rows of text are."""
    made = destination.clone()
    cpu.module("sglang.srt.managers.mm_utils")._scatter_mm_embedding(dest=made, mask=mask[:, None], src=rows)
    return made
