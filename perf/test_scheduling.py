"""What planning costs, for a prompt of 131,072 positions with 1,000 pictures, and for a batch with encoder parts."""

import numpy as np

from conformance.engine import Engine
from conformance.protocol.scheduling import Budget
from perf.sized import Job, sized
from reference.items import Chunk, Item, Modality, Span

LENGTH = 131_072
PICTURES = tuple(Item(modality=Modality.IMAGE, spans=(Span(first + 3, first + 122),)) for first in range(0, LENGTH - 131, 131))
BUDGET = Budget(tokens_per_step=8_192, embeddings_per_step=8_192, embeddings_kept=16_384, alignment_tokens=16, whole_items=True)
TURNS = tuple((4_096, PICTURES[:30]) for _ in range(32))
BATCH = [(np.arange(6_404 + 512, dtype=np.int64), Chunk(0, 6_404 + 512), 6_404) for _ in range(32)]


@sized("encoder_lengths")
def test_strip_the_encoder_parts_of_a_batch(engine: Engine) -> Job:
    return lambda: engine.encoder_lengths(BATCH)


@sized("plan_chunks")
def test_plan_a_thousand_pictures(engine: Engine) -> Job:
    return lambda: engine.plan_chunks(LENGTH, PICTURES, BUDGET, 0)


@sized("plan_steps")
def test_plan_a_line_of_32_requests(engine: Engine) -> Job:
    return lambda: engine.plan_steps(TURNS, BUDGET)
