"""A checkpoint whose model fails on purpose, at one place of some prompts, on one rank."""

import torch
import torch.distributed as dist

from conformance.world.checkpoint import Checkpoint, tiny_qwen2_vl

FAILS_AT = 2000
"""A model on rank 1 of a group, or by itself, fails in its second layer at the position with this number in a sequence."""


def fragile_qwen2_vl() -> Checkpoint:
    """The tiny Qwen2-VL. It fails on rank 1 alone, or where there are no ranks, in the middle of a layer."""
    checkpoint = tiny_qwen2_vl()
    model, due = checkpoint.model.model.language_model, [False]

    def look(module: object, arguments: object, named: dict[str, torch.Tensor]) -> None:
        is_chosen = not dist.is_initialized() or dist.get_world_size() == 1 or dist.get_rank() == 1
        due[0] = is_chosen and bool((named["position_ids"] == FAILS_AT).any())

    def fail(module: object, arguments: object) -> None:
        if due[0]:
            raise RuntimeError("this rank has no more memory")

    model.register_forward_pre_hook(look, with_kwargs=True)
    model.layers[1].mlp.register_forward_pre_hook(fail)
    return checkpoint
