"""What the reference promises beyond the requirements: errors that say where and what."""

import numpy as np
import pytest

from conformance.world.prompts import ITEM_STARTS, PAIRS, draw
from reference.placeholders import find_spans, pad_pairs, token_modalities


@pytest.mark.parametrize(
    ("drawing", "listed", "message"),
    [
        ("..<ii", "i", "the start token 1 at position 2 is never closed"),
        (".ii>", "i", "the end token 2 at position 3 closes nothing"),
        ("<i<i>>", "ij", "token 1 at position 2 stands inside the pair that token 1 opened at position 0"),
        ("<ii].", "i", "token 4 at position 3 .* ends with token 2"),
        (".[i]<j>", "j", "token 3 starts at position 1 comes before any item start"),
        ("<i>.<.>", "i", "token 1 at position 4 starts item 2, but the request has 1"),
        ("<i>", "ij", "2 items, but only 1 item starts"),
    ],
)
def test_a_pairing_error_names_position_and_token(drawing: str, listed: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pad_pairs(*draw(drawing, listed), PAIRS, ITEM_STARTS)


@pytest.mark.parametrize("pairs", [((1, 1),), ((1, 2), (2, 3)), ((1, 2), (1, 3))])
def test_a_pair_token_has_one_meaning(pairs: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="must all be different"):
        pad_pairs(*draw("..."), pairs, ())


def test_an_item_start_is_a_start_token() -> None:
    with pytest.raises(ValueError, match=r"\[7\] are no start tokens"):
        pad_pairs(*draw("..."), PAIRS, (1, 7))


@pytest.mark.parametrize("ids", [np.zeros(3, dtype=np.int32), np.zeros((1, 3), dtype=np.int64), [0, 0, 0]])
def test_ids_that_cannot_hold_a_sentinel_are_refused(ids: np.ndarray) -> None:
    with pytest.raises(TypeError, match="int64"):
        find_spans(ids, 1)


def test_a_prompt_has_no_negative_length() -> None:
    with pytest.raises(ValueError, match="cannot have -1 positions"):
        token_modalities(-1, ())
