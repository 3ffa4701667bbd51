"""What the reference promises about encoding beyond the requirements: errors that say whom, where and what."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conformance.suite.encoding_cases import FOLLOWED
from conformance.world.doubles import CountingEncoder, Encoders, audio, image, precomputed, request, video, whole
from reference.encoding import EncodingError, count_in_chunk, encode, find_encoder, slice_chunk
from reference.items import Chunk, Item, Modality, Span

PICTURE = whole(request("r", 8, image(1, (1, 5))))


def failure(finish: Any, *items: Item) -> str:
    """What is said when the encoders make this of their right rows."""
    (answer,) = encode([whole(request("r", 20, *items))], Encoders(finish))
    assert isinstance(answer, EncodingError)
    return str(answer)


@pytest.mark.parametrize(
    ("finish", "message"),
    [
        (
            lambda rows: [rows[0][1:]],
            "request r, image at position 1: the image encoder gave [4, 5] where 5 positions need [5, hidden]",
        ),
        (lambda rows: rows[0][1:], "the image encoder, for 1 items together, gave [4, 5] where 5 positions need [5, hidden]"),
        (lambda rows: [None], "the image encoder gave NoneType where 5 positions need [5, hidden]"),
        (lambda rows: [], "gave a list of 0 for 1 items; right is one tensor or a list of 1 tensors"),
        (lambda rows: 7, "gave int for 1 items"),
        (lambda rows: 1 / 0, "the image encoder raised ZeroDivisionError: division by zero"),
    ],
)
def test_wrong_rows_are_named(finish: Any, message: str) -> None:
    assert message in failure(finish, image(1, (1, 5)))


def test_the_cause_of_a_raising_encoder_is_kept() -> None:
    (answer,) = encode([PICTURE], Encoders(lambda rows: 1 / 0))
    assert isinstance(answer, EncodingError)
    assert isinstance(answer.__cause__, ZeroDivisionError)


def test_a_missing_encoder_is_named() -> None:
    (answer,) = encode([PICTURE], {Modality.VIDEO: CountingEncoder(), Modality.AUDIO: CountingEncoder()})
    assert "there is no encoder for image (registered: video, audio)" in str(answer)


def test_an_item_without_identity_is_named() -> None:
    stranger = Item(modality=Modality.AUDIO, spans=(Span(2, 3),), feature=torch.ones(1))
    assert "audio at position 2: it has no identity" in failure(list, stranger, image(1, (5, 6)))


def test_rows_of_different_widths_are_named() -> None:
    ready = precomputed(audio(1, (0, 1)), torch.ones(2, 3))
    assert "its rows have different widths, 3 and 5" in failure(list, ready, image(1, (5, 6)))


def test_without_media_there_is_no_width() -> None:
    (answer,) = encode([(FOLLOWED, Chunk(5, 1))], Encoders())
    assert isinstance(answer, torch.Tensor)
    assert answer.shape == (0, 0)


def test_what_was_looked_for_is_named() -> None:
    with pytest.raises(
        EncodingError, match=r"none is registered \(registered: image\), and SimpleNamespace has no method get_video_feature"
    ):
        find_encoder(Modality.VIDEO, {Modality.IMAGE: CountingEncoder()}, SimpleNamespace())


def test_spans_may_be_counted_in_any_order_but_not_overlap() -> None:
    assert count_in_chunk([Span(10, 14), Span(2, 6)], Chunk(4, 8)) == 5
    with pytest.raises(ValueError, match="disjoint"):
        count_in_chunk([Span(2, 6), Span(4, 8)], Chunk(0, 9))


def test_a_slice_is_a_view() -> None:
    embedding = torch.ones(5, 4)
    assert slice_chunk(embedding, [Span(2, 6)], Chunk(0, 5)).data_ptr() == embedding.data_ptr()


def test_no_request_is_changed_by_another_ones_failure() -> None:
    broken = Encoders()
    broken[Modality.VIDEO].finish = lambda rows: None
    both = encode([whole(request("bad", 9, image(1, (0, 1)), video(1, (3, 4)))), PICTURE], broken)
    assert isinstance(both[0], EncodingError)
    assert isinstance(both[1], torch.Tensor)
