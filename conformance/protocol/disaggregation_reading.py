"""What the methods of the stage may return, and how it is read."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import torch

from conformance import returns as answer
from conformance.returns import WrongAnswer
from reference.items import Item, Request

Place: TypeAlias = Literal["encoders", "local", "nobody"]


class PartRequest(NamedTuple):
    """A part: the number of its encoder, those of its items, and the options of each of these."""

    encoder: int
    items: tuple[int, ...]
    options: tuple[Mapping[str, Any], ...]


class Handed(NamedTuple):
    """What a decode goes on with.

    request: its ids, and its items with spans, fields and identities, without content. rows: [positions, width]. token:
    the first one of the reply. delta: of its M-RoPE positions.
    """

    request: Request
    rows: torch.Tensor
    token: int
    delta: int


def place(value: Any) -> Place:
    """One of the words "encoders", "local" and "nobody"."""
    if value not in get_args(Place):
        raise WrongAnswer('one of the words "encoders", "local" and "nobody"')
    word: Place = value
    return word


def part_requests(value: Any) -> tuple[PartRequest, ...]:
    """A sequence of parts: triples of an int, a sequence of ints, and a sequence of mappings."""
    if not isinstance(value, list | tuple):
        raise WrongAnswer("a sequence of parts")
    return tuple(_part(*one) if isinstance(one, tuple | list) and len(one) == 3 else _no_part() for one in value)


def _part(encoder: Any, items: Any, options: Any) -> PartRequest:
    if not isinstance(options, list | tuple) or not all(isinstance(one, Mapping) for one in options):
        raise WrongAnswer("parts, each with a mapping of options for each of its items")
    return PartRequest(answer.integer(encoder), answer.integers(items), tuple(dict(one) for one in options))


def _no_part() -> PartRequest:
    raise WrongAnswer("parts: each has the number of its encoder, those of its items, and the options of these")


def part_to_encode(value: Any) -> tuple[str, int] | None:
    """A request's id and the number of a part, or None."""
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2 or not isinstance(value[0], str):
        raise WrongAnswer("a request's id and the number of a part, or None")
    return value[0], answer.integer(value[1])


def payload(value: Any) -> torch.Tensor | Exception:
    """A tensor [rows, hidden] or an exception."""
    return value if isinstance(value, Exception) else answer.rows(value)


def items_or_error_by_id(value: Any) -> dict[str, tuple[Item, ...] | Exception]:
    """For each request, by its id, its items or the exception that failed it."""
    if not isinstance(value, Mapping):
        raise WrongAnswer("for each request, by its id, its items or an exception")
    return {id: one if isinstance(one, Exception) else _items(one) for id, one in value.items()}


def _items(value: Any) -> tuple[Item, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, Item) for one in value):
        raise WrongAnswer("a sequence of items")
    return tuple(value)


def messages(value: Any) -> tuple[Any, ...]:
    """A sequence of messages, of any form."""
    if not isinstance(value, list | tuple):
        raise WrongAnswer("a sequence of messages for the other side")
    return tuple(value)


def errors_by_room(value: Any) -> dict[int, Exception | None]:
    """For each room that was closed None or the exception that failed it."""
    if not isinstance(value, Mapping) or not all(one is None or isinstance(one, Exception) for one in value.values()):
        raise WrongAnswer("for each room that was closed None or an exception")
    return {answer.integer(room): one for room, one in value.items()}


def handed_or_error_by_room(value: Any) -> dict[int, Handed | Exception]:
    """For each room what was handed over (`Handed`, or an object with its attributes), or the exception that failed it."""
    if not isinstance(value, Mapping):
        raise WrongAnswer("for each room what was handed over, or an exception")
    return {answer.integer(room): one if isinstance(one, Exception) else _handed(one) for room, one in value.items()}


def _handed(value: Any) -> Handed:
    if not isinstance(getattr(value, "request", None), Request):
        raise WrongAnswer("rooms, each with a request, the rows of its positions, a token and a delta")
    return Handed(value.request, answer.rows(value.rows), answer.integer(value.token), answer.integer(value.delta))
