"""Shards: a language model of which each rank of a group computes a part.

Every rank holds some heads of attention and some columns of the feed-forward network; two sums over the ranks a layer put
their parts together (Megatron's split). Embeddings, norms and the head are on all ranks.

1. A sum over ranks is made of the same terms in another order than within one: numbers differ in their last bits (1e-7 in
   float32) from those of one process. Tokens are compared, not bits.
2. A rank that fails between two sums would leave the others waiting in the next. So it enters those that are left, with
   zeros, and says afterwards that it has failed. What the others made of it meanwhile is dropped with the request.
3. A sum that cannot be made because a rank is gone is no request's failure, and ends the process.

Source: transformers 5.24, `Qwen2VLAttention` and `Qwen2MLP`; SGLang 0.5.23, `QKVParallelLinear` and `RowParallelLinear`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.nn.functional import linear

BY_ROWS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
BY_COLUMNS = ("self_attn.o_proj", "mlp.down_proj")
R = TypeVar("R")


class GroupLost(RuntimeError):
    """A rank of the group is gone, and nothing can be computed any more."""

    def __init__(self, rank: int, error: Exception) -> None:
        super().__init__(f"rank {rank} cannot reach the others: {str(error).partition('. ')[0]}")


class Shards:
    """This rank's part of a model, which is changed in place.

    Raises ValueError if heads or columns cannot be shared equally among the ranks.
    """

    def __init__(self, model: Any, rank: int, size: int) -> None:
        config = model.config.text_config
        for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
            if getattr(config, name) % size:
                raise ValueError(f"{name} = {getattr(config, name)} cannot be shared by {size} ranks")
        self._rank, self._size, self._hidden = rank, size, config.hidden_size
        self._dtype = model.get_input_embeddings().weight.dtype
        layers = model.model.language_model.layers
        self._sums, self._made = len(layers) * len(BY_COLUMNS), 0
        if size > 1:
            for layer in layers:
                self._split(layer)

    def run(self, work: Callable[[], R], positions: int) -> R:
        """Run the model over so many positions of one prompt; every rank enters all sums, even if this one fails.

        Raises what `work` raises, when all sums are made, and GroupLost.
        """
        self._made = 0
        try:
            return work()
        finally:
            while self._size > 1 and self._made < self._sums:
                self._sum(torch.zeros(1, positions, self._hidden, dtype=self._dtype))

    def _split(self, layer: torch.nn.Module) -> None:
        for name in (*BY_ROWS, *BY_COLUMNS):
            part: Any = layer.get_submodule(name)
            dimension = int(name in BY_COLUMNS)
            part.weight.data = part.weight.data.chunk(self._size, dimension)[self._rank].clone()
            if part.bias is not None and not dimension:
                part.bias.data = part.bias.data.chunk(self._size)[self._rank].clone()
            if dimension:
                part.forward = self._summed(part)

    def _summed(self, part: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        def forward(hidden: torch.Tensor) -> torch.Tensor:
            whole = self._sum(linear(hidden, part.weight))
            return whole if part.bias is None else whole + part.bias

        return forward

    def _sum(self, part: torch.Tensor) -> torch.Tensor:
        self._made += 1
        try:
            dist.all_reduce(part)
        except Exception as error:
            self._made = self._sums
            raise GroupLost(self._rank, error) from error
        return part
