"""What vLLM 0.33.0 gets wrong about transport.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

import os
import signal
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails


def store(size: int, readers: int = 1) -> Any:
    """An object store of so many bytes in shared memory."""
    parts = "distributed.device_communicators.shm_object_storage"
    ring = named(f"{parts}:SingleWriterShmRingBuffer")(data_buffer_size=size, create=True)
    serde = named(f"{parts}:MsgpackSerde")
    return named(f"{parts}:SingleWriterShmObjectStorage")(
        max_object_size=size, n_readers=readers, ring_buffer=ring, serde_class=serde
    )


@fails("TRANSPORT-31")
def conjugates() -> bool:
    """A tensor that is conjugated by a flag cannot be sent, neither through shared memory nor inline."""
    sent = named("v1.serial_utils:MsgpackEncoder")().encode
    return error(lambda: sent(torch.tensor([1 + 1j]).conj())) == "RuntimeError"


@fails("TRANSPORT-45")
def pickled_values() -> bool:
    """What is no tensor is pickled into the shared memory, an iterator too, and read by no one."""
    one = store(1 << 12)
    try:
        address, number = one.put("key", iter(()))
        return bool(number == 0 and address >= 0)
    finally:
        one.close()


@fails("TRANSPORT-46")
def stores_for_nobody() -> bool:
    """A store for no reader is opened."""
    one = store(1 << 12, readers=0)
    one.close()
    return bool(one.n_readers == 0)


@fails("TRANSPORT-57")
def left_in_shared_memory() -> bool:
    """What a process that was killed had in shared memory stays there, whoever opens a store afterwards."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        one = store(1 << 12)
        os.write(writing, one.ring_buffer.shared_memory.name.encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = Path("/dev/shm") / os.read(reading, 99).decode()
    store(1 << 12).close()
    found = left.exists()
    left.unlink()
    resource_tracker.unregister(f"/{left.name}", "shared_memory")
    return found


@fails("TRANSPORT-59")
def readers_that_are_gone() -> bool:
    """A value waits for as many readers as there were: when one of two is gone, its place is never free."""
    one, value = store(1 << 12, readers=2), torch.zeros(1024, dtype=torch.uint8)
    try:
        for number in range(3):
            one.put(str(number), value)
        return error(lambda: one.put("more", value)) == "MemoryError"
    finally:
        one.close()
