"""The vocabulary: what the constructors refuse, and what they say."""

from copy import deepcopy
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch

from reference.items import (
    Chunk,
    Format,
    Item,
    Modality,
    Request,
    Span,
    UnknownField,
    all_spans,
    check_disjoint,
    check_within,
    drop_empty,
    make_spans,
    span_table,
)  # fmt: skip

IMAGE = Modality.IMAGE
RAMP = torch.arange(6.0).reshape(2, 3)


def image(**parts: Any) -> Item:
    return Item(modality=IMAGE, **{"feature": RAMP, **parts})


def test_the_numbers_of_modalities_are_stable() -> None:
    assert {modality.name: modality.value for modality in Modality} == {"IMAGE": 1, "VIDEO": 2, "AUDIO": 3}


def test_a_span_includes_both_ends() -> None:
    span = Span(3, 5)
    assert (len(span), span.stop) == (3, 6)
    assert len(Span(0, 0)) == 1
    assert sorted([Span(4, 9), Span(1, 2)]) == [Span(1, 2), Span(4, 9)]


@pytest.mark.parametrize("three", [np.int64(3), np.uint8(3), torch.tensor(3)])
def test_a_position_becomes_a_plain_integer(three: Any) -> None:
    assert Span(three, three) == Span(3, 3)
    assert type(Span(three, three).last) is int


@pytest.mark.parametrize("ends", [(-1, 3), (4, 3), (5, -2)])
def test_a_span_that_is_empty_or_negative_is_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a span runs from 0 <= first"):
        Span(*ends)


@pytest.mark.parametrize("end", [1.0, "1", True, None])
def test_a_position_is_an_integer(end: Any) -> None:
    with pytest.raises(TypeError):
        Span(0, end)
    with pytest.raises(TypeError):
        Chunk(0, end)


def test_a_chunk_may_be_empty_but_not_negative() -> None:
    assert (Chunk(4, 0).stop, Chunk(4, 3).stop) == (4, 7)
    for prefix, length in ((-1, 2), (2, -1)):
        with pytest.raises(ValueError, match="at least 0"):
            Chunk(prefix, length)


def test_an_item_counts_its_positions() -> None:
    assert image(spans=[Span(0, 3), Span(8, 8)]).token_count == 5
    assert image().token_count == 0


def test_an_item_cannot_be_changed() -> None:
    fields = {"grid": 1}
    item = image(fields=fields)
    fields["grid"] = 2
    assert item.fields == {"grid": 1}
    with pytest.raises(TypeError):
        item.fields["grid"] = 3  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        item.spans = ()  # type: ignore[misc]


@pytest.mark.parametrize("spans", [[Span(0, 3), Span(3, 5)], [Span(4, 5), Span(0, 1)]])
def test_spans_of_an_item_are_disjoint_and_ascend(spans: list[Span]) -> None:
    with pytest.raises(ValueError, match="disjoint and in ascending order"):
        image(spans=spans)


@pytest.mark.parametrize("spans", [[(0, 3)], [(0, 3), (5, 6)], [Span(0, 1), [3, 4]], (0, 3)])
def test_a_pair_of_numbers_is_no_span(spans: Any) -> None:
    with pytest.raises(TypeError, match=r"is a Span\(first, last\)"):
        image(spans=spans)


def test_a_feature_and_an_embedding_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="not both"):
        image(embedding=RAMP)


def test_the_format_follows_the_content_unless_stated() -> None:
    embedding = Item(modality=IMAGE, embedding=RAMP)
    assert (image().format, embedding.format) == (Format.PROCESSOR_OUTPUT, Format.PRECOMPUTED)
    assert image(format=Format.RAW).format is Format.RAW
    for item, wrong in ((image(), Format.PRECOMPUTED), (embedding, Format.RAW)):
        with pytest.raises(ValueError, match="cannot carry this kind of content"):
            replace(item, format=wrong)


@pytest.mark.parametrize("identity", [b"", bytes(31), bytes(33)])
def test_an_identity_has_32_bytes(identity: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        image(identity=identity)


@pytest.mark.parametrize("identity", ["a" * 32, [0] * 32, 7])
def test_an_identity_is_bytes(identity: Any) -> None:
    with pytest.raises(TypeError, match="an identity is bytes"):
        image(identity=identity)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_caller_hash_has_64_bits(value: int) -> None:
    with pytest.raises(ValueError, match="unsigned 64-bit number"):
        image(caller_hash=value)


@pytest.mark.parametrize("value", [1.5, True, "ff"])
def test_a_caller_hash_is_an_integer(value: Any) -> None:
    with pytest.raises(TypeError):
        image(caller_hash=value)


def test_a_caller_hash_becomes_a_plain_integer() -> None:
    assert type(image(caller_hash=np.uint64(2**64 - 1)).caller_hash) is int


@pytest.mark.parametrize("nothing", [None, [], (), [[]], [(), [[]]]])
def test_an_item_without_content_is_empty(nothing: Any) -> None:
    assert image(feature=nothing).is_empty


@pytest.mark.parametrize("something", [torch.empty(0), np.empty(0), [torch.empty(0)], [[], RAMP], b"", [None]])
def test_an_item_with_any_content_is_not_empty(something: Any) -> None:
    assert not image(feature=something).is_empty
    assert not Item(modality=IMAGE, embedding=torch.empty(0, 3)).is_empty


def test_empty_items_are_dropped_unless_they_claim_positions() -> None:
    item, empty = image(spans=[Span(0, 1)]), image(feature=[])
    assert drop_empty([empty, item, empty]) == (item,)
    with pytest.raises(ValueError, match="item 1 carries no content, yet claims 2 positions"):
        drop_empty([item, image(feature=None, spans=[Span(4, 5)])])


def test_an_unknown_field_is_an_error_that_lists_the_known_ones() -> None:
    assert image(fields={"grid": 7}).read("grid") == 7
    with pytest.raises(UnknownField) as caught:
        image(fields={"grid": 1, "fps": 2}).read("gird")
    assert str(caught.value) == "this image has no field 'gird'; its fields: fps, grid"
    with pytest.raises(UnknownField, match="its fields: none"):
        image().read("grid")


def test_a_request_holds_its_items_inside_its_prompt() -> None:
    first, second = image(spans=[Span(6, 7)]), image(spans=[Span(0, 2), Span(9, 9)])
    request = Request(id="r", input_ids=np.zeros(10, np.int64), items=(first, second))
    assert all_spans(request.items) == [Span(0, 2), Span(6, 7), Span(9, 9)]
    with pytest.raises(ValueError, match="its last position is 8"):
        replace(request, input_ids=np.zeros(9, np.int64))
    with pytest.raises(ValueError, match="disjoint"):
        replace(request, items=(first, second, image(spans=[Span(2, 3)])))


@pytest.mark.parametrize("ids", [[1, 2], np.zeros(2, np.int32), np.zeros((1, 2), np.int64), np.zeros(2, ">i8"), torch.zeros(2)])
def test_the_ids_of_a_request_are_64_bit_integers(ids: Any) -> None:
    with pytest.raises(TypeError, match="one-dimensional int64 array"):
        Request(id="r", input_ids=ids)


def test_spans_are_checked_wherever_they_come_from() -> None:
    check_disjoint(iter([Span(0, 1), Span(2, 2)]))
    check_within(iter([Span(0, 1), Span(2, 2)]), 3)
    check_within([], 0)
    with pytest.raises(ValueError, match="ends outside a prompt of 2 positions"):
        check_within([Span(0, 2)], 2)


def test_many_spans_are_checked_like_one() -> None:
    assert make_spans(np.array([0, 7]), np.array([3, 7])) == (Span(0, 3), Span(7, 7))
    for firsts, lasts in (([0, -1], [3, 4]), ([0, 5], [3, 4])):
        with pytest.raises(ValueError, match=f"not from {firsts[1]} to 4"):
            make_spans(np.array(firsts), np.array(lasts))


def test_a_table_of_spans_is_by_position_and_checked() -> None:
    table = span_table([image(spans=[Span(4, 6)]), image(), image(spans=[Span(0, 1), Span(8, 8)])], 9)
    assert [part.tolist() for part in table] == [[2, 0, 2], [0, 4, 8], [2, 7, 9]]
    assert table.lengths.tolist() == [2, 3, 1]
    with pytest.raises(ValueError, match="disjoint"):
        span_table([image(spans=[Span(4, 6)]), image(spans=[Span(6, 7)])], 9)
    with pytest.raises(ValueError, match="outside a prompt of 9 positions"):
        span_table([image(spans=[Span(4, 1 << 70)])], 9)


def test_a_format_may_be_named() -> None:
    assert image(feature=b"jpeg", format="raw").format is Format.RAW
    with pytest.raises(ValueError, match="not a valid Format"):
        image(feature=b"jpeg", format="jpeg")


def test_lists_within_lists_are_looked_through_however_they_are_nested() -> None:
    ring: list[Any] = []
    ring.append(ring)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert image(feature=ring).is_empty
    assert image(feature=deep).is_empty
    assert not image(feature=[[], [b""]]).is_empty


def test_an_item_can_be_copied_whole() -> None:
    one = image(feature=torch.zeros(2), spans=[Span(1, 2)], fields={"grid": [1, 2]})
    other = deepcopy(one)
    other.feature[0] = 7
    other.fields["grid"].append(3)
    assert (one.feature.tolist(), one.fields["grid"]) == ([0, 0], [1, 2])
    assert (other.spans, other.modality, other.format) == (one.spans, one.modality, one.format)
