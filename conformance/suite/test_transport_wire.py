"""TRANSPORT: requests and features on their way between processes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, same, unless_refused
from conformance.engine import Engine
from conformance.oracles import transport_wire as oracle
from conformance.oracles.transport_wire import told_request
from conformance.requirement import SHOULD, requirement
from conformance.suite import transport_wire_cases as cases
from conformance.suite import transport_wire_hostile as hostile
from conformance.suite.transport_wire_hostile import Hostile
from conformance.witness import EngineRaised
from reference.items import Request

BOTH = ("encode_message", "decode_message")
V1 = ("encode_wire_v1", "decode_wire_v1")


def is_told(observed: Request, expected: Request) -> None:
    """Both requests have the same parts, down to the bits."""
    parts, right = told_request(observed), told_request(expected)
    paths = [path for path, _ in right]
    equal([path for path, _ in parts], paths, "the parts of the request")
    equal([part for _, part in parts], [part for _, part in right], "what came off the wire", where=paths.__getitem__)


def travels(engine: Engine, case: Request) -> None:
    """The request comes off the engine's wire as it was put on it."""
    is_told(engine.decode_message(engine.encode_message(case)), case)


def error_of(call: Callable[[], Any]) -> str:
    """What the engine says when it refuses; nothing if it does not."""
    try:
        call()
    except EngineRaised as raised:
        return raised.summary
    return ""


def refused(engine: Engine, case: Hostile) -> None:
    """The message is refused."""
    refuses(lambda: engine.decode_wire_v1(case.data), "the message")


def shaken(request: Request) -> None:
    """Every number of a request's first feature changed in place."""
    feature = request.items[0].feature
    feature[...] = 0 if isinstance(feature, np.ndarray) else torch.zeros(())


@requirement("TRANSPORT-01", needs=BOTH, cases=cases.REQUESTS)
def test_a_request_arrives(engine: Engine, case: Request) -> None:
    """A request MUST come off the wire with the ids, items and parts of items with which it was put on it."""
    travels(engine, case)


@requirement("TRANSPORT-02", needs=BOTH, cases=cases.TENSORS)
def test_every_dtype_arrives(engine: Engine, case: Request) -> None:
    """A tensor MUST arrive with its dtype and all of its bits, those of NaNs too."""
    travels(engine, case)


@requirement("TRANSPORT-03", needs=BOTH, cases=cases.ARRAYS)
def test_every_array_arrives(engine: Engine, case: Request) -> None:
    """A numpy array MUST arrive with its dtype and all of its bits."""
    travels(engine, case)


@requirement("TRANSPORT-04", needs=BOTH, cases=cases.SHAPES)
def test_every_shape_arrives(engine: Engine, case: Request) -> None:
    """A shape MUST arrive as it was, without dimensions and with empty ones too."""
    travels(engine, case)


@requirement("TRANSPORT-05", needs=BOTH, cases=cases.LAYOUTS)
def test_layout_does_not_matter(engine: Engine, case: Request) -> None:
    """An element MUST arrive in its place, whatever the order in memory and the order of bytes."""
    travels(engine, case)


@requirement("TRANSPORT-06", needs=BOTH, cases=cases.HOLES, bugs=("is-embed-lost-on-wire",))
def test_holes_arrive(engine: Engine, case: Request) -> None:
    """All spans of an item MUST arrive, each with its bounds: positions between them are not the item's."""
    travels(engine, case)


@requirement("TRANSPORT-07", needs=BOTH, cases=cases.FIELDS)
def test_fields_arrive(engine: Engine, case: Request) -> None:
    """A field MUST arrive under its name, with its value and the type of it: True, 1 and 1.0 are three values."""
    travels(engine, case)


@requirement("TRANSPORT-08", needs=V1, cases=cases.HANDLES)
def test_handles_arrive(engine: Engine, case: Request) -> None:
    """A handle MUST arrive as a handle with its token, and bytes as bytes."""
    is_told(engine.decode_wire_v1(engine.encode_wire_v1(case)), case)


@requirement("TRANSPORT-09", needs=BOTH, cases=cases.REQUESTS | cases.LAYOUTS, bugs=("Q05", "T02"))
def test_a_request_is_sent_any_number_of_times(engine: Engine, case: Request) -> None:
    """A request MUST stay what it was when it is put on the wire, so that it can be sent again."""
    before = told_request(case)
    first, second = engine.encode_message(case), engine.encode_message(case)
    holds(told_request(case) == before, "the request is another one than before it was sent")
    for data in (first, second):
        is_told(engine.decode_message(data), case)


@requirement("TRANSPORT-10", needs=BOTH, cases={name: cases.TENSORS[name] for name in ("float32", "uint8")} | {
    "an-array": cases.ARRAYS["float32"]}, bugs=("T02", "shm-pointer-reuse-parallel-sampling"))  # fmt: skip
def test_every_reader_has_memory_of_its_own(engine: Engine, case: Request) -> None:
    """A message MUST be readable any number of times, and what one reader changes MUST NOT be seen by another."""
    data = engine.encode_message(case)
    first, second = engine.decode_message(data), engine.decode_message(data)
    shaken(first)
    for other in (second, engine.decode_message(data)):
        is_told(other, case)


@requirement("TRANSPORT-11", needs=BOTH, cases=cases.REQUESTS | cases.FIELDS | cases.LAYOUTS, level=SHOULD)
def test_equal_requests_are_equal_bytes(engine: Engine, case: Request) -> None:
    """Equal requests SHOULD be equal bytes, so that ranks and routers can compare them."""
    first = engine.encode_message(case)
    same(first, engine.encode_message(engine.decode_message(first)), "the bytes of equal requests")


@requirement("TRANSPORT-12", needs=BOTH, cases={"a-picture": cases.REQUESTS["a-picture"], "text": cases.REQUESTS["text"]})
def test_a_part_is_no_message(engine: Engine, case: Request) -> None:
    """A message that is cut short MUST be refused, wherever it is cut."""
    data = engine.encode_message(case)
    for length in range(len(data)):
        refuses(partial(engine.decode_message, data[:length]), f"the first {length} of {len(data)} bytes")


@requirement("TRANSPORT-13", needs=BOTH, cases={"a-zero": b"\0", "text": b"more", "a-nil": b"\xc0"}, level=SHOULD)
def test_nothing_stands_behind_a_message(engine: Engine, case: bytes) -> None:
    """A message with something behind its end SHOULD be refused: two readers would not agree on what it says."""
    data = engine.encode_message(cases.REQUESTS["a-picture"])
    refuses(lambda: engine.decode_message(data + case), "a message with something behind it")


@requirement("TRANSPORT-14", needs=BOTH, cases={f"mask-{mask:02x}": mask for mask in (0x01, 0x80, 0xFF)})
def test_damage_is_refused_or_read(engine: Engine, case: int) -> None:
    """A message with a byte changed MUST be read as some request, or be refused with a clear error."""
    data = engine.encode_message(cases.REQUESTS["a-picture"])
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ case]) + data[place + 1 :]
        unless_refused(partial(engine.decode_message, damaged), f"a message with byte {place} changed")


@requirement("TRANSPORT-15", needs=BOTH, cases=cases.CODE)
def test_no_code_travels(engine: Engine, case: Request) -> None:
    """Reading a message MUST NOT run code that its sender chose."""
    cases.Steals.stolen.clear()
    for data in unless_refused(lambda: engine.encode_message(case), "an object"):
        unless_refused(partial(engine.decode_message, data), "a message of an object")
    equal(cases.Steals.stolen, [], "what ran")


@requirement("TRANSPORT-16", needs=BOTH, cases=cases.BOMBS, bugs=("embeds-sparse-dense-bomb", "embeds-negative-sparse"))
def test_a_bomb_is_refused(engine: Engine, case: Request) -> None:
    """A tensor that claims more than it holds, or places that it does not have, MUST be refused at once."""
    refuses(lambda: engine.decode_message(engine.encode_message(case)), "the tensor")


@requirement("TRANSPORT-17", needs=BOTH, cases=cases.ODD)
def test_what_cannot_travel_is_refused(engine: Engine, case: Request) -> None:
    """A value that the wire cannot carry MUST be refused by the sender, and not arrive as another."""
    for data in unless_refused(lambda: engine.encode_message(case), "a value that is no plain data"):
        is_told(engine.decode_message(data), case)


V1_REQUESTS = {
    name: Exact(request, oracle.message(request))
    for table in (cases.REQUESTS, cases.SHAPES, cases.LAYOUTS, cases.HOLES, cases.FIELDS, cases.HANDLES)
    for name, request in table.items()
} | {
    f"{kind}-{name}": Exact(request, oracle.message(request))
    for kind, table in (("tensor", cases.TENSORS), ("array", cases.ARRAYS))
    for name, request in table.items()
}


@requirement("TRANSPORT-18", needs="decode_wire_v1", cases=V1_REQUESTS)
def test_version_1_is_read(engine: Engine, case: Exact) -> None:
    """A message of version 1 MUST be read as the request that it is."""
    is_told(engine.decode_wire_v1(case.expected), case.given)


@requirement("TRANSPORT-19", needs="encode_wire_v1", cases=V1_REQUESTS)
def test_version_1_is_written(engine: Engine, case: Exact) -> None:
    """A request MUST be written as version 1 says, byte for byte."""
    equal(engine.encode_wire_v1(case.given), case.expected, "the message")


@requirement("TRANSPORT-20", needs="decode_wire_v1", cases=hostile.BEGINNINGS)
def test_other_messages_are_refused(engine: Engine, case: Hostile) -> None:
    """What begins otherwise than messages of version 1 MUST be refused: other versions, other formats, nothing at all."""
    refused(engine, case)


@requirement("TRANSPORT-21", needs="decode_wire_v1", cases=hostile.LENGTHS)
def test_lengths_are_not_believed(engine: Engine, case: Hostile) -> None:
    """A length, a number of values and a depth MUST be compared with what is there and with what is allowed."""
    refused(engine, case)


@requirement("TRANSPORT-22", needs="decode_wire_v1", cases=hostile.BLOCKS, bugs=("embeds-sparse-dense-bomb",))
def test_shapes_agree_with_their_bytes(engine: Engine, case: Hostile) -> None:
    """A shape that is none, or that does not agree with the bytes that are there, MUST be refused."""
    refused(engine, case)


@requirement("TRANSPORT-23", needs="decode_wire_v1", cases=hostile.FORMS)
def test_nothing_unknown_is_read(engine: Engine, case: Hostile) -> None:
    """A part that is unknown, missing, or there twice MUST be refused, and never be passed over."""
    refused(engine, case)


@requirement("TRANSPORT-24", needs="decode_wire_v1", cases=hostile.DOMAINS, bugs=("embeds-negative-sparse",))
def test_what_no_request_can_be_is_refused(engine: Engine, case: Hostile) -> None:
    """A part whose type or value no request has MUST be refused: spans out of order, unknown dtypes, half a hash."""
    refused(engine, case)


@requirement("TRANSPORT-25", needs="decode_wire_v1", cases=hostile.SPELLINGS)
def test_there_is_one_spelling(engine: Engine, case: Hostile) -> None:
    """Text that is not UTF-8, and a value in another form than its shortest, MUST be refused."""
    refused(engine, case)


PLACED = {
    f"{kind}-{name}": case
    for kind, some in (("block", hostile.BLOCKS), ("form", hostile.FORMS), ("domain", hostile.DOMAINS))
    for name, case in some.items()
    if case.path
}


@requirement("TRANSPORT-26", needs="decode_wire_v1", cases=PLACED, level=SHOULD)
def test_an_error_says_where(engine: Engine, case: Hostile) -> None:
    """The error about a message SHOULD name the part that is wrong."""
    observed = error_of(lambda: engine.decode_wire_v1(case.data))
    holds(f"{case.path}:" in observed, f"the error must name {case.path}, but says {observed!r}")


@requirement("TRANSPORT-27", needs="decode_wire_v1", cases=PLACED | hostile.LENGTHS | hostile.BEGINNINGS)
def test_an_error_repeats_nothing(engine: Engine, case: Hostile) -> None:
    """The error about a message MUST NOT repeat what the message contains: logs are read by others than prompts."""
    observed = error_of(lambda: engine.decode_wire_v1(case.data))
    holds(hostile.SECRET not in observed, f"the error repeats the message: {observed!r}")
