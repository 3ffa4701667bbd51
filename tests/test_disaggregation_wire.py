"""What the wire and the carriers of disaggregation promise: they take no nonsense, and processes understand each other."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conformance.oracles.disaggregation import message, rows_of
from reference.disaggregation.carriers import MemoryCarrier, NoOffer, TcpCarrier
from reference.disaggregation.decode_side import DecodeSide
from reference.disaggregation.prefill_side import PrefillSide
from reference.disaggregation.receiver import Receiver
from reference.disaggregation.wire import BadMessage, pack, pack_prompt, unpack, unpack_prompt
from reference.items import Item, Modality, Request, Span

HOME = Path(__file__).parent.parent


PROMPT = Request(id="a", input_ids=np.arange(3))
TENSORS = [torch.arange(6.0).reshape(2, 3), torch.tensor(1.5), torch.empty(0, 4), torch.tensor([True, False])]


def test_what_is_packed_is_unpacked() -> None:
    header, tensors = unpack(pack({"room": 0, "word": "rows"}, TENSORS))
    assert header == {"room": 0, "word": "rows"}
    assert all(torch.equal(one, other) and one.dtype == other.dtype for one, other in zip(tensors, TENSORS, strict=True))


def test_a_prompt_travels_with_all_its_fields() -> None:
    fields = {
        "grid": torch.tensor([[1, 2, 3]]),
        "times": np.array([0.5, 1.0]),
        "nested": {"a": (1, [2.5, None]), "tensor": "no tensor"},
        "flag": True,
        "count": np.int64(3),
    }
    item = Item(modality=Modality.VIDEO, spans=(Span(1, 2), Span(4, 4)), identity=bytes(range(32)), fields=fields)
    request = Request(id="a", input_ids=np.array([1, -2, 2**62, 4, 5]), items=(item,))
    prompt, tensors = pack_prompt(request)
    header, received = unpack(pack({"prompt": prompt}, tensors))
    made = unpack_prompt(header["prompt"], received)
    assert made.input_ids.tolist() == request.input_ids.tolist()
    (other,) = made.items
    assert (other.modality, other.spans, other.identity) == (item.modality, item.spans, item.identity)
    assert torch.equal(other.fields["grid"], fields["grid"])  # type: ignore[arg-type]
    assert np.array_equal(other.fields["times"], fields["times"])  # type: ignore[arg-type]
    assert other.fields["nested"] == fields["nested"]
    assert (other.fields["flag"], other.fields["count"]) == (True, 3)
    with pytest.raises(TypeError, match="object does not travel"):
        pack_prompt(
            Request(id="a", input_ids=request.input_ids, items=(Item(modality=Modality.IMAGE, fields={"x": object()}),))
        )


def test_every_message_that_is_cut_or_changed_is_refused_or_read() -> None:
    whole = pack({"word": "rows", "room": 7}, [torch.arange(6.0)])
    for stop in range(len(whole)):
        with pytest.raises(BadMessage):
            unpack(whole[:stop])
    with pytest.raises(BadMessage, match="1 bytes lie behind the last tensor"):
        unpack(whole + b"x")
    for place in range(len(whole)):
        for sides in (PrefillSide(1), DecodeSide(1)):
            assert sides.receive(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]) == []


@pytest.mark.parametrize(
    "header",
    [
        [], {}, {"tensors": 3}, {"tensors": [["float32", [-1]]]}, {"tensors": [["float32", ["a"]]]},
        {"tensors": [["code", [1]]]}, {"tensors": [["float32", [2**40]]]}, {"tensors": [["float32"]]},
        {"tensors": [], "room": [], "word": "rows", "decode": {}},
        {"tensors": [], "room": 7, "word": "ready", "decode": [], "prefill": None},
        {"tensors": [], "room": 7, "word": "metadata", "decode": "x", "prefill": "y", "prompt": []},
    ],
)  # fmt: skip
def test_a_header_that_means_nothing_does_nothing(header: Any) -> None:
    text = json.dumps(header).encode()
    prefill, decode = PrefillSide(1), DecodeSide(1)
    prefill.begin(PROMPT, 7, 0)
    decode.expect(PROMPT, 7, 0)
    for side in (prefill, decode):
        assert side.receive(len(text).to_bytes(4, "big") + text) == []
        assert side.receive(text) == []
        assert side.receive(None) == []
    assert (prefill.poll(0), decode.poll(0)) == ({}, {})


def test_a_tcp_carrier_leaves_no_thread_and_listens_no_more() -> None:
    before = threading.active_count()
    carrier, reader = TcpCarrier(), TcpCarrier()
    ticket = carrier.offer(torch.ones(2))
    assert torch.equal(reader.fetch(ticket), torch.ones(2))
    carrier.close()
    carrier.close()
    with pytest.raises(NoOffer):
        reader.fetch(ticket)
    with pytest.raises(RuntimeError, match="closed"):
        carrier.offer(torch.ones(2))
    reader.close()
    for thread in threading.enumerate():
        if thread.name.startswith("tcp-carrier"):
            thread.join(5)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "ticket", [b"", b"x" * 15, b"x" * 16, b"x" * 16 + b"127.0.0.1", b"x" * 16 + b"127.0.0.1:x", b"\xff" * 40]
)
def test_a_ticket_that_is_none_is_refused(ticket: bytes) -> None:
    for carrier in (MemoryCarrier(), TcpCarrier()):
        with pytest.raises(NoOffer):
            carrier.fetch(ticket)
        carrier.close()


ENCODER = """
import json, sys
from conformance.oracles.disaggregation import rows_of
from reference.disaggregation.carriers import TcpCarrier
from reference.disaggregation.encoder_side import EncoderSide

carrier, side = TcpCarrier(), EncoderSide((), None, 60)
for line in sys.stdin:
    asked = json.loads(line)
    side.submit(asked, 0)
    name = side.take()
    side.encoded(*name, rows_of(*name), 0)
    print(json.dumps([*name, carrier.offer(side.send(*name, 0, 0)).hex()]), flush=True)
"""


def test_encoders_of_other_processes_make_the_same_rows() -> None:
    """Two encoders, each a process with a TCP carrier; parts come from behind."""
    request = Request(
        id="a", input_ids=np.zeros(9, np.int64), items=tuple(Item(modality=Modality.IMAGE, spans=(s,)) for s in spans())
    )
    receiver, reader = Receiver(60), TcpCarrier()
    receiver.expect(request, [[0], [1]], 0)
    command = [sys.executable, "-c", ENCODER]
    encoders = [subprocess.Popen(command, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for part in (1, 0):
        encoder = encoders[part]
        assert encoder.stdin is not None
        assert encoder.stdout is not None
        print(json.dumps({**message("a", part), "parts": 2}), file=encoder.stdin, flush=True)
        id, number, ticket = json.loads(encoder.stdout.readline())
        receiver.arrive(id, number, 2, reader.fetch(bytes.fromhex(ticket)))
    outcome = receiver.poll(0)["a"]
    assert not isinstance(outcome, Exception)
    assert [item.embedding.tolist() for item in outcome] == [rows_of("a", part).tolist() for part in range(2)]
    for encoder in encoders:
        encoder.communicate()
    reader.close()


def spans() -> tuple[Span, Span]:
    """Places for the rows of two parts."""
    first = len(rows_of("a", 0))
    return Span(0, first - 1), Span(first, first + len(rows_of("a", 1)) - 1)
