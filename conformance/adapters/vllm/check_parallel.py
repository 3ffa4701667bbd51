"""What vLLM 0.33.0 gets wrong about ranks.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm import cpu
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails


@fails("PARALLEL-26")
def an_encoder_that_fails_alone() -> bool:
    """An encoder that raises on one rank never comes to where the others wait for its rows."""
    vision, waited = cpu.module("vllm.model_executor.models.vision"), list[Any]()

    def encoder(*given: Any) -> Any:
        raise OSError

    vars(encoder).update(spatial_merge_size=1, out_hidden_size=1, parameters=lambda: iter([torch.zeros(0)]))
    ranks: dict[str, Any] = {"get_tensor_model_parallel_world_size": lambda: 2, "get_tensor_model_parallel_rank": lambda: 0}
    with patch.multiple(vision, tensor_model_parallel_all_gather=waited.append, **ranks):
        run = partial(
            vision.run_dp_sharded_mrope_vision_model, encoder, torch.zeros(2, 1), [[1, 1, 1]] * 2, rope_type="rope_3d"
        )
        return error(run) == "OSError" and not waited


@fails("PARALLEL-32")
def reports_that_come_again() -> bool:
    """A report that comes again takes back what was sent to its engine meanwhile: the greater of the two counts, not both."""

    def chosen(again: bool) -> list[int]:
        one = object.__new__(named("v1.engine.core_client:DPLBAsyncMPClient"))
        vars(one).update(client_count=1, eng_start_index=0, core_engines=[0, 1], reqs_in_flight={}, streaming_reqs=set())
        vars(one).update(engine_inflight=Counter(), lb_engines=[[0, 2, 0.0], [0, 1, 0.0]])
        given: dict[str, Any] = {"resumable": False, "data_parallel_rank": None, "pooling_params": None}
        first = one.get_core_engine_for_request(SimpleNamespace(request_id="a", **given))
        one.lb_engines[1] = [0, 1, 0.0] if again else one.lb_engines[1]
        one.eng_start_index = 0
        return [first, one.get_core_engine_for_request(SimpleNamespace(request_id="b", **given))]

    return chosen(again=False) == [1, 0] and chosen(again=True) == [1, 1]
