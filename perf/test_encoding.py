"""What encoding costs beside the encoder: eight prompts of 2,048 positions, two pictures each; a video of 256 frames."""

from collections.abc import Sequence
from types import SimpleNamespace

import torch

from conformance.engine import Engine
from conformance.world.doubles import image, request, whole
from perf.counters import tallied
from perf.sized import Job, sized
from reference.items import Chunk, Item, Modality, Span

HIDDEN = 1024
ROOM = 1 << 30
FRAMES = tuple(Span(16 * number, 16 * number + 11) for number in range(256))
PROMPTS = [
    request(f"prompt-{number}", 2048, image(2 * number, (100, 611)), image(2 * number + 1, (1000, 1511))) for number in range(8)
]
CHUNK = Chunk(256, 1024)


def ready(items: Sequence[Item]) -> torch.Tensor:
    """An encoder that costs nothing but memory."""
    return torch.empty(sum(item.token_count for item in items), HIDDEN, dtype=torch.bfloat16)


ENCODERS = dict.fromkeys(Modality, tallied(ready))


@sized("count_in_chunk")
def test_count_the_frames_of_a_video(engine: Engine) -> Job:
    return lambda: engine.count_in_chunk(FRAMES, CHUNK)


@sized("slice_chunk")
def test_slice_the_frames_of_a_video(engine: Engine) -> Job:
    embedding = torch.empty(sum(map(len, FRAMES)), HIDDEN, dtype=torch.bfloat16)
    return lambda: engine.slice_chunk(embedding, FRAMES, CHUNK)


@sized("find_encoder")
def test_find_an_encoder_by_convention(engine: Engine) -> Job:
    model = SimpleNamespace(get_video_feature=ready)
    return lambda: engine.find_encoder(Modality.VIDEO, {}, model)


@sized("encode")
def test_encode_a_batch(engine: Engine) -> Job:
    batch = [(prompt, CHUNK) for prompt in PROMPTS]
    return lambda: engine.encode(batch, ENCODERS, None)


@sized("encode", "open_encoder_cache")
def test_serve_a_batch_from_the_cache(engine: Engine) -> Job:
    cache, batch = engine.open_encoder_cache(ROOM), [(prompt, CHUNK) for prompt in PROMPTS]
    engine.encode([whole(prompt) for prompt in PROMPTS], ENCODERS, cache)
    return lambda: engine.encode(batch, ENCODERS, cache)


@sized("encode")
def test_encode_a_video(engine: Engine) -> Job:
    spans = [(span.first, span.last) for span in FRAMES]
    video = [(request("video", 4096, image(1, *spans)), CHUNK)]
    return lambda: engine.encode(video, ENCODERS, None)
