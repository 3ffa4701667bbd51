"""Prompts in vLLM: their keys and blocks in the KV cache, and the M-RoPE positions of a model."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from conformance.adapters.vllm import cpu, kernels
from conformance.adapters.vllm import items as translate
from conformance.adapters.vllm.cpu import Vllm
from conformance.protocol.prefix_cache import Namespace
from reference.items import Item, Modality, MropeLayout, Request, Span

BLOCKS = 2048
NOBODY = Namespace()

MODELS = {
    "qwen2_vl": ("qwen2_vl", "Qwen2VLForConditionalGeneration"),
    "qwen2_5_vl": ("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration"),
    "qwen3_vl": ("qwen3_vl", "Qwen3VLForConditionalGeneration"),
    "glm4v": ("glm4_1v", "Glm4vForConditionalGeneration"),
    "qwen2_5_omni": ("qwen2_5_omni_thinker", "Qwen2_5OmniThinkerForConditionalGeneration"),
    "qwen3_omni_moe": ("qwen3_omni_moe_thinker", "Qwen3OmniMoeThinkerForConditionalGeneration"),
}
"""For each family the module and the class that numbers its positions."""


def request(vllm: Vllm, id: str, asked: Request, namespace: Namespace = NOBODY, page: int | None = None) -> Any:
    """A `Request`, with the hashes of its blocks where they have a size."""
    sampling = cpu.module("vllm.sampling_params").SamplingParams(max_tokens=1)
    adapter = None
    if namespace.adapter is not None:
        lora = cpu.module("vllm.lora.request").LoRARequest
        adapter = lora(lora_name=namespace.adapter, lora_int_id=1, lora_path=namespace.adapter)
    return vllm.request.Request(
        id,
        asked.input_ids.tolist(),
        sampling,
        None,
        mm_features=translate.features(vllm, asked.items),
        lora_request=adapter,
        cache_salt=namespace.salt,
        block_hasher=None if page is None else _hasher(page),
    )


class PrefixCache:
    """`KVCacheManager`, for one layer of full attention, in blocks of a size that `CacheConfig` takes.

    It evicts when it needs room, and not when it is told to.
    """

    def __init__(self, vllm: Vllm, page: int) -> None:
        interface = cpu.module("vllm.v1.kv_cache_interface")
        page = cpu.module("vllm.config.cache").CacheConfig(block_size=page).block_size
        layer = interface.FullAttentionSpec(block_size=page, num_kv_heads=1, head_size=1, dtype=torch.float32)
        config = interface.KVCacheConfig(BLOCKS, [], [interface.KVCacheGroupSpec(["layer"], layer)])
        manager = cpu.module("vllm.v1.core.kv_cache_manager").KVCacheManager
        self._manager = manager(config, BLOCKS * page, scheduler_block_size=page, hash_block_size=page)
        self._vllm, self._page, self._number = vllm, page, 0

    def insert(self, asked: Request, namespace: Namespace, limit: int) -> None:
        """`allocate_slots` for what is not cached yet, and `free`, which leaves full blocks to be found."""
        made = self._request(asked, namespace)
        blocks, known, _ = self._manager.get_computed_blocks(made, limit)
        if known < limit:
            self._manager.allocate_slots(made, limit - known, known, blocks)
            self._manager.free(made)

    def match(self, asked: Request, namespace: Namespace, limit: int) -> int:
        """`get_computed_blocks`."""
        _, known, _ = self._manager.get_computed_blocks(self._request(asked, namespace), limit)
        return int(known)

    def clear(self) -> None:
        """`reset_prefix_cache`."""
        self._manager.reset_prefix_cache()

    def _request(self, asked: Request, namespace: Namespace) -> Any:
        self._number += 1
        return request(self._vllm, str(self._number), asked, namespace, self._page)


def positions(vllm: Vllm, input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[torch.Tensor, int]:
    """The model's `get_mrope_input_positions`."""
    module, name = MODELS[layout.family]
    owner = getattr(cpu.module(f"vllm.model_executor.models.{module}"), name)
    model = owner.__new__(owner)
    nn.Module.__init__(model)
    timed = {} if layout.tokens_per_second is None else {"tokens_per_second": layout.tokens_per_second}
    vision = SimpleNamespace(spatial_merge_size=layout.spatial_merge_size, **timed)
    model.config = SimpleNamespace(
        vision_config=vision,
        position_id_per_seconds=layout.tokens_per_second,
        seconds_per_chunk=2,
        **{f"{name}_token_id": number for name, number in layout.token_ids.items()},
    )
    ids = input_ids.tolist()
    features = [_sized(vllm, item, ids, layout) for item in items]
    triples, delta = model.get_mrope_input_positions(ids, features)
    return triples, int(delta)


def extended(vllm: Vllm, triples: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """`MRotaryEmbedding.get_next_input_positions_tensor`, behind the positions of the prompt, as the model runner has it."""
    rotary = cpu.module("vllm.model_executor.layers.rotary_embedding.mrope").MRotaryEmbedding
    prompt = triples.shape[1]
    out = np.concatenate([triples, np.zeros((3, length - prompt), dtype=np.int64)], axis=1)
    rotary.get_next_input_positions_tensor(
        out=out,
        out_offset=prompt,
        mrope_position_delta=int(triples.max(initial=-1)) + 1 - prompt,
        context_len=prompt,
        num_new_tokens=length - prompt,
    )
    return out


def _sized(vllm: Vllm, item: Item, ids: list[int], layout: MropeLayout) -> Any:
    """A feature with the sizes of its item, which is all that numbering reads."""
    inputs = vllm.inputs
    data = {
        name: inputs.MultiModalFieldElem(data=torch.tensor(value), field=inputs.MultiModalBatchedField())
        for name, value in item.fields.items()
    }
    return inputs.MultiModalFeatureSpec(
        data=inputs.MultiModalKwargsItem(data),
        modality=translate.modality(item),
        identifier="",
        mm_position=translate.placeholder(vllm, item.spans, _replaced(item, ids, layout)),
    )


def _replaced(item: Item, ids: list[int], layout: MropeLayout) -> Span:
    """What the processor puts for an item: with frames apart the tokens around each frame as well, and with a recording in
    a video, from the start token of the recording on (`omni_get_updates_use_audio_in_video`)."""
    first, last = item.spans[0].first, item.spans[-1].last
    if "use_audio_in_video" in item.fields:
        first -= ids[first - 1 : first] == [layout.token_ids["audio_start"]]
    if layout.frames_apart and item.modality is Modality.VIDEO:
        first -= ids[first - 1 : first] == [layout.token_ids["vision_start"]]
        last += ids[last + 1 : last + 2] == [layout.token_ids["vision_end"]]
    return Span(first, last)


def _hasher(page: int) -> Any:
    """The hasher of blocks of this size, with the hash that vLLM takes by default."""
    hashing, keys = cpu.module("vllm.utils.hashing"), cpu.module("vllm.v1.core.kv_cache_utils")
    keys.init_none_hash(hashing.sha256)
    return keys.get_request_block_hasher(page, hashing.sha256)


def rotary_axes(sections: tuple[int, int, int], interleaved: bool) -> torch.Tensor:
    """`MRotaryEmbedding.forward_native`, where the cosine of a position on each axis is the axis itself, and its sine is 0."""
    count = sum(sections)
    query = torch.cat([torch.ones(1, 1, count), torch.zeros(1, 1, count)], dim=-1)
    axes = torch.arange(3)[:, None]
    table = torch.cat([axes.expand(3, count), torch.zeros(3, count)], dim=-1)
    turned, _ = kernels.apply_mrope(query, query, axes, table, sections, interleaved, neighbours=False)
    return turned[0, 0, :count].long()
