"""What vLLM 0.33.0 gets wrong about rows and heads: its merge of embeddings, and its rotary embedding.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from typing import Any

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm import cpu

CHECKS = Checks()
fails = CHECKS.fails


def merged(mask: list[bool], rows: torch.Tensor) -> Any:
    """Rows of two columns, merged into zeros."""
    cpu.prepare()
    merge = cpu.module("vllm.model_executor.models.utils")._merge_multimodal_embeddings
    return merge(torch.zeros(len(mask), 2), [rows], torch.tensor(mask)).tolist()


def rotary(*sections: int) -> Any:
    """A rotary embedding for heads of four numbers, whose table has the positions 0 to 3."""
    cpu.prepare()
    owner, config = cpu.module("vllm.model_executor.layers.rotary_embedding.mrope"), cpu.module("vllm.config")
    with config.set_current_vllm_config(config.VllmConfig()):
        return owner.MRotaryEmbedding(4, 4, 1, 100.0, True, torch.float32, mrope_section=list(sections))


def turned(positions: torch.Tensor) -> torch.Tensor:
    heads = torch.ones(positions.shape[1], 4)
    queries: torch.Tensor = rotary(1, 0, 1).forward_native(positions, heads, heads)[0]
    return queries


def at(position: int) -> torch.Tensor:
    return turned(torch.full((3, 1), position))


@fails("KERNELS-14")
def one_row_is_enough() -> bool:
    """One row is given to every position of media, and one without a position to nobody; a row of one column fills all."""
    row = torch.tensor([[1.0, 2.0]])
    spread = merged([True, False, True], row) == [[1, 2], [0, 0], [1, 2]]
    return bool(spread and merged([False], row) == [[0, 0]] and merged([True], row[:, :1]) == [[1, 1]])


@fails("KERNELS-29")
def sections_are_asserted() -> bool:
    """Sections that do not fill a head are an assertion, and two axes of positions for three run into an index."""
    two = torch.zeros(2, 1, dtype=torch.int64)
    return error(lambda: rotary(1, 0, 0)) == "AssertionError" and error(lambda: turned(two)) == "IndexError"


@fails("KERNELS-30")
def positions_count_from_the_end() -> bool:
    """Position -1 is turned by the last angle of the table, and one beyond it runs into an index."""
    return torch.equal(at(-1), at(3)) and error(lambda: at(4)) == "IndexError"


@fails("KERNELS-42")
def nothing_cannot_be_turned() -> bool:
    """Heads of no positions cannot be told apart."""
    return error(lambda: turned(torch.zeros(3, 0, dtype=torch.int64))) == "RuntimeError"
