"""What the reference promises beyond the requirements: rates of any kind, and errors that say what is wrong."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from conformance.world.videos import Projector, filmed, pruned
from reference.encoding import EncodingError
from reference.items import Chunk, Item, Modality, Request, Span
from reference.pruning import encode_pruned, prune_positions, prune_prompt, retained_count, retention_mask


@pytest.mark.parametrize("rate", [0.9, Decimal("0.9"), Fraction(9, 10), np.float32(0.9), np.float64(0.9)], ids=repr)
def test_a_rate_is_the_number_that_was_written(rate: float) -> None:
    assert retained_count(1, 20, rate) == 2


def test_an_integer_is_a_rate() -> None:
    assert retained_count(3, 5, 0) == 15


@pytest.mark.parametrize("rate", [1, -0.0001, 1.0, "much", True, None])
def test_no_other_rate_is_taken(rate: float) -> None:
    with pytest.raises(ValueError, match="a pruning rate"):
        retained_count(1, 20, rate)


@pytest.mark.parametrize(("tokens", "frames"), [(0, 1), (1, 0), (-1, 4)])
def test_a_video_has_a_token(tokens: int, frames: int) -> None:
    with pytest.raises(ValueError, match="at least 1 frame of 1 token"):
        retained_count(tokens, frames, 0.5)


def test_embeddings_fit_their_grid() -> None:
    with pytest.raises(ValueError, match=r"\(2, 2, 2\) have 8 rows: \[7, 3\]"):
        retention_mask(torch.zeros(7, 3), (2, 2, 2), 0.5)


def test_embeddings_that_are_not_numbers_do_not_cost_the_first_frame() -> None:
    embeddings = torch.full((8, 3), torch.nan)
    embeddings[:4] = 1
    assert retention_mask(embeddings, (2, 2, 2), 0.5).tolist() == [True] * 4 + [False] * 4


def test_there_is_one_mask_an_item() -> None:
    ids, items, masks, _ = pruned(".VVVV.iiii")
    with pytest.raises(ValueError, match="2 items have one mask each, not 1"):
        prune_prompt(ids, items, masks[:1])


def test_a_mask_names_its_item_and_its_tokens() -> None:
    ids, items, _, _ = pruned(".iiii.VVVV")
    with pytest.raises(ValueError, match=r"item 1 has 4 tokens, but its mask has the shape \[3\]"):
        prune_prompt(ids, items, (None, [True, False, True]))


def test_no_positions_have_no_delta() -> None:
    with pytest.raises(ValueError, match="no largest one"):
        prune_positions(np.zeros((3, 0), dtype=np.int64), (), ())


def test_a_chunk_ends_within_the_pruned_prompt() -> None:
    request = filmed("short", ".vvvvvvvv", {"v": "aaaa|aaaa"})
    (answer,) = encode_pruned([(request, Chunk(0, 6))], {Modality.VIDEO: Projector()}, None, 0.5)
    assert isinstance(answer, EncodingError)
    assert "request short: Chunk(prefix=0, length=6) ends outside a pruned prompt of 5 positions" in str(answer)


@pytest.mark.parametrize(
    ("fields", "message"),
    [({}, "no field 'video_grid_thw'"), ({"video_grid_thw": (3, 1, 1)}, "the 4 tokens of a video are no 3 frames")],
)
def test_a_video_has_frames(fields: dict[str, tuple[int, int, int]], message: str) -> None:
    video = Item(modality=Modality.VIDEO, spans=(Span(1, 4),), feature=torch.zeros(4, 4), fields=fields, identity=bytes(32))
    request = Request(id="odd", input_ids=np.arange(6, dtype=np.int64), items=(video,))
    (answer,) = encode_pruned([(request, Chunk(0, 5))], {Modality.VIDEO: Projector()}, None, 0.5)
    assert isinstance(answer, EncodingError)
    assert message in str(answer)


def test_items_do_not_interleave() -> None:
    request = filmed("woven", ".vvvv.ii.vvvv", {"v": "aaaa|aaaa"})
    (answer,) = encode_pruned([(request, Chunk(0, 5))], dict.fromkeys(Modality, Projector()), None, 0.5)
    assert isinstance(answer, EncodingError)
    assert "starts before" in str(answer)
