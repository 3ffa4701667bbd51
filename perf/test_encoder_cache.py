"""What the encoder cache costs: pictures of 256 rows, hidden size 1,024, in bfloat16; room for 64 of them."""

import torch

from conformance.engine import Engine
from perf.sized import Job, sized

ROWS, HIDDEN, ROOM = 256, 1024, 64
PICTURE_BYTES = ROWS * HIDDEN * 2
KEYS = [number.to_bytes(32, "big") for number in range(2 * ROOM)]


@sized("open_encoder_cache", "open_encoder_cache.put")
def test_put_into_a_full_cache(engine: Engine) -> Job:
    """128 pictures in turn: each one evicts another."""
    cache, picture = engine.open_encoder_cache(ROOM * PICTURE_BYTES), torch.ones(ROWS, HIDDEN, dtype=torch.bfloat16)
    return lambda: [cache.put(key, picture) for key in KEYS]


@sized("open_encoder_cache", "open_encoder_cache.put")
def test_put_views_of_a_batch(engine: Engine) -> Job:
    """16 pictures that the encoder returned in one tensor: each one is copied out of it."""
    cache, batch = engine.open_encoder_cache(ROOM * PICTURE_BYTES), torch.ones(16 * ROWS, HIDDEN, dtype=torch.bfloat16)
    return lambda: [cache.put(key, rows) for key, rows in zip(KEYS, torch.split(batch, ROWS), strict=False)]


@sized("open_encoder_cache", "open_encoder_cache.put", "open_encoder_cache.get")
def test_get_from_a_full_cache(engine: Engine) -> Job:
    """128 look-ups, of which half are hits."""
    cache, picture = engine.open_encoder_cache(ROOM * PICTURE_BYTES), torch.ones(ROWS, HIDDEN, dtype=torch.bfloat16)
    for key in KEYS:
        cache.put(key, picture)
    return lambda: [cache.get(key, ROWS) for key in KEYS]


@sized("open_encoder_cache", "open_encoder_cache.put", "open_encoder_cache.pin", "open_encoder_cache.unpin")
def test_pin_and_unpin(engine: Engine) -> Job:
    """Each of 64 pictures, once."""
    cache, picture = engine.open_encoder_cache(ROOM * PICTURE_BYTES), torch.ones(ROWS, HIDDEN, dtype=torch.bfloat16)
    for key in KEYS[:ROOM]:
        cache.put(key, picture)
    return lambda: [(cache.pin(key), cache.unpin(key)) for key in KEYS[:ROOM]]


@sized("encoder_key")
def test_keys_for_an_adapter(engine: Engine) -> Job:
    """The keys of 128 pictures for one adapter that changes the encoder."""
    return lambda: [engine.encoder_key(key, ("cats", "/adapters/cats/1"), True) for key in KEYS]
