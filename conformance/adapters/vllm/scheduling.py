"""vLLM's scheduler, with an encoder and a model that are done at once."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from conformance.adapters.vllm import cpu, prompts
from conformance.adapters.vllm.cpu import Vllm
from conformance.protocol.scheduling import Budget
from reference.items import Chunk, Item, Request

KNOBS = ("tokens_per_step", "embeddings_per_step", "embeddings_kept", "kv_tokens", "whole_items")
UNLIMITED = 2**40
BLOCKS = 2048


def plan(vllm: Vllm, asked: Sequence[tuple[int, Sequence[Item]]], budget: Budget, prefix: int = 0) -> list[dict[int, Chunk]]:
    """`Scheduler.schedule` and `update_from_output` in turn, until all is done or a step computes nothing.

    Each position is a block, so that a prefix of any length may be cached. A model is as long as there are slots. Its
    largest item has as many embeddings as either budget allows: vLLM raises both to it, and refuses an item that is larger.
    """
    if budget.alignment_tokens != 1:
        raise ValueError(f"vLLM has no knob for alignment here, only for {', '.join(KNOBS)}")
    limits = [UNLIMITED if limit is None else limit for limit in (budget.embeddings_per_step, budget.embeddings_kept)]
    named = [_request(number, length, items) for number, (length, items) in enumerate(asked)]
    made = [prompts.request(vllm, one.id, one, page=1) for one in named]
    for request in made:
        _admit(request, budget, min(limits))
    scheduler = _scheduler(vllm, budget, *limits)
    for request in made:
        if prefix:
            scheduler.kv_cache_manager.allocate_slots(request, prefix)
            scheduler.kv_cache_manager.free(request)
        scheduler.add_request(request)
    steps: list[dict[int, Chunk]] = []
    while scheduler.has_unfinished_requests():
        step = scheduler.schedule()
        if not step.num_scheduled_tokens:
            break
        done = {id: scheduler.requests[id].num_computed_tokens for id in step.num_scheduled_tokens}
        steps.append({int(id): Chunk(done[id] - length, length) for id, length in step.num_scheduled_tokens.items()})
        sampled = [[0] if done[id] == scheduler.requests[id].num_tokens else [] for id in done]
        output = cpu.module("vllm.v1.outputs").ModelRunnerOutput
        numbers = {id: number for number, id in enumerate(done)}
        scheduler.update_from_output(step, output(req_ids=list(done), req_id_to_index=numbers, sampled_token_ids=sampled))
    return steps


def _request(number: int, length: int, items: Sequence[Item]) -> Request:
    """A prompt that shares nothing with any other."""
    ids = np.arange(length, dtype=np.int64) + number * UNLIMITED
    named = [replace(item, identity=None, caller_hash=number * 2**32 + place) for place, item in enumerate(items)]
    return Request(id=str(number), input_ids=ids, items=tuple(named))


def _admit(request: Any, budget: Budget, largest: int) -> None:
    """`InputProcessor._validate_model_input`, and `compute_mm_encoder_budget` for a model whose items are as long as these."""
    settings = SimpleNamespace(
        disable_chunked_mm_input=budget.whole_items,
        max_num_batched_tokens=budget.tokens_per_step,
        max_num_encoder_input_tokens=largest,
        encoder_cache_size=largest,
    )
    lengths = {str(number): feature.mm_position.length for number, feature in enumerate(request.mm_features)}
    cpu.module("vllm.v1.core.encoder_cache_manager").compute_mm_encoder_budget(settings, lengths)
    owner = cpu.module("vllm.v1.engine.input_processor").InputProcessor
    door = owner.__new__(owner)
    door.mm_encoder_cache_size = largest
    door.skip_prompt_length_check = False
    door.supports_mm_inputs = True
    room = UNLIMITED if budget.kv_tokens is None else budget.kv_tokens
    door.model_config = SimpleNamespace(max_model_len=room, runner_type="generate")
    door.renderer = SimpleNamespace(validate_token_ids=lambda ids: None)
    positions: dict[str, list[Any]] = {}
    for feature in request.mm_features:
        positions.setdefault(feature.modality, []).append(feature.mm_position)
    given = {"type": "multimodal", "prompt_token_ids": request.prompt_token_ids, "mm_placeholders": positions}
    door._validate_model_input(given, prompt_type="decoder")


class _Nothing:
    """The settings of a model that has none of what is asked for."""

    max_model_len = BLOCKS
    runner_type = "generate"

    def __getattr__(self, name: str) -> Any:
        return False


def _scheduler(vllm: Vllm, budget: Budget, embeddings_per_step: int, embeddings_kept: int) -> Any:
    interface = cpu.module("vllm.v1.kv_cache_interface")
    config: Any = cpu.module("vllm.config").VllmConfig()
    config.scheduler_config = cpu.module("vllm.config.scheduler").SchedulerConfig(
        max_num_batched_tokens=BLOCKS, max_num_seqs=64, max_model_len=BLOCKS, is_encoder_decoder=False
    )
    config.scheduler_config.disable_chunked_mm_input = budget.whole_items
    config.cache_config = cpu.module("vllm.config.cache").CacheConfig(block_size=1, enable_prefix_caching=True)
    config.cache_config.num_gpu_blocks = count = BLOCKS if budget.kv_tokens is None else budget.kv_tokens + 1  # 1 is no slot
    config.model_config = _Nothing()
    layer = interface.FullAttentionSpec(block_size=1, num_kv_heads=1, head_size=1, dtype=torch.float32)
    blocks = interface.KVCacheConfig(count, [], [interface.KVCacheGroupSpec(["layer"], layer)])
    grammars = SimpleNamespace(accept_tokens=lambda request, tokens: True)
    scheduler = vllm.scheduler.Scheduler(config, blocks, grammars, block_size=1, hash_block_size=1)
    scheduler.max_num_scheduled_tokens = budget.tokens_per_step
    scheduler.max_num_encoder_input_tokens = embeddings_per_step
    scheduler.encoder_cache_manager = vllm.scheduler.EncoderCacheManager(embeddings_kept)
    return scheduler
