"""What is obviously right about results that one process makes and another one keeps: each is that of its key.

Traffic is a list of lines:

    send ab      a request for a and b: its message is on its way
    receive      the message that has been on its way longest; `receive 1` is the one behind it
    drop 0       a message that never arrives
    restart      the receiver begins anew
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from conformance.oracles.preprocessing import UNIT, units


class Traffic(NamedTuple):
    """Requests and what becomes of their messages, with room for so many units of results at the receiver.

    A small letter is a medium whose result is one unit, a capital letter one whose result is three.
    """

    room: int
    lines: tuple[str, ...]

    @property
    def capacity_bytes(self) -> int:
        return self.room * UNIT + UNIT // 2

    def where(self, number: int) -> str:
        return f"line {number} ({self.lines[number]})"


class Answer(NamedTuple):
    """What a receiver answered, each result by its letter: `-` where it lacks one, `?` where it is another's.

    again: the answer to the same request when the sender was told what was lacking.
    """

    first: str = ""
    again: str = ""


def traffic(room: int, *lines: str) -> Traffic:
    return Traffic(room, lines)


def keys(word: Sequence[str]) -> list[bytes]:
    """The keys of media by their letters."""
    return [letter.encode() * 32 for letter in word]


def result(key: bytes) -> torch.Tensor:
    """What preprocessing makes of the medium with this key."""
    return torch.full((units(chr(key[0])) * UNIT,), key[0], dtype=torch.uint8)


class Work:
    """Preprocessing that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, key: bytes) -> torch.Tensor:
        self.runs += 1
        return result(key)


def play(mirror: Any, case: Traffic, watch: Callable[[], Any] = lambda: None) -> list[Answer]:
    """The answer to each line; only a `receive` has any. watch: called after each line."""
    on_their_way: list[tuple[str, Any]] = []
    answers = []
    for line in case.lines:
        operation, *words = line.split()
        answer = Answer()
        if operation == "send":
            on_their_way.append((words[0], mirror.send(keys(words[0]), None, result)))
        elif operation == "restart":
            mirror.restart()
        else:
            word, message = on_their_way.pop(int(words[0]) if words else 0)
            answer = _received(mirror, word, message) if operation == "receive" else answer
        answers.append(answer)
        watch()
    return answers


def plain(case: Traffic) -> list[Answer]:
    """The answers where nothing is ever lacking."""
    on_their_way: list[str] = []
    answers = []
    for line in case.lines:
        operation, *words = line.split()
        if operation == "send":
            on_their_way.append(words[0])
        word = on_their_way.pop(int(words[0]) if words else 0) if operation in ("receive", "drop") else ""
        answers.append(Answer(word, word) if operation == "receive" else Answer())
    return answers


def _received(mirror: Any, word: str, message: Any) -> Answer:
    first = again = letters(word, mirror.receive(message))
    if "-" in first:
        mirror.forget(keys([letter for letter, got in zip(word, first, strict=True) if got == "-"]))
        again = letters(word, mirror.receive(mirror.send(keys(word), None, result)))
    return Answer(first, again)


def letters(word: str, results: Sequence[torch.Tensor | None]) -> str:
    """Results by their letters; what is lacking at the end is `-`, too."""
    padded = [*results, *[None] * (len(word) - len(results))]
    return "".join("-" if one is None else letter if torch.equal(one, result(letter.encode())) else "?"
                   for letter, one in zip(word, padded, strict=False))  # fmt: skip
