"""What the life of a request costs: a conversation of 131,072 positions with 1,000 pictures, and 64 requests in a step."""

from itertools import count

import numpy as np
import torch

from conformance.engine import Engine
from conformance.world.doubles import Encoders, image
from perf.counters import tallied
from perf.sized import Job, sized
from reference.items import Chunk, Request

LENGTH, PICTURE, EVERY = 131_072, 120, 131
HISTORY = Request(
    id="history",
    input_ids=np.full(LENGTH, 20, dtype=np.int64),
    items=tuple(image(n, (n * EVERY + 3, n * EVERY + 2 + PICTURE)) for n in range(1_000)),
)
TURN = Request(id="turn", input_ids=np.full(512, 20, dtype=np.int64), items=(image(1_000, (10, 9 + PICTURE)),))
REPLY = np.full(256, 20, dtype=np.int64)
TABLE = torch.zeros(128, 5)
ENCODERS = {modality: tallied(encoder) for modality, encoder in Encoders().items()}


@sized("join_turn")
def test_join_a_turn_to_a_thousand_pictures(engine: Engine) -> Job:
    return lambda: engine.join_turn(HISTORY, REPLY, TURN, None, None)


@sized("join_positions")
def test_join_positions(engine: Engine) -> Job:
    table = np.tile(np.arange(LENGTH), (3, 1))
    return lambda: engine.join_positions(table, LENGTH + 256, table[:, :512], False)


@sized("join_padded")
def test_join_padded_ids(engine: Engine) -> Job:
    item = image(1_000, (LENGTH + 10, LENGTH + 9 + PICTURE))
    return lambda: engine.join_padded(HISTORY.input_ids, TURN.input_ids, (item,), None)


@sized("open_lifecycle", "open_lifecycle.admit", "open_lifecycle.abort")
def test_admit_and_abort_a_thousand_pictures(engine: Engine) -> Job:
    requests, numbers = engine.open_lifecycle(ENCODERS, TABLE, 0), count()

    def job() -> None:
        id = f"request {next(numbers)}"
        requests.admit(Request(id=id, input_ids=HISTORY.input_ids, items=HISTORY.items), None, None)
        requests.abort(id)

    return job


@sized("open_lifecycle", "open_lifecycle.admit", "open_lifecycle.step", "open_lifecycle.retract")
def test_a_step_of_64_requests(engine: Engine) -> Job:
    """Each computes one picture, and is retracted."""
    requests = engine.open_lifecycle(ENCODERS, TABLE, 1 << 20)
    for n in range(64):
        requests.admit(Request(id=str(n), input_ids=TURN.input_ids, items=(image(n, (10, 9 + PICTURE)),)), None, None)
    chunks = {str(n): Chunk(0, 512) for n in range(64)}
    return lambda: [requests.step(chunks), *(requests.retract(id) for id in chunks)]


@sized("open_lifecycle", "open_lifecycle.admit", "open_lifecycle.step", "open_lifecycle.retract", "open_lifecycle.reply")
def test_one_token_behind_a_thousand_pictures(engine: Engine) -> Job:
    requests = engine.open_lifecycle(ENCODERS, TABLE, 0)
    requests.admit(HISTORY, None, None)
    requests.reply("history", [20])
    chunks = {"history": Chunk(LENGTH, 1)}
    return lambda: [requests.step(chunks), requests.retract("history")]
