"""What the reference promises beyond the requirements: masks, the check of the padding, and errors that say where."""

import numpy as np
import pytest
import torch

from conformance.suite.merging_feeds import feed
from conformance.world.prompts import draw
from reference.items import Chunk, Span
from reference.merging import check_padding, fit_length, merge, sentinel_mask, span_mask
from reference.placeholders import pad_spans

PADDED = pad_spans(*draw("..iii.vv."))


@pytest.mark.parametrize(
    ("input_ids", "sentinels", "expected"),
    [
        ([1, 9, 5, 9], [5, 9], [False, True, True, True]),
        ([1, 2], [5], [False, False]),
        ([5, 5], [5], [True, True]),
        ([10, 1], [5, 9], [False, False]),
        ([], [5], []),
        ([1, 2], [], [False, False]),
    ],
)
def test_the_mask_by_sentinels(input_ids: list[int], sentinels: list[int], expected: list[bool]) -> None:
    assert sentinel_mask(np.array(input_ids, dtype=np.int64), sentinels).tolist() == expected


def test_the_mask_by_spans_counts_from_the_chunk() -> None:
    assert span_mask([Span(4, 9), Span(0, 2)], Chunk(2, 4)).tolist() == [True, False, True, True]


@pytest.mark.parametrize("chunk", [Chunk(0, 9), Chunk(3, 4), Chunk(9, 0)])
def test_padding_and_spans_agree(chunk: Chunk) -> None:
    check_padding(PADDED[chunk.prefix : chunk.stop], draw("..iii.vv.").items, chunk)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (".iii..vv.", "position 1 is a media position by the recorded spans, but holds the id 21"),
        ("..ii..vv.", "position 4 is a text position by the recorded spans, but holds the id"),
        ("..jjj.vv.", "position 2 is a media position"),
        ("..vvv.ii.", "position 2 is a media position"),
    ],
)
def test_padding_and_spans_that_disagree_are_found(spans: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_padding(PADDED, draw(spans).items, Chunk(0, 9))


def test_a_text_id_outside_the_table_is_named() -> None:
    given = feed("..ii..", Chunk(3, 3))
    with pytest.raises(ValueError, match="text position 5 holds the id 1000, outside a vocabulary of 128 ids"):
        merge(np.array([11, 24, 1000]), given.prompt.items, given.rows, given.table, given.chunk)


def test_ids_of_another_length_than_the_chunk_are_refused() -> None:
    given = feed("..ii..")
    with pytest.raises(ValueError, match="5 ids for"):
        merge(given.prompt.input_ids[1:], given.prompt.items, given.rows, given.table, given.chunk)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot need -1 rows"):
        fit_length(torch.ones(2, 4), -1)
