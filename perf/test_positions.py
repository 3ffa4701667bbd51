"""What positions cost, for a prompt of some 32,768 positions with 1024 pictures, or a video of 128 frames."""

import numpy as np

from conformance.engine import Engine
from conformance.oracles import positions as oracle
from conformance.world.mrope import QWEN2_5_VL, QWEN2_VL, QWEN3_VL, image, video, write
from perf.sized import Job, sized
from reference.items import Chunk

PICTURES = write(QWEN2_VL, *[part for _ in range(1024) for part in (2, image(4, 7))])
VIDEO = write(QWEN2_5_VL, 100, video(128, 16, 16, 0.5), 100)
FRAMES = write(QWEN3_VL, 100, video(128, 16, 16), 100)
TABLE = oracle.triples(VIDEO)


@sized("positions")
def test_positions_of_many_pictures(engine: Engine) -> Job:
    return lambda: engine.positions(*PICTURES)


@sized("positions")
def test_positions_of_a_timed_video(engine: Engine) -> Job:
    return lambda: engine.positions(*VIDEO)


@sized("positions")
def test_positions_of_frames_apart(engine: Engine) -> Job:
    return lambda: engine.positions(*FRAMES)


@sized("extend_positions")
def test_extend_by_a_reply(engine: Engine) -> Job:
    return lambda: engine.extend_positions(TABLE, TABLE.shape[1] + 4096)


@sized("stitch_positions")
def test_stitch_two_turns(engine: Engine) -> Job:
    return lambda: engine.stitch_positions(TABLE, TABLE)


@sized("chunk_positions")
def test_cut_a_chunk(engine: Engine) -> Job:
    return lambda: np.ascontiguousarray(engine.chunk_positions(TABLE, Chunk(8192, 8192)))
