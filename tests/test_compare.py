"""The assertions themselves: what they let through, what they stop, and what they say."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from conformance.compare import Mismatch, differ, equal, holds, refuses, same, unless_refused
from conformance.witness import Witness


class Faulty:
    name, version = "faulty", "0"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def sentinels(self, identity: bytes) -> tuple[int, ...]:
        raise self.error


EQUAL = {
    "ints": (5, 5),
    "bytes": (b"ab", b"ab"),
    "a list and a tuple": ([1, 2], (1, 2)),
    "tensors": (torch.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3)),
    "empty tensors": (torch.empty(0, 3), torch.empty(0, 3)),
    "a view and a copy": (torch.arange(6).view(2, 3).T, torch.arange(6).view(2, 3).T.contiguous()),
    "a stray stride": (torch.zeros(1, 2)[:, :1].T, torch.zeros(1, 1)),
    "the same nan": (torch.tensor([[float("nan")]]), torch.tensor([[float("nan")]])),
    "arrays": (np.arange(3), np.arange(3)),
}
DIFFERENT = {
    "an int and a bool": (True, 1),
    "values": (5, 6),
    "lengths": ([1], [1, 2]),
    "dtypes": (torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.float64)),
    "shapes": (torch.zeros(2, 3), torch.zeros(3, 2)),
    "the sign of zero": (torch.tensor([[0.0]]), torch.tensor([[-0.0]])),
    "one bit of a nan": (torch.tensor([[0x7FC00000]], dtype=torch.int32).view(torch.float32),
                         torch.tensor([[0x7FC00001]], dtype=torch.int32).view(torch.float32)),
    "nothing and a tensor": (None, torch.zeros(1, 1)),
    "arrays": (np.array([1, 2]), np.array([1, 3])),
}  # fmt: skip


@pytest.mark.parametrize(("observed", "expected"), EQUAL.values(), ids=EQUAL)
def test_what_is_equal_passes(observed: Any, expected: Any) -> None:
    equal(observed, expected, "it")


@pytest.mark.parametrize(("observed", "expected"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_stopped(observed: Any, expected: Any) -> None:
    with pytest.raises(Mismatch, match=r"^it: "):
        equal(observed, expected, "it")


def test_a_mismatch_names_the_first_row_that_differs_and_how_many_do() -> None:
    observed, expected = torch.zeros(4, 2), torch.zeros(4, 2)
    observed[2:] = 1
    with pytest.raises(Mismatch, match=r"^rows: 2 of 4 differ, the first at token 12: observed \[1.0, 1.0\], expected"):
        equal(observed, expected, "rows", where=lambda row: f"token {row + 10}")


@pytest.mark.parametrize(
    "call",
    [lambda: same(1, 2, "x"), lambda: differ(1, 1, "x"), lambda: holds(False, "x")],
    ids=["same", "differ", "holds"],
)
def test_each_assertion_can_fail(call: Callable[[], None]) -> None:
    with pytest.raises(Mismatch):
        call()


@pytest.mark.parametrize("error", [ValueError("no"), TypeError("no"), RuntimeError("no")], ids=repr)
def test_an_error_that_was_meant_is_a_refusal(error: Exception) -> None:
    refuses(lambda: Witness(Faulty(error)).sentinels(b""), "it")


@pytest.mark.parametrize("error", [IndexError("oops"), AssertionError("oops"), AttributeError("oops")], ids=repr)
def test_an_error_that_happened_is_no_refusal(error: Exception) -> None:
    with pytest.raises(Mismatch, match="must be refused with a clear error, but ran into"):
        refuses(lambda: Witness(Faulty(error)).sentinels(b""), "it")


def test_an_answer_is_no_refusal() -> None:
    with pytest.raises(Mismatch, match="must be refused, but was answered with 7"):
        refuses(lambda: 7, "it")


def test_a_fault_of_the_rule_is_not_taken_for_a_refusal() -> None:
    with pytest.raises(ZeroDivisionError):
        refuses(lambda: 1 // 0, "it")


def test_an_answer_or_a_refusal_may_be_right_but_no_accident() -> None:
    assert unless_refused(lambda: 7, "it") == [7]
    assert unless_refused(lambda: Witness(Faulty(ValueError("no"))).sentinels(b""), "it") == []
    with pytest.raises(Mismatch, match="ran into IndexError"):
        unless_refused(lambda: Witness(Faulty(IndexError("oops"))).sentinels(b""), "it")
