"""What placeholders cost, for a prompt of 32,768 positions that is a video of 128 frames."""

import numpy as np

from conformance.engine import Engine
from conformance.world.prompts import ITEM_STARTS, PAIRS, picture
from perf.sized import Job, sized
from reference.items import Span

FRAMES = 128
LENGTH = 32_768
STRIDE = LENGTH // FRAMES
VIDEO = picture("v", tuple(Span(first + 1, first + STRIDE - 2) for first in range(0, LENGTH, STRIDE)))
IDS = np.full(LENGTH, 12, dtype=np.int64)
IDS[::STRIDE] = 3
IDS[STRIDE - 1 :: STRIDE] = 4
IDS[0], IDS[STRIDE - 1] = 1, 2


@sized("find_spans")
def test_find_the_frames_of_a_video(engine: Engine) -> Job:
    return lambda: engine.find_spans(IDS, 12)


@sized("pad_spans")
def test_pad_a_video_by_spans(engine: Engine) -> Job:
    return lambda: engine.pad_spans(IDS.copy(), (VIDEO,))


@sized("pad_pairs")
def test_pad_a_video_by_pairs(engine: Engine) -> Job:
    return lambda: engine.pad_pairs(IDS.copy(), (VIDEO,), PAIRS, ITEM_STARTS)


@sized("token_modalities")
def test_the_modalities_of_a_video(engine: Engine) -> Job:
    return lambda: engine.token_modalities(LENGTH, (VIDEO,))
