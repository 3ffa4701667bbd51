"""The pipeline of the reference, and the checkpoint, photos and oracle that every pipeline is held against."""

import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.oracles import pipeline as oracle
from conformance.world.checkpoint import tiny_qwen2_vl
from conformance.world.pictures import PHOTOS, TOKENS, picture, pictures, render
from reference import pipeline
from reference.items import Chunk, Span

WITHOUT_TORCHVISION = """
import sys
from importlib import util
find = util.find_spec
sys.modules["torchvision"] = None
util.find_spec = lambda name, package=None: None if name == "torchvision" else find(name, package)
from tests.test_pipeline import pixels
print(pixels())
assert sys.modules["torchvision"] is None
"""


def pixels() -> str:
    """A digest of what the processor makes of a photo."""
    made = tiny_qwen2_vl().processor.image_processor(images=[picture("chelsea")], return_tensors="np")
    return sha256(made["pixel_values"].tobytes()).hexdigest()


@pytest.mark.parametrize("prompt", ["What is this? {chelsea}Tell me.", "{rocket}", "There is nothing to see."])
def test_the_oracle_agrees_with_the_plain_forward(prompt: str) -> None:
    checkpoint = tiny_qwen2_vl()
    text = [render(prompt, checkpoint.placeholder)]
    with torch.no_grad():
        plain = checkpoint.model(**checkpoint.processor(text=text, images=pictures(prompt) or None, return_tensors="pt"))
    checkpoint.model.model.rope_deltas = None
    assert torch.equal(plain.logits[0], oracle.logits(prompt))


@pytest.mark.parametrize("name", TOKENS)
def test_a_picture_has_its_number_of_tokens(name: str) -> None:
    processor = tiny_qwen2_vl().processor
    image = picture(name)
    assert processor.image_processor.get_number_of_image_patches(image.height, image.width) == 4 * TOKENS[name]
    assert len(oracle.rows(name)) == TOKENS[name]


def test_every_photo_has_a_licence() -> None:
    text = (PHOTOS / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{photo.name}` |" in text for photo in PHOTOS.glob("*.png"))


def test_weights_are_the_same_on_every_machine() -> None:
    digest = sha256()
    for _, parameter in sorted(tiny_qwen2_vl().model.named_parameters()):
        digest.update(parameter.detach().numpy().astype("<f4").tobytes())
    assert digest.hexdigest() == "1e18b4927b9e0837a345e8954f87f6835975c5f8d88ab6fe78777c0cc3ad97cb"


def test_torchvision_makes_no_difference() -> None:
    root = Path(__file__).parents[1]
    fresh = subprocess.run([sys.executable, "-c", WITHOUT_TORCHVISION], cwd=root, capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == pixels()


def test_pictures_that_touch_are_told_apart() -> None:
    checkpoint = tiny_qwen2_vl()
    names = ["eye", "rocket", "eye"]
    request = pipeline.read(checkpoint.processor, "<|image_pad|>" * 3 + ".", [picture(name) for name in names])
    assert [item.spans for item in request.items] == [(Span(0, 3),), (Span(4, 21),), (Span(22, 25),)]
    time, height, width = pipeline.mrope_positions(checkpoint.model, request)[:, 0].tolist()
    assert time == [0] * 4 + [2] * 18 + [8] * 4 + [10]
    assert height == [0, 0, 1, 1, *(2 + row for row in range(6) for _ in range(3)), 8, 8, 9, 9, 10]
    assert width == [0, 1, 0, 1, *(2 + column for _ in range(6) for column in range(3)), 8, 9, 8, 9, 10]


def test_a_chunked_prompt_fits_any_cache() -> None:
    checkpoint, prompt = tiny_qwen2_vl(), "{eye}{cup}{eye}{cup}"
    text, images = render(prompt, checkpoint.placeholder), pictures(prompt)
    for capacity in (0, 4 * 64 * 4):
        made = pipeline.prefill(
            checkpoint.processor, checkpoint.model, text, images, chunk_length=3, encoder_cache_bytes=capacity
        )
        assert torch.equal(made.embeddings, oracle.embeddings(prompt))


@pytest.mark.parametrize("length", [0, -1])
def test_a_chunk_of_no_positions_is_an_error(length: int) -> None:
    request = pipeline.read(tiny_qwen2_vl().processor, "Look.", [])
    with pytest.raises(ValueError, match=f"tokens_per_step is at least 1, not {length}"):
        pipeline.cut(request, length)


def test_every_chunk_length_equals_no_chunking() -> None:
    checkpoint, prompt = tiny_qwen2_vl(), "{eye}{cup} or {eye}?"
    request = pipeline.read(checkpoint.processor, render(prompt, checkpoint.placeholder), pictures(prompt))
    for length in range(1, len(request.input_ids) + 2):
        with torch.no_grad():
            fed = [pipeline.feed(checkpoint.model, request, chunk) for chunk in pipeline.cut(request, length)]
        assert torch.equal(torch.cat(fed), oracle.embeddings(prompt))


def test_ids_and_spans_that_disagree_are_not_fed() -> None:
    checkpoint, prompt = tiny_qwen2_vl(), "{eye} or {cup}?"
    request = pipeline.read(checkpoint.processor, render(prompt, checkpoint.placeholder), pictures(prompt))
    shifted = replace(request, input_ids=np.roll(request.input_ids, 1))
    with pytest.raises(ValueError, match="ids and spans disagree"):
        pipeline.feed(checkpoint.model, shifted, Chunk(0, len(shifted.input_ids)))


def test_an_empty_prompt_is_an_error() -> None:
    with pytest.raises(ValueError, match="an empty prompt"):
        pipeline.read(tiny_qwen2_vl().processor, "", [])
