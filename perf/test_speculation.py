"""What drafting costs: a chunk of 2,048 positions, half of them media, hidden size 512; look-ups in 32,768 ids."""

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


@sized("draft_embeddings")
def test_the_first_pass_of_a_draft(engine: Engine) -> Job:
    ids, rows = chunk_ids(engine, PROMPT, CHUNK), torch.ones(1023, HIDDEN, dtype=torch.bfloat16)
    table = torch.ones(32_000, HIDDEN, dtype=torch.bfloat16)
    return lambda: engine.draft_embeddings(ids, PICTURES, rows, table, CHUNK, 7)


@sized("draft_positions")
def test_the_positions_of_a_draft(engine: Engine) -> Job:
    positions = np.tile(np.arange(32_768), (3, 1))
    return lambda: engine.draft_positions(positions, Chunk(30_720, 2048), 5)


@sized("propose_ngram")
def test_a_lookup(engine: Engine) -> Job:
    ids = np.random.default_rng(1).integers(0, 32_000, 32_768)
    return lambda: engine.propose_ngram(ids, (), 1, 4, 5)
