"""What an engine method may return, checked and brought into one form before a rule sees it.

Engines keep ids in lists, `array('q')`, numpy or torch; a rule compares one form. Whatever cannot be brought into that
form without guessing is a `WrongAnswer`, which fails the requirement with a sentence instead of confusing the rule.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import torch

from reference.items import Span

Method = TypeVar("Method", bound=Callable[..., Any])
Reader = Callable[[Any], Any]


LONGEST = 1 << 20
"""How much is read of an answer that does not say how long it is."""


class WrongAnswer(TypeError):
    """An engine method returned something that its protocol does not allow."""


@dataclass(frozen=True, slots=True)
class Opens:
    """A reader for methods that return an object with methods of its own.

    protocol: the methods of that object.
    specimen: arguments that open one, so that its methods can be discovered by looking.
    """

    protocol: type
    specimen: tuple[Any, ...]

    def __call__(self, answer: Any) -> Any:
        if answer is None:
            raise WrongAnswer(f"an object with the methods of {self.protocol.__name__}")
        return answer


def returns(reader: Reader) -> Callable[[Method], Method]:
    """Declare how the answer of a protocol method is read."""

    def declare(method: Method) -> Method:
        method.__dict__["reader"] = reader
        return method

    return declare


def nothing(answer: Any) -> None:
    """None."""
    if answer is not None:
        raise WrongAnswer("None")


def anything(answer: Any) -> Any:
    """Whatever the engine likes."""
    return answer


def boolean(answer: Any) -> bool:
    """True or False."""
    if not isinstance(answer, bool | np.bool_):
        raise WrongAnswer("True or False")
    return bool(answer)


def integer(answer: Any) -> int:
    """An int; numpy's integers are taken, bools are not."""
    if isinstance(answer, bool) or not isinstance(answer, Integral):
        raise WrongAnswer("an int")
    return int(answer)


def integers(answer: Any) -> tuple[int, ...]:
    """A sequence of ints."""
    return tuple(integer(value) for value in _sequence(answer, "a sequence of ints"))


def octets(answer: Any) -> bytes:
    """Bytes, at least one."""
    if not isinstance(answer, bytes | bytearray) or not answer:
        raise WrongAnswer("bytes, at least one")
    return bytes(answer)


def int64_array(answer: Any) -> np.ndarray:
    """A one-dimensional int64 array: numpy, torch or `array('q')`. A narrower type cannot hold a sentinel."""
    if isinstance(answer, array) and answer.typecode == "q":
        return np.array(answer, dtype=np.int64)
    if isinstance(answer, torch.Tensor) and answer.dtype == torch.int64 and answer.ndim == 1 and _is_dense(answer):
        return answer.detach().cpu().numpy()
    if isinstance(answer, np.ndarray) and answer.dtype == np.int64 and answer.ndim == 1 and not np.ma.is_masked(answer):
        return np.asarray(answer)
    raise WrongAnswer("a one-dimensional int64 array (numpy, torch or array('q'))")


def spans(answer: Any) -> tuple[Span, ...]:
    """A sequence of `Span`, or of inclusive pairs."""
    found = []
    for value in _sequence(answer, "a sequence of spans"):
        pair = (value.first, value.last) if isinstance(value, Span) else integers(value)
        if len(pair) != 2:
            raise WrongAnswer("a sequence of spans, each with a first and a last position")
        try:
            found.append(Span(*pair))
            len(found[-1])
        except (ValueError, OverflowError) as error:
            raise WrongAnswer(f"a sequence of spans; {error}") from error
    return tuple(found)


def rows(answer: Any) -> torch.Tensor:
    """A tensor [rows, hidden]."""
    if isinstance(answer, np.ndarray) and answer.dtype.kind in "fiub" and answer.dtype.isnative:
        answer = torch.from_numpy(np.array(answer))
    if not isinstance(answer, torch.Tensor) or answer.ndim != 2 or not _is_dense(answer):
        raise WrongAnswer("a tensor [rows, hidden]")
    return answer.detach().cpu()


def rows_or_none(answer: Any) -> torch.Tensor | None:
    """A tensor [rows, hidden] or None."""
    return None if answer is None else rows(answer)


def rows_or_error_each(answer: Any) -> tuple[torch.Tensor | Exception, ...]:
    """For each request a tensor [rows, hidden] or the exception that failed it."""
    each = _sequence(answer, "for each request a tensor [rows, hidden] or an exception")
    return tuple(value if isinstance(value, Exception) else rows(value) for value in each)


def rows_and_levels(answer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A pair: a tensor [positions, hidden] and a tensor [levels, positions, hidden]."""
    pair = _sequence(answer, "a pair of tensors")
    if len(pair) != 2 or not isinstance(pair[1], torch.Tensor) or pair[1].ndim != 3 or not _is_dense(pair[1]):
        raise WrongAnswer("a tensor [positions, hidden] and a tensor [levels, positions, hidden]")
    return rows(pair[0]), pair[1].detach().cpu()


def function(answer: Any) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(answer):
        raise WrongAnswer("something that can be called")
    return answer  # type: ignore[no-any-return]


def adopted(answer: Any) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """A pair: for each item a hash or None, and the problems as sentences."""
    pair = _sequence(answer, "a pair: hashes and problems")
    if len(pair) != 2:
        raise WrongAnswer("a pair: for each item a hash or None, and the problems as sentences")
    hashes = tuple(None if value is None else integer(value) for value in _sequence(pair[0], "for each item a hash or None"))
    problems = tuple(str(problem) for problem in _sequence(pair[1], "the problems as sentences"))
    return hashes, problems


def _sequence(answer: Any, wanted: str) -> Sequence[Any]:
    if isinstance(answer, str | bytes | Mapping | Set) or not isinstance(answer, Iterable):
        raise WrongAnswer(wanted)  # what has no order, or another meaning, is no sequence
    if isinstance(answer, Sized):
        return list(answer)
    read = list(islice(answer, LONGEST + 1))
    if len(read) > LONGEST:
        raise WrongAnswer(f"{wanted} that ends: this one goes on after {LONGEST}")
    return read


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether a tensor has values in memory, one for each place."""
    return tensor.layout == torch.strided and tensor.device.type != "meta"
