"""What a rule asserts with: exact comparisons that explain themselves in the reader's terms.

Everything here is exact, down to the bits: -0.0 is not 0.0, and one NaN equals another only if their bits do.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from conformance.witness import EngineRaised

ACCIDENTS = (
    ArithmeticError, AssertionError, AttributeError, IndexError, MemoryError, NameError, RecursionError, StopIteration,
    SystemError, UnboundLocalError, ZeroDivisionError,
)  # fmt: skip
"""Errors that happen to a program, as opposed to errors that it means: an engine that refuses input means it."""


class Mismatch(AssertionError):
    """The engine's answer is not the right one."""


def equal(observed: Any, expected: Any, what: str, *, where: Callable[[int], str] = "position {}".format) -> None:
    """The answer is the expected one.

    what: the thing compared, in words. where: names the n-th element (of a tensor: its n-th row).
    """
    if isinstance(expected, torch.Tensor):
        _equal_tensors(observed, expected, what, where)
    elif isinstance(expected, np.ndarray):
        _equal_tensors(torch.from_numpy(np.array(observed)), torch.from_numpy(expected), what, where)
    elif isinstance(expected, list | tuple):
        _equal_sequences(list(observed), list(expected), what, where)
    elif type(observed) is not type(expected) or observed != expected:
        raise Mismatch(f"{what}: observed {_show(observed)}, expected {_show(expected)}")


def same(first: Any, second: Any, what: str) -> None:
    """Two answers of the engine agree."""
    if first != second:
        raise Mismatch(f"{what} must be the same, but are {_show(first)} and {_show(second)}")


def differ(first: Any, second: Any, what: str) -> None:
    """Two answers of the engine tell two things apart."""
    if first == second:
        raise Mismatch(f"{what} must differ, but both are {_show(first)}")


def holds(condition: bool, sentence: str) -> None:
    """A condition that has no better form; `sentence` says what is wrong when it does not hold."""
    if not condition:
        raise Mismatch(sentence)


def refuses(call: Callable[[], Any], what: str) -> None:
    """The engine refuses this input with an error that was meant (see `ACCIDENTS`)."""
    try:
        answer = call()
    except EngineRaised as raised:
        if type(raised.error) in ACCIDENTS or not isinstance(raised.error, Exception):
            raise Mismatch(f"{what} must be refused with a clear error, but ran into {raised.summary}") from raised
        return
    raise Mismatch(f"{what} must be refused, but was answered with {_show(answer)}")


def unless_refused(call: Callable[[], Any], what: str) -> list[Any]:
    """The engine's answer, to be checked in a loop; nothing when it refuses with an error that was meant."""
    try:
        return [call()]
    except EngineRaised:
        refuses(call, what)
        return []


def _equal_tensors(observed: Any, expected: torch.Tensor, what: str, where: Callable[[int], str]) -> None:
    if not isinstance(observed, torch.Tensor) or observed.dtype != expected.dtype:
        kind = observed.dtype if isinstance(observed, torch.Tensor) else type(observed).__name__
        raise Mismatch(f"{what}: observed {kind}, expected {expected.dtype}")
    if observed.shape != expected.shape:
        raise Mismatch(f"{what}: observed the shape {list(observed.shape)}, expected {list(expected.shape)}")
    if expected.numel() == 0:
        return
    wrong = (_bits(observed) != _bits(expected)).flatten(1).any(dim=1)
    if bool(wrong.any()):
        first = int(wrong.nonzero()[0, 0])
        raise Mismatch(
            f"{what}: {int(wrong.sum())} of {len(wrong)} differ, the first at {where(first)}: "
            f"observed {_show(observed[first])}, expected {_show(expected[first])}"
        )


def _equal_sequences(observed: list[Any], expected: list[Any], what: str, where: Callable[[int], str]) -> None:
    if len(observed) != len(expected):
        raise Mismatch(f"{what}: observed {len(observed)} ({_show(observed)}), expected {len(expected)} ({_show(expected)})")
    wrong = [n for n, (a, b) in enumerate(zip(observed, expected, strict=True)) if a != b]
    if wrong:
        first = wrong[0]
        raise Mismatch(
            f"{what}: {len(wrong)} of {len(expected)} differ, the first at {where(first)}: "
            f"observed {_show(observed[first])}, expected {_show(expected[first])}"
        )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    rows = tensor.clone(memory_format=torch.contiguous_format).reshape(tensor.shape[0] if tensor.ndim else 1, -1)
    return rows.view(torch.uint8)


def _show(value: Any, limit: int = 120) -> str:
    if isinstance(value, bytes):
        value = value.hex()
    is_tensor = isinstance(value, torch.Tensor | np.ndarray)
    if (value.ndim > 0 if is_tensor else isinstance(value, Sequence) and not isinstance(value, str)) and len(value) > 6:
        text = f"[{', '.join(_show(v, 24) for v in value[:6])}, … {len(value)} in all]"
    elif is_tensor and value.ndim > 1:
        text = f"[{', '.join(_show(v) for v in value)}]"  # row by row: a row may be long
    elif is_tensor:
        text = str(value.tolist())
    else:
        text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
