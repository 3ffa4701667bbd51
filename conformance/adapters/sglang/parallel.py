"""SGLang's launch plan, its controller of data parallel ranks, and the assignment of its encoder ranks.

A plan is what `DataParallelController.launch_tensor_parallel_group` starts, node by node, with processes that are written
down in place of being started; what is refused is what SGLang's own checks of its arguments refuse. A router is a controller
without sockets: a message that it sends is where the request went.
"""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import accumulate
from types import FunctionType, SimpleNamespace
from typing import Any

import torch

from conformance.adapters.sglang import cpu
from conformance.protocol.parallel import Collectives, Encode, Layout, Load, Place, Policy, Routed
from conformance.world.doubles import HIDDEN
from reference.items import Item

POLICIES: tuple[Policy, ...] = ("round robin", "total requests", "total tokens", "bootstrap room")
METHODS = {"bootstrap room": "FOLLOW_BOOTSTRAP_ROOM"}
LAYOUTS = ("attention dp", "pp across nodes", "device step")
"""Replicas on several nodes are refused."""


def _controllers() -> Any:
    return cpu.module("sglang.srt.managers.data_parallel_controller")


def _configured(**fields: Any) -> Any:
    """SGLang's settings with these, as long as they are needed."""
    return cpu.module("sglang.srt.runtime_context").get_context().override_server_args(**fields)


def launch_plan(layout: Layout) -> list[Place]:
    """What is started on every node for a layout that SGLang's checks let pass."""
    fields = {
        "tp_size": layout.tp,
        "pp_size": layout.pp,
        "dp_size": layout.dp,
        "attn_dp_size": layout.attention_dp,
        "ep_size": layout.ep,
        "nnodes": layout.nodes,
        "base_gpu_id": layout.first_device,
        "gpu_id_step": layout.device_step,
    }
    graphs = cpu.module("sglang.srt.model_executor.cuda_graph_config").CudaGraphConfig()
    settled = {"served_model_name": "none", "chunked_prefill_size": 8192, "page_size": 1, "cuda_graph_config": graphs}
    overlap = {"disable_overlap_schedule": layout.pp > 1}
    arguments = cpu.module("sglang.srt.server_args").ServerArgs(model_path="none", device="cpu", **settled, **overlap, **fields)
    cpu.module("sglang.srt.arg_groups.parallel_hook").handle_data_parallelism(arguments)
    cpu.module("sglang.srt.arg_groups.validation_hook").check_server_args(arguments)
    return [place for node in range(layout.nodes) for place in _started(layout, node, {**fields, "node_rank": node})]


def _started(layout: Layout, node: int, fields: dict[str, Any]) -> list[Place]:
    """The processes that a node starts: for each replica a group, as `launch_dp_schedulers` counts their devices."""
    module, configured = _controllers(), _configured(**fields)
    configured.install()
    try:
        found = []
        for replica in range(layout.dp):
            base = replica * layout.tp * layout.pp * layout.device_step
            for device, tp, pp, dp, ep in _group(module, base, replica if layout.dp > 1 else None):
                found.append(Place(node, device, dp or 0, pp, tp, ep))
        return found
    finally:
        configured.restore()


def _group(module: Any, base: int, dp: int | None) -> list[tuple[int, int, int, int | None, int]]:
    """The device and the ranks (tp, pp, dp, ep) of each process of a tensor parallel group on this node."""
    started: list[tuple[int, int, int, int | None, int]] = []

    def process(target: Any, args: tuple[Any, ...]) -> Any:
        _, _, device, tp, pp, rank, _, _, _, ep = args
        started.append((device, tp, pp, rank, ep))
        return SimpleNamespace(start=lambda: None)

    reader = SimpleNamespace(recv=lambda: {"max_total_num_tokens": 0, "max_req_input_len": 0})
    controller = object.__new__(module.DataParallelController)
    controller.__dict__.update(
        env_lock=threading.Lock(),
        run_scheduler_process_func=None,
        prelaunched_schedulers=None,
        scheduler_procs=[],
        local_kv_event_sources=[],
        attn_replica_size=1,
        _record_scheduler_init_infos=lambda infos: None,
    )
    names = {
        "mp": SimpleNamespace(Process=process, Pipe=lambda duplex: (reader, None)),
        "TorchMemorySaverAdapter": SimpleNamespace(create=lambda **options: SimpleNamespace(configure_subprocess=nullcontext)),
        "numa_utils": SimpleNamespace(configure_subprocess=lambda *arguments: nullcontext()),
        "PortArgs": SimpleNamespace(init_new=lambda *arguments: SimpleNamespace()),
    }
    before = {name: getattr(module, name) for name in names}
    try:
        vars(module).update(names)
        ports = SimpleNamespace(nccl_port=0, instance_id="")
        controller.launch_tensor_parallel_group(None, ports, base, dp, [0] * 1024)
    finally:
        vars(module).update(before)
    return started


def assign_items(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """`get_dp_encoder_lb_assignment`: a list of all items, and how many of them each rank takes."""
    order, counts, _ = cpu.module("sglang.srt.multimodal.mm_utils").get_dp_encoder_lb_assignment(list(sizes), ranks)
    firsts = [sum(counts[:rank]) for rank in range(ranks)]
    return [order[first : first + count] for first, count in zip(firsts, counts, strict=True)]


class Router:
    """`DataParallelController` without processes and sockets. Reports are what `DPBudget` reads from shared memory."""

    def __init__(self, policy: Policy, ranks: int) -> None:
        module = _controllers()
        method = module.LoadBalanceMethod.from_str(METHODS.get(policy, policy.upper().replace(" ", "_")))
        controller = self._controller = object.__new__(module.DataParallelController)
        controller.__dict__.update(
            round_robin_counter=0,
            max_dp_size=ranks,
            dp_active=[True] * ranks,
            status=[True] * ranks,
            workers=list(range(ranks)),
            _active_workers=list(range(ranks)),
            _active_count_cache=ranks,
            dp_budget=module.DPBudget(ranks),
        )
        lookup = {
            "ROUND_ROBIN": controller.round_robin_scheduler,
            "FOLLOW_BOOTSTRAP_ROOM": controller.follow_bootstrap_room_scheduler,
            "TOTAL_REQUESTS": controller.total_requests_scheduler,
            "TOTAL_TOKENS": controller.total_tokens_scheduler,
        }
        self._dispatch = lookup[method.name]

    def route(self, request: Routed) -> int:
        """The worker to whom the controller's dispatch sends a request."""
        asked = SimpleNamespace(routed_dp_rank=request.rank, bootstrap_room=request.room, input_ids=range(request.token_count))
        module, sent = _controllers(), []
        before = module.sock_send
        module.sock_send = lambda worker, one: sent.append(worker)
        try:
            self._dispatch(asked)
        finally:
            module.sock_send = before
        rank: int = sent[-1]
        return rank

    def report(self, rank: int, load: Load, sequence: int) -> None:
        """`DPBudget.update_budget` of a snapshot. Its timestamp is the number of the report, plus one."""
        self._controller.dp_budget.update_budget(
            [
                SimpleNamespace(
                    dp_rank=rank,
                    timestamp=float(sequence + 1),
                    num_running_reqs=load.requests,
                    num_waiting_reqs=0,
                    num_total_tokens=load.tokens,
                )
            ]
        )

    def mark_dead(self, rank: int) -> None:
        """`update_active_ranks`, as the message of a rank that is gone brings it."""
        self._set(rank, False)

    def mark_alive(self, rank: int) -> None:
        """`update_active_ranks`, as the message of a rank that is there again brings it."""
        self._set(rank, True)

    def _set(self, rank: int, is_alive: bool) -> None:
        status = list(self._controller.status)
        status[rank] = is_alive
        elastic = _configured(elastic_ep_backend="mooncake")  # only then do schedulers send this message
        elastic.install()
        try:
            self._controller.update_active_ranks(_controllers().ActiveRanksOutput(status=status))
        finally:
            elastic.restore()


def open_router(policy: Policy, ranks: int) -> Router:
    """A controller with this method of load balancing."""
    return Router(policy, ranks)


class _Group:
    """What `run_dp_sharded_mrope_vision_model` asks of a tensor-parallel group: tensors of one shape."""

    def __init__(self, collectives: Collectives) -> None:
        self._collectives = collectives

    def all_gather(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.cat(self._collectives.all_gather_tensor(tensor), dim=dim)

    def broadcast(self, tensor: torch.Tensor, src: int) -> None:
        data = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        sent = bytearray(self._collectives.broadcast(data, src))
        tensor.copy_(torch.frombuffer(sent, dtype=tensor.dtype).reshape(tensor.shape))


def encode_on_rank(items: Sequence[Item], encode: Encode, collectives: Collectives) -> list[torch.Tensor | Exception]:
    """`run_dp_sharded_mrope_vision_model` of an encoder that gives one row for each patch.

    A patch is the number of its item. Ranks are threads here and processes there, so each has the parallel state of its own.
    Without an item SGLang runs no encoder, on any rank.
    """
    if not items:
        return []
    module = cpu.module("sglang.srt.multimodal.mm_utils")
    group = _Group(collectives)
    state = SimpleNamespace(attn_tp_size=collectives.size, attn_tp_rank=collectives.rank, attn_tp_group=group)

    def encoder(patches: torch.Tensor, grids: Any = None, grid_thw: Any = None) -> torch.Tensor:
        lengths = [int(grid[-1]) for grid in (grids if grid_thw is None else grid_thw)]
        ends = accumulate(lengths)
        firsts = [int(patches[end - length, 0]) for end, length in zip(ends, lengths, strict=True) if length]
        return torch.cat([encode(items[number]) for number in firsts])

    vars(encoder).update(spatial_merge_size=1, out_hidden_size=HIDDEN, device="cpu")
    counts = [item.token_count for item in items]
    patches = torch.repeat_interleave(torch.arange(len(items)), torch.tensor(counts, dtype=torch.int64)).float()[:, None]
    run = FunctionType(
        module.run_dp_sharded_mrope_vision_model.__code__,
        {**vars(module), "get_parallel": lambda: state},
        argdefs=module.run_dp_sharded_mrope_vision_model.__defaults__,
    )
    run.__kwdefaults__ = module.run_dp_sharded_mrope_vision_model.__kwdefaults__
    rows = run(encoder, patches, [[1, 1, count] for count in counts], rope_type="rope_3d")
    return [rows[sum(counts[:n]) : sum(counts[: n + 1])] for n in range(len(items))]


class Parallel:
    """The methods of the protocol that this module answers."""

    launch_plan = staticmethod(launch_plan)
    assign_items = staticmethod(assign_items)
    encode_on_rank = staticmethod(encode_on_rank)
    open_router = staticmethod(open_router)
