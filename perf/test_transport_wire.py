"""What it costs to put a request on the wire: 64 MiB of pixels, and a thousand small items."""

import numpy as np
import torch

from conformance.engine import Engine
from perf.sized import Job, sized
from reference.items import Item, Modality, Request, Span

LARGE = Request(
    id="large",
    input_ids=np.arange(20_000),
    items=(Item(modality=Modality.IMAGE, spans=(Span(0, 16_383),), feature=torch.zeros(16 << 20), identity=bytes(32)),),
)
MANY = Request(
    id="many",
    input_ids=np.arange(131_072),
    items=tuple(
        Item(
            modality=Modality.IMAGE,
            spans=(Span(n * 131, n * 131 + 119),),
            feature=torch.zeros(4, 4),
            fields={"image_grid_thw": (1, 8, 8)},
            identity=bytes(32),
        )
        for n in range(1000)
    ),
)


@sized("encode_message")
def test_write_64_mebibytes(engine: Engine) -> Job:
    return lambda: engine.encode_message(LARGE)


@sized("encode_message", "decode_message")
def test_read_64_mebibytes(engine: Engine) -> Job:
    data = engine.encode_message(LARGE)
    return lambda: engine.decode_message(data)


@sized("encode_message")
def test_write_a_thousand_items(engine: Engine) -> Job:
    return lambda: engine.encode_message(MANY)


@sized("encode_message", "decode_message")
def test_read_a_thousand_items(engine: Engine) -> Job:
    data = engine.encode_message(MANY)
    return lambda: engine.decode_message(data)
