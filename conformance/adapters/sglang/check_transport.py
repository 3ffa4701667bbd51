"""What SGLang 0.5.23 gets wrong between its tokenizer and its scheduler, seen without the suite.

`python -m conformance.adapters.sglang.check` runs these, too.
"""

import multiprocessing
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu

CHECKS = Checks()
fails = CHECKS.fails


def wrapped(tensor: torch.Tensor) -> Any:
    return cpu.prepare().utils._wrap_tensor_or_list(tensor)


@fails("TRANSPORT-31", "TRANSPORT-32")
def what_has_no_last_dimension() -> bool:
    """A tensor that is empty, has no dimension or is conjugated is an error where it is wrapped, and is not sent inline."""
    odd = (torch.empty(0, 4), torch.tensor(7.0), torch.zeros(4, dtype=torch.complex64).conj())
    return [error(partial(wrapped, one)) for one in odd] == ["ValueError", "RuntimeError", "RuntimeError"]


@fails("TRANSPORT-38")
def arrays_have_no_hash() -> bool:
    """A list of arrays cannot be hashed, before it is sent as little as after."""
    batch = cpu.prepare().batch
    item = batch.MultimodalDataItem(modality=batch.Modality.IMAGE, feature=[np.zeros(4), np.zeros(4)])
    return error(item.set_pad_value) == "TypeError"


@fails("TRANSPORT-47")
def whatever_torch_has_is_a_dtype() -> bool:
    """The dtype of a pointer is looked up among all names of torch: an unknown one is an AttributeError."""
    hooks = cpu.module("sglang.srt.utils.msgpack_utils")
    unknown = error(lambda: hooks._from_msgpack_state({"dtype": {"__torch_dtype__": "uiNt8"}}))
    return unknown == "AttributeError" and hooks._torch_dtype_from_name("zeros") is torch.zeros


def tokenizer(line: Connection) -> None:
    """The life of a process that wraps a tensor, says where it is, and ends."""
    line.send(wrapped(torch.zeros(64)).shm_name)


@fails("TRANSPORT-53", "TRANSPORT-57")
def what_nobody_opens_stays() -> bool:
    """A segment that no scheduler has opened is there when its tokenizer has ended, and after the sweep of the next start."""
    cpu.prepare()
    resource_tracker.ensure_running()  # the server's, which lives on
    processes = multiprocessing.get_context("fork")
    here, there = processes.Pipe()
    process = processes.Process(target=tokenizer, args=(there,))
    process.start()
    name = here.recv()
    process.join()
    cpu.module("sglang.srt.utils.stale_shm_cleanup").cleanup_stale_shm()
    left = SharedMemory(name)
    left.close()
    left.unlink()
    return True
