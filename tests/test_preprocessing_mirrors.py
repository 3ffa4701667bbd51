"""What the reference promises about results on two sides beyond the requirements: threads, and who holds what."""

import pytest
import torch

from reference.preprocessing.mirror import Message, Mirror, Sender

A, B, C = (letter * 32 for letter in (b"a", b"b", b"c"))


def ten(key: bytes) -> torch.Tensor:
    return torch.full((10,), key[0], dtype=torch.uint8)


def test_what_another_request_drove_out_meanwhile_is_made_after_all() -> None:
    mirror, on_their_way = Mirror(20), list[Message]()
    mirror.receive(mirror.send([A], None, ten))

    def make(key: bytes) -> torch.Tensor:
        if key == B and not on_their_way:
            on_their_way.append(mirror.send([C, b"d" * 32], None, ten))  # another thread is faster; it drives out A
        return ten(key)

    on_their_way.append(mirror.send([A, B], None, make))
    received = [mirror.receive(message) for message in on_their_way]
    assert [[chr(one[0]) for one in results if one is not None] for results in received] == [["c", "d"], ["a", "b"]]


def test_a_failure_leaves_the_sender_as_it_was() -> None:
    mirror = Mirror(20)

    def fail(key: bytes) -> torch.Tensor:
        raise OSError("no such processor")

    with pytest.raises(OSError, match="no such processor"):
        mirror.send([A], None, fail)
    assert list(mirror.send([A], None, ten).results) == [A]


def test_a_sender_keeps_no_result() -> None:
    sender = Sender(1 << 20)
    sender.send([A], ten)
    assert sender._uses.sizes == {A: 10}


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0 bytes, not in -1"):
        Mirror(-1)
    with pytest.raises(TypeError):
        Mirror(1.5)  # type: ignore[arg-type]
