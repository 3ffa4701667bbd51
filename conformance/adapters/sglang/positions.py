"""SGLang's M-RoPE positions.

Two of its steps are methods of large objects, and are called here on what they read of these.
"""

from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.cpu import Sglang
from reference.items import Chunk, Item, Modality, MropeLayout


def positions(input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[torch.Tensor, int]:
    """`get_rope_index`, or `get_rope_index_glm4v`, with the arguments of its processors: grids in the order of the prompt."""
    module = cpu.module("sglang.srt.layers.rotary_embedding.mrope_rope_index")
    ordered = sorted(items, key=lambda item: item.spans)
    grids = {f"{kind.name.lower()}_grid_thw": _collect(ordered, f"{kind.name.lower()}_grid_thw") for kind in VISUAL}
    tokens = {f"{name}_token_id": number for name, number in layout.token_ids.items()}
    ids = torch.from_numpy(input_ids)[None]
    if "video_start_token_id" in tokens:
        vision = SimpleNamespace(spatial_merge_size=layout.spatial_merge_size)
        config = SimpleNamespace(**tokens, vision_config=vision)
        table, delta = module.get_rope_index_glm4v(ids, config, **grids, attention_mask=None)
    else:
        heard = {
            "position_id_per_seconds": layout.tokens_per_second,
            "use_audio_in_video": any("use_audio_in_video" in item.fields for item in items),
            "audio_seqlens": _collect(ordered, "audio_feature_lengths"),
        }
        table, delta = module.get_rope_index(
            spatial_merge_size=layout.spatial_merge_size,
            **tokens,
            model_type=layout.family,
            tokens_per_second=layout.tokens_per_second,
            input_ids=ids,
            **grids,
            second_per_grid_ts=_collect(ordered, "second_per_grid_ts"),
            **(heard if "audio" in layout.token_ids else {}),
        )
    return table[:, 0].long(), int(delta)


def retracted(sglang: Sglang, triples: NDArray[np.int64], replies: Sequence[int]) -> list[torch.Tensor]:
    """`Req.reset_for_retract`, and at each attempt `Req.init_next_round_input`, as `get_new_batch_prefill` calls it."""
    prompt = array("q", bytes(8 * triples.shape[1]))
    sampling = cpu.module("sglang.srt.sampling.sampling_params").SamplingParams(max_new_tokens=1 << 30)
    request = sglang.batch.Req(rid="", origin_input_text="", origin_input_ids=prompt, sampling_params=sampling)
    request.multimodal_inputs = sglang.batch.MultimodalInputs(mm_items=[], mrope_positions=torch.from_numpy(triples))
    tables = []
    for reply in replies:
        if len(request.output_ids) != reply or not request.is_retracted:
            request.output_ids = array("q", bytes(8 * reply))
            request.reset_for_retract()
        request.init_next_round_input()
        tables.append(request.multimodal_inputs.mrope_positions)
    return tables


def rotary_axes(sections: tuple[int, int, int], interleaved: bool) -> torch.Tensor:
    """`MRotaryEmbedding._build_axis_map`."""
    rotary = cpu.module("sglang.srt.layers.rotary_embedding.mrope").MRotaryEmbedding
    itself = SimpleNamespace(
        mrope_section=list(sections),
        mrope_interleaved=interleaved,
        mrope_interleaved_glm=False,
        rotary_dim=2 * sum(sections),
        cos_sin_cache=torch.zeros(0),
    )
    axes: torch.Tensor = rotary._build_axis_map(itself)
    return axes


def stitch(sglang: Sglang, previous: NDArray[np.int64], turn: NDArray[np.int64]) -> torch.Tensor:
    """`Req._extend_session_image_inputs`, for a session whose history fills its table."""
    before, now = (
        sglang.batch.MultimodalInputs(mm_items=[], mrope_positions=torch.from_numpy(table)) for table in (previous, turn)
    )
    request = SimpleNamespace(
        origin_input_ids=[0] * (previous.shape[1] + turn.shape[1]), multimodal_inputs=before, _session_mm_items=[]
    )
    sglang.batch.Req._extend_session_image_inputs(request, now)
    stitched: torch.Tensor = request.multimodal_inputs.mrope_positions
    return stitched


def chunk(triples: NDArray[np.int64], chunk: Chunk) -> torch.Tensor:
    """`ForwardBatch._compute_mrope_positions_extend`, for a batch of one request."""
    forward = cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardBatch
    table = torch.from_numpy(triples)
    inputs = SimpleNamespace(
        mrope_positions=table,
        mrope_position_delta=table.max() + 1 - table.shape[1],
        mrope_position_delta_repeated_cache=None,
    )
    itself = SimpleNamespace(seq_lens_cpu=torch.tensor([chunk.stop]))
    itself._expand_mrope_from_input = lambda *given: forward._expand_mrope_from_input(itself, *given)
    batch = SimpleNamespace(
        multimodal_inputs=[inputs],
        extend_lens=[chunk.length],
        prefix_lens=[chunk.prefix],
        reqs=[SimpleNamespace(session=None)],
    )
    forward._compute_mrope_positions_extend(itself, SimpleNamespace(device="cpu"), batch)
    columns: torch.Tensor = itself.mrope_positions
    return columns


VISUAL = (Modality.IMAGE, Modality.VIDEO)


def _collect(items: Sequence[Item], name: str) -> Any:
    """The fields of this name in one tensor, None where there are none."""
    values = [item.fields[name] for item in items if name in item.fields]
    return torch.tensor(values) if values else None
