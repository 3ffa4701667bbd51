"""What a channel costs within one process: 64 MiB handed over, and a request of many small tensors."""

import torch

from conformance.engine import Engine
from perf.sized import Job, sized

LARGE = torch.zeros(1 << 26, dtype=torch.uint8)
MANY = [torch.zeros(4096) for _ in range(64)]


def handed_over(engine: Engine, values: list[torch.Tensor]) -> Job:
    """Values sent, received and dropped."""
    channel = engine.open_channel(("shared_memory", "inline"), 1, 1 << 27)
    reader = channel.join(0, None)

    def job() -> None:
        reader.receive(channel.send(values, 1)[0]).clear()

    return job


@sized("open_channel")
def test_hand_over_64_mib(engine: Engine) -> Job:
    return handed_over(engine, [LARGE])


@sized("open_channel")
def test_hand_over_64_tensors(engine: Engine) -> Job:
    return handed_over(engine, MANY)
