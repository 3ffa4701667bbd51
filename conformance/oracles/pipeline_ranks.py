"""What is obviously right about pipeline ranks: each layer asks for its level; a rank is a part of transformers' model."""

from collections.abc import Sequence

import torch


def rows_of_layers(layers: range, level_layers: Sequence[int], levels: torch.Tensor) -> dict[int, torch.Tensor]:
    """By layer of a rank, the rows of its level. levels: [chunk.length, levels, hidden]."""
    found = {}
    for layer in layers:
        for level, taker in enumerate(level_layers):
            if taker == layer:
                found[layer] = levels[:, level]
    return found
