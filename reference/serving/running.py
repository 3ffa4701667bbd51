"""Running: one prompt through a model, chunk by chunk, and on, token by token.

1. A sequence is a request, its positions and what the model has computed of it. Prompt and reply are one sequence: the reply
   goes on behind the largest position on any axis.
2. The next token is the most likely one, the first of equals. So an answer is a function of the prompt, and two servers
   can be compared.
3. What was computed can be handed over: for each position one row, the keys and values of all layers side by side.

Written for Qwen2-VL, as `reference.pipeline`.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch

from reference.items import Chunk, Request
from reference.pipeline import feed, mrope_positions


@dataclass(slots=True, eq=False)
class Sequence:
    """positions: int64 [3, 1, n], of the prompt. computed: how many positions are in `cache`. limit: the most tokens."""

    request: Request
    positions: torch.Tensor
    limit: int
    cache: Any = None
    computed: int = 0
    tokens: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """The positions of the prompt."""
        return len(self.request.input_ids)

    @property
    def delta(self) -> int:
        """The largest position + 1 - the length of the prompt."""
        return int(self.positions.max()) + 1 - self.length

    def next_chunk(self, chunk_length: int | None) -> Chunk:
        """What is computed next: a part of the prompt, or the last token."""
        left = self.length - self.computed
        return Chunk(self.computed, min(left, chunk_length or left) if left > 0 else 1)

    def is_over(self, end: int | None) -> bool:
        """Whether the reply has its last token."""
        return len(self.tokens) >= self.limit or self.tokens[-1:] == [end]


def begin(model: Any, request: Request, limit: int) -> Sequence:
    """A request of which nothing is computed. Raises ValueError for a limit below 1, and for an empty prompt."""
    if limit < 1 or not len(request.input_ids):
        raise ValueError("a request has at least one position, and asks for at least one token")
    return Sequence(request, mrope_positions(model, request), limit)


@torch.no_grad()
def compute(model: Any, sequence: Sequence, chunk: Chunk) -> int | None:
    """Compute the next chunk of a sequence: the token behind it, or None in the middle of the prompt."""
    table = model.get_input_embeddings().weight
    if chunk.prefix < sequence.length:
        embeddings = feed(model, sequence.request, chunk)
        positions = sequence.positions[..., chunk.prefix : chunk.stop].to(table.device)
    else:
        embeddings = table[[sequence.tokens[-1]]]
        positions = torch.full((3, 1, 1), chunk.prefix + sequence.delta, device=table.device)
    said = model.model.language_model(
        inputs_embeds=embeddings[None], position_ids=positions, cache=sequence.cache, use_cache=True
    )
    sequence.cache, sequence.computed = said.cache, chunk.stop
    if chunk.stop < sequence.length:
        return None
    token = int(model.lm_head(said.last_hidden_state[0, -1]).argmax())
    sequence.tokens.append(token)
    return token


def rows(sequence: Sequence, chunk: Chunk) -> torch.Tensor:
    """What was computed of these positions: [chunk.length, 2 * layers * heads * head_dim]."""
    parts = [part[0, :, chunk.prefix : chunk.stop] for layer in sequence.cache.layers for part in (layer.keys, layer.values)]
    return torch.stack(parts).permute(2, 0, 1, 3).reshape(chunk.length, -1).cpu()


def adopt(model: Any, request: Request, given: torch.Tensor, token: int, delta: int, limit: int) -> Sequence:
    """A sequence of which another process has computed the prompt, and its first token.

    Raises ValueError for rows that are not those of this model, or not one for each position.
    """
    config = model.config.text_config
    layers, heads = config.num_hidden_layers, config.num_key_value_heads
    width = config.hidden_size // config.num_attention_heads
    length = len(request.input_ids)
    if given.shape != (length, 2 * layers * heads * width):
        raise ValueError(f"{length} positions of this model are not rows of the shape {list(given.shape)}")
    table = model.get_input_embeddings().weight
    parts = given.to(table.device).reshape(length, layers, 2, heads, width).permute(1, 2, 3, 0, 4)
    last = torch.tensor([[[length + delta - 1]]]).expand(3, 1, 1)  # all that is asked of positions from here on
    sequence = Sequence(request, last, limit, computed=length, tokens=[token])
    sequence.cache = import_module("transformers").DynamicCache()
    for layer, (keys, values) in enumerate(parts):
        sequence.cache.update(keys[None].contiguous(), values[None].contiguous(), layer)
    return sequence
