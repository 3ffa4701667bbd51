"""What the reference promises beyond the requirements: errors that say what and where, wires that take no nonsense, and
instances that are processes of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conformance.oracles.disaggregation import message
from conformance.oracles.lifecycle import drawn
from conformance.world.doubles import encoded, image
from reference.disaggregation.assignment import NoEncoder, assign_parts, encode_part, place_encoding
from reference.disaggregation.carriers import open_carrier
from reference.disaggregation.decode_side import DecodeSide, Handed
from reference.disaggregation.encoder_side import EncoderSide, check_message
from reference.disaggregation.prefill_side import PrefillSide
from reference.disaggregation.receiver import PartsMissing, Receiver
from reference.disaggregation.wire import pack, unpack
from reference.items import Item, Modality, Request, Span

HOME = Path(__file__).parent.parent
PICTURES = drawn("a", "ii.jj").items
GOOD = message("a", 0)


def bare(drawing: str) -> Request:
    request = drawn("a", drawing)
    items = [Item(modality=item.modality, spans=item.spans, identity=item.identity) for item in request.items]
    return Request(id="a", input_ids=request.input_ids, items=tuple(items))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: place_encoding(PICTURES, has_tower=False, encoders=0, may_fall_back=True, local_up_to=9),
            r"2 media have to be encoded.*loaded no encoder: start an encoder instance and register it here",
        ),
        (
            lambda: place_encoding(PICTURES, has_tower=True, encoders=0, may_fall_back=False, local_up_to=0),
            r"its router does not allow it to encode by itself",
        ),
        (lambda: assign_parts(PICTURES, [{}], 2), r"2 items have 1 mappings of options"),
        (lambda: assign_parts(PICTURES, [{}, {}], 0), r"2 media have to be encoded, and there are 0 encoder instances"),
        (lambda: encode_part([], lambda identity: None, lambda items: []), r"a part has at least one item"),
        (
            lambda: encode_part(PICTURES, lambda identity: None, lambda items: [torch.zeros(2, 5)]),
            r"given 2 items and returned rows for 1",
        ),
        (
            lambda: encode_part(PICTURES, lambda identity: None, lambda items: [torch.zeros(3, 5)] * 2),
            r"item 0 has 2 positions; the encoder made 3 rows",
        ),
        (lambda: check_message([]), r"a mapping, not list"),  # type: ignore[arg-type]
        (lambda: check_message({**GOOD, "id": ""}), r"'id' is a text that is not empty, not ''"),
        (lambda: check_message({**GOOD, "part": True}), r"request a: 'part' is an int, not True"),
        (lambda: check_message({**GOOD, "part": 1}), r"below 'parts', not 1 of 1"),
        (lambda: check_message({**GOOD, "modality": 7}), r"'modality' is one of \[1, 2, 3\], not 7"),
        (lambda: check_message({**GOOD, "media": []}), r"at least one medium"),
        (lambda: check_message({**GOOD, "options": [3]}), r"'options' is a sequence of mappings"),
        (lambda: check_message({**GOOD, "options": []}), r"1 media have 0 mappings of options"),
        (lambda: check_message({**GOOD, "receivers": 0}), r"at least 1 receiver is needed, not 0"),
        (lambda: EncoderSide((), None, 0), r"stale after a positive number of seconds, not 0"),
        (
            lambda: EncoderSide((), None, 1).encoded("a", 0, torch.zeros(1, 1), 0),
            r"part 0 of request a has ended, or never was",
        ),
        (lambda: Receiver(0), r"a positive number of seconds, not 0"),
        (lambda: Receiver(1).expect(bare("ii.jj"), [[0]], 0), r"the items \[0, 1\] have to be encoded, each in one part"),
        (
            lambda: Receiver(1).expect(
                Request(id="a", input_ids=np.zeros(4, np.int64), items=(image_with(torch.zeros(3, 5)),)), [], 0
            ),
            r"request a, item 0: 3 rows for 4 positions",
        ),
        (lambda: PrefillSide(-1), r"open for a positive number of seconds, not -1"),
        (lambda: DecodeSide(0), r"open for a positive number of seconds, not 0"),
        (lambda: PrefillSide(1).begin(bare("ii"), -1, 0), r"a room is a number from 0 to 9223372036854775807, not -1"),
        (lambda: DecodeSide(1).expect(bare("ii"), 2**63, 0), r"a room is a number"),
        (
            lambda: PrefillSide(1).begin(
                Request(id="a", input_ids=np.zeros(2, np.int64), items=(Item(modality=Modality.IMAGE),)), 0, 0
            ),
            r"request a: items \[0\] have no identity",
        ),
        (lambda: PrefillSide(1).store(7, 0, torch.zeros(1, 1)), r"room 7 is not open; open: none"),
        (lambda: open_carrier("pigeon"), r"there is no carrier 'pigeon'; there are memory, tcp, shared_memory, mooncake, nixl"),
        (lambda: pack({}, [torch.zeros(1, dtype=torch.complex64)]), r"a tensor of torch.complex64 does not travel"),
    ],
)
def test_what_cannot_be_right_is_explained(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def image_with(rows: torch.Tensor) -> Item:
    return Item(modality=Modality.IMAGE, spans=(Span(0, 3),), embedding=rows)


def test_no_encoder_is_an_error_of_its_own() -> None:
    with pytest.raises(NoEncoder):
        assign_parts(PICTURES, [{}, {}], 0)


def test_a_request_that_waited_too_long_says_which_parts_are_missing() -> None:
    receiver = Receiver(10)
    receiver.expect(bare("ii.jj.k"), [[0], [1], [2]], 0)
    receiver.arrive("a", 1, 3, torch.zeros(2, 5))
    error = receiver.poll(11)["a"]
    assert isinstance(error, PartsMissing)
    assert str(error) == "request a: parts 0, 2 of 3 did not come within 10 s"


@pytest.mark.parametrize(
    ("rows", "parts", "words"),
    [
        (torch.zeros(3, 5), 2, r"part 0: its items \[0\] have 2 positions, but rows of the shape \[3, 5\] came"),
        (torch.zeros(2, 5), 3, r"it is one of 3, but the request has the parts 0 to 1"),
        (torch.zeros(2, 4), 2, r"its rows are torch.float32, 4 wide, but others of its modality are torch.float32, 5 wide"),
        (torch.zeros(2, 5).bfloat16(), 2, r"its rows are torch.bfloat16, 5 wide"),
    ],
)
def test_a_part_that_does_not_fit_is_explained(rows: torch.Tensor, parts: int, words: str) -> None:
    receiver = Receiver(10)
    receiver.expect(bare("ii.jj"), [[0], [1]], 0)
    receiver.arrive("a", 1, 2, torch.zeros(2, 5))
    receiver.arrive("a", 0, parts, rows)
    with pytest.raises(ValueError, match=words):
        raise receiver.poll(0)["a"]  # type: ignore[misc]


def test_the_error_of_an_encoder_is_the_one_that_arrives() -> None:
    error, receiver = OSError("404"), Receiver(10)
    receiver.expect(bare("ii"), [[0]], 0)
    receiver.arrive("a", 0, 1, error)
    assert receiver.poll(0) == {"a": error}


def test_rows_that_do_not_fit_the_others_are_dropped() -> None:
    decode = DecodeSide(1)
    (ready,) = decode.expect(bare("ii."), 7, 0)
    mark = unpack(ready)[0]["decode"]
    said = {"word": "rows", "room": 7, "decode": mark, "prefill": "p"}
    for first, rows in ((0, torch.ones(1, 3)), (1, torch.ones(1, 4)), (1, torch.ones(1, 3).double()), (1, torch.ones(3))):
        decode.receive(pack({**said, "first": first}, [rows]))
    assert decode.held_bytes() == 12


def test_two_decodes_in_one_room_both_have_it_until_one_is_done() -> None:
    """The first may have died after it was ready; nobody can know that in time."""
    prefill, first, second = PrefillSide(10), DecodeSide(10), DecodeSide(10)
    request = bare("ii.")
    prefill.begin(request, 7, 0)
    for decode in (first, second):
        for ready in decode.expect(request, 7, 0):
            prefill.receive(ready)
    said = prefill.store(7, 0, torch.ones(3, 2)) + prefill.finish(7, 5, 0)
    assert first.abort(7)
    done = [answer for one in said for answer in second.receive(one)]
    assert isinstance(second.poll(0)[7], Handed)
    for one in done:
        prefill.receive(one)
    assert prefill.poll(0) == {7: None}


def test_what_is_heard_of_rooms_that_never_open_is_forgotten() -> None:
    prefill, decode = PrefillSide(10), DecodeSide(10)
    for ready in decode.expect(bare("ii"), 7, 0):
        prefill.receive(ready)
    prefill.poll(11)
    assert prefill._heard
    prefill.poll(22)
    assert not prefill._heard


def test_what_is_loaded_may_lie_elsewhere() -> None:
    """Rows of the shared cache and of the encoder are joined on the host."""
    items = [image(n, (4 * n, 4 * n + 2)) for n in range(3)]
    made = encode_part(
        items,
        lambda identity: encoded(items[1]) if identity == items[1].identity else None,
        lambda asked: list(map(encoded, asked)),
    )
    assert torch.equal(made, torch.cat(list(map(encoded, items))))


def test_a_decode_that_is_ready_before_the_first_poll_is_met() -> None:
    request = drawn("a", "..jj")
    prefill, decode = PrefillSide(5.0), DecodeSide(5.0)
    (ready,) = decode.expect(request, 0, 1000.0)
    prefill.receive(ready)
    prefill.poll(1000.0)
    prefill.begin(request, 0, 1000.1)
    assert prefill.store(0, 0, torch.zeros(4, 2))
