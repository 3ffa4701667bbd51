"""Heads turned by transformers, as the attention of a model with M-RoPE does it."""

import torch

from conformance.adapters.transformers.cpu import bare, named

ROTATIONS = ("contiguous-halves", "interleaved-halves", "contiguous-neighbours")
"""The forms of M-RoPE that there is a model for. Cosines are computed from positions, and not looked up."""

QWEN2, QWEN3, QWEN3_5, GLM = (f"models.{name}.modeling_{name}" for name in ("qwen2_vl", "qwen3_vl", "qwen3_5", "glm4v"))


def apply_mrope(
    query: torch.Tensor,
    key: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    sections: tuple[int, int, int],
    interleaved: bool,
    neighbours: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`recomposition_frequencies` of Qwen3-VL, Qwen2-VL or GLM-4V, and `apply_rotary_pos_emb` of Qwen2-VL or GLM-4V, or of
    Qwen3.5 where a part of a head is turned.

    Positions are spread over three axes before, and cosines and sines get the dtype of the heads between both, as `forward`
    of the first one does it.
    """
    if interleaved:
        owner = f"{QWEN3}:Qwen3VLTextRotaryEmbedding"
    else:
        owner = f"{GLM}:Glm4vTextRotaryEmbedding" if neighbours else f"{QWEN2}:Qwen2VLRotaryEmbedding"
    rotary = bare(named(owner), mrope_section=list(sections))
    angles = table[positions[:, None].expand(3, -1, -1)].chunk(2, dim=-1)
    cosines, sines = (rotary.recomposition_frequencies(one.clone()).to(query.dtype) for one in angles)
    module = GLM if neighbours else QWEN3_5 if table.shape[1] < query.shape[2] else QWEN2
    apply = named(f"{module}:apply_rotary_pos_emb")
    queries, keys = apply(query.transpose(0, 1)[None], key.transpose(0, 1)[None], cosines, sines)
    return queries[0].transpose(0, 1), keys[0].transpose(0, 1)
