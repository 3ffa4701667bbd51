"""What merging costs: a chunk of 2,048 positions, half of them media, hidden size 512."""

import numpy as np
import torch

from conformance.engine import Engine
from conformance.suite.merging_feeds import chunk_ids
from conformance.world.prompts import Prompt, draw, picture
from perf.sized import Job, sized
from reference.items import Chunk, Span

HIDDEN = 512
CHUNK = Chunk(0, 2048)
PICTURES = tuple(
    picture(letter, (Span(first, first + 255),)) for letter, first in zip("ijkv", range(0, 2048, 512), strict=True)
)
PROMPT = Prompt(np.tile(draw("i" * 64 + "." * 64).input_ids.repeat(4), 4), PICTURES)
TABLE = torch.ones(32_000, HIDDEN, dtype=torch.bfloat16)


@sized("fit_length")
def test_fit_the_rows_of_a_chunk(engine: Engine) -> Job:
    rows = torch.ones(1024, HIDDEN, dtype=torch.bfloat16)
    return lambda: engine.fit_length(rows, 1024)


@sized("merge")
def test_merge_a_chunk(engine: Engine) -> Job:
    ids, rows = chunk_ids(engine, PROMPT, CHUNK), torch.ones(1024, HIDDEN, dtype=torch.bfloat16)
    return lambda: engine.merge(ids.copy(), PICTURES, rows, TABLE, CHUNK)


@sized("merge_deepstack")
def test_merge_a_chunk_with_three_levels(engine: Engine) -> Job:
    ids, rows = chunk_ids(engine, PROMPT, CHUNK), torch.ones(1024, 4 * HIDDEN, dtype=torch.bfloat16)
    return lambda: engine.merge_deepstack(ids.copy(), PICTURES, rows, TABLE, CHUNK)
