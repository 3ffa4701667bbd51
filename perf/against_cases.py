"""What two engines are asked side by side, at sizes of long prompts, and how many times as fast the reference wants to be.

The wanted ratios are those against SGLang 0.5.23 on a CPU.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch

from conformance.oracles.prefix_cache import NOBODY
from conformance.world.mrope import QWEN2_VL
from perf import loops
from perf.million import END, PLACEHOLDER, START, prompt
from perf.sized import Job
from reference.items import Chunk, Item, Modality, Span

LENGTH, HIDDEN, LEVELS = 1 << 18, 1024, 3
PROMPT = prompt(LENGTH)
CHUNK = Chunk(LENGTH // 2, 8192)
FEATURE_BYTES = 64 << 20
FRAMES = tuple(Span(16 * number, 16 * number + 11) for number in range(256))
ROWS, ROOM = 256, 64
PICTURE_BYTES = ROWS * HIDDEN * 2
MANY, PAGE, SHIFT = 256, 16, 1_000_000
TRIPLES = np.tile(np.arange(LENGTH, dtype=np.int64), (3, 1))
KEYS = [sha256(bytes([number])).digest() for number in range(2 * ROOM)]


class Case(NamedTuple):
    """A question at one size.

    method: under which `perf.against.OWN` knows it. needs: the engine method that must be there.
    ask: prepares the call to be timed. wanted: how many times as long as the base the other may take, at least.
    copy: prepares a plain copy of as many bytes as are answered. copies: how many times as long as that the base may take.
    waits: whether time on the wall counts. is_comparable: whether equal answers are wanted.
    """

    stage: str
    name: str
    method: str
    needs: str
    ask: Callable[[Any], Job]
    wanted: float | None = None
    copy: Callable[[], Job] | None = None
    copies: float | None = None
    waits: bool = False
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


def finding(engine: Any) -> Job:
    return lambda: engine.find_spans(PROMPT.input_ids, PLACEHOLDER)


def padding(engine: Any) -> Job:
    return lambda: engine.pad_spans(*PROMPT)


def pairing(engine: Any) -> Job:
    return lambda: engine.pad_pairs(*PROMPT, [(START, END)], (START,))


def telling(engine: Any) -> Job:
    return lambda: engine.token_modalities(LENGTH, PROMPT.items)


def positioning(engine: Any) -> Job:
    return lambda: engine.positions(*PROMPT, QWEN2_VL)


def cutting(engine: Any) -> Job:
    return lambda: engine.chunk_positions(TRIPLES, CHUNK)


def identifying_many(engine: Any) -> Job:
    items = [Item(modality=Modality.IMAGE, feature=one) for one in drawn(MANY, 64, 48).float()]
    return lambda: [engine.identify(item) for item in items]


def naming(engine: Any) -> Job:
    return lambda: [engine.sentinels(key) for key in KEYS]


def matching(engine: Any) -> Job:
    cache, asked = engine.open_prefix_cache(PAGE), PROMPT.request("met again")
    cache.insert(asked, NOBODY, LENGTH)
    return lambda: cache.match(asked, NOBODY, LENGTH - 1)


def joining(engine: Any) -> Job:
    return lambda: engine.join_positions(TRIPLES, LENGTH, TRIPLES[:, :1024], False)


def masking(engine: Any) -> Job:
    ids, sentinels, _ = masked()
    return lambda: engine.placeholder_mask(ids, sentinels)


def scattering(engine: Any) -> Job:
    _, _, mask = masked()
    destination, rows = drawn(CHUNK.length, HIDDEN), drawn(media(), HIDDEN)
    return lambda: engine.scatter_rows(destination, mask, rows)


def masked() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The padded ids of the chunk, all sentinels of the prompt, and the mask of its media."""
    padded = torch.from_numpy(loops.pad_spans(*PROMPT))
    chunk = padded[CHUNK.prefix : CHUNK.stop]
    return chunk, torch.from_numpy(np.unique(padded[padded >= SHIFT].numpy())), chunk >= SHIFT


CASES = (
    Case("identity", "one of 64 MiB", "identify", "identify", identifying, 3, waits=True, is_comparable=False),
    Case("identity", f"{MANY} of 12 KiB", "identify", "identify", identifying_many, is_comparable=False),
    Case("identity", "tensor hash of 64 MiB", "tensor_hash", "tensor_hash", hashing),
    Case("sentinels", f"of {len(KEYS)} identities", "sentinels", "sentinels", naming),
    Case("placeholders", "find, 256k", "find_spans", "find_spans", finding),
    Case("placeholders", "pad by spans, 256k", "pad_spans", "pad_spans", padding),
    Case("placeholders", "pad by pairs, 256k", "pad_pairs", "pad_pairs", pairing, 10),
    Case("placeholders", "modalities, 256k", "token_modalities", "token_modalities", telling, 10),
    Case("positions", "M-RoPE, 256k", "positions", "positions", positioning, 10),
    Case("positions", "M-RoPE of a chunk", "chunk_positions", "chunk_positions", cutting),
    Case("prefix_cache", "match of 256k", "prefix_cache.match", "open_prefix_cache", matching),
    Case("encoder_cache", "put 128 into room for 64", "cache.put", "open_encoder_cache", putting, 1),
    Case("encoder_cache", "get 64 of 64", "cache.get", "open_encoder_cache", getting, 1),
    Case("encoding", "slice of 256 frames", "slice_chunk", "slice_chunk", slicing, 1),
    Case("merging", "a chunk of 8192", "merge", "merge", merging(0), 1, copying(0), 1.5),
    Case("merging", "the same with 3 levels", "merge_deepstack", "merge_deepstack", merging(LEVELS), 1, copying(LEVELS), 1.5),
    Case("lifecycle", "join M-RoPE, 256k", "join_positions", "join_positions", joining),
    Case("kernels", "mask of a chunk of 8192", "placeholder_mask", "placeholder_mask", masking, 2),
    Case("kernels", "scatter into 8192 rows", "scatter_rows", "scatter_rows", scattering, 1, copying(0), 1.5),
)
