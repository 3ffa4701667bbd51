"""What transformers' models do with a prompt before its first layer: number its positions, and merge its media.

The models have no weights and no layers here. Their own `forward` runs up to the language model, in whose place stands a
recorder.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from conformance.adapters.transformers.cpu import bare, module, named, prepare
from reference.items import Chunk, Item, Modality, MropeLayout

PROCESSORS = {
    "qwen2_vl": "Qwen2VLProcessor",
    "qwen2_5_vl": "Qwen2_5_VLProcessor",
    "qwen3_vl": "Qwen3VLProcessor",
    "glm4v": "Glm4vProcessor",
}
"""For each family the processor that tells the tokens of media apart, from which the model takes their kinds."""

NUMBERED = {
    "qwen2_vl": "Qwen2VLModel",
    "qwen2_5_vl": "Qwen2_5_VLModel",
    "qwen3_vl": "Qwen3VLModel",
    "glm4v": "Glm4vModel",
    "qwen2_5_omni": "Qwen2_5OmniThinkerForConditionalGeneration",
    "qwen3_omni_moe": "Qwen3OmniMoeThinkerForConditionalGeneration",
}
"""For each family the model that numbers its positions."""

QWEN2_ROTARY = "qwen2_vl.modeling_qwen2_vl:Qwen2VLRotaryEmbedding"
OMNI_CONFIG = "models.qwen3_omni_moe.configuration_qwen3_omni_moe"
OMNI = "models.qwen3_omni_moe.modeling_qwen3_omni_moe"
"""A model with media of every modality, and with deepstack."""


def positions(input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[torch.Tensor, int]:
    """`get_rope_index`, with the arguments of the processors: grids, seconds and lengths in the order of the prompt."""
    model = bare(named(f"models.{layout.family}.modeling_{layout.family}:{NUMBERED[layout.family]}"))
    vision = SimpleNamespace(spatial_merge_size=layout.spatial_merge_size, tokens_per_second=layout.tokens_per_second)
    tokens = {f"{name}_token_id": number for name, number in layout.token_ids.items()}
    model.config = SimpleNamespace(vision_config=vision, **tokens)
    ordered = sorted(items, key=lambda item: item.spans)
    grids = {name: _collected(ordered, name) for name in ("image_grid_thw", "video_grid_thw")}
    ids = torch.from_numpy(input_ids)[None]
    if layout.family in PROCESSORS:
        kinds = _processor(layout).create_mm_token_type_ids([input_ids.tolist()])
        timed = {} if layout.tokens_per_second is None else {"second_per_grid_ts": _collected(ordered, "second_per_grid_ts")}
        triples, delta = model.get_rope_index(ids, torch.tensor(kinds), **grids, **timed)
    else:
        model.spatial_merge_size = layout.spatial_merge_size
        model.config.position_id_per_seconds = layout.tokens_per_second
        model.config.seconds_per_chunk = 2  # of Qwen2.5-Omni's checkpoints
        model.config.audio_config = module(OMNI_CONFIG).Qwen3OmniMoeAudioEncoderConfig()
        triples, delta = model.get_rope_index(
            ids,
            **grids,
            attention_mask=torch.ones_like(ids),
            use_audio_in_video=any(item.fields.get("use_audio_in_video", False) for item in items),
            audio_seqlens=_collected(ordered, "audio_feature_lengths"),
            second_per_grids=_collected(ordered, "second_per_grid_ts"),
        )
    return triples[:, 0].long(), int(delta)


def rotary_axes(sections: tuple[int, int, int], interleaved: bool) -> torch.Tensor:
    """`recomposition_frequencies` of Qwen3-VL or Qwen2-VL, for frequencies that are the numbers of their axes."""
    name = "qwen3_vl.modeling_qwen3_vl:Qwen3VLTextRotaryEmbedding" if interleaved else QWEN2_ROTARY
    count = sum(sections)
    axes = torch.arange(3).reshape(3, 1, 1, 1).repeat(1, 1, 1, count)
    rotary = bare(named(f"models.{name}"), mrope_section=list(sections))
    recomposed: torch.Tensor = rotary.recomposition_frequencies(axes)
    return recomposed.flatten()[:count]


def extended(triples: NDArray[np.int64], length: int) -> torch.Tensor:
    """`compute_3d_position_ids` for what is computed behind a cached prompt, with the delta of its `get_rope_index`."""
    prompt = triples.shape[1]
    delta = torch.tensor([[int(triples.max()) + 1 - prompt]])
    model = bare(named("models.qwen2_vl.modeling_qwen2_vl:Qwen2VLModel"), rope_deltas=delta)
    cached = SimpleNamespace(get_seq_length=lambda: prompt)
    text = model.compute_3d_position_ids(None, torch.empty(1, length - prompt, 1), cache=cached)
    return torch.cat([torch.from_numpy(triples), text[:, 0]], dim=1)


def merged(
    input_ids: NDArray[np.int64],
    items: Sequence[Item],
    rows: torch.Tensor,
    table: torch.Tensor,
    chunk: Chunk,
    levels: Sequence[torch.Tensor] = (),
) -> "Recorder":
    """What `Qwen3OmniMoeThinkerModel.forward` gives its language model for a chunk whose media are encoded.

    rows, levels: the encoder's output and its deepstack features, by position.
    """
    media = sorted(_media(items, chunk))
    kinds = [kind for _, kind in media]
    owners = (kinds + [kinds[-1] if kinds else Modality.IMAGE] * len(rows))[: len(rows)]  # surplus rows are the last one's
    tokens = dict.fromkeys((f"{kind.name.lower()}_token_id" for kind in Modality), -1)
    tokens |= {f"{kind.name.lower()}_token_id": int(input_ids[position - chunk.prefix]) for position, kind in media}
    recorder = Recorder(table)
    model = bare(
        named(f"{OMNI}:Qwen3OmniMoeThinkerModel"),
        config=SimpleNamespace(return_dict=True, text_config=SimpleNamespace(output_router_logits=False), **tokens),
        rope_deltas=None,
        language_model=recorder,
        get_input_embeddings=lambda: recorder.words,
    )
    own = {kind: torch.tensor([owner is kind for owner in owners], dtype=torch.bool) for kind in {*kinds, *owners}}
    outputs = named(f"{OMNI}:BaseModelOutputWithDeepstackFeatures")
    encoded = {
        kind.name.lower(): outputs(pooler_output=[rows[mask]], deepstack_features=[[level[mask]] for level in levels])
        for kind, mask in own.items()
    }
    audio = encoded.pop("audio", None)
    if audio is not None:
        heard = SimpleNamespace(last_hidden_state=audio.pooler_output[0])
        model.get_audio_features = lambda *_, **__: heard
    model.forward(
        input_ids=torch.from_numpy(input_ids.copy())[None],
        input_features=None if audio is None else torch.empty(0),
        mm_encoder_outputs=encoded or None,
    )
    return recorder


class Recorder(nn.Module):
    """In the place of a language model: it embeds ids, and keeps what it is called with."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        rows, columns = table.shape
        self.words = nn.Embedding(rows, columns, _weight=table, _freeze=True)
        self.inputs: dict[str, Any] = {}

    def forward(self, **inputs: Any) -> Any:
        """Nothing of what a language model answers."""
        self.inputs = inputs
        return module("modeling_outputs").MoeModelOutputWithPast(last_hidden_state=inputs["inputs_embeds"])

    @property
    def embeddings(self) -> torch.Tensor:
        """What would enter the first layer: [n, hidden]."""
        fed: torch.Tensor = self.inputs["inputs_embeds"][0]
        return fed

    def deepstack(self, levels: int) -> torch.Tensor:
        """What `_deepstack_process` adds to hidden states of zero behind each of the first layers."""
        model = bare(named(f"{OMNI}:Qwen3OmniMoeThinkerTextModel"))
        nothing, mask = torch.zeros_like(self.inputs["inputs_embeds"]), self.inputs["visual_pos_masks"]
        added = [model._deepstack_process(nothing, mask, level)[0] for level in self.inputs["deepstack_visual_embeds"] or []]
        return torch.stack(added) if added else torch.zeros(levels, *self.embeddings.shape, dtype=nothing.dtype)


def _processor(layout: MropeLayout) -> Any:
    """A processor that knows its tokens."""
    ids = layout.token_ids
    tokens = {f"{kind}_token_id": ids.get(kind) for kind in ("image", "video")}
    around = {f"video_{side}_id": ids.get(f"video_{side}") for side in ("start", "end")}
    return bare(getattr(prepare(), PROCESSORS[layout.family]), audio_token_id=None, **tokens, **around)


def _collected(items: Sequence[Item], name: str) -> Any:
    """The fields of this name in one tensor, None where there are none."""
    values = [item.fields[name] for item in items if name in item.fields]
    return torch.tensor(values) if values else None


def _media(items: Sequence[Item], chunk: Chunk) -> list[tuple[int, Modality]]:
    """The positions of media in a chunk, and the modality of each."""
    return [
        (position, item.modality)
        for item in items
        for span in item.spans
        for position in range(max(span.first, chunk.prefix), min(span.stop, chunk.stop))
    ]
