"""What pruning costs, for a video of 64 frames of 16 x 16 tokens with text between them, of which three tenths stay."""

import numpy as np
import torch

from conformance.engine import Engine
from perf.counters import tallied
from perf.sized import Job, sized
from reference.items import Chunk, Item, Modality, Request, Span

FRAMES, HEIGHT, WIDTH, HIDDEN, RATE = 64, 16, 16, 64, 0.7
TOKENS = HEIGHT * WIDTH
STRIDE = TOKENS + 4
LENGTH = FRAMES * STRIDE
VIDEO = Item(modality=Modality.VIDEO, spans=tuple(Span(first + 4, first + STRIDE - 1) for first in range(0, LENGTH, STRIDE)))
IDS = np.full(LENGTH, 12, dtype=np.int64)
MASK = np.arange(FRAMES * TOKENS) % 10 < 3
MASK[:TOKENS] = True


@sized("retained_count")
def test_count_what_stays(engine: Engine) -> Job:
    return lambda: engine.retained_count(TOKENS, FRAMES, RATE)


@sized("retention_mask")
def test_choose_what_stays(engine: Engine) -> Job:
    embeddings = torch.randn(FRAMES * TOKENS, HIDDEN, generator=torch.Generator().manual_seed(1))
    return lambda: engine.retention_mask(embeddings, (FRAMES, HEIGHT, WIDTH), RATE)


@sized("prune_prompt")
def test_prune_a_prompt(engine: Engine) -> Job:
    return lambda: engine.prune_prompt(IDS.copy(), (VIDEO,), (MASK,))


@sized("prune_positions")
def test_prune_positions(engine: Engine) -> Job:
    positions = np.tile(np.arange(LENGTH), (3, 1))
    return lambda: engine.prune_positions(positions, (VIDEO,), (MASK,))


@sized("encode_pruned")
def test_a_step_within_a_pruned_video(engine: Engine) -> Job:
    rows = torch.randn(FRAMES * TOKENS, HIDDEN, generator=torch.Generator().manual_seed(1))
    fields = {"video_grid_thw": (FRAMES, HEIGHT, WIDTH)}
    video = Item(modality=Modality.VIDEO, spans=VIDEO.spans, feature=rows, fields=fields, identity=bytes(32))
    step = (Request(id="video", input_ids=IDS, items=(video,)), Chunk(1024, 1024))
    return lambda: engine.encode_pruned([step], {Modality.VIDEO: tallied(lambda items: [rows])}, None, RATE)
