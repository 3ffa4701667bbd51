"""TRANSPORT: tensors of a device, to readers on other devices.

The devices are played (`conformance.world.devices`): a copy is done when somebody waits for it, or when the rule says so.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles.transport import described, described_all
from conformance.requirement import requirement
from conformance.suite.transport_bench import SIZE, ask, bench, deliver, told
from conformance.suite.transport_cases import bits, numbers
from conformance.suite.transport_machines import OnDevices, on_devices


def device_channel_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a channel for tensors of a device that has these, beside what each rule asks."""
    return ("open_device_channel", *(f"open_device_channel.{method}" for method in ("join", "send", *methods)))


def sent(on: OnDevices, *values: torch.Tensor, copies: int = 1) -> list[bytes]:
    """The packets of tensors that lie on the sender's device."""
    return list(on.channel.send([on.device.tensor(value) for value in values], copies))


def plain(value: Any) -> Any:
    """The values of a tensor, wherever it is."""
    return getattr(value, "values", value) if hasattr(value, "on_device") else value


def settled(on: OnDevices) -> None:
    """Let every stream run, and every reader notice it."""
    for device in (on.device, *on.devices):
        device.run()
    for reader in on.readers:
        told(reader, on.channel.send([None], 1)[0])


CHANNEL = device_channel_with()


@requirement(
    "TRANSPORT-70",
    needs=CHANNEL,
    cases={
        "bfloat16": bits(torch.bfloat16, 3, 4096),
        "bytes": numbers(1),
        "booleans": bits(torch.bool, 4096),
        "float8": bits(torch.float8_e4m3fn, 64, 64),
        "transposed": bits(torch.float32, 64, 96).t(),
        "no-dimension": torch.tensor(7.0),
        "empty": torch.empty(0, 4),
    },
    bugs=("cuda-ipc-rank0-duplication", "I02"),
)
def test_it_arrives_on_the_readers_device(engine: Engine, case: torch.Tensor) -> None:
    """What went by the device MUST arrive on each reader's own device, and whatever way it went, as it was."""
    with on_devices(engine, readers=2) as on:
        packet = sent(on, case)[0]
        for number, reader in enumerate(on.readers):
            [value] = reader.receive(packet)
            on.devices[number].run()
            expected = described(case)
            holds(described(value) in (expected, f"on device {number + 1}: {expected}"), f"{described(value)} for {expected}")


@requirement(
    "TRANSPORT-71",
    needs=device_channel_with("counts"),
    cases={"one": 1, "two": 2, "four": 4},
    bugs=("I02", "cuda-ipc-rank0-duplication"),
)
def test_the_senders_device_is_the_senders(engine: Engine, case: int) -> None:
    """Readers MUST NOT take memory, nor have a context, on the sender's device, however many there are."""
    with on_devices(engine, readers=case) as on:
        packet = sent(on, numbers(1, SIZE))[0]
        before = on.machine.used_bytes(0)
        received = [reader.receive(packet) for reader in on.readers]
        settled(on)
        equal(on.channel.counts()["cuda_ipc"], 1, "how many tensors went by the device")
        equal([on.machine.contexts(0), on.machine.used_bytes(0)], [1, before], "contexts and bytes on the sender's device")
        equal([value.on_device for [value] in received], [*range(1, case + 1)], "the devices of what arrived")


@requirement("TRANSPORT-72", needs=CHANNEL, cases={"one": 1, "three": 3}, bugs=("cuda-ipc-early-reuse-race", "I04"))
def test_a_place_waits_for_the_copies_out_of_it(engine: Engine, case: int) -> None:
    """A place on the device MUST NOT be written again before every reader's copy out of it is done, not merely asked for."""
    with on_devices(engine, readers=case, room=SIZE) as on:
        packet = sent(on, numbers(1, SIZE))[0]
        received = [reader.receive(packet)[0] for reader in on.readers]
        for number in range(2, 6):
            [told(reader, on.channel.send([None], 1)[0]) for reader in on.readers]
            sent(on, numbers(number, SIZE))
        on.device.run()
        for number, device in enumerate(on.devices):
            device.run()
            equal(described(plain(received[number])), described(numbers(1, SIZE)), f"what reader {number} copied late")


@requirement("TRANSPORT-73", needs=CHANNEL, cases={"one": 1, "three": 3}, bugs=("cuda-ipc-early-reuse-race",))
def test_a_packet_says_what_is_there(engine: Engine, case: int) -> None:
    """What is received MUST be what was sent, even where the sender's stream would have run after the reader's."""
    with on_devices(engine, readers=case) as on:
        packet = sent(on, numbers(1, SIZE), numbers(2, SIZE))[0]
        for number, reader in enumerate(on.readers):
            received = reader.receive(packet)
            on.devices[number].run()
            observed = described_all(map(plain, received))
            equal(observed, described_all([numbers(1, SIZE), numbers(2, SIZE)]), f"what reader {number} copied first")


@requirement(
    "TRANSPORT-74",
    needs=device_channel_with("counts"),
    cases={"larger-than-the-room": (SIZE, 2 * SIZE), "room-for-one": (SIZE, SIZE), "nearly": (2 * SIZE, SIZE + 256)},
    bugs=("cuda-ipc-fallback-no-d2h", "I03"),
)
def test_what_finds_no_room_on_the_device_goes_by_the_host(engine: Engine, case: tuple[int, int]) -> None:
    """What finds no room on the device MUST be moved to the host, and no further memory of the device be taken for it."""
    room, size = case
    with on_devices(engine, room=room) as on:
        on.device.run()
        before = on.machine.used_bytes(0)
        received = [on.readers[0].receive(sent(on, numbers(number, size))[0])[0] for number in range(5)]
        equal(on.machine.used_bytes(0), before, "the bytes taken on the sender's device")
        settled(on)
        equal(
            described_all(map(plain, received)),
            described_all([numbers(n, size) for n in range(5)]),
            "what arrived",
            where="list {}".format,
        )
        equal(sum(on.channel.counts().values()), 5, "how many were counted")


@requirement("TRANSPORT-75", needs=device_channel_with("counts"), cases={"one": 1, "three": 3}, bugs=("I04",))
def test_what_was_copied_makes_room(engine: Engine, case: int) -> None:
    """When the copies of all readers are done, their place MUST be used again: nothing sent in turn finds no room."""
    with on_devices(engine, readers=case, room=2 * SIZE) as on:
        for number in range(12):
            packet = sent(on, numbers(number, SIZE))[0]
            received = [reader.receive(packet)[0] for reader in on.readers]
            settled(on)
            observed = described_all(map(plain, received))
            equal(observed, [described(numbers(number, SIZE))] * case, f"what arrived, list {number}")
        equal(on.channel.counts()["cuda_ipc"], 12, "how many of 12 went by the device")


@requirement(
    "TRANSPORT-76",
    needs=device_channel_with("counts", "discard"),
    cases={
        "the-sender-takes-it-back": lambda on, packet: on.channel.discard(packet),
        "the-reader-does-without": lambda on, packet: on.readers[0].discard(packet),
        "the-reader-leaves": lambda on, packet: on.readers[0].close(),
    },
    bugs=("I04", "shm-prefix-covered-item"),
)
def test_what_nobody_copies_makes_room(engine: Engine, case: Callable[[OnDevices, bytes], None]) -> None:
    """What is taken back, skipped or left by its readers before it is copied MUST make room on the device."""
    with on_devices(engine, room=2 * SIZE) as on:
        case(on, sent(on, numbers(1, SIZE), numbers(2, SIZE))[0])
        sent(on, numbers(3, SIZE), numbers(4, SIZE))
        equal(on.channel.counts()["cuda_ipc"], 4, "how many of 4 went by the device")


@requirement(
    "TRANSPORT-77",
    needs=device_channel_with("counts"),
    cases={"before-it-copies": "lose", "while-it-copies": "hold"},
    bugs=("I04",),
)
def test_a_dead_reader_gives_its_place_on_the_device_back(engine: Engine, case: str) -> None:
    """The place of what a reader was to copy, or was copying, when it was killed MUST be used again."""
    with bench() as at, on_devices(engine, joined=0, room=2 * SIZE) as on:
        process = at.reader(on.channel, device=on.machine.device(1))
        ask(process, "join")
        deliver(process, sent(on, numbers(1, SIZE), numbers(2, SIZE))[0], case)
        process.kill()
        sent(on, numbers(3, SIZE), numbers(4, SIZE))
        equal(on.channel.counts()["cuda_ipc"], 4, "how many of 4 went by the device")


@requirement("TRANSPORT-78", needs=device_channel_with("counts"), cases={"one": 1, "both": 2}, bugs=("I03",))
def test_memory_that_cannot_be_opened_fails_one_packet(engine: Engine, case: int) -> None:
    """When a reader cannot open the sender's memory, it MUST say so with an error, and be good for what comes another way.

    What it could not receive is done with: its place is used again when every other reader has it.
    """
    with on_devices(engine, readers=2, room=SIZE) as on:
        for device in on.devices[:case]:
            device.can_open = False
        packet = sent(on, numbers(1, SIZE))[0]
        for reader in on.readers[:case]:
            refuses(partial(reader.receive, packet), "memory that cannot be opened")
        [reader.receive(packet) for reader in on.readers[case:]]
        settled(on)
        sent(on, numbers(3, SIZE))
        equal(on.channel.counts()["cuda_ipc"], 2, "how many of 2 went by the device")
        last = on.channel.send([numbers(2)], 1)[0]
        equal([told(reader, last) for reader in on.readers], [described_all([numbers(2)])] * 2, "what comes another way")


@requirement("TRANSPORT-79", needs=CHANNEL, cases={"received": 1, "copies": 2}, bugs=("cuda-ipc-early-reuse-race", "T02"))
def test_each_copy_on_the_device_is_good_once(engine: Engine, case: int) -> None:
    """Each packet of one list MUST be good for one copy by each reader, and one that was received never for other data."""
    with on_devices(engine, room=SIZE) as on:
        packets = sent(on, numbers(1, SIZE), copies=case)
        received = [on.readers[0].receive(packet)[0] for packet in packets]
        settled(on)
        equal(described_all(map(plain, received)), [described(numbers(1, SIZE))] * case, "what each copy gave")
        later = sent(on, numbers(2, SIZE))[0]
        again = told(on.readers[0], packets[0])
        holds(described(numbers(2, SIZE)) not in str(again), "a packet that was received gave what lies in its place now")
        on.readers[0].discard(later)
