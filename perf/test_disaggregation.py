"""What disaggregation costs: 1,000 pictures among 16 encoders, 16 requests in parts, and a prompt of 16,384 positions."""

from itertools import count

import numpy as np
import torch

from conformance.engine import Engine
from conformance.oracles.disaggregation import Store, message
from conformance.protocol.disaggregation import Instance
from conformance.world.doubles import image
from perf.sized import Job, sized
from reference.items import Item, Request

PICTURE, HIDDEN = 256, 1024
ITEMS = tuple(image(n, (n * PICTURE, n * PICTURE + PICTURE - 1)) for n in range(1_000))
OPTIONS = tuple({"max_pixels": 448 * 448} for _ in ITEMS)
ROWS = torch.zeros(PICTURE, HIDDEN)
LENGTH, CHUNK = 16_384, 4_096


@sized("assign_parts")
def test_share_a_thousand_pictures(engine: Engine) -> Job:
    return lambda: engine.assign_parts(ITEMS, OPTIONS, 16)


@sized("place_encoding")
def test_admit_a_thousand_pictures(engine: Engine) -> Job:
    return lambda: engine.place_encoding(ITEMS, Instance(has_tower=False, encoders=16))


@sized("open_encoder_side", "open_encoder_side.submit", "open_encoder_side.take", "open_encoder_side.encoded",
       "open_encoder_side.send", "open_encoder_side.sent")  # fmt: skip
def test_a_hundred_parts_to_four_receivers(engine: Engine) -> Job:
    """Queued, encoded, and sent, with all of them in the queue at once."""
    side, numbers = engine.open_encoder_side((), Store(), 60.0), count()

    def job() -> None:
        names = [f"request {next(numbers)}" for _ in range(100)]
        for name in names:
            side.submit(message(name, 0, 4), 0.0)
        for name in names:
            side.take()
            side.encoded(name, 0, ROWS, 0.0)
            for receiver in range(4):
                side.send(name, 0, receiver, 0.0)
            for receiver in range(4):
                side.sent(name, 0, receiver, None, 0.0)

    return job


@sized("open_receiver", "open_receiver.expect", "open_receiver.arrive", "open_receiver.poll")
def test_16_requests_of_four_pictures(engine: Engine) -> Job:
    """Each in four parts, which arrive from behind: 64 MiB of rows."""
    receiver, numbers = engine.open_receiver(60.0), count()
    items = tuple(Item(modality=item.modality, spans=item.spans, identity=item.identity) for item in ITEMS[:4])
    ids = np.full(4 * PICTURE, 9, dtype=np.int64)

    def job() -> None:
        names = [f"request {next(numbers)}" for _ in range(16)]
        for name in names:
            receiver.expect(Request(id=name, input_ids=ids, items=items), [[0], [1], [2], [3]], 0.0)
        for part in (3, 2, 1, 0):
            for name in names:
                receiver.arrive(name, part, 4, ROWS, [{}])
        receiver.poll(0.0)

    return job


@sized("open_prefill_side", "open_prefill_side.begin", "open_decode_side", "open_decode_side.expect", "open_decode_side.poll")
def test_hand_over_a_prompt(engine: Engine) -> Job:
    """In four chunks, 64 MiB of rows, with a picture."""
    prefill, decode, rooms = engine.open_prefill_side(60.0), engine.open_decode_side(60.0), count()
    request = Request(id="a", input_ids=np.full(LENGTH, 20, dtype=np.int64), items=(ITEMS[0],))
    rows = torch.zeros(CHUNK, HIDDEN)

    def job() -> None:
        room = prefill.begin(request, next(rooms), 0.0)
        said = [one for ready in decode.expect(request, room, 0.0) for one in prefill.receive(ready)]
        for first in range(0, LENGTH, CHUNK):
            said += prefill.store(room, first, rows)
        said += prefill.finish(room, 5, -240)
        for answer in [answer for one in said for answer in decode.receive(one)]:
            prefill.receive(answer)
        decode.poll(0.0)
        prefill.poll(0.0)

    return job


@sized("open_carrier", "open_carrier.offer", "open_carrier.fetch", "open_carrier.withdraw", uncounted="it may have a thread")
def test_carry_sixteen_mebibytes(engine: Engine) -> Job:
    """By the last of the engine's carriers."""
    carrier = engine.open_carrier(engine.traits.carriers[-1])
    rows = torch.zeros(CHUNK, HIDDEN)

    def job() -> None:
        ticket = carrier.offer(rows)
        carrier.fetch(ticket)
        carrier.withdraw(ticket)

    return job
