"""A bench for channels on devices: a machine that is played, and everything in this process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from conformance.engine import Engine
from conformance.oracles.transport import watch
from conformance.protocol.transport import TRANSPORTS, Channel, Reader
from conformance.suite.transport_bench import ROOM
from conformance.witness import EngineRaised
from conformance.world.devices import Machine, PlayedDevice


class OnDevices(NamedTuple):
    """A channel on the first device of a machine, and readers each on a device of its own, all in this process."""

    machine: Machine
    device: PlayedDevice
    channel: Channel
    devices: list[PlayedDevice]
    readers: list[Reader]


@contextmanager
def on_devices(engine: Engine, readers: int = 1, room: int = ROOM, joined: int | None = None) -> Iterator[OnDevices]:
    """A channel for tensors of a device, closed in the end; so many of its readers join in this process, by default all."""
    with watch():
        machine = Machine(1 + readers)
        device, *devices = [machine.device(index) for index in range(1 + readers)]
        channel = engine.open_device_channel(TRANSPORTS, readers, room, device)
        here = [channel.join(number, devices[number]) for number in range(readers if joined is None else joined)]
        try:
            yield OnDevices(machine, device, channel, devices, here)
        finally:
            ends: list[Any] = [*here, channel]
            for end in ends:
                with suppress(EngineRaised):
                    end.close()
