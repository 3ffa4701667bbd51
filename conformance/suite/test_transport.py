"""TRANSPORT: tensors between processes, bit for bit, and the room that they take.

What is received is described in the reader's process, and compared in the words of `conformance.oracles.transport`.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles.transport import described_all
from conformance.oracles.transport_lives import Life, PlainChannel
from conformance.requirement import SHOULD, requirement
from conformance.suite import transport_cases as cases
from conformance.suite.transport_bench import (
    LARGE,
    ROOM,
    ask,
    at_most,
    bench,
    bounded,
    channel_with,
    fitted,
    inside,
    play,
    several,
    told,
    ways,
)
from conformance.suite.transport_cases import Wrapped, numbers
from reference.items import Item, Modality

CHANNEL = channel_with()


def arrives(engine: Engine, values: Sequence[Any]) -> None:
    """In another process each value is what it was, whatever way it goes."""
    with bench() as on:
        for transports in ways(engine):
            channel = on.open(engine, *transports)
            observed = ask(on.reader(channel), channel.send(values, 1)[0])
            equal(observed, described_all(values), f"what arrived by {' or '.join(transports)}", where="value {}".format)


@requirement("TRANSPORT-30", needs=CHANNEL, cases=cases.DTYPES)
def test_every_dtype_arrives_bit_for_bit(engine: Engine, case: Sequence[Any]) -> None:
    """Whatever its dtype, what is received MUST have the dtype, the shape and the bits of what was sent, NaNs included."""
    arrives(engine, case)


@requirement("TRANSPORT-31", needs=CHANNEL, cases=cases.LAYOUTS)
def test_every_layout_arrives(engine: Engine, case: Sequence[Any]) -> None:
    """Whatever the strides, and with no dimension or no element, the values that are received MUST be those that were sent."""
    arrives(engine, case)


@requirement("TRANSPORT-32", needs=CHANNEL, cases=cases.LISTS, bugs=("shm-prefix-covered-item", "H04"))
def test_lists_keep_their_order(engine: Engine, case: Sequence[Any]) -> None:
    """A list MUST arrive in its order and length: None as None, arrays as arrays, whichever way each value goes."""
    arrives(engine, case)


@requirement("TRANSPORT-33", needs=CHANNEL, cases=cases.WRAPPED, bugs=("H04", "cuda-ipc-split-hash-proxy"))
def test_a_packet_is_a_part_of_another(engine: Engine, case: Wrapped) -> None:
    """A packet of one value MUST stand for this value where it is sent as a part of a list."""
    with bench() as on:
        channel = on.open(engine)
        reader = on.reader(channel)
        mixed = [channel.send([v], 1)[0] if n in case.places else v for n, v in enumerate(case.values)]
        for packet in channel.send(mixed, at_most(engine.traits.wrapped_copies, case.copies)):
            equal(ask(reader, packet), described_all(case.values), "what arrived", where="value {}".format)


@requirement("TRANSPORT-34", needs=CHANNEL, cases={"one": 1, "two": 2, "four": 4}, bugs=("X02",))
def test_each_reader_receives_it(engine: Engine, case: int) -> None:
    """Each reader of a channel MUST receive what was sent, whoever was first, and also who joins when others are done."""
    with bench() as on:
        count = several(engine, case)
        channel = on.open(engine, readers=count)
        packet = channel.send([numbers(1), None, numbers(2)], 1)[0]
        observed = [ask(on.reader(channel, number), packet) for number in range(count)]
        equal(observed, [described_all([numbers(1), None, numbers(2)])] * count, "what arrived", where="reader {}".format)


@requirement(
    "TRANSPORT-35",
    needs=CHANNEL,
    cases={"in-order": (0, 1), "the-other-way-round": (1, 0), "of-three": (2, 0, 1)},
    bugs=("T02", "Q05", "shm-pointer-reuse-parallel-sampling"),
)
def test_every_copy_can_be_received(engine: Engine, case: tuple[int, ...]) -> None:
    """Each of the packets of one list MUST be good for one reading by each reader, in any order and in any process.

    So it is sent for the requests that share a prompt (parallel sampling, n > 1).
    """
    with bench() as on:
        readers = several(engine, 2)
        channel = on.open(engine, readers=readers)
        packets = channel.send([numbers(1), numbers(2)], len(case))
        joined = [on.reader(channel, number) for number in range(readers)]
        observed = [ask(reader, packets[number]) for number in case for reader in joined]
        equal(observed, [described_all([numbers(1), numbers(2)])] * len(observed), "what arrived", where="reading {}".format)


@requirement("TRANSPORT-36", needs=CHANNEL, cases=cases.REWRITES, bugs=("Q05",))
def test_what_was_sent_is_a_snapshot(engine: Engine, case: tuple[Callable[[], Any], Callable[[Any], Any]]) -> None:
    """Sending MUST NOT change the list or the tensors, and what happens to them afterwards MUST NOT change what arrives."""
    make, rewrite = case
    with bench() as on:
        channel, values = on.open(engine), make()
        packet = channel.send(values, 1)[0]
        equal(described_all(values), described_all(make()), "the caller's values after sending", where="value {}".format)
        rewrite(values)
        equal(ask(on.reader(channel), packet), described_all(make()), "what arrived", where="value {}".format)


@requirement("TRANSPORT-37", needs=CHANNEL, cases={"large": 1 << 17, "middle": 8192, "small": 64})
def test_what_is_received_belongs_to_its_reader(engine: Engine, case: int) -> None:
    """What one reader writes into what it received MUST NOT be seen by another reader, nor in another copy."""
    with inside(engine, readers=several(engine, 2)) as (channel, readers):
        packets = channel.send([numbers(1, case)], 2)
        for reader in readers:
            reader.receive(packets[0])[0].zero_()
        observed = [told(reader, packets[1]) for reader in readers]
        equal(observed, [described_all([numbers(1, case)])] * len(readers), "the copy that nobody wrote to")


@requirement(
    "TRANSPORT-38", needs=(*CHANNEL, "identify"), cases=cases.IDENTITIES, bugs=("H04", "cuda-ipc-split-hash-proxy", "I02")
)
def test_the_way_is_no_part_of_the_identity(engine: Engine, case: list[Any]) -> None:
    """An item MUST have the identity that it had before it was sent, and so MUST what is cut from it, by whatever way."""

    def identities(values: Sequence[Any]) -> list[bytes]:
        parts = [*values, *(value[: len(value) // 2] for value in values)]
        return [engine.identify(Item(modality=Modality.IMAGE, feature=part)) for part in [list(values), *parts]]

    for transports in ways(engine):
        with inside(engine, *transports) as (channel, [reader]):
            received = reader.receive(channel.send(case, 1)[0])
            equal(identities(received), identities(case), f"identities of what arrived by {' or '.join(transports)}")


@requirement("TRANSPORT-39", needs=CHANNEL, cases={"one": 1, "two": 2, "four": 4}, bugs=("I04", "T04"))
def test_what_is_done_with_makes_room(engine: Engine, case: int) -> None:
    """What all readers have received and dropped MUST make room: in bounded memory any number can be sent in turn."""
    for kind in bounded(engine):
        with inside(engine, kind, readers=several(engine, case)) as (channel, readers):
            for number in range(40):
                packet = channel.send([numbers(number, ROOM // 8)], 1)[0]
                observed = [told(reader, packet) for reader in readers]
                equal(observed, [described_all([numbers(number, ROOM // 8)])] * len(readers), f"what arrived, list {number}")


@requirement("TRANSPORT-40", needs=CHANNEL, cases={"received": True, "on-its-way": False}, bugs=("shm-stale-address", "I04"))
def test_nothing_is_written_over(engine: Engine, case: bool) -> None:
    """What a living reader has not received, or still holds, MUST NOT be written over, however much is sent meanwhile."""
    with inside(engine, room=ROOM) as (channel, [reader]):
        packet = channel.send([numbers(99, ROOM // 4)], 1)[0]
        held = reader.receive(packet) if case else None
        for number in range(12):
            channel.send([numbers(number, ROOM // 4)], 1)
        kept = held if held is not None else reader.receive(packet)
        equal(described_all(kept), described_all([numbers(99, ROOM // 4)]), "what was sent before 12 others")


@requirement(
    "TRANSPORT-41",
    needs=channel_with("counts"),
    cases={
        "none-fits": (1 << 16, 4),
        "some-fit": (1 << 19, 4),
        "all-fit": (1 << 21, 4),
        "one-larger-than-the-room": (1 << 17, 1),
    },
    bugs=("cuda-ipc-fallback-no-d2h", "I03"),
)
def test_what_finds_no_room_goes_another_way(engine: Engine, case: tuple[int, int]) -> None:
    """What finds no room in shared memory MUST go inline and arrive as it was, and counts MUST say for each value which way."""
    room, count = case
    with inside(engine, room=room) as (channel, [reader]):
        values = [numbers(n, 1 << 18) for n in range(count)]
        observed = reader.receive(channel.send(values, 1)[0])
        by = channel.counts()
        equal(described_all(observed), described_all(values), "what arrived", where="value {}".format)
    holds(sum(by.values()) == count, f"{count} values went, and {by} were counted")
    for _ in bounded(engine):
        holds(by["shared_memory"] <= room >> 18, f"{by['shared_memory']} of 256 KiB went by shared memory of {room} bytes")


@requirement("TRANSPORT-42", needs=channel_with("held_bytes"), cases={"the-first": 0, "the-last": 3}, bugs=("T04",))
def test_what_finds_no_way_is_refused(engine: Engine, case: int) -> None:
    """A list of which a value finds no room by any way MUST be refused with an error, and nothing of it be held."""
    values = [numbers(n) for n in range(3)]
    values.insert(case, numbers(9, 2 * ROOM))
    for kind in bounded(engine):
        with inside(engine, kind) as (channel, [reader]):
            refuses(partial(channel.send, values, 1), f"{2 * ROOM} bytes for a room of {ROOM}")
            equal(channel.held_bytes(), 0, "the bytes held after a refusal")
            equal(told(reader, channel.send([numbers(7)], 1)[0]), described_all([numbers(7)]), "what is sent afterwards")


@requirement(
    "TRANSPORT-43",
    needs=channel_with("discard"),
    cases=cases.LIVES,
    bugs=("shm-prefix-covered-item", "I04", "shm-pointer-reuse-parallel-sampling"),
)
def test_whatever_becomes_of_packets(engine: Engine, case: Life) -> None:
    """Whatever is received, dropped, skipped, recalled or left in whatever order, each packet MUST give its list or an error.

    A packet that was recalled gives an error. One that its reader has received, or has left without, gives either.
    """
    life = fitted(engine, case)
    with inside(engine, readers=life.readers, room=LARGE) as (channel, readers):
        observed, expected, _ = play(channel, readers, life)
    equal(observed, expected, "what was received", where=life.where)


@requirement(
    "TRANSPORT-44",
    needs=channel_with("discard", "held_bytes"),
    cases=cases.LIVES,
    bugs=("shm-prefix-covered-item", "I04", "shm-pointer-reuse-parallel-sampling", "T04"),
)
def test_what_is_held_is_what_may_be_read(engine: Engine, case: Life) -> None:
    """The bytes held MUST be those of the lists that somebody may still receive, each list once, and no others but those
    that somebody has received and not dropped.
    """
    life = fitted(engine, case)
    plain = PlainChannel(life.readers)
    bounds = [(plain.take(event), plain.held_bytes())[1] for event in life.events]
    for kind in bounded(engine):
        with inside(engine, kind, readers=life.readers, room=LARGE) as (channel, readers):
            _, _, observed = play(channel, readers, life, channel.held_bytes)
        wrong = [f"{life.where(n)}: {held}" for n, held in enumerate(observed) if not bounds[n][0] <= held <= bounds[n][1]]
        equal(wrong, [], "the events after which more or fewer bytes are held")


@requirement(
    "TRANSPORT-45", level=SHOULD, needs=CHANNEL, cases={"a-lock": Lock(), "a-generator": iter(()), "a-file": sys.stderr}
)
def test_other_values_are_refused(engine: Engine, case: Any) -> None:
    """What cannot travel SHOULD be refused by the sender, and the channel go on."""
    with inside(engine) as (channel, [reader]):
        refuses(lambda: channel.send([numbers(1), case], 1), f"a {type(case).__name__}")
        equal(told(reader, channel.send([numbers(2)], 1)[0]), described_all([numbers(2)]), "what is sent afterwards")


@requirement(
    "TRANSPORT-46",
    level=SHOULD,
    needs="open_channel",
    cases={
        "no-way": ((), 1, ROOM),
        "an-unknown-way": (("pigeon",), 1, ROOM),
        "no-reader": (("inline",), 0, ROOM),
        "no-byte": (("inline",), 1, 0),
    },
)
def test_channels_have_bounds(engine: Engine, case: tuple[Any, int, int]) -> None:
    """A channel without a way, without a reader or without a byte SHOULD be refused."""
    for _ in bounded(engine):
        refuses(lambda: engine.open_channel(*case), f"{case[0]}, {case[1]} readers, {case[2]} bytes")
