"""A bench for channels: readers and senders in processes of their own, which may be killed at any moment."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.transport import Watch, described, described_all, watch
from conformance.oracles.transport_lives import Life, PlainChannel, drawn
from conformance.protocol.transport import Channel, Device, Reader
from conformance.suite.transport_processes import Pipe, Process, fork, line
from conformance.witness import EngineRaised

ROOM = 1 << 20
"""The room in shared memory that channels have where it does not matter."""

LARGE = 16 * ROOM
"""Room for whatever a script sends."""

SIZE = ROOM // 4
"""The bytes of what is sent where it does not matter."""


class Bench:
    """Processes, and an eye on shared memory."""

    def __init__(self, watching: Watch) -> None:
        self.watch = watching
        self._processes: list[Process] = []
        self._channels: list[Channel] = []

    def process(self, body: Callable[[Pipe], Any], name: str = "another process") -> Process:
        """Begin a process."""
        between = line()
        return self._watched(Process(name, fork(body, between), Pipe(*between.ours)))

    def reader(self, channel: Channel, number: int = 0, device: Device | None = None) -> Process:
        """A process that is a reader and does what `reads` says."""
        return self.process(lambda pipe: reads(pipe, channel, number, device), f"reader {number}")

    def family(self, engine: Engine) -> tuple[Process, Process]:
        """A process that opens a channel, and a fork of it that may read: a sender that can be killed.

        The sender answers each number with the packet of a list, that of `Watch.tensor` with this seed.
        """
        between = line()

        def sends(pipe: Pipe) -> None:
            channel = engine.open_channel(usable(engine), 1, ROOM)
            pipe.say(fork(lambda inner: reads(inner, channel, 0), between))
            while True:
                pipe.say(channel.send([self.watch.tensor(SIZE, pipe.hear())], 1)[0])

        sender = self.process(sends, "the sender")
        between.let_go()
        return sender, self._watched(Process("the reader", sender.hear(), Pipe(*between.ours), is_child=False))

    def start(self, engine: Engine) -> None:
        """Let another process open a channel and close it, as after a restart."""

        def starts(pipe: Pipe) -> None:
            engine.open_channel(usable(engine), 1, ROOM).close()
            pipe.say("started")

        self.process(starts, "the next start").hear()

    def open(self, engine: Engine, *transports: str, readers: int = 1, room: int = ROOM) -> Channel:
        """A channel, closed in the end."""
        channel = engine.open_channel(transports or usable(engine), readers, room)
        self._channels.append(channel)
        return channel

    def close(self) -> None:
        """End all processes and close all channels."""
        for process in self._processes:
            process.close()
        for channel in self._channels:
            with suppress(EngineRaised):  # how it closes is a matter of its own rule
                channel.close()

    def _watched(self, process: Process) -> Process:
        self._processes.append(process)
        self.watch.processes.add(process.pid)
        return process


def reads(pipe: Pipe, channel: Channel, number: int, device: Device | None = None) -> None:
    """The life of a reader: it does what it is told, and says what came of it.

    "join": become a reader. "hold": receive the next packet, and keep what was in it. "describe": say what that is now.
    Whatever else is a packet: receive it, and drop what was in it. It joins with the first packet at the latest.
    """
    reader: Reader | None = None
    held: list[Any] = []
    while True:
        word = pipe.hear()
        if word == "describe":
            pipe.say(described_all(held))
            continue
        for joined in [] if reader else unless_refused(lambda: channel.join(number, device), "joining"):
            reader = joined
        if word == "hold" and reader:
            held += reader.receive(pipe.hear())
        match word:
            case bytes():
                pipe.say(told(reader, word) if reader else ["refused"])
            case _:
                pipe.say(word if reader else "refused")


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench; in the end no process of it lives, and nothing of it is in shared memory."""
    with watch() as watching:
        made = Bench(watching)
        try:
            yield made
        finally:
            made.close()


def usable(engine: Engine) -> tuple[str, ...]:
    """The transports for tensors of the host that the engine has."""
    return tuple(kind for kind in engine.traits.transports if kind != "cuda_ipc")


def several(engine: Engine, readers: int) -> int:
    """So many readers, or as many as a channel of the engine may have."""
    return at_most(engine.traits.channel_readers, readers)


def at_most(most: int | None, count: int) -> int:
    """So many, or as many as there may be."""
    return count if most is None else min(count, most)


def told(reader: Reader, packet: bytes) -> list[str]:
    """What a reader receives and drops, in words; "refused" when it refuses the packet with an error that was meant."""
    for values in unless_refused(lambda: reader.receive(packet), "a packet"):
        words = described_all(values)
        values.clear()  # the witness remembers the list, and would keep what is in it
        return words
    return ["refused"]


def ask(process: Process, value: Any) -> Any:
    """Say something to a process and hear what it says then."""
    process.say(value)
    return process.hear()


def refuses_what_is_spoilt(engine: Engine, reader: Reader, packet: bytes, true: bytes, sent: Sequence[Any]) -> None:
    """A packet that is not as it was sent is refused, and the true one is good afterwards.

    Where packets are not signed, either may be answered with what was sent, or refused: who knows which is which.
    """
    if engine.traits.signed_packets:
        refuses(lambda: reader.receive(packet), "a packet that is not as it was sent")
        equal(told(reader, true), described_all(sent), "the true packet")
    for one in (packet, true) if not engine.traits.signed_packets else ():
        observed = told(reader, one)
        holds(observed in (["refused"], described_all(sent)), f"a packet that is not as it was sent gave {observed}")


def channel_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a channel that has these, beside what every rule asks."""
    return ("open_channel", *(f"open_channel.{method}" for method in ("join", "send", *methods)))


def ways(engine: Engine) -> list[tuple[str, ...]]:
    """The transports of the host that are tried by themselves, the faster ones with inline to fall back to."""
    return [tuple(dict.fromkeys((kind, "inline"))) for kind in usable(engine)]


@contextmanager
def inside(engine: Engine, *transports: str, readers: int = 1, room: int = ROOM) -> Iterator[tuple[Channel, list[Reader]]]:
    """A channel and its readers, all in this process, for rules to which it makes no difference."""
    with bench() as on:
        channel = on.open(engine, *transports, readers=readers, room=room)
        joined = [channel.join(number, None) for number in range(readers)]
        try:
            yield channel, joined
        finally:
            for reader in joined:
                with suppress(EngineRaised):
                    reader.close()


def bounded(engine: Engine) -> list[str]:
    """The transports for tensors of the host that have room for so much and no more."""
    return [kind for kind in usable(engine) if kind != "inline" and engine.traits.bounded_channels]


def fitted(engine: Engine, given: Life) -> Life:
    """A life without the readers that a channel of the engine cannot have."""
    readers = several(engine, given.readers)
    is_there = {event: event.split()[0] in ("send", "recall") or int(event.split()[1]) < readers for event in given.events}
    return Life(readers, tuple(event for event in given.events if is_there[event]))


def play(
    channel: Channel, readers: list[Reader], given: Life, after: Callable[[], Any] = lambda: None
) -> tuple[list[str], list[str], list[Any]]:
    """What each event gave, what it should have given, and what `after` says then; last what all hold in the end."""
    plain = PlainChannel(given.readers)
    packets: list[bytes] = []
    observed: list[str] = []
    expected: list[str] = []
    said: list[Any] = []
    has: dict[tuple[int, int], list[Any]] = {}
    for event in given.events:
        expected.append(plain.take(event))
        observed.append(_take(channel, readers, packets, has, event.split()))
        if expected[-1] == "either":  # received before: it may be refused, or give the same again
            letters = plain.packets[int(event.split()[2])].letters
            observed[-1] = "either" if observed[-1] in (letters, "refused") else observed[-1]
        said.append(after())
    still = {key: "".join(map(_letter, values)) for key, values in has.items()}
    observed.append(f"in the end {still}")
    expected.append(f"in the end { {key: plain.packets[key[1]].letters for key in still} }")
    return observed, expected, said


def _take(
    channel: Channel, readers: list[Reader], packets: list[bytes], has: dict[tuple[int, int], list[Any]], words: list[str]
) -> str:
    numbers = [int(word) for word in words[1:] if word.isdigit()]
    match words[0]:
        case "send":
            packets += channel.send([drawn(letter) for letter in words[1]], *(numbers or [1]))
        case "recall":
            channel.discard(packets[numbers[0]])
        case "leave":
            readers[numbers[0]].close()
        case "join":
            readers[numbers[0]] = channel.join(numbers[0], None)
        case "skip":
            readers[numbers[0]].discard(packets[numbers[1]])
        case "drop":
            has.pop((numbers[0], numbers[1]), []).clear()
        case "receive":
            reader, packet = readers[numbers[0]], packets[numbers[1]]
            for values in unless_refused(lambda: reader.receive(packet), "a packet"):
                has.setdefault((numbers[0], numbers[1]), values)
                return "".join(_letter(value) for value in values)
            return "refused"
    return ""


def _letter(value: Any) -> str:
    letter = chr(int(value[0]) % 128) if isinstance(value, torch.Tensor) and value.numel() else "?"
    return letter if described(value) == described(drawn(letter)) else f"({described(value)})"


def fate(on: Bench, engine: Engine, steps: Sequence[str]) -> list[Any]:
    """What each step of a sender and its reader gave.

    "send": a list. "join", "describe": told to the reader. "receive", "hold": the list that was sent last. "kill",
    "kill-reader". "start": another process opens a channel and closes it.
    """
    sender, reader = on.family(engine)
    packets: list[bytes] = []
    gave: list[Any] = []
    for step in steps:
        match step:
            case "send":
                packets.append(ask(sender, 0))
            case "kill":
                sender.kill()
            case "kill-reader":
                reader.kill()
            case "start":
                on.start(engine)
            case "hold" | "receive":
                gave.append(deliver(reader, packets[-1], step))
            case word:
                gave.append(ask(reader, word))
    return gave


def deliver(reader: Process, packet: bytes, how: str) -> Any:
    """Hand a packet to a reader, to "hold" or to "receive" what is in it; or keep it ("lose"). What the reader says."""
    if how == "lose":
        return "lost"
    if how == "hold":
        reader.say("hold")
    return ask(reader, packet)
