"""Odd engines: whatever one does, it fails its own cases, and neither the suite nor the rest of the run."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch

from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.compare import Mismatch, refuses
from conformance.suite import requirements
from conformance.trial import Outcome, Verdict
from conformance.witness import Witness, capabilities


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("there are no words")


class Unreadable(int):
    def __int__(self) -> int:
        raise RuntimeError("not now")


def raises(error: BaseException) -> Callable[[Any], Any]:
    def method(*arguments: Any) -> Any:
        raise error

    return method


def late(identity: bytes) -> Iterator[int]:
    yield 1 << 62
    raise ValueError("too late")


def outcome(id: str, **methods: Callable[..., Any]) -> Outcome:
    """How the first case of a requirement ends for the reference with these methods."""
    engine = type("Odd", (ReferenceEngine,), {name: staticmethod(method) for name, method in methods.items()})()
    return trial.run(requirements[id], next(iter(requirements[id].cases.values())), engine)


ODD = {
    "leaves the process": (raises(SystemExit(3)), "sentinels raised SystemExit: 3"),
    "skips": (raises(pytest.skip.Exception("not today")), "sentinels raised Skipped: not today"),
    "raises what has no text": (raises(Wordless()), "sentinels raised Wordless: an error whose text cannot be had"),
    "raises many lines": (raises(ValueError("one\n\n  two")), "sentinels raised ValueError: one two"),
    "raises when it is read": (late, "sentinels returned generator; .* reading it raised ValueError: too late"),
    "never ends": (lambda identity: count(1 << 62), "sentinels returned count; .* a sequence of ints that ends"),
    "gives ints that are none": (lambda identity: [Unreadable(1 << 62)], "reading it raised RuntimeError: not now"),
    "gives a set": (lambda identity: {1 << 62}, "sentinels returned set; the protocol asks for a sequence of ints"),
    "gives a mapping": (lambda identity: {1 << 62: 1}, "sentinels returned dict; the protocol asks for a sequence of ints"),
    "gives bools": (lambda identity: [True], "the protocol asks for an int"),
}


@pytest.mark.parametrize(("method", "message"), ODD.values(), ids=ODD)
def test_an_odd_engine_fails_its_case(method: Callable[..., Any], message: str) -> None:
    ended = outcome("SENTINELS-01", sentinels=method)
    assert ended.verdict is Verdict.FAIL
    assert pytest.raises(AssertionError, match=message).matches(AssertionError(ended.message))


def test_no_message_commands_a_terminal_or_breaks_xml() -> None:
    ended = outcome("SENTINELS-01", sentinels=raises(ValueError("a\x1b[31mb\x00c\ud800d")))
    assert ended.message == "sentinels raised ValueError: a\ufffd[31mb\ufffdc\ufffdd"


def test_a_coroutine_is_no_answer() -> None:
    async def sentinels(identity: bytes) -> tuple[int, ...]:
        return (1 << 62,)

    made: list[Any] = []
    ended = outcome("SENTINELS-01", sentinels=lambda identity: made.append(sentinels(identity)) or made[-1])
    assert ended.verdict is Verdict.FAIL
    assert "sentinels returned coroutine" in ended.message
    for one in made:
        asyncio.run(one)


ROWS = {
    "objects": np.array([[object()]]),
    "texts": np.array([["a"]]),
    "bytes in another order": np.zeros((2, 3), dtype=">f4"),
    "a sparse tensor": torch.zeros(2, 3).to_sparse(),
    "a tensor without values": torch.empty(2, 3, device="meta"),
    "a vector": torch.zeros(3),
}


@pytest.mark.parametrize("value", ROWS.values(), ids=ROWS)
def test_what_cannot_be_compared_is_no_answer(value: Any) -> None:
    ended = outcome("ENCODING-02", slice_chunk=lambda embedding, spans, chunk: value)
    assert ended.verdict is Verdict.FAIL
    assert "the protocol asks for a tensor [rows, hidden]" in ended.message


def test_positions_beyond_any_prompt_are_no_answer() -> None:
    ended = outcome("PLACEHOLDERS-01", find_spans=lambda ids, token: [(0, 1 << 80)])
    assert ended.verdict is Verdict.FAIL
    assert "the protocol asks for a sequence of spans" in ended.message


def test_an_array_with_a_negative_stride_is_an_answer() -> None:
    right = ReferenceEngine.slice_chunk
    turned = outcome("ENCODING-02", slice_chunk=lambda *asked: right(*asked).numpy()[::-1].copy()[::-1])
    assert turned.verdict is Verdict.PASS


def test_an_engine_that_empties_its_argument_does_not_empty_what_is_expected() -> None:
    assert outcome("ENCODING-02", slice_chunk=lambda embedding, spans, chunk: embedding.zero_()).verdict is Verdict.FAIL


@pytest.mark.parametrize("error", [SystemExit(1), pytest.skip.Exception("no")], ids=["exit", "skip"])
def test_to_leave_is_no_refusal(error: BaseException) -> None:
    engine = type("Leaving", (), {"name": "leaving", "version": "0", "sentinels": staticmethod(raises(error))})()
    with pytest.raises(Mismatch, match="must be refused with a clear error, but ran into"):
        refuses(lambda: Witness(engine).sentinels(b""), "it")


def test_someone_who_wants_to_stop_is_heard() -> None:
    with pytest.raises(KeyboardInterrupt):
        outcome("SENTINELS-01", sentinels=raises(KeyboardInterrupt()))


def test_a_large_answer_is_shown_by_its_beginning() -> None:
    with pytest.raises(Mismatch, match=r"answered with \[\[0.0\], \[0.0\], .* 5000000 in all\]"):
        refuses(lambda: torch.zeros(1, 1).expand(5_000_000, 1), "it")


def test_a_method_that_cannot_be_looked_at_is_there_and_fails() -> None:
    def broken(self: Any) -> Any:
        raise RuntimeError("no such luck")

    engine = type("Broken", (ReferenceEngine,), {"sentinels": property(broken)})()
    assert "sentinels" in capabilities(engine)
    ended = trial.run(requirements["SENTINELS-01"], bytes(32), engine)
    assert (ended.verdict, ended.message) == (Verdict.FAIL, "sentinels raised RuntimeError: no such luck")


def test_an_object_that_leaves_when_it_is_opened_does_not_end_the_run() -> None:
    engine = type("Leaving", (ReferenceEngine,), {"open_encoder_cache": staticmethod(raises(SystemExit(1)))})()
    assert "open_encoder_cache" in capabilities(engine)
