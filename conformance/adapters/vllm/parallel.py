"""vLLM's encoder that is shared by ranks, and the client that spreads requests over data parallel engines.

A router is a `DPLBAsyncMPClient` without sockets: the engine that it chooses is where the request went. What the
coordinator tells it is written where it would be, and requests that a report says are done end as its engines' outputs
end them, the first ones first.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, count, pairwise
from types import FunctionType, SimpleNamespace
from typing import Any

import torch

from conformance.adapters.vllm import cpu
from conformance.protocol.parallel import Collectives, Encode, Load, Policy, Routed
from conformance.world.doubles import HIDDEN
from reference.items import Item

POLICIES: tuple[Policy, ...] = ("total requests",)


def encode_on_rank(items: Sequence[Item], encode: Encode, collectives: Collectives) -> list[torch.Tensor | Exception]:
    """`run_dp_sharded_mrope_vision_model` of an encoder that gives one row for each patch.

    A patch is the number of its item. Ranks are threads here and processes there, so each has the parallel state of its own.
    Without an item vLLM runs no encoder, on any rank.
    """
    if not items:
        return []
    given = cpu.module("vllm.model_executor.models.vision").run_dp_sharded_mrope_vision_model

    def encoder(patches: torch.Tensor, grids: Sequence[Sequence[int]]) -> torch.Tensor:
        lengths = [grid[-1] for grid in grids]
        ends = accumulate(lengths)
        firsts = [int(patches[end - length, 0]) for end, length in zip(ends, lengths, strict=True) if length]
        return torch.cat([encode(items[number]) for number in firsts])

    def parameters() -> Any:
        return iter([torch.zeros(0)])

    vars(encoder).update(spatial_merge_size=1, out_hidden_size=HIDDEN, parameters=parameters)
    state = {
        "get_tensor_model_parallel_world_size": lambda: collectives.size,
        "get_tensor_model_parallel_rank": lambda: collectives.rank,
        "tensor_model_parallel_all_gather": lambda rows, dim: torch.cat(collectives.all_gather_tensor(rows), dim=dim),
    }
    run = FunctionType(given.__code__, given.__globals__ | state, argdefs=given.__defaults__)
    run.__kwdefaults__ = given.__kwdefaults__
    counts = [item.token_count for item in items]
    patches = torch.repeat_interleave(torch.arange(len(items)), torch.tensor(counts, dtype=torch.int64)).float()[:, None]
    return list(run(encoder, patches, [[1, 1, count] for count in counts], rope_type="rope_3d"))


def assign_items(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """`get_load_balance_assignment`: the items in the order of the ranks, and how many each rank has."""
    vision = cpu.module("vllm.model_executor.models.vision")
    order, counts, _ = vision.get_load_balance_assignment(list(sizes), ranks)
    return [order[first:stop] for first, stop in pairwise([0, *accumulate(counts)])]


class _Checked(Exception):
    """The prompt was looked at: all that comes before has been checked."""


class _Prompt(dict[str, Any]):
    """A prompt that nobody can look at."""

    def __contains__(self, key: object) -> bool:
        raise _Checked


class Router:
    """A client of so many engines."""

    def __init__(self, ranks: int) -> None:
        self._module = cpu.module("vllm.v1.engine.core_client")
        self._ids = count()
        self._sent: list[list[str]] = [[] for _ in range(ranks)]
        self._done = [0] * ranks
        self._client = object.__new__(self._module.DPLBAsyncMPClient)
        vars(self._client).update(
            client_count=1,
            eng_start_index=0,
            core_engines=list(range(ranks)),
            lb_engines=[[0, 0, 0.0] for _ in range(ranks)],
            reqs_in_flight={},
            streaming_reqs=set(),
            engine_inflight=Counter(),
        )

    def route(self, request: Routed) -> int:
        """`get_core_engine_for_request`, behind the check of the rank in `InputProcessor.process_inputs`."""
        if request.rank is not None:
            self._check(request.rank)
        id = str(next(self._ids))
        asked = SimpleNamespace(request_id=id, resumable=False, data_parallel_rank=request.rank, pooling_params=None)
        rank: int = self._client.get_core_engine_for_request(asked)
        self._sent[rank].append(id)
        return rank

    def _check(self, rank: int) -> None:
        """What `process_inputs` says of a rank before it looks at the prompt."""
        ranks = len(self._sent)
        parallel = SimpleNamespace(data_parallel_size=ranks, data_parallel_size_local=ranks, local_engines_only=False)
        processor = SimpleNamespace(
            _validate_params=lambda *given: None,
            _validate_lora=lambda *given: None,
            vllm_config=SimpleNamespace(parallel_config=parallel),
        )
        process = cpu.module("vllm.v1.engine.input_processor").InputProcessor.process_inputs
        with suppress(_Checked):
            process(processor, "", _Prompt(), None, (), data_parallel_rank=rank)

    def report(self, rank: int, load: Load, sequence: int) -> None:
        """What the coordinator publishes: waiting and running requests of an engine; and the outputs of those that are done."""
        self._client.lb_engines[rank] = [0, load.requests, 0.0]
        done = self._sent[rank][self._done[rank] : max(load.received - load.requests, 0)]
        self._done[rank] += len(done)
        asyncio.run(self._client.process_engine_outputs(self._client, SimpleNamespace(finished_requests=done)))


def open_router(policy: Policy, ranks: int) -> Router:
    """A client that balances by requests, the only way that vLLM has."""
    if policy not in POLICIES:
        raise ValueError(f"vLLM balances by {', '.join(POLICIES)}, and not by {policy!r}")
    return Router(ranks)


class Parallel:
    """The methods of the protocol that this module answers."""

    assign_items = staticmethod(assign_items)
    encode_on_rank = staticmethod(encode_on_rank)
    open_router = staticmethod(open_router)
