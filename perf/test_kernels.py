"""What kernels cost where the suite's tensors lie: 2,048 positions, half of them media, hidden size 512."""

import torch

from conformance.engine import Engine
from perf.sized import Job, sized
from reference.items import Chunk, Span

HIDDEN, POSITIONS = 512, 2048
CHUNK = Chunk(0, POSITIONS)
SPANS = tuple(Span(first, first + 255) for first in range(0, POSITIONS, 512))
SENTINELS = torch.arange(2**62, 2**62 + 16)
IDS = torch.where(torch.arange(POSITIONS) % 512 < 256, SENTINELS[3], 7)
PATCHES = torch.ones(5184, 1176, dtype=torch.bfloat16)
ROWS = torch.ones(POSITIONS // 2, HIDDEN, dtype=torch.bfloat16)
TABLE = torch.ones(32_000, HIDDEN, dtype=torch.bfloat16)


@sized("word_hash")
def test_word_hash_of_a_processed_picture(engine: Engine) -> Job:
    return lambda: engine.word_hash(PATCHES)


@sized("content_digest")
def test_digest_of_a_processed_picture(engine: Engine) -> Job:
    return lambda: engine.content_digest(PATCHES)


@sized("placeholder_mask")
def test_mask_of_a_chunk_by_sentinels(engine: Engine) -> Job:
    return lambda: engine.placeholder_mask(IDS, SENTINELS)


@sized("span_mask")
def test_mask_of_a_chunk_by_spans(engine: Engine) -> Job:
    return lambda: engine.span_mask(SPANS, CHUNK)


@sized("scatter_rows")
def test_scatter_the_rows_of_a_chunk(engine: Engine) -> Job:
    destination, mask = torch.zeros(POSITIONS, HIDDEN, dtype=torch.bfloat16), IDS > 7
    return lambda: engine.scatter_rows(destination, mask, ROWS)


@sized("fused_merge")
def test_merge_a_chunk_in_one_pass(engine: Engine) -> Job:
    return lambda: engine.fused_merge(IDS, SPANS, ROWS, TABLE, CHUNK)


@sized("apply_mrope")
def test_turn_the_heads_of_a_chunk(engine: Engine) -> Job:
    random = torch.Generator().manual_seed(1)
    query, key = (torch.randn(POSITIONS, heads, 128, generator=random).to(torch.bfloat16) for heads in (16, 4))
    positions, table = torch.randint(0, 4096, (3, POSITIONS), generator=random), torch.rand(4096, 128, generator=random)
    return lambda: engine.apply_mrope(query, key, positions, table, (24, 20, 20), True, False)


@sized("dissimilarity")
def test_compare_the_tokens_of_a_video(engine: Engine) -> Job:
    embeddings = torch.randn(16 * 256, HIDDEN, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    return lambda: engine.dissimilarity(embeddings, (16, 16, 16))
