"""The language model of a Qwen3-VL, real in everything but its size, whole and in parts.

Its text embeddings are those of the feeds (`conformance.suite.merging_feeds`): 128 of width 4. Six layers.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

import torch

LAYERS = 6


@cache
def tiny_text_model(vocabulary: int, hidden: int) -> Any:
    """Qwen3-VL's text model with six layers; the same weights on every machine."""
    from conformance.world.qwen2_vl import set_weights

    module = import_module("transformers.models.qwen3_vl")
    config = module.Qwen3VLTextConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=8,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 1, 1]},
        attn_implementation="eager",
    )
    made = module.Qwen3VLTextModel(config)
    set_weights(made)
    return made.eval()


@torch.no_grad()
def run_whole(model: Any, embeddings: torch.Tensor, media: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """The last hidden states by transformers' own forward: [n, hidden].

    embeddings: [n, hidden]. media: bool [n]. levels: [levels, media positions, hidden], for the first layers.
    """
    made = model(
        inputs_embeds=embeddings[None],
        position_ids=_positions(len(embeddings)),
        visual_pos_masks=media[None],
        deepstack_visual_embeds=[*levels],
        use_cache=False,
    )
    last: torch.Tensor = made.last_hidden_state[0]
    return last


@torch.no_grad()
def run_part(model: Any, layers: range, hidden_states: torch.Tensor, deepstack: Mapping[int, torch.Tensor]) -> torch.Tensor:
    """What a rank makes of its hidden states [n, hidden]; the last one ends with the norm."""
    masking_utils: Any = import_module("transformers.masking_utils")
    positions = _positions(len(hidden_states))
    states = hidden_states[None]
    mask = masking_utils.create_causal_mask(
        config=model.config, inputs_embeds=states, attention_mask=None, cache=None, position_ids=None
    )
    rotary = model.rotary_emb(states, positions)
    for layer in layers:
        states = model.layers[layer](
            states, attention_mask=mask, position_ids=None, cache=None, position_embeddings=rotary, use_cache=False
        )
        if layer in deepstack:
            states = states + deepstack[layer]
    return (model.norm(states) if layers.stop == LAYERS else states)[0]


def _positions(length: int) -> torch.Tensor:
    """M-RoPE positions [3, 1, length] that differ along the axes."""
    steps = torch.arange(length)
    return torch.stack([steps, steps // 2, steps * 2 // 3])[:, None]
