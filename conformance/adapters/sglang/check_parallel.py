"""What SGLang 0.5.23 gets wrong about ranks: its launch plan, its controller of replicas and its encoder ranks.

`python -m conformance.adapters.sglang.check` runs these, too.
"""

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu

CHECKS = Checks()
fails = CHECKS.fails


def controllers() -> Any:
    cpu.prepare()
    return cpu.module("sglang.srt.managers.data_parallel_controller")


def checked(**sizes: int) -> str:
    """The error that SGLang's checks of its arguments end with."""
    graphs = cpu.module("sglang.srt.model_executor.cuda_graph_config").CudaGraphConfig()
    settled = {"served_model_name": "none", "chunked_prefill_size": 8192, "page_size": 1, "cuda_graph_config": graphs}
    made = cpu.module("sglang.srt.server_args").ServerArgs(model_path="none", device="cpu", **settled, **sizes)
    made.disable_overlap_schedule = True
    return error(lambda: cpu.module("sglang.srt.arg_groups.validation_hook").check_server_args(made))


def started(**sizes: int) -> list[tuple[int, int, int]]:
    """The device, the tensor rank and the pipeline rank of each process that a node starts for one replica."""
    module, found = controllers(), []
    reader = SimpleNamespace(recv=lambda: {"max_total_num_tokens": 0, "max_req_input_len": 0})

    def process(target: Any, args: tuple[Any, ...]) -> Any:
        found.append((args[2], args[3], args[4]))
        return SimpleNamespace(start=lambda: None)

    controller = SimpleNamespace(
        env_lock=threading.Lock(), run_scheduler_process_func=None, prelaunched_schedulers=None, scheduler_procs=[]
    )
    controller.local_kv_event_sources, controller.attn_replica_size = [], 1
    controller._record_scheduler_init_infos = lambda infos: None
    saver = SimpleNamespace(configure_subprocess=nullcontext)
    configured = cpu.module("sglang.srt.runtime_context").get_context().override_server_args(**sizes)
    configured.install()
    try:
        with patch.multiple(
            module,
            mp=SimpleNamespace(Process=process, Pipe=lambda duplex: (reader, None)),
            TorchMemorySaverAdapter=SimpleNamespace(create=lambda **options: saver),
            numa_utils=SimpleNamespace(configure_subprocess=lambda *arguments: nullcontext()),
            PortArgs=SimpleNamespace(init_new=lambda *arguments: SimpleNamespace()),
        ):
            ports = SimpleNamespace(nccl_port=0, instance_id="")
            module.DataParallelController.launch_tensor_parallel_group(controller, None, ports, 0, None, [0] * 64)
    finally:
        configured.restore()
    return found


@fails("PARALLEL-02", "PARALLEL-03")
def stages_do_not_step() -> bool:
    """Tensor ranks take every second device where they are told to, and pipeline ranks do not: two processes on one device."""
    devices = [device for device, _, _ in started(tp_size=2, pp_size=2, gpu_id_step=2)]
    return devices == [0, 2, 2, 4]


@fails("PARALLEL-08", "PARALLEL-09", "PARALLEL-50")
def sizes_are_not_checked() -> bool:
    """No tensor ranks are a launch of nothing; what does not divide is an assertion; devices that a node has not are used."""
    nothing = (checked(tp_size=0), started(tp_size=0)) == ("", [])
    beyond = [device for device, _, _ in started(tp_size=2, base_gpu_id=1 << 20)]
    return nothing and checked(tp_size=3, nnodes=2) == "AssertionError" and beyond == [1 << 20, (1 << 20) + 1]


@fails("PARALLEL-10")
def stages_that_nobody_starts() -> bool:
    """Of three stages on two nodes the third is started by neither, for a node takes as many as the other."""
    nodes = [started(tp_size=2, pp_size=3, nnodes=2, node_rank=node) for node in range(2)]
    return checked(tp_size=2, pp_size=3, nnodes=2) == "" and {stage for one in nodes for _, _, stage in one} == {0, 1}


@fails("PARALLEL-26")
def an_encoder_that_raises_leaves_the_others_waiting() -> bool:
    """A rank whose encoder raises never comes to the gathering in which all other ranks are."""
    module = cpu.module("sglang.srt.multimodal.mm_utils")
    gathered: list[Any] = []

    def encoder(*_: Any, **__: Any) -> Any:
        raise OSError

    vars(encoder).update(spatial_merge_size=1, out_hidden_size=1, device="cpu")
    group = SimpleNamespace(all_gather=lambda tensor, dim: gathered.append(tensor))
    state = SimpleNamespace(attn_tp_size=2, attn_tp_rank=0, attn_tp_group=group)
    with patch.object(module, "get_parallel", lambda: state):
        raised = error(
            lambda: module.run_dp_sharded_mrope_vision_model(
                encoder, torch.zeros(4, 1), [[1, 1, 2], [1, 1, 2]], rope_type="rope_3d"
            )
        )
    return (raised, gathered) == ("OSError", [])


def routed(scheduler: str, status: list[bool], count: int = 1, room: int | None = None) -> list[int]:
    """To whom the controller sends requests of 5 tokens with this method, where these ranks are alive."""
    module, sent = controllers(), []
    controller = object.__new__(module.DataParallelController)
    ranks = len(status)
    vars(controller).update(workers=list(range(ranks)), status=status, dp_budget=module.DPBudget(ranks))
    request = SimpleNamespace(routed_dp_rank=None, bootstrap_room=room, input_ids=range(5))
    with patch.object(module, "sock_send", lambda worker, one: sent.append(worker)):
        for _ in range(count):
            getattr(controller, scheduler)(request)
    return sent


@fails("PARALLEL-28", "PARALLEL-29", "PARALLEL-36", "PARALLEL-37", "PARALLEL-38")
def the_dead_get_requests() -> bool:
    """By load and by room requests go to dead ranks, too; also when all of them are."""
    by_load = [routed(f"total_{what}_scheduler", [False, True], 2) for what in ("requests", "tokens")]
    by_room = routed("follow_bootstrap_room_scheduler", [False, True], room=2)
    return by_load == [[0, 1]] * 2 and by_room == [0] and routed("total_requests_scheduler", [False, False]) == [0]


@fails("PARALLEL-39")
def no_room() -> bool:
    """A request without a room is an assertion."""
    return error(lambda: routed("follow_bootstrap_room_scheduler", [True, True])) == "AssertionError"


@fails("PARALLEL-49")
def no_ranks() -> bool:
    """A controller's books are made for no ranks as well, and its first request is an error of `min`."""
    budget, method = controllers().DPBudget(0), controllers().LoadBalanceMethod.TOTAL_REQUESTS
    return error(lambda: budget.dispatch(method)) == "ValueError"


@fails("PARALLEL-30", "PARALLEL-31", "PARALLEL-33")
def a_report_undoes_what_was_sent() -> bool:
    """A report that was made before a request arrived takes the place of the count with it: the next goes there again."""
    budget, chosen = controllers().DPBudget(2), []
    for number in range(4):
        chosen.append(budget.dispatch(controllers().LoadBalanceMethod.TOTAL_REQUESTS))
        empty = {"num_running_reqs": 0, "num_waiting_reqs": 0, "num_total_tokens": 0}
        budget.update_budget([SimpleNamespace(dp_rank=0, timestamp=float(number + 1), **empty)])
    return chosen == [0] * 4
