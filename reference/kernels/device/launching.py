"""What every launch has in common."""

from contextlib import AbstractContextManager, nullcontext

import torch

NOT_SPECIALIZED = ["n_bytes", "n_chunks", "n_blocks", "n_below", "n_tiles", "n", "n_spans", "n_sorted", "steps", "vocabulary"]
"""Numbers that vary from call to call: a kernel that is compiled anew for some of them would stall a server."""


def where(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Makes the device of a tensor the current one: Triton launches on the current device, wherever its arguments lie."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def ceil_div(count: int, size: int) -> int:
    """How many of this size hold so many."""
    return -(-count // size)
