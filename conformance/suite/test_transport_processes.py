"""TRANSPORT: processes that come late, leave and are killed, and what they leave behind.

What is left is looked for in the host's shared memory itself, by `conformance.oracles.transport.Watch`.
"""

from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles.transport import described_all
from conformance.requirement import requirement
from conformance.suite.transport_bench import SIZE, ask, bench, bounded, channel_with, deliver, fate, several, told
from conformance.suite.transport_cases import numbers
from conformance.suite.transport_processes import Pipe

CHANNEL = channel_with()
CLOSES = channel_with("close")


@requirement("TRANSPORT-53", needs=CLOSES, cases={"unused": 0, "sent-and-not-received": 3}, bugs=("shm-name-conflict-orphan",))
def test_a_closed_channel_leaves_nothing(engine: Engine, case: int) -> None:
    """When a channel is closed, whatever was on its way, nothing of it MUST be left in shared memory, nor by closing twice."""
    with bench() as on:
        channel = on.open(engine, readers=several(engine, 2))
        channel.join(0, None)
        for number in range(case):
            channel.send([on.watch.tensor(SIZE, number)], 1)
        channel.close()
        channel.close()
        equal(on.watch.left(), [], "what is left in shared memory")


@requirement("TRANSPORT-54", needs=CLOSES, cases={"large": SIZE, "middle": 8192, "small": 64})
def test_what_was_received_outlives_the_channel(engine: Engine, case: int) -> None:
    """What was received MUST stay as it is when reader and channel are closed and others are opened."""
    with bench() as on:
        channel = on.open(engine)
        reader = channel.join(0, None)
        received = reader.receive(channel.send([numbers(1, case)], 1)[0])
        reader.close()
        channel.close()
        other = on.open(engine)
        other.send([numbers(2, case)], 1)
        equal(described_all(received), described_all([numbers(1, case)]), "what was received before")


@requirement(
    "TRANSPORT-55",
    needs=CLOSES,
    cases={
        "the-reader-is-there": ("join", "send", "kill", "receive"),
        "the-reader-comes-late": ("send", "kill", "join", "receive"),
        "there-was-a-start": ("join", "send", "kill", "start", "receive"),
        "late-and-after-a-start": ("send", "kill", "start", "join", "receive"),
    },
    bugs=("X02", "T04"),
)
def test_a_dead_sender_is_no_reason_to_hang(engine: Engine, case: tuple[str, ...]) -> None:
    """A packet whose sender was killed MUST give what was sent or an error, in time and with nothing else."""
    with bench() as on:
        observed = fate(on, engine, case)[-1]
        holds(observed in (described_all([on.watch.tensor(SIZE)]), ["refused"]), f"what was received is {observed}")


@requirement(
    "TRANSPORT-56",
    needs=CLOSES,
    cases={
        "at-once": ("join", "send", "hold", "kill", "describe"),
        "after-a-start": ("join", "send", "hold", "kill", "start", "describe"),
    },
)
def test_what_was_received_outlives_its_sender(engine: Engine, case: tuple[str, ...]) -> None:
    """What was received MUST stay as it is when its sender is killed, and when what that has left is removed."""
    with bench() as on:
        observed = fate(on, engine, case)[-1]
        equal(observed, described_all([on.watch.tensor(SIZE)]), "what was received before the sender was killed")


@requirement(
    "TRANSPORT-57",
    needs=CLOSES,
    cases={
        "nothing-was-sent": ("kill",),
        "not-received": ("join", "send", "send", "kill"),
        "received": ("join", "send", "receive", "kill"),
        "held-by-a-reader": ("join", "send", "hold", "send", "kill"),
        "the-reader-was-killed-before": ("join", "send", "send", "kill-reader", "kill"),
    },
    bugs=("T04", "shm-name-conflict-orphan"),
)
def test_the_next_start_removes_what_the_dead_have_left(engine: Engine, case: tuple[str, ...]) -> None:
    """When a sender was killed and another process has opened a channel and closed it, nothing MUST be left behind."""
    with bench() as on:
        fate(on, engine, (*case, "start"))
        equal(on.watch.left(), [], "what is left in shared memory")


@requirement(
    "TRANSPORT-58",
    needs=CLOSES,
    cases={"another-starts": (), "another-was-killed": ("join", "send", "kill"), "several": ("send", "kill", "start")},
    bugs=("shm-name-conflict-orphan", "T04"),
)
def test_the_living_are_left_alone(engine: Engine, case: tuple[str, ...]) -> None:
    """Whoever starts, ends or is killed on the same host, the channels of living processes MUST go on as if alone."""
    with bench() as on:
        channel = on.open(engine)
        packet = channel.send([numbers(1, SIZE)], 1)[0]
        fate(on, engine, (*case, "start"))
        other = on.open(engine)
        later = other.send([numbers(2, SIZE)], 1)[0]
        reader = on.reader(channel)
        equal(ask(reader, packet), described_all([numbers(1, SIZE)]), "what was sent before another one started")
        equal(ask(on.reader(other), later), described_all([numbers(2, SIZE)]), "what another channel sends")
        other.close()
        last = channel.send([numbers(3, SIZE)], 1)[0]
        equal(ask(reader, last), described_all([numbers(3, SIZE)]), "what is sent when another channel was closed")


@requirement(
    "TRANSPORT-59",
    needs=CHANNEL,
    cases={
        "it-has-read": ("receive",),
        "it-holds": ("hold", "hold"),
        "it-was-to-read": ("lose", "lose"),
        "both": ("hold", "lose"),
    },
    bugs=("I04", "T04", "shm-stale-address"),
)
def test_a_dead_reader_gives_back(engine: Engine, case: tuple[str, ...]) -> None:
    """What a reader that was killed has held or was to receive MUST be room again, as what is sent to it since.

    Whoever is this reader next receives what is sent from then on.
    """
    for kind in bounded(engine):
        with bench() as on:
            channel = on.open(engine, kind)
            first, second = on.reader(channel), on.reader(channel)
            ask(first, "join")
            for how in case:
                deliver(first, channel.send([numbers(1, SIZE)], 1)[0], how)
            first.kill()
            for number in range(12):
                channel.send([numbers(number, SIZE)], 1)
            ask(second, "join")
            equal(
                ask(second, channel.send([numbers(2, SIZE)], 1)[0]), described_all([numbers(2, SIZE)]), "what the next receives"
            )


@requirement(
    "TRANSPORT-60", needs=CHANNEL, cases={"it-holds": "hold", "it-was-to-read": "lose"}, bugs=("X02", "shm-stale-address")
)
def test_a_dead_reader_concerns_nobody_else(engine: Engine, case: str) -> None:
    """When one reader is killed, every other one MUST receive what was sent before and since, however much it is."""
    with bench() as on:
        channel = on.open(engine, readers=several(engine, 2))
        first, *others = [on.reader(channel, number) for number in range(several(engine, 2))]
        [ask(reader, "join") for reader in (first, *others)]
        packets = [channel.send([numbers(0, SIZE)], 1)[0]]
        deliver(first, packets[0], case)
        first.kill()
        packets += [channel.send([numbers(number, SIZE)], 1)[0] for number in range(1, 4)]
        for number, packet in enumerate(packets):
            observed = [ask(reader, packet) for reader in others]
            equal(observed, [described_all([numbers(number, SIZE)])] * len(others), f"what arrived, list {number}")


@requirement("TRANSPORT-61", needs=CHANNEL, cases={"large": SIZE, "middle": 8192})
def test_a_fork_gives_nothing_back(engine: Engine, case: int) -> None:
    """When a fork of a reader drops what it has inherited, and ends, what the reader itself holds MUST stay as it is."""
    with bench() as on:
        channel = on.open(engine)
        reader = channel.join(0, None)
        held = reader.receive(channel.send([numbers(1, case)], 1)[0])

        def drops(pipe: Pipe) -> None:
            held.clear()
            pipe.say("dropped")

        on.process(drops).hear()
        for number in range(12):
            told(reader, channel.send([numbers(number, SIZE)], 1)[0])
        equal(described_all(held), described_all([numbers(1, case)]), "what the reader holds")
