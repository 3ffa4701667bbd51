"""Odd engines: whatever one does, it fails its own cases, and neither the suite nor the rest of the run."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.compare import Mismatch, refuses
from conformance.suite import requirements
from conformance.trial import Outcome, Verdict
from conformance.witness import Witness, capabilities
from reference.items import Item, Modality


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


def spoils(*arguments: Any) -> None:
    """Writes into whatever it is given."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            argument.untyped_storage().fill_(7)
        elif isinstance(argument, np.ndarray):
            argument[...] = 7
        elif isinstance(argument, Image.Image):
            argument.putpixel((0, 0), 7)
            argument.thumbnail((1, 1))
        elif isinstance(argument, list):
            argument.clear()
        elif isinstance(argument, dict):
            argument["more"] = 7


SHOWN: dict[str, Callable[[], Any]] = {
    "a tensor": lambda: torch.arange(6),
    "a view": lambda: torch.arange(12).reshape(3, 4).T[1:],
    "one row seen many times": lambda: torch.arange(3).expand(4, 3),
    "an array": lambda: np.arange(6),
    "an array backwards": lambda: np.arange(12)[::-2],
    "a picture": lambda: Image.linear_gradient("L").resize((4, 3)),
    "a list": lambda: [1, [2, 3]],
    "a dictionary": lambda: {"a": 1},
}


def content(value: Any) -> Any:
    if isinstance(value, Image.Image):
        return value.mode, value.size, value.tobytes()
    return value.tolist() if isinstance(value, torch.Tensor | np.ndarray) else value


@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_what_an_engine_writes_into_is_put_back(make: Callable[[], Any]) -> None:
    value, untouched = make(), content(make())
    case = Item(modality=Modality.IMAGE, fields={"deep": (value,)})
    witness = Witness(type("Spoiling", (), {"identify": staticmethod(lambda item: spoils(*item.fields["deep"]) or b"x")})())
    witness.identify(case)
    assert content(value) != untouched
    witness.put_back()
    assert content(value) == untouched


@pytest.mark.parametrize(
    ("id", "method"), [("IDENTITY-06", "identify"), ("MERGING-01", "merge"), ("POSITIONS-01", "positions")]
)
def test_a_spoilt_case_is_whole_for_the_next_rule(id: str, method: str) -> None:
    def spoiling(*arguments: Any) -> Any:
        answer = getattr(ReferenceEngine, method)(*arguments)
        spoils(*arguments, *(argument.feature for argument in arguments if isinstance(argument, Item)))
        return answer

    engine = type("Spoiling", (ReferenceEngine,), {method: staticmethod(spoiling)})()
    for case in requirements[id].cases.values():
        trial.run(requirements[id], case, engine)
        assert trial.run(requirements[id], case, ReferenceEngine()).verdict is Verdict.PASS


def hangs(*arguments: Any) -> None:
    while True:
        threading.Event().wait(10)


def hangs_and_clings(*arguments: Any) -> None:
    for _ in range(3):
        with contextlib.suppress(Exception):
            hangs()


def trickles(*arguments: Any) -> Iterator[int]:
    yield 1 << 62
    hangs()


@pytest.mark.parametrize("method", [hangs, hangs_and_clings, trickles])
def test_an_engine_that_hangs_fails_its_case(method: Callable[..., Any]) -> None:
    engine = type("Slow", (), {"sentinels": staticmethod(method)})()
    with pytest.raises(AssertionError, match=r"no answer within 0\.2 s"):
        Witness(engine, limit_s=0.2).sentinels(bytes(32))


def test_an_engine_outside_the_main_thread_is_asked_without_a_limit() -> None:
    engine = type("Slow", (), {"sentinels": staticmethod(lambda identity: (time.sleep(0.3), (1 << 62,))[1])})()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(Witness(engine, limit_s=0.1).sentinels, bytes(32)).result() == (1 << 62,)


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
