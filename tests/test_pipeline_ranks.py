"""What the reference promises beyond the requirements: errors that say where, and nothing copied."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from conformance.suite.merging_feeds import HIDDEN
from conformance.suite.pipeline_ranks_cases import Tower, split
from reference.items import Request
from reference.pipeline_ranks import check_split, rank_input

CASE = split(".iii.", (1, 2, 1), (0, 2, 3))
REQUEST = Request(id="r", input_ids=CASE.feed.prompt.input_ids, items=CASE.feed.prompt.items)


def ask(rank: int, table: torch.Tensor | None = None, received: Any = None, levels: Sequence[int] = CASE.level_layers) -> Any:
    return rank_input(rank, CASE.ranks, levels, REQUEST, CASE.feed.chunk, Tower(CASE).encoders(), table, received)


@pytest.mark.parametrize(
    ("ranks", "levels", "message"),
    [
        ([], [], "each rank owns at least one layer"),
        ([range(2), range(2, 2)], [], "each rank owns at least one layer"),
        ([range(0, 4, 2)], [], "in a row"),
        ([range(1, 3)], [], "join from 0 on"),
        ([range(2), range(3, 4)], [], "join from 0 on"),
        ([range(2)], [1, 1], "a layer of its own, but the layers are"),
        ([range(2)], [0, 2], "no rank owns the layer 2"),
    ],
)
def test_a_split_that_cannot_be_right_is_named(ranks: list[range], levels: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_split(ranks, levels)


@pytest.mark.parametrize("rank", [-1, 3])
def test_a_rank_that_is_not_there(rank: int) -> None:
    with pytest.raises(ValueError, match=f"no rank {rank} of 3"):
        ask(rank)


def test_the_first_rank_receives_nothing_and_has_the_embeddings() -> None:
    for table, received in ((None, None), (CASE.feed.table, (torch.ones(5, HIDDEN), {}))):
        with pytest.raises(ValueError, match="the first rank embeds"):
            ask(0, table, received)


def test_a_later_rank_has_received_something() -> None:
    with pytest.raises(ValueError, match="rank 1 goes on from the hidden states of rank 0"):
        ask(1)


def test_the_first_layer_whose_rows_are_missing_is_named() -> None:
    rows = torch.ones(5, HIDDEN)
    with pytest.raises(ValueError, match="rank 1 has not received the deepstack rows of layer 3"):
        ask(1, received=(rows, {2: rows}))


def test_rows_for_another_number_of_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="2 levels of 4 columns need rows of 12, not of 16"):
        ask(0, CASE.feed.table, levels=(0, 2))


def test_an_encoder_that_fails_fails_the_request() -> None:
    with pytest.raises(ValueError, match="there is no encoder for image"):
        rank_input(0, CASE.ranks, CASE.level_layers, REQUEST, CASE.feed.chunk, {}, CASE.feed.table)


def test_a_later_rank_copies_nothing() -> None:
    rows = torch.ones(5, HIDDEN)
    states, own, later = ask(1, received=(rows, {2: rows, 3: rows}))
    assert states is rows
    assert own[2] is rows
    assert later[3] is rows
    assert np.array_equal(REQUEST.input_ids, CASE.feed.prompt.input_ids)
