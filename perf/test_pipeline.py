"""What the whole path costs, on a tiny model."""

from conformance.engine import Engine
from conformance.world.checkpoint import tiny_qwen2_vl
from conformance.world.pictures import pictures, render
from perf.sized import Job, sized


@sized("prefill")
def test_prefill_of_one_photo(engine: Engine) -> Job:
    checkpoint, prompt = tiny_qwen2_vl(), "What is this? {chelsea}"
    text, images = render(prompt, checkpoint.placeholder), pictures(prompt)
    return lambda: engine.prefill(checkpoint, text, images, None)


@sized("prefill")
def test_prefill_of_four_photos_in_chunks(engine: Engine) -> Job:
    checkpoint, prompt = tiny_qwen2_vl(), "{astronaut}{chelsea}{coffee}{rocket}"
    text, images = render(prompt, checkpoint.placeholder), pictures(prompt)
    return lambda: engine.prefill(checkpoint, text, images, 64)
