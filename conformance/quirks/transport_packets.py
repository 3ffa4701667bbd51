"""Ways in which engines have got transport wrong: packets, who may make them, and how often they are good."""

import json
from collections.abc import Sequence
from typing import Any

from conformance.quirk import quirk
from reference.transport.channel import Channel
from reference.transport.device import Device
from reference.transport.packets import Entry, Packet
from reference.transport.reader import Reader
from reference.transport.tensors import Form


class Unlinking(Reader):
    """A reader that removes what it has read."""

    def receive(self, packet: bytes) -> list[Any]:
        values = super().receive(packet)
        for entry in self._unpack(packet).entries:
            if entry and entry.generation:
                self._sitting._ledger.generations[entry.slot] = 0
        return values


@quirk(
    "gone-with-the-first-reader",
    replaces="open_channel",
    bugs=("X02", "T02"),
    caught_by=("TRANSPORT-34", "TRANSPORT-37"),
)
class GoneWithTheFirstReader(Channel):
    """Whoever reads first removes the segment: ranks that are a moment later find nothing."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Unlinking(self.invitation(), reader, device=device)


@quirk(
    "one-pointer-for-all-copies",
    replaces="open_channel",
    bugs=("T02", "Q05", "shm-pointer-reuse-parallel-sampling"),
    caught_by=("TRANSPORT-35", "TRANSPORT-37", "TRANSPORT-43"),
)
class OnePointerForAll(Channel):
    """The requests of parallel sampling share one pointer, and it is used up when the first of them is served."""

    def send(self, values: Sequence[Any], copies: int = 1) -> list[bytes]:
        return super().send(values, 1) * copies


class Trusting(Reader):
    """A reader that believes what it is told."""

    def _unpack(self, packet: bytes) -> Packet:
        head = packet.index(b"[")
        length = int.from_bytes(packet[head - 4 : head], "big")
        header = json.loads(packet[head : head + length])
        entries = [e and Entry(Form(e[0], e[1], tuple(e[2])), *e[3:]) for e in header]
        return Packet(tuple(entries), memoryview(packet)[head + length :])


@quirk(
    "handles-that-anyone-can-make",
    replaces="open_channel",
    bugs=(),
    caught_by=("TRANSPORT-47", "TRANSPORT-48", "TRANSPORT-49", "TRANSPORT-52"),
)
class HandlesThatAnyoneCanMake(Channel):
    """A packet is a place in memory and nothing more: whoever can write to a reader has it read what he likes."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Trusting(self.invitation(), reader, device=device)


class Timeless(Reader):
    """A reader that looks where it is told to, whatever lies there by now."""

    def __init__(self, invitation: bytes, reader: int, *, device: Device | None = None) -> None:
        super().__init__(invitation, reader, device=device)
        if self._seat:
            self._seat.open = self._open_whatever_it_is  # type: ignore[method-assign]

    def _open_whatever_it_is(self, slot: int, generation: int) -> None:
        marks = self._sitting._ledger.marks[slot]
        marks[self._sitting._reader] = max(int(marks[self._sitting._reader]), 2 * generation)


@quirk(
    "a-place-and-no-generation",
    replaces="open_channel",
    bugs=("shm-stale-address", "cuda-ipc-early-reuse-race"),
    caught_by=("TRANSPORT-50", "TRANSPORT-51"),
)
class PlaceAndNoGeneration(Channel):
    """A handle names a place and not what lay there: one that comes late gives the picture of somebody else."""

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return Timeless(self.invitation(), reader, device=device)
