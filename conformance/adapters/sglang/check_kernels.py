"""What SGLang 0.5.23 gets wrong about rows, masks and heads: its scatter, its mask and its rotary embedding.

`python -m conformance.adapters.sglang.check` runs these, too.
"""

import io
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu

CHECKS = Checks()
fails = CHECKS.fails


def masked(ids: torch.Tensor, *sentinels: int) -> Any:
    cpu.prepare()
    found = cpu.module("sglang.srt.managers.mm_schedule")._get_multimodal_mask(ids, torch.tensor(sentinels, dtype=torch.int64))
    return found[:, 0].tolist()


def scattered(mask: list[bool], rows: torch.Tensor) -> Any:
    """Rows of two columns, scattered into zeros."""
    cpu.prepare()
    made = torch.zeros(len(mask), 2, dtype=rows.dtype)
    cpu.module("sglang.srt.managers.mm_utils")._scatter_mm_embedding(made, torch.tensor(mask)[:, None], rows)
    return made.tolist()


def rotary(*sections: int) -> Any:
    """A rotary embedding for heads of four numbers, whose table has the positions 0 to 3, on a CPU."""
    cpu.prepare()
    with patch.object(cpu.module("sglang.srt.layers.rotary_embedding.base"), "_is_cpu", True), redirect_stdout(io.StringIO()):
        return cpu.module("sglang.srt.layers.rotary_embedding.mrope").MRotaryEmbedding(
            4, 4, 4, 100, True, torch.float32, mrope_section=list(sections)
        )


def turned(positions: torch.Tensor) -> torch.Tensor:
    heads = torch.ones(positions.shape[1], 4)
    queries: torch.Tensor = rotary(1, 0, 1).forward_native(positions, heads, heads)[0]
    return queries


def at(position: int) -> torch.Tensor:
    return turned(torch.full((3, 1), position))


@fails("KERNELS-10", "KERNELS-24")
def a_mask_of_no_sentinels() -> bool:
    """Ids of text alone, without a sentinel to look for, are an assertion."""
    return error(lambda: masked(torch.tensor([1, 2]))) == "AssertionError"


@fails("KERNELS-11")
def sentinels_are_narrowed() -> bool:
    """Sentinels get the type of the ids: beside ids of 32 bits, 2**32 + 5 is the word 5."""
    return bool(masked(torch.tensor([5, 6], dtype=torch.int32), 2**32 + 5) == [True, False])


@fails("KERNELS-12")
def float8_is_not_scattered() -> bool:
    """`index_copy_` on a CPU has no float8."""
    return error(lambda: scattered([True], torch.ones(1, 2).to(torch.float8_e4m3fn))) == "NotImplementedError"


@fails("KERNELS-14")
def rows_are_not_counted() -> bool:
    """A position without a row keeps its text."""
    return bool(scattered([True, True], torch.ones(1, 2)) == [[1, 1], [0, 0]])


@fails("KERNELS-29")
def sections_are_changed() -> bool:
    """Sections that do not fill a head are scaled until they do; two axes of positions for three run into an index."""
    return (
        sum(rotary(4, 3, 2).mrope_section) == 2 and error(lambda: turned(torch.zeros(2, 1, dtype=torch.int64))) == "IndexError"
    )


@fails("KERNELS-30")
def positions_count_from_the_end() -> bool:
    """Position -1 is turned by the last angle of the table, and one beyond it runs into an index."""
    return torch.equal(at(-1), at(3)) and error(lambda: at(4)) == "IndexError"


@fails("KERNELS-42")
def nothing_cannot_be_turned() -> bool:
    """`forward_native` cannot tell the heads of no positions apart; `forward_cuda` gives them back."""
    return error(lambda: turned(torch.zeros(3, 0, dtype=torch.int64))) == "RuntimeError"
