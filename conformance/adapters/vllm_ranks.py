"""vLLM's ranks: which of them encodes what, where an encoder runs on all of them (`--mm-encoder-tp-mode data`)."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from conformance.adapters import vllm_cpu


def assign_items(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """`get_load_balance_assignment`: the items in the order of the ranks, and how many each rank has."""
    vision = vllm_cpu.module("vllm.model_executor.models.vision")
    order, counts, _ = vision.get_load_balance_assignment(list(sizes), ranks)
    return [order[first:stop] for first, stop in pairwise([0, *accumulate(counts)])]
