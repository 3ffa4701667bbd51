"""TRANSPORT: packets that are not what a sender sent, or not any more."""

from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles.transport import described_all
from conformance.requirement import requirement
from conformance.suite import transport_cases as cases
from conformance.suite.transport_bench import ROOM, channel_with, inside, refuses_what_is_spoilt, several, told
from conformance.suite.transport_cases import Damage, numbers

CHANNEL = channel_with()


@requirement("TRANSPORT-47", needs=CHANNEL, cases=cases.FLIPS)
def test_a_flipped_bit_is_noticed(engine: Engine, case: Damage) -> None:
    """A packet with one bit changed MUST NOT give other data: it is refused, and the true one is good afterwards."""
    with inside(engine) as (channel, [reader]):
        channel.send([numbers(1)], 1)
        packet = channel.send([numbers(2), None], 1)[0]
        refuses_what_is_spoilt(engine, reader, case.spoil(packet), packet, [numbers(2), None])


@requirement("TRANSPORT-48", needs=CHANNEL, cases=cases.DAMAGES)
def test_what_is_no_packet_is_refused(engine: Engine, case: Damage) -> None:
    """What is cut off, made up or too long MUST be refused with a clear error, and the true packet be good afterwards."""
    with inside(engine) as (channel, [reader]):
        packet = channel.send([numbers(1)], 1)[0]
        refuses_what_is_spoilt(engine, reader, case.spoil(packet), packet, [numbers(1)])


@requirement("TRANSPORT-49", needs=CHANNEL, cases={"alike": True, "other-lists-before": False})
def test_packets_are_good_for_one_channel(engine: Engine, case: bool) -> None:
    """A packet of another channel MUST NOT give what lies in the same place of this one."""
    with inside(engine) as (channel, [reader]), inside(engine) as (other, [_]):
        for number in range(0 if case else 3):
            channel.send([numbers(number)], 1)
        own = channel.send([numbers(7)], 1)[0]
        observed = told(reader, other.send([numbers(8)], 1)[0])
        holds(observed in (["refused"], described_all([numbers(8)])), f"another channel's packet gave {observed}")
        equal(told(reader, own), described_all([numbers(7)]), "the channel's own packet")


@requirement(
    "TRANSPORT-50",
    needs=CHANNEL,
    cases={"at-once": 0, "when-its-place-is-taken-again": 1, "much-later": 12},
    bugs=("shm-stale-address", "cuda-ipc-early-reuse-race"),
)
def test_a_packet_is_never_good_for_other_data(engine: Engine, case: int) -> None:
    """A packet that was received before MUST be refused, or give the same again, whatever lies in its place by then."""
    with inside(engine, room=ROOM) as (channel, [reader]):
        packet = channel.send([numbers(1, ROOM // 2)], 1)[0]
        equal(told(reader, packet), described_all([numbers(1, ROOM // 2)]), "what arrived at first")
        for number in range(2, 2 + case):
            told(reader, channel.send([numbers(number, ROOM // 2)], 1)[0])
        again = told(reader, packet)
    holds(again in (["refused"], described_all([numbers(1, ROOM // 2)])), f"a packet that was received gave {again} later")


@requirement("TRANSPORT-51", needs=channel_with("discard"), cases={"at-once": 0, "when-its-place-is-taken-again": 1})
def test_a_recalled_packet_is_never_good_for_other_data(engine: Engine, case: int) -> None:
    """A packet that was taken back MUST be refused, whatever lies in its place by then."""
    with inside(engine, room=ROOM) as (channel, [reader]):
        packet = channel.send([numbers(1, ROOM // 2)], 1)[0]
        channel.discard(packet)
        for number in range(2, 2 + case):
            channel.send([numbers(number, ROOM // 2)], 1)
        equal(told(reader, packet), ["refused"], "what a packet that was taken back gave")


@requirement("TRANSPORT-52", needs=channel_with("close"), cases={"one": 1, "two": 2})
def test_a_packet_dies_with_its_channel(engine: Engine, case: int) -> None:
    """A packet of a channel that was closed MUST NOT be good for data of one that was opened later."""
    with inside(engine, readers=several(engine, case)) as (old, _):
        packet = old.send([numbers(1)], 1)[0]
        old.close()
        with inside(engine, readers=several(engine, case)) as (new, readers):
            new.send([numbers(2)], 1)
            observed = [told(reader, packet) for reader in readers]
    holds(described_all([numbers(2)]) not in observed, "a packet of a closed channel gave what another one has sent")
