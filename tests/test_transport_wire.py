"""The wire of the reference, beyond the rules."""

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from conformance.adapters.reference import ReferenceEngine
from conformance.oracles.transport_wire import pack
from fuzz.wire import search
from reference.items import Handle, Item, Modality, Request
from reference.transport.survey import Limits, WireError
from reference.transport.wire import decode_message, decode_value, encode_message, encode_value

HOME = Path(__file__).parent.parent
VALUES = [
    *(0, -1, -32, -33, -128, -129, -(2**15), -(2**15) - 1, -(2**31), -(2**31) - 1, -(2**63)),
    *(127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1, 1.5, None, True, False),
    *("x" * 31, "x" * 32, "x" * 255, "x" * 256, "x" * 65536, b"", b"x" * 256, b"x" * 65536, [0] * 15, [0] * 16, [0] * 65536),
]


def one(**parts: object) -> Request:
    """A request with one picture."""
    return Request(id="r", input_ids=np.arange(4), items=(Item(modality=Modality.IMAGE, **parts),))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{str(value)[:12]}-{len(str(value))}")
def test_the_oracle_writes_messagepack_as_msgspec_does(value: object) -> None:
    assert pack(value) == msgspec.msgpack.encode(value)
    assert decode_value(encode_value(value)) == value


def test_a_mutated_message_is_read_or_refused() -> None:
    counts, wrong = search(ReferenceEngine(), 2000, seed=7, limited=False)
    assert not wrong
    assert counts["read"] > 50
    assert counts["refused"] > 1000


def test_the_command_searches() -> None:
    command = [sys.executable, "-m", "fuzz.wire", "--times", "500"]
    ended = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True)
    assert "refused" in ended.stdout


def test_a_value_is_no_request() -> None:
    with pytest.raises(WireError, match="kind: it is no request"):
        decode_message(encode_value([1]))
    with pytest.raises(WireError, match="kind: it is no value"):
        decode_value(encode_message(one(feature=b"x")))


@pytest.mark.parametrize("data", [None, "text", bytearray(b"\x94"), [1]])
def test_only_bytes_are_messages(data: object) -> None:
    with pytest.raises(WireError, match="the message: it is bytes, not"):
        decode_message(data)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "limits", "path"),
    [
        (one(feature=b"x" * 100), Limits(total_bytes=99), ""),
        (one(feature=[0] * 100), Limits(values=99), ""),
        (one(feature=[[[[0]]]]), Limits(depth=3), "items[0].feature[0][0][0][0]"),
        (one(feature=torch.zeros(1, 1, 1)), Limits(dimensions=2), "items[0].feature.shape"),
        (one(feature=Handle(b"x" * 100)), Limits(total_bytes=99), ""),
        (one(feature=b"x"), Limits(items=0), "items"),
    ],
)
def test_a_limit_binds_both_ends(request_: Request, limits: Limits, path: str) -> None:
    for call in (lambda: encode_message(request_, limits), lambda: decode_message(encode_message(request_), limits)):
        with pytest.raises(WireError) as caught:
            call()
        assert caught.value.path in (path, "")


def test_a_sender_says_where_its_value_is_wrong() -> None:
    with pytest.raises(WireError, match=r"items\[0\]\.fields\[1\]\[2\]: a number is finite"):
        encode_message(one(feature=b"x", fields={"a": 1, "b": [1, 2, float("nan")]}))
    with pytest.raises(WireError, match=r"items\[0\]\.embedding: an embedding is a tensor"):
        encode_message(one(embedding=[1.0]))
    with pytest.raises(WireError, match=r"a set is no plain data"):
        encode_value({"a": {1}})


def test_a_list_that_contains_itself_is_refused() -> None:
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(WireError, match="nested deeper than 24 levels, or contains itself"):
        encode_message(one(feature=ring))


def test_what_was_read_can_be_written_to() -> None:
    request = decode_message(encode_message(one(feature=[torch.zeros(2), np.zeros(2)])))
    request.input_ids[0] = 7
    for part in request.items[0].feature:
        part[0] = 7
