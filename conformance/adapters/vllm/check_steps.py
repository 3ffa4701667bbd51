"""What vLLM 0.33.0 gets wrong about a step: what is scheduled, encoded, pruned and merged.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm.parts import column, feature, merged, named, runner

CHECKS = Checks()
fails = CHECKS.fails


def request(*features: Any, id: str = "a", length: int = 4) -> Any:
    sampling = named("sampling_params:SamplingParams")(max_tokens=1)
    return named("v1.request:Request")(id, [5] * length, sampling, None, mm_features=list(features))


def scheduler(room: int) -> Any:
    """A scheduler, as far as it chooses what to encode, with room for so many embeddings."""
    owner = named("v1.core.sched.scheduler:Scheduler")
    made = owner.__new__(owner)
    made.is_encoder_decoder, made.ec_connector, made.encoder_cache_mismatch_reqs = False, None, set()
    made.scheduler_config = SimpleNamespace(disable_chunked_mm_input=False)
    made.encoder_cache_manager = named("v1.core.encoder_cache_manager:EncoderCacheManager")(room)
    return made


def gathered(rows: torch.Tensor, length: int) -> list[torch.Tensor]:
    """The rows of a prompt that is one picture of this length, whose encoder gave these."""
    one = runner()
    one.encoder_cache.add_request("request", [feature(0, length)])
    one.encoder_cache.encoder_outputs["a"] = rows
    numbers = np.array([length])
    found: list[torch.Tensor] = one.gather_mm_embeddings(["request"], length, numbers, np.array([0]), numbers, np.array([0]))[0]
    return found


@fails("SCHEDULING-11")
def whole_items_of_any_prefix() -> bool:
    """Where items are whole, a model whose largest item is longer than a step is refused, whatever prefix is cached."""
    settings = SimpleNamespace(disable_chunked_mm_input=True, max_num_batched_tokens=4)
    budget = named("v1.core.encoder_cache_manager:compute_mm_encoder_budget")
    return error(lambda: budget(settings, {"image": 5})) == "ValueError"


@fails("SCHEDULING-12")
def waiting_for_ever() -> bool:
    """Two items that interleave and fit into the encoder cache one by one, but not together, are scheduled never."""
    both = [feature(0, 4, "a"), feature(0, 4, "b")]
    for one, mask in zip(both, ([True, False, True, False], [False, True, False, True]), strict=True):
        one.mm_position = named("multimodal.inputs:PlaceholderRange")(0, 4, is_embed=torch.tensor(mask))
    _, tokens, *_ = scheduler(3)._try_schedule_encoder_inputs(request(*both), 0, 4, 100)
    return bool(tokens == 0)


@fails("ENCODING-04")
def lengths() -> bool:
    """Rows are cut out of whatever the encoder gave, one too few or one too many."""
    return [len(gathered(column(*range(rows)), 3)[0]) for rows in (2, 4)] == [2, 3]


@fails("ENCODING-17", "ENCODING-18")
def one_item_fails_the_step() -> bool:
    """A row too few for one picture is an error of the step, with all its requests; a row too many is dropped."""
    short = error(lambda: merged([column(1.0), column(2.0, 3.0)], [True] * 4))
    return short == "ValueError" and gathered(column(1.0, 2.0, 9.0), 2)[0].flatten().tolist() == [1.0, 2.0]


@fails("ENCODING-18", "ENCODING-19")
def an_encoder_fails_the_step() -> bool:
    """An error of the encoder is one of the step; results that are missing are an assertion."""

    def broken(**_: Any) -> Any:
        raise RuntimeError

    item = feature(0, 1, pixels=torch.zeros(1)).data
    raised = error(lambda: runner(SimpleNamespace(embed_multimodal=broken)).execute_mm_encoder([("image", item)]))
    missing = runner(SimpleNamespace(embed_multimodal=lambda **_: []))
    return (raised, error(lambda: missing.execute_mm_encoder([("image", item)]))) == ("RuntimeError", "AssertionError")


@fails("PRUNING-02")
def rate_in_binary() -> bool:
    """A tenth of twenty tokens is one."""
    return bool(named("multimodal.video_prune.evs:compute_retained_tokens_count")(1, 20, 0.9) == 1)


@fails("PRUNING-05")
def zeros_in_half_precision() -> bool:
    """Zeros in half precision have no cosine, and nothing is sorted before the first frame but what is no number."""
    video = torch.ones(3, 1, dtype=torch.float16)
    video[1] = 0
    mask = named("multimodal.video_prune.evs:compute_retention_mask")(video, (3, 1, 1), 1, 0.5)
    return mask.tolist()[0] is False


@fails("LIFECYCLE-26", "LIFECYCLE-32", "LIFECYCLE-37")
def one_request_fails_all() -> bool:
    """Rows of a whole step are merged at once: a request that lacks some is an error of all; a single row is put to all."""
    lacking = error(lambda: merged([column(1.0, 2.0), column(3.0, 4.0, 5.0)], [True] * 6))
    return lacking == "ValueError" and merged([column(1.0)], [True, True]) == [[1.0], [1.0]]


@fails("ENCODING-28", "ENCODING-29")
def sparse_embeddings() -> bool:
    """A sparse embedding that is passed as a tensor runs into an operator that there is not; from a file it is made dense."""
    rows = column(1.0, 0.0).to_sparse()
    dense = named("utils.sparse_utils:safe_to_dense")(rows, parameter="image_embeds")
    return error(lambda: gathered(rows, 2)) == "NotImplementedError" and dense.layout is torch.strided


@fails("MERGING-06")
def one_row_for_all() -> bool:
    """One row is put to every position of media."""
    return merged([column(7.0)], [True, False, True]) == [[7.0], [0.0], [7.0]]


@fails("MERGING-07")
def one_column_for_all() -> bool:
    """Rows of one column are put to every column."""
    return merged([column(7.0, 8.0)], [True, True], width=2) == [[7.0, 7.0], [8.0, 8.0]]


@fails("MERGING-18")
def one_row_for_none() -> bool:
    """A row for which there is no position is dropped without a word."""
    return merged([column(7.0)], [False, False]) == [[0.0], [0.0]]
