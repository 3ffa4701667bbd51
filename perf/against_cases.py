"""What two engines are asked side by side, at sizes of long prompts, and how many times as fast the reference wants to be.

The wanted ratios are those against SGLang 0.5.23 on a CPU.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch

from conformance.world.mrope import QWEN2_VL
from perf.million import END, START, prompt
from perf.sized import Job
from reference.items import Chunk, Item, Modality, Span

LENGTH, HIDDEN, LEVELS = 1 << 18, 1024, 3
PROMPT = prompt(LENGTH)
CHUNK = Chunk(LENGTH // 2, 8192)
FEATURE_BYTES = 64 << 20
FRAMES = tuple(Span(16 * number, 16 * number + 11) for number in range(256))
ROWS, ROOM = 256, 64
PICTURE_BYTES = ROWS * HIDDEN * 2
KEYS = [sha256(bytes([number])).digest() for number in range(2 * ROOM)]


class Case(NamedTuple):
    """A question at one size.

    method: under which `perf.against.OWN` knows it. needs: the engine method that must be there.
    ask: prepares the call to be timed. wanted: how many times as long as the base the other may take, at least.
    copy: prepares a plain copy of as many bytes as are answered. is_comparable: whether equal answers are wanted.
    """

    name: str
    method: str
    needs: str
    ask: Callable[[Any], Job]
    wanted: float | None = None
    copy: Callable[[], Job] | None = None
    is_comparable: bool = True


def feature() -> torch.Tensor:
    return torch.randn(FEATURE_BYTES // 4, generator=torch.Generator().manual_seed(1)).reshape(-1, 1024)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)


def identifying(engine: Any) -> Job:
    item = Item(modality=Modality.IMAGE, feature=feature())
    return lambda: engine.identify(item)


def hashing(engine: Any) -> Job:
    given = feature()
    return lambda: engine.tensor_hash(given)


def slicing(engine: Any) -> Job:
    embedding = drawn(sum(map(len, FRAMES)), HIDDEN)
    return lambda: engine.slice_chunk(embedding, FRAMES, Chunk(256, 1024))


def merging(levels: int) -> Callable[[Any], Job]:
    def prepare(engine: Any) -> Job:
        ids = engine.pad_spans(*PROMPT) if hasattr(engine, "pad_spans") else PROMPT.input_ids
        ids = np.array(ids, dtype=np.int64)[CHUNK.prefix : CHUNK.stop]
        rows, table = drawn(media(), HIDDEN * (1 + levels)), drawn(32_000, HIDDEN)
        merge = engine.merge_deepstack if levels else engine.merge
        return lambda: merge(ids.copy(), PROMPT.items, rows, table, CHUNK)

    return prepare


def media() -> int:
    """How many positions of media the chunk has."""
    spans = [span for item in PROMPT.items for span in item.spans]
    return sum(max(0, min(span.stop, CHUNK.stop) - max(span.first, CHUNK.prefix)) for span in spans)


def copying(levels: int) -> Callable[[], Job]:
    def prepare() -> Job:
        answer = drawn((1 + levels) * CHUNK.length, HIDDEN)
        return lambda: answer.clone()

    return prepare


def full_cache(engine: Any) -> tuple[Any, torch.Tensor]:
    cache, picture = engine.open_encoder_cache(ROOM * PICTURE_BYTES), drawn(ROWS, HIDDEN)
    for key in KEYS:
        cache.put(key, picture)
    return cache, picture


def putting(engine: Any) -> Job:
    cache, picture = full_cache(engine)
    return lambda: [cache.put(key, picture) for key in KEYS]


def getting(engine: Any) -> Job:
    cache, _ = full_cache(engine)
    return lambda: [cache.get(key, ROWS) for key in KEYS[ROOM:]]


CASES = (
    Case("identity of 64 MiB", "identify", "identify", identifying, 3, is_comparable=False),
    Case("tensor hash of 64 MiB", "tensor_hash", "tensor_hash", hashing),
    Case("pad by spans, 256k", "pad_spans", "pad_spans", lambda engine: lambda: engine.pad_spans(*PROMPT)),
    Case(
        "pad by pairs, 256k",
        "pad_pairs",
        "pad_pairs",
        lambda engine: lambda: engine.pad_pairs(*PROMPT, [(START, END)], (START,)),
        10,
    ),
    Case(
        "token modalities, 256k",
        "token_modalities",
        "token_modalities",
        lambda engine: lambda: engine.token_modalities(LENGTH, PROMPT.items),
        10,
    ),
    Case("M-RoPE positions, 256k", "positions", "positions", lambda engine: lambda: engine.positions(*PROMPT, QWEN2_VL), 10),
    Case("slice of 256 frames", "slice_chunk", "slice_chunk", slicing, 1),
    Case("put 128 into room for 64", "cache.put", "open_encoder_cache", putting, 1),
    Case("get 64 of 64", "cache.get", "open_encoder_cache", getting, 1),
    Case("merge a chunk of 8192", "merge", "merge", merging(0), 1, copying(0)),
    Case("merge with 3 levels", "merge_deepstack", "merge_deepstack", merging(LEVELS), 1, copying(LEVELS)),
)
