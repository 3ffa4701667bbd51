"""What the reference promises beyond the requirements: errors that say what and where, and content that nobody spoils."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from conformance.oracles.lifecycle import TABLE, drawn
from conformance.oracles.lifecycle_turns import BOS, join, whole
from conformance.world.doubles import Encoders, encoded
from reference.items import Chunk, Item, Modality, Request, Span
from reference.lifecycle.requests import LiveRequests, content_bytes
from reference.lifecycle.turns import join_modalities, join_padded, join_positions, join_turn

NOTHING = np.empty((3, 0), dtype=np.int64)


def opened() -> LiveRequests:
    return LiveRequests(Encoders(), TABLE, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: join_turn(*join("..iii.", ".", "..", 3)),
            r"cut to 3 positions, within the image that fills 2 to 4: keep 2 or 5",
        ),
        (lambda: join_turn(*join("..", ".", "..", 4)), r"of a history of 3 positions 0 to 3 can be kept, not 4"),
        (
            lambda: join_turn(*join("..", ".", "ii.", None, 11)),
            r"position 0 of the turn turn, on its beginning-of-sequence token 11",
        ),
        (lambda: join_positions(NOTHING, -1, NOTHING), r"at least 0 positions, not -1"),
        (lambda: join_positions(NOTHING, 1, NOTHING, True), r"can be dropped if it is text"),
        (lambda: join_modalities(np.zeros(1, np.int8), -1, np.zeros(1, np.int8)), r"at least 0 positions, not -1"),
        (lambda: join_modalities(np.zeros(1, np.int8), 1, np.ones(1, np.int8), True), r"can be dropped if it is text"),
        (
            lambda: join_padded(np.zeros(4, np.int64), np.zeros(3, np.int64), drawn("a", "..ii").items),
            r"begins at 2, in a history of 4",
        ),
    ],
)
def test_turns_that_cannot_be_joined_are_explained(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_several_turns_equal_one_prompt() -> None:
    said = drawn("0", "<.ii.vv.vv")
    for turn in ("<.jj.", ".aa", "<", "<bb.ww.ww"):
        step = join("", "..", turn, None, BOS)._replace(history=said)
        said = join_turn(*step)
        assert [item.spans for item in said.items] == [item.spans for item in whole(step).items]
        assert said.input_ids.tolist() == whole(step).input_ids.tolist()


def without(**parts: Any) -> Request:
    item = Item(modality=Modality.IMAGE, spans=(Span(1, 2),), **parts)
    return Request(id="b", input_ids=np.full(4, 20, dtype=np.int64), items=(item,))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (without(feature=torch.zeros(1)), r"request b, item 0 has no identity"),
        (without(identity=bytes(32)), r"request b, item 0 has neither a feature nor an embedding, nor has a session kept one"),
        (without(identity=bytes(32), embedding=torch.zeros(3, 5)), r"fills 2 positions, but its embedding has 3 rows"),
        (drawn("a", ".ii"), r"there is a request a already"),
    ],
)
def test_a_request_that_is_refused_is_told_why(request_: Request, message: str) -> None:
    requests = opened()
    requests.admit(drawn("a", ".jj"))
    before = requests.held_bytes()
    with pytest.raises(ValueError, match=message):
        requests.admit(request_)
    assert requests.held_bytes() == before


def test_positions_have_the_length_of_the_prompt() -> None:
    with pytest.raises(ValueError, match=r"positions of 3 tokens are \[3, n\], not \[3, 2\]"):
        opened().admit(drawn("a", ".ii"), None, np.zeros((3, 2), dtype=np.int64))
    requests = opened()
    requests.admit(drawn("a", ".ii"))
    with pytest.raises(ValueError, match="request a was admitted without positions"):
        requests.positions("a")


@pytest.mark.parametrize("operation", ["retract", "finish", "positions"])
def test_who_is_not_alive_is_told_who_is(operation: str) -> None:
    requests = opened()
    requests.admit(drawn("a", ".ii"))
    with pytest.raises(ValueError, match="there is no request b, or no longer; alive: a"):
        getattr(requests, operation)("b")


def test_an_encoder_cannot_spoil_what_it_reads() -> None:
    def greedy(items: Sequence[Item]) -> list[torch.Tensor]:
        rows = [encoded(item) for item in items]
        for item in items:
            item.feature.zero_()
        return rows

    requests = LiveRequests({Modality.IMAGE: greedy}, TABLE, 0)
    requests.admit(drawn("a", ".ii"))
    first = requests.step({"a": Chunk(0, 3)})["a"]
    requests.retract("a")
    second = requests.step({"a": Chunk(0, 3)})["a"]
    assert isinstance(first, torch.Tensor)
    assert isinstance(second, torch.Tensor)
    assert torch.equal(first, second)


def test_features_are_on_the_device_while_they_are_read() -> None:
    seen: list[int] = []

    def watched(items: Sequence[Item]) -> list[torch.Tensor]:
        seen.append(requests.device_bytes())
        return [encoded(item) for item in items]

    requests = LiveRequests({Modality.IMAGE: watched}, TABLE, 0)
    requests.admit(drawn("a", ".ii.jj"))
    requests.step({"a": Chunk(0, 6)})
    assert seen == [requests.held_bytes()]
    assert requests.device_bytes() == 0


def test_a_failing_encoder_leaves_nothing_on_the_device() -> None:
    def failing(items: Sequence[Item]) -> list[torch.Tensor]:
        raise RuntimeError("out of memory")

    requests = LiveRequests({Modality.IMAGE: failing}, TABLE, 0)
    requests.admit(drawn("a", ".ii"))
    answer = requests.step({"a": Chunk(0, 3)})["a"]
    assert "out of memory" in str(answer)
    assert (requests.held_bytes(), requests.device_bytes()) == (0, 0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (torch.zeros(3, 4), 48),
        (np.zeros(5, dtype=np.uint8), 5),
        (b"1234567", 7),
        ([torch.zeros(2), [b"1"], ()], 9),
        (Image.new("RGB", (4, 2)), 24),
    ],
)
def test_content_is_weighed(content: Any, expected: int) -> None:
    assert content_bytes(content) == expected
