"""What is obviously right about merging: one position after another, the next row at media, the table at text."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.oracles.placeholders import owners
from reference.items import Chunk, Item


def merged(
    input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
) -> torch.Tensor:
    """The input of the first layer: input_ids are those of the whole prompt, with placeholder ids."""
    filled, left, out = owners(len(input_ids), items), list(rows), torch.zeros(chunk.length, table.shape[1], dtype=table.dtype)
    for step in range(chunk.length):
        position = chunk.prefix + step
        out[step] = table[input_ids[position]] if filled[position] is None else left.pop(0)
    return out


def levels(length: int, items: Sequence[Item], rows: torch.Tensor, hidden: int, chunk: Chunk) -> torch.Tensor:
    """The input of the deeper layers, by position: [chunk.length, levels, hidden]."""
    filled, left = owners(length, items), list(rows)
    out = torch.zeros(chunk.length, rows.shape[1] // hidden - 1, hidden, dtype=rows.dtype)
    for step in range(chunk.length):
        if filled[chunk.prefix + step] is not None:
            row = left.pop(0)
            for level in range(out.shape[1]):
                out[step, level] = row[hidden * (level + 1) : hidden * (level + 2)]
    return out
