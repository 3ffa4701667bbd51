"""A prompt and its pictures through transformers' `generate`, watched at the door of the language model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from PIL.Image import Image

from conformance.adapters.transformers.cpu import module
from conformance.protocol.pipeline import Prefill
from conformance.world.checkpoint import Checkpoint


@torch.no_grad()
def prefill(checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
    """What `generate` feeds its model before the first new token.

    It does not cut raw pictures into chunks, and takes encoded ones (`mm_encoder_outputs`), here each by itself.
    """
    model = checkpoint.model
    made = checkpoint.processor(text=[prompt], images=list(images) or None, return_tensors="pt")
    inputs = {name: value for name, value in made.items() if name != "pixel_values"}
    if images:
        grids = made["image_grid_thw"]
        pixels = torch.split(made["pixel_values"], grids.prod(dim=1).tolist())
        rows = [model.get_image_features(part, grid[None]).pooler_output[0] for part, grid in zip(pixels, grids, strict=True)]
        outputs = module("modeling_outputs").BaseModelOutputWithPooling
        inputs["mm_encoder_outputs"] = {"image": outputs(pooler_output=rows)}
    with watched(model) as steps:
        model.generate(**inputs, max_new_tokens=1, do_sample=False, prefill_chunk_size=chunk_length)
    fed, said = (torch.cat(parts) for parts in zip(*steps, strict=True))
    return Prefill(made["input_ids"][0].numpy(), fed, said)


@contextmanager
def watched(model: Any) -> Iterator[list[tuple[torch.Tensor, torch.Tensor]]]:
    """The embeddings that enter the language model and the logits of its answer, a pair for each step.

    `generate` itself keeps the logits of the last position. What the model remembers of a prompt is forgotten at the end.
    """
    steps: list[tuple[torch.Tensor, torch.Tensor]] = []

    def note(_: Any, __: Any, inputs: dict[str, Any], answer: Any) -> None:
        steps.append((inputs["inputs_embeds"][0].clone(), model.lm_head(answer.last_hidden_state)[0]))

    hook = model.model.language_model.register_forward_hook(note, with_kwargs=True)
    try:
        yield steps
    finally:
        hook.remove()
        model.model.rope_deltas = None
