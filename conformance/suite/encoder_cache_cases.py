"""What ENCODER_CACHE is tried on."""

from typing import NamedTuple

import torch

from conformance.oracles.encoder_cache import script

BITS = torch.tensor([[0, -(2**31), 0x7FC00001], [1, -4194303, 0x7F800000]], dtype=torch.int32)
"""As float32: zero, minus zero, a NaN with a payload; the smallest number, a negative NaN with a payload, infinity."""

CONTENTS = {
    "float32": BITS.view(torch.float32),
    "bfloat16": BITS.view(torch.bfloat16),
    "float16": BITS.view(torch.float16),
    "float64": torch.tensor([[0.1, -1 / 3], [1e300, 5e-324]], dtype=torch.float64),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "every-second-row": torch.arange(12.0).reshape(6, 2)[::2],
    "one-row-repeated": torch.arange(3.0).expand(4, 3),
}

EVICTIONS = {
    "the-oldest-goes-first": script(3, "put a 1", "put b 1", "put c 1", "put d 1", "get a 1", "get b 1", "get c 1", "get d 1"),
    "a-hit-is-a-use": script(3, "put a 1", "put b 1", "put c 1", "get a 1", "put d 1", "get b 1", "get a 1"),
    "a-put-is-a-use": script(3, "put a 1", "put b 1", "put c 1", "put a 1", "put d 1", "get b 1", "get a 1"),
    "a-large-one-takes-several": script(
        4, "put a 1", "put b 1", "put c 2", "put d 3", "get c 2", "get b 1", "get a 1", "get d 3"
    ),
    "no-more-than-needed": script(4, "put a 2", "put b 1", "put c 1", "put d 1", "get b 1", "get c 1", "get d 1", "get a 2"),
    "exactly-full": script(3, "put a 3", "get a 3", "put b 3", "get a 3", "get b 3"),
    "evicted-and-put-again": script(1, "put a 1", "put b 1", "put a 1", "get a 1", "get b 1"),
    "put-again-same": script(4, "put a 2", "put a 2", "put a 2", "put b 2", "get a 2", "get b 2"),
    "no-room-at-all": script(0, "put a 1", "get a 1"),
}

PRESSURE = {
    "the-oldest": script(2, "put a 1", "put b 1", "pin a", "put c 1", "get a 1", "get b 1", "get c 1"),
    "all-but-the-newest": script(
        3, "put a 1", "put b 1", "put c 1", "pin a", "pin b", "put d 1", "get a 1", "get b 1", "get c 1"
    ),
    "put-again": script(2, "put a 1", "pin a", "put a 1", "put b 1", "put c 1", "get a 1", "get b 1", "get c 1"),
}

RELEASE = {
    "pinned-once": script(2, "put a 1", "put b 1", "pin a", "unpin a", "put c 1", "get a 1", "get b 1"),
    "still-pinned": script(2, "put a 1", "put b 1", "pin a", "pin a", "unpin a", "put c 1", "get a 1", "get b 1"),
    "pinned-twice": script(2, "put a 1", "put b 1", "pin a", "pin a", "unpin a", "unpin a", "put c 1", "get a 1", "get b 1"),
}

CROWDED = {
    "all-pinned": script(2, "put a 1", "put b 1", "pin a", "pin b", "put c 1", "get a 1", "get b 1", "get c 1"),
    "too-little-left": script(3, "put a 2", "put b 1", "pin a", "put c 2", "get a 2", "get b 1", "get c 2"),
}


class Mismatch(NamedTuple):
    """An entry of `kept` rows that is asked for with another count."""

    kept: int
    wanted: int


MISMATCHES = {
    "one-short": Mismatch(4, 5),
    "one-long": Mismatch(5, 4),
    "far-off": Mismatch(256, 275),
}
