"""An engine in a process of its own: values that cross, calls both ways, and workers that end or hang."""

import asyncio
import json
import math
import os
import socket
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from conformance import trial
from conformance.engine import EngineNotLoaded, Traits
from conformance.loading import load
from conformance.protocol.parallel import Layout
from conformance.remote.peer import Peer, PeerGone
from conformance.remote.plain import NotPlain, from_plain, to_plain
from conformance.remote.worker import FORKED
from conformance.requirement import requirements
from conformance.suite import requirements as _declared  # noqa: F401  (imports every rule)
from conformance.time_limit import TookTooLong
from conformance.trial import Verdict
from conformance.witness import EngineRaised, Witness, capabilities
from reference.items import Item, Modality, Span

WORKER = f"worker:{sys.executable} -m conformance.remote.worker"


def there_and_back(value: Any) -> Any:
    """A value as the other side has it; references are refused."""

    def refuse(other: Any) -> Any:
        raise AssertionError(f"{other!r} is a value")

    return from_plain(json.loads(json.dumps(to_plain(value, refuse))), refuse)


VALUES = [
    None, True, 7, -(2**70), 1.5, -0.0, math.inf, "ä\n", b"\x00\xff", bytearray(b"x"), (1, (2,)), [1, [2]], {1, 2},
    frozenset("a"), range(3, 9, 2),
    {"a": 1, "$": 2}, {1: "x", (2, 3): None}, {"plain": [b""]}, Path("a/b"), Modality.VIDEO, Span(2, 5),
    Traits(largest_vocabulary=5), Layout(tp=2),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    back = there_and_back(value)
    assert (type(back), repr(back)) == (type(value), repr(value))


GRID = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
ARRAYS = [
    GRID, GRID.T, GRID[::-1, :, ::-2], GRID[:, 1:2], np.empty((0, 3), np.uint8), np.array(3.5), np.array([True, False]),
    np.array([1.5, math.nan], ">f4"), np.zeros(2, [("a", "<i2"), ("b", "<f8")]), np.broadcast_to(np.int64(4), (2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: f"{value.dtype}{value.strides}")
def test_arrays_keep_bits_and_layout(value: np.ndarray) -> None:
    back = there_and_back(value)
    assert (back.dtype, back.shape, back.tobytes()) == (value.dtype, value.shape, value.tobytes())
    assert back.strides == value.strides or not value.size
    assert back.flags.writeable == value.flags.writeable or not value.size


ROWS = torch.arange(12, dtype=torch.float32).reshape(3, 4)
TENSORS = [
    ROWS, ROWS.T, ROWS[:, ::2], ROWS[1:, 1], ROWS[0, 0], torch.empty(0, 5), ROWS.expand(2, 3, 4),
    ROWS.to(torch.complex64).conj(),
    torch.tensor([0x7FC1, -1], dtype=torch.int16).view(torch.bfloat16), torch.tensor([1, 2], dtype=torch.uint64),
    torch.tensor([True]), torch.tensor([0.5, 300.0]).to(torch.float8_e5m2), ROWS.clone().requires_grad_(),
]  # fmt: skip


@pytest.mark.parametrize("value", TENSORS, ids=lambda value: f"{value.dtype}{tuple(value.stride())}")
def test_tensors_keep_bits_and_layout(value: torch.Tensor) -> None:
    back = there_and_back(value)
    assert (back.dtype, back.shape, back.requires_grad) == (value.dtype, value.shape, value.requires_grad)
    assert back.stride() == value.stride() or not value.numel()
    bits = [one.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8) for one in (back, value)]
    assert torch.equal(*bits)


def test_tensors_without_values_or_with_few() -> None:
    meta = there_and_back(torch.empty(2, 3, device="meta"))
    assert (meta.device.type, meta.shape) == ("meta", (2, 3))
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0]), (3,), check_invariants=True)
    assert torch.equal(there_and_back(sparse).to_dense(), sparse.to_dense())


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F"])
def test_pictures_keep_mode_pixels_and_what_is_said_of_them(mode: str) -> None:
    picture = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    picture = picture.convert("RGB").quantize(4) if mode == "P" else picture.convert(mode)
    picture.info |= {"transparency": b"\x00\x80"} if mode == "P" else {"dpi": (72, 72)}
    back = there_and_back(picture)
    assert (back.mode, back.size, back.tobytes(), back.info) == (picture.mode, picture.size, picture.tobytes(), picture.info)
    assert back.convert("RGBA").tobytes() == picture.convert("RGBA").tobytes()


def test_an_item_comes_with_all_its_parts() -> None:
    item = Item(
        modality=Modality.IMAGE, spans=(Span(1, 4),), feature=[ROWS, b"x"], fields={"grid": (1, 2, 2)}, caller_hash=2**64 - 1
    )
    back = there_and_back(item)
    assert (back.modality, back.spans, back.format, back.fields, back.caller_hash) == (
        item.modality, item.spans, item.format, item.fields, item.caller_hash,
    )  # fmt: skip
    assert torch.equal(back.feature[0], ROWS)
    assert there_and_back(array("q", [1, -1])) == array("q", [1, -1])
    assert there_and_back(np.float32(0.1)) == np.float32(0.1)


@pytest.mark.parametrize(
    "plain",
    [
        {"$": "bytes"},
        {"$": "tensor", "dtype": "no_such", "shape": [1], "base64": ""},
        {"$": "data", "class": "subprocess:Popen", "fields": {}},
        {"$": "data", "class": "os:system", "value": 1},
    ],
)
def test_what_is_no_value_is_refused(plain: Any) -> None:
    with pytest.raises(NotPlain):
        from_plain(plain, lambda other: None)


class Host:
    """What the far peer can be asked in these tests."""

    def __init__(self) -> None:
        self.kept: Any = None
        self.word = "hello"

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def keep(self, value: Any) -> Any:
        self.kept = value
        return value

    def take(self, value: Any) -> None:
        self.kept = value

    def write(self, values: Any, tensor: torch.Tensor) -> None:
        values.append("more")
        values[0]["x"] = 2
        tensor[1] = 7

    def fail(self, error: BaseException) -> None:
        raise error

    def decode(self) -> str:
        return b"\xff".decode()

    def thread(self, _: Any = None) -> str:
        return threading.current_thread().name


@pytest.fixture
def host() -> Iterator[tuple[Any, Host]]:
    """An object that is behind two pipes and a peer, and the object itself."""
    (here_in, there_out), (there_in, here_out) = os.pipe(), os.pipe()
    subject = Host()
    far = Peer(
        os.fdopen(there_in, "rb"), os.fdopen(there_out, "wb"), "w", lambda: "the suite hung up", SimpleNamespace(host=subject)
    )
    serving = threading.Thread(target=far.serve, name="the far main thread")
    serving.start()
    near = Peer(os.fdopen(here_in, "rb"), os.fdopen(here_out, "wb"), "s", lambda: "it hung up")
    yield near._get(0, "host"), subject
    near._writing.close()
    serving.join(10)
    assert not serving.is_alive()
    far._writing.close()


def test_a_function_is_called_where_it_is_and_in_the_same_thread(host: tuple[Any, Host]) -> None:
    far, _ = host
    assert far.apply(lambda x, y: (x + y, threading.current_thread() is threading.main_thread()), 3, 4) == (7, True)
    assert far.apply(far.apply, lambda: far.thread()) == "the far main thread"
    assert far.word == "hello"


def test_threads_stay_apart(host: tuple[Any, Host]) -> None:
    far, _ = host
    both = threading.Barrier(2, timeout=20)
    ended: list[str] = []

    def meet() -> None:
        far.apply(both.wait)
        ended.append(far.apply(lambda: threading.current_thread().name))

    threads = [threading.Thread(target=meet, name=f"near {n}") for n in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert sorted(ended) == ["near 0", "near 1"]


def test_what_is_large_goes_both_ways_at_once(host: tuple[Any, Host]) -> None:
    far, _ = host
    large = bytes(3_000_000)

    def swap() -> None:
        for _ in range(3):
            assert far.apply(lambda data: data, large) == large

    threads = [threading.Thread(target=swap) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not any(one.is_alive() for one in threads)


def test_who_writes_into_a_copy_has_written_into_the_original(host: tuple[Any, Host]) -> None:
    far, _ = host
    inner, tensor = {"x": 1}, torch.zeros(3)
    values: list[Any] = [inner]
    assert far.write(values, tensor) is None
    assert (values, inner, tensor.tolist()) == ([{"x": 2}, "more"], {"x": 2}, [0.0, 7.0, 0.0])
    assert values[0] is inner


class Refused(ValueError):
    """An error that only one side knows."""


def test_errors_have_their_names_and_come_home_as_they_left(host: tuple[Any, Host]) -> None:
    far, _ = host
    for error in (Refused("no"), KeyError("k"), asyncio.CancelledError()):
        with pytest.raises(type(error)) as caught:
            far.fail(error)
        assert caught.value is error
    with pytest.raises(AttributeError, match="nothing"):
        far.nothing()
    with pytest.raises(UnicodeDecodeError, match="can't decode byte 0xff"):
        far.decode()
    with pytest.raises(ZeroDivisionError, match="division"):
        far.apply(lambda: 1 / 0)


def test_what_nobody_needs_is_forgotten(host: tuple[Any, Host]) -> None:
    far, subject = host
    own = object()
    assert far.keep(own) is own
    references = far._call.__self__._references
    assert own in references._own.values()
    subject.kept = None
    deadline = time.monotonic() + 20
    while own in references._own.values() and time.monotonic() < deadline:
        far.keep(None)
    assert own not in references._own.values()


def test_a_socket_is_lent(host: tuple[Any, Host]) -> None:
    far, subject = host
    near, other = socket.socketpair()
    far.take(near)
    borrowed = subject.kept
    with other, borrowed:
        borrowed.sendall(b"ping")
        assert other.recv(4) == b"ping"
        other.sendall(b"pong")
        other.shutdown(socket.SHUT_WR)
        assert borrowed.makefile("rb").read() == b"pong"


@pytest.fixture(scope="module")
def remote() -> Any:
    return load(f"{WORKER} reference")


def test_the_worker_says_who_it_is(remote: Any) -> None:
    here = load("reference")
    assert (remote.name, remote.version, remote.traits) == (here.name, here.version, here.traits)
    assert capabilities(remote) == tuple(one for one in capabilities(here) if one.partition(".")[0] not in FORKED)


@pytest.mark.parametrize(
    "id",
    [
        "MEDIA-01", "MEDIA-31", "PLANNING-01", "IDENTITY-03", "SENTINELS-01", "PLACEHOLDERS-01", "PREPROCESSING-01",
        "POSITIONS-01",
        "PREFIX_CACHE-01", "SCHEDULING-01", "ENCODER_CACHE-01", "ENCODING-07", "PRUNING-01", "MERGING-01", "PIPELINE_RANKS-01",
        "SPECULATION-01", "LIFECYCLE-31",
    ],
)  # fmt: skip
def test_the_reference_holds_through_a_worker(remote: Any, id: str) -> None:
    one = requirements[id]
    outcomes = {name: trial.run(one, case, remote) for name, case in one.cases.items()}
    assert {name: outcome.message for name, outcome in outcomes.items() if outcome.verdict is not Verdict.PASS} == {}


ACME = """
import os, sys, time
class Engine:
    name, version = "acme", "1"
    def data_hash(self, data):
        print("a line for people")
        if data == b"die": os._exit(3)
        if data == b"hang": time.sleep(600)
        if data == b"fail": raise LookupError("not here")
        return 7
    def sentinels(self, identity):
        return iter([1, 2, 3, 4]) if identity[0] else object()
    def fit_length(self, rows, wanted):
        rows.zero_()
        return rows
"""


@pytest.fixture
def acme(tmp_path: Path) -> Any:
    (tmp_path / "acme.py").write_text(ACME)
    return load(f"{WORKER} {tmp_path}/acme.py:Engine")


def test_a_worker_that_ends_fails_its_case_and_is_started_again(acme: Any) -> None:
    with pytest.raises(PeerGone, match="ended with status 3: a line for people"):
        acme.data_hash(b"die")
    assert acme.data_hash(b"") == 7
    with pytest.raises(LookupError, match="not here"):
        acme.data_hash(b"fail")


def test_a_worker_that_hangs_fails_its_case_and_is_started_again(acme: Any) -> None:
    witness = Witness(acme, limit_s=1)
    with pytest.raises(EngineRaised, match=TookTooLong.__name__):
        witness.data_hash(b"hang")
    witness = Witness(acme)
    assert witness.data_hash(b"") == 7


def test_answers_are_read_where_they_are_made(acme: Any) -> None:
    witness = Witness(acme)
    assert witness.sentinels(b"\x01" * 32) == (1, 2, 3, 4)
    with pytest.raises(AssertionError, match="sentinels returned object; the protocol asks for"):
        witness.sentinels(bytes(32))


def test_a_command_that_is_no_worker(tmp_path: Path) -> None:
    for command, reason in (
        ("no-such-program", "cannot be started"),
        (f"{sys.executable} -c 'raise SystemExit(5)'", "status 5"),
    ):
        with pytest.raises(EngineNotLoaded, match=reason):
            load(f"worker:{command}")
    with pytest.raises(EngineNotLoaded, match="no engine named 'nix'"):
        load(f"{WORKER} nix")


def test_a_fork_has_a_worker_of_its_own(acme: Any) -> None:
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, b"%d" % acme.data_hash(b""))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"7"
    os.close(reading), os.close(writing)
    assert acme.data_hash(b"") == 7
