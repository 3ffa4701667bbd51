"""What is obviously right about drafts: one position after another, look at the next one."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.oracles.placeholders import owners
from reference.items import Chunk, Item


def next_rows(
    input_ids: NDArray[np.int64], items: Sequence[Item], row_of: dict[int, torch.Tensor], table: torch.Tensor, next_id: int
) -> list[torch.Tensor]:
    """For each position of the prompt what stands behind it: the row of a medium, a word, or the sampled word.

    input_ids: with placeholder ids. row_of: by position, the row of a medium.
    """
    filled = owners(len(input_ids), items)
    found = []
    for position in range(1, len(input_ids)):
        found.append(table[input_ids[position]] if filled[position] is None else row_of[position].to(table.dtype))
    return [*found, table[next_id]] if len(input_ids) else []


def standing(positions: NDArray[np.int64], chunk: Chunk, steps: int, shift: int) -> NDArray[np.int64]:
    """The draft's positions: shift is 0 where it stands at the hidden state, 1 where it stands at the embedded token."""
    columns = [list(column) for column in positions.T]
    largest = max(max(column) for column in columns)
    while len(columns) < chunk.stop + steps + shift:
        largest += 1
        columns.append([largest] * 3)
    chosen = [columns[chunk.prefix + step + shift] for step in range(chunk.length + steps)]
    return np.array(chosen, dtype=np.int64).reshape(-1, 3).T


def continuations(input_ids: NDArray[np.int64], items: Sequence[Item], size: int) -> list[list[int]]:
    """The text behind each place where the last `size` ids stood before; a place with media in or behind it is none."""
    filled = owners(len(input_ids), items)
    text = [None if owner is not None else int(number) for owner, number in zip(filled, input_ids, strict=True)]
    wanted, found = text[len(text) - size :], []
    for start in range(len(text) - size if None not in wanted and size <= len(text) else 0):
        if text[start : start + size] == wanted:
            behind: list[int] = []
            for number in text[start + size :]:
                if number is None:
                    break
                behind.append(number)
            found.append(behind)
    return [behind for behind in found if behind]
