"""What is obviously right about the pipeline: transformers' own way from a prompt to the logits.

Ids and places are spelled out byte by byte, with no tokenizer. Prompts are written as in `conformance.world.pictures`, and
everything is about the tiny Qwen2-VL.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib import import_module
from string import Formatter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.world.checkpoint import SPECIAL_TOKENS, tiny_qwen2_vl
from conformance.world.pictures import TOKENS, names, picture, pictures, render

PAD = 256 + SPECIAL_TOKENS.index("<|image_pad|>")


def spell(prompt: str) -> list[int]:
    """The ids of a prompt, expanded: a byte is its own id, special tokens follow the bytes, a picture is many pads."""
    written = {name: f"<|vision_start|>{'<|image_pad|>' * count}<|vision_end|>" for name, count in TOKENS.items()}
    ids: list[int] = []
    for piece in re.split(r"(<\|\w+\|>)", prompt.format_map(written)):
        composed = unicodedata.normalize("NFC", piece)
        ids += [256 + SPECIAL_TOKENS.index(piece)] if piece in SPECIAL_TOKENS else composed.encode()
    return ids


def places(prompt: str) -> list[str]:
    """For each position of the expanded prompt the picture and the row that belong there; nothing at text.

    A pad that was typed is text.
    """
    found: list[str] = []
    for text, name, _, _ in Formatter().parse(prompt):
        picture = ["", *(f"row {row} of {name}" for row in range(TOKENS[name])), ""] if name else []
        found += [""] * len(spell(text)) + picture
    return found


def media(prompt: str) -> NDArray[np.bool_]:
    """Which positions of the expanded prompt belong to a picture."""
    return np.not_equal(places(prompt), "")


def where(prompt: str) -> Callable[[int], str]:
    """Names a position of the expanded prompt."""
    return lambda position: f"position {position} ({places(prompt)[position] or 'text'})"


@cache
@torch.no_grad()
def rows(name: str) -> torch.Tensor:
    """What transformers' vision tower makes of one picture: [tokens, hidden]."""
    checkpoint = tiny_qwen2_vl()
    made = checkpoint.processor.image_processor(images=[picture(name)], return_tensors="pt")
    encoded: torch.Tensor = checkpoint.model.get_image_features(**made).pooler_output[0]
    return encoded


@cache
def embeddings(prompt: str) -> torch.Tensor:
    """The text embeddings with the rows of the pictures scattered over their places: [n, hidden]."""
    table: torch.Tensor = tiny_qwen2_vl().model.get_input_embeddings().weight.detach()
    encoded = torch.cat([table[:0], *map(rows, names(prompt))])
    return table[spell(prompt)].masked_scatter(torch.from_numpy(media(prompt))[:, None], encoded)


@cache
@torch.no_grad()
def logits(prompt: str, chunk_length: int | None = None) -> torch.Tensor:
    """What transformers' model answers, whole or chunk by chunk: [n, vocabulary]."""
    return _whole(prompt) if chunk_length is None else _chunked(prompt, chunk_length)


@cache
def _processed(prompt: str) -> dict[str, Any]:
    checkpoint = tiny_qwen2_vl()
    text = render(prompt, checkpoint.placeholder)
    return dict(checkpoint.processor(text=[text], images=pictures(prompt) or None, return_tensors="pt"))


def _whole(prompt: str) -> torch.Tensor:
    outputs: Any = import_module("transformers.modeling_outputs")
    model = tiny_qwen2_vl().model
    inputs = {name: value for name, value in _processed(prompt).items() if name != "pixel_values"}
    encoded = outputs.BaseModelOutputWithPooling(pooler_output=[rows(name) for name in names(prompt)])
    answer: torch.Tensor = model(**inputs, mm_encoder_outputs={"image": encoded} if names(prompt) else None).logits[0]
    model.model.rope_deltas = None  # what the model remembers of this prompt must not reach another
    return answer


def _chunked(prompt: str, chunk_length: int) -> torch.Tensor:
    model, inputs = tiny_qwen2_vl().model, _processed(prompt)
    cache = import_module("transformers").DynamicCache()
    places = model.model.get_rope_index(inputs["input_ids"], inputs["mm_token_type_ids"], inputs.get("image_grid_thw"))[0]
    steps = [slice(first, first + chunk_length) for first in range(0, places.shape[2], chunk_length)]
    fed = embeddings(prompt)
    return torch.cat(
        [model(inputs_embeds=fed[None, step], position_ids=places[..., step], cache=cache).logits[0] for step in steps]
    )
