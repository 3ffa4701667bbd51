"""What a rank's input costs: a chunk of 2,048 positions, half of them media, hidden size 512, three levels, four ranks."""

import numpy as np
import torch

from conformance.engine import Engine
from conformance.protocol.pipeline_ranks import Received
from conformance.suite.merging_feeds import chunk_ids
from conformance.world.prompts import Prompt, draw, picture
from perf.counters import tallied
from perf.sized import Job, sized
from reference.items import Chunk, Modality, Request, Span

HIDDEN = 512
CHUNK = Chunk(0, 2048)
SPLIT = (range(0, 2), range(2, 4), range(4, 6), range(6, 8))
LEVELS = (0, 2, 6)
PICTURES = tuple(
    picture(letter, (Span(first, first + 255),)) for letter, first in zip("ijkv", range(0, 2048, 512), strict=True)
)
PROMPT = Prompt(np.tile(draw("i" * 64 + "." * 64).input_ids.repeat(4), 4), PICTURES)


@sized("rank_input")
def test_the_first_rank(engine: Engine) -> Job:
    table = torch.ones(32_000, HIDDEN, dtype=torch.bfloat16)
    rows = torch.ones(256, HIDDEN * 4, dtype=torch.bfloat16)
    encoders = dict.fromkeys(Modality, tallied(lambda items: [rows for _ in items]))
    request = Request(id="r", input_ids=chunk_ids(engine, PROMPT, CHUNK), items=PICTURES)
    return lambda: engine.rank_input(0, SPLIT, LEVELS, request, CHUNK, encoders, table, None)


@sized("rank_input")
def test_a_later_rank(engine: Engine) -> Job:
    rows = torch.ones(2048, HIDDEN, dtype=torch.bfloat16)
    request = Request(id="r", input_ids=chunk_ids(engine, PROMPT, CHUNK), items=PICTURES)
    received = Received(rows, {2: rows, 6: rows})
    return lambda: engine.rank_input(1, SPLIT, LEVELS, request, CHUNK, {}, None, received)
