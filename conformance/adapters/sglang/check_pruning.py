"""What SGLang 0.5.23 gets wrong as it prunes videos: seen without the suite."""

from array import array
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import column, embedded, named, padded, sg

CHECKS = Checks()
fails = CHECKS.fails


@fails("PRUNING-02")
def rate_in_binary() -> bool:
    """A rate of 0.9 leaves one token of twenty: the count is truncated in floating point."""
    return bool(evs().evs_core.compute_retained_tokens_count(1, 20, 0.9) == 1)


@fails("PRUNING-03")
def rate_is_asserted() -> bool:
    """A rate that is no share is an assertion, which `python -O` takes away."""
    return error(lambda: evs().EVSConfig(video_pruning_rate=1.0)) == "AssertionError"


@fails("PRUNING-05")
def zeros_go_before_the_first_frame() -> bool:
    """Tokens of zeros in half precision have the cosine NaN, which is sorted before the 255 of the first frame."""
    video = torch.tensor([[1.0], [1.0], [0.0], [0.0], [1.0], [1.0]], dtype=torch.float16)
    return not evs().evs_core.compute_retention_mask(video, (3, 1, 2), 1, 0.5)[:2].all()


@fails("PRUNING-19", "PRUNING-20", "PRUNING-21", "PRUNING-22")
def pruned_video_of_one_span() -> bool:
    """A pruned video in one span takes the path of pictures, which knows no pruned result."""
    return error(lambda: pruned([(1, 4)], [3, 1], requests=1)) == "AttributeError"


@fails("PRUNING-19")
def pruned_video_beside_another_request() -> bool:
    """A pruned video is laid out only in a batch of one request: the ids of the batch are taken for its own."""
    alone = error(lambda: pruned([(1, 2), (4, 5)], [3, 1], requests=1))
    return (alone, error(lambda: pruned([(1, 2), (4, 5)], [3, 1], requests=2))) == ("", "AssertionError")


@fails("PRUNING-20")
def pruned_video_between_two_chunks() -> bool:
    """A chunk between the spans of the estimate is taken for text, where the mask put a token of the video."""
    spans = [(1, 2), (4, 5)]
    video = named(1, "VIDEO", offsets=spans, model_specific_data={"pre_chunked_input_ids": array("q", range(7))})
    result = evs().EVSEmbeddingResult(embedding=column(1, 2, 3, 4), num_tokens_per_frame=[3, 1])
    rows: list[float] = []
    for first, length in ((0, 3), (3, 1), (4, 3)):
        with patch.object(sg().schedule, "embedding_cache", sg().caches.MultiModalStaticCache(0)):
            found, _ = sg().schedule._get_chunked_prefill_embedding(
                lambda made: result, [video], [0, 1], [first], [length], [spans], torch.arange(first, first + length)
            )
        rows += [] if found is None else found.flatten().tolist()
    return rows == [1.0, 2.0, 4.0]


@fails("PRUNING-24")
def one_pruned_video_ends_the_batch() -> bool:
    """An error of the encoder of one request with a pruned video leaves the batch without any rows."""
    video = named(
        1, "VIDEO", feature=torch.zeros(3, 1), offsets=[(0, 1), (3, 4)], model_specific_data={"thw_grids": [(2, 1, 2)]}
    )
    model = SimpleNamespace(
        evs_config=evs().EVSConfig(video_pruning_rate=0.5), original_get_video_feature=lambda made: made[0].feature
    )
    return error(lambda: embedded([video], lambda made: evs().EVS.evs_video(model, made), 5, requests=2)) == "RuntimeError"


def evs() -> Any:
    sg()
    return cpu.module("sglang.srt.multimodal.evs")


def pruned(spans: list[tuple[int, int]], counts: list[int], *, requests: int) -> list[float]:
    """What `embed_mm_inputs` makes of a prompt of seven ids with a video of two frames that keep these counts."""
    video = named(1, "VIDEO", offsets=spans, model_specific_data={})
    video.set("pre_chunked_input_ids", array("q", padded(7, video)))
    result = evs().EVSEmbeddingResult(embedding=column(1, 2, 3, 4), num_tokens_per_frame=counts)
    return embedded([video], lambda made: result, 7, requests=requests)[0]
