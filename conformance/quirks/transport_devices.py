"""Ways in which engines have got transport wrong: memory of devices, and copies that are done later than asked for."""

from collections.abc import Sequence
from typing import Any, Protocol, cast

from conformance.quirk import quirk
from conformance.world.devices import PlayedDevice
from reference.transport.channel import Channel, Placed
from reference.transport.device import Copy, Device
from reference.transport.packets import Entry
from reference.transport.reader import ChannelClosed, Reader
from reference.transport.tensors import Form


class Joined(Protocol):
    """What makes a reader."""

    def __call__(self, invitation: bytes, reader: int, *, device: Device | None = None) -> Reader:
        """A reader."""
        ...


class DeviceChannel(Channel):
    """A channel as the protocol opens it, whose readers are made by `reads_as`."""

    reads_as: Joined = Reader

    def __init__(self, transports: Sequence[str], readers: int, capacity_bytes: int, device: Device) -> None:
        super().__init__(transports, readers, capacity_bytes, device=device)

    def join(self, reader: int, device: Device | None = None) -> Reader:
        return type(self).reads_as(self.invitation(), reader, device=device)


class AtTheSenders(Reader):
    """A reader that goes to the sender's device."""

    def _copy_of_device(self, entry: Entry) -> Any:
        device = cast(PlayedDevice, self._device)
        if device and self._handle:
            self._device = device.machine.device(int(self._handle.split()[0]))
        try:
            return super()._copy_of_device(entry)
        finally:
            device.stream += cast(PlayedDevice, self._device).stream
            self._device = device


@quirk(
    "opened-where-it-was-made",
    replaces="open_device_channel",
    bugs=("I02", "cuda-ipc-rank0-duplication"),
    caught_by=("TRANSPORT-70", "TRANSPORT-71"),
)
class OpenedWhereItWasMade(DeviceChannel):
    """The handle says on which device it was made, and each rank opens it there: a context and a copy a rank on the first."""

    reads_as = AtTheSenders


class AtOnce(Reader):
    """A reader that is done as soon as it has asked."""

    def _copy_of_device(self, entry: Entry) -> Any:
        value = super()._copy_of_device(entry)
        self._sitting.done(entry.slot, entry.generation)
        return value


@quirk(
    "acknowledged-when-asked-for",
    replaces="open_device_channel",
    bugs=("cuda-ipc-early-reuse-race",),
    caught_by=("TRANSPORT-72",),
)
class AcknowledgedWhenAsked(DeviceChannel):
    """A reader says that it is done when it has asked for its copy; the place is written again before that is made."""

    reads_as = AtOnce


class Hasty:
    """A device for which a copy is done when it is asked for."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def copy_in(self, value: Any, memory: Any, first: int) -> Copy:
        """Ask for the copy and go on."""
        self._device.copy_in(value, memory, first)
        return _Nothing()


class _Nothing:
    def is_done(self) -> bool:
        return True

    def wait(self) -> None:
        """There is nothing to wait for."""


@quirk(
    "published-before-it-is-there",
    replaces="open_device_channel",
    bugs=("cuda-ipc-early-reuse-race",),
    caught_by=("TRANSPORT-73",),
)
class PublishedBeforeItIsThere(DeviceChannel):
    """The packet goes out while the sender's copy still waits in its stream: a fast reader copies what was there before."""

    def __init__(self, transports: Sequence[str], readers: int, capacity_bytes: int, device: Device) -> None:
        super().__init__(transports, readers, capacity_bytes, cast(Device, Hasty(device)))


@quirk(
    "kept-on-the-device-when-full",
    replaces="open_device_channel",
    bugs=("cuda-ipc-fallback-no-d2h",),
    caught_by=("TRANSPORT-74",),
)
class KeptOnTheDevice(DeviceChannel):
    """What finds no room in the pool gets memory of its own on the device, which nobody gives back."""

    extra: tuple[Any, ...] = ()

    def _lease(self, kind: Any, value: Any, form: Form, copies: int) -> Placed | None:
        placed = super()._lease(kind, value, form, copies)
        if placed is None and kind == "cuda_ipc" and self._device:
            self.extra = (*self.extra, self._device.allocate(form.size_bytes))
        return placed


@quirk(
    "a-full-device-is-an-error",
    replaces="open_device_channel",
    bugs=("I03",),
    caught_by=("TRANSPORT-74",),
)
class FullDeviceIsAnError(DeviceChannel):
    """The way round a full pool does not work on this platform, and ends in an error."""

    def _lease(self, kind: Any, value: Any, form: Form, copies: int) -> Placed | None:
        placed = super()._lease(kind, value, form, copies)
        if placed is None and kind == "cuda_ipc":
            raise RuntimeError("invalid device pointer")
        return placed


class Silent(Reader):
    """A reader that never says that it is done."""

    def _settle(self) -> None:
        """Nothing is said."""


@quirk("never-acknowledged", replaces="open_device_channel", bugs=("I04",), caught_by=("TRANSPORT-75",))
class NeverAcknowledged(DeviceChannel):
    """Readers say nothing when they are done, and the sender can never write a place again."""

    reads_as = Silent


class LeavesIt(Reader):
    """A reader that gives back what it reads, and nothing else."""

    def discard(self, packet: bytes) -> None:
        """Nothing is given back."""

    def close(self) -> None:
        """Nothing is given back."""


@quirk(
    "released-where-it-is-read",
    replaces="open_device_channel",
    bugs=("shm-prefix-covered-item", "I04"),
    caught_by=("TRANSPORT-76",),
)
class ReleasedWhereItIsRead(DeviceChannel):
    """A place on the device is given back by who copies it; when the request is aborted before, nobody does."""

    reads_as = LeavesIt


@quirk("a-dead-reader-keeps-its-place", replaces="open_device_channel", bugs=("I04",), caught_by=("TRANSPORT-77",))
class DeadReaderKeepsItsPlace(DeviceChannel):
    """The place of a reader that was killed is waited for, for ever."""

    def _settle(self) -> None:
        if self._segment:
            done = [lease for lease in self._leases.alive.values() if self._is_marked(lease)]
            if len(done) == len(self._leases.alive):
                self._leases.settle()

    def _is_marked(self, lease: Any) -> bool:
        marks = self._leases.ledger.marks[lease.slot]
        return lease.discarded or all(int(mark) == 2 * lease.generation + 1 for mark in marks)


class Breaking(Reader):
    """A reader that does not survive what it cannot open."""

    broken = False

    def receive(self, packet: bytes) -> list[Any]:
        if self.broken:
            raise ChannelClosed("this scheduler has died")
        try:
            return super().receive(packet)
        except RuntimeError:
            self.broken = True
            raise


@quirk("dies-of-what-it-cannot-open", replaces="open_device_channel", bugs=("I03", "X02"), caught_by=("TRANSPORT-78",))
class DiesOfWhatItCannotOpen(DeviceChannel):
    """A reader that cannot open the sender's memory is good for nothing any more."""

    reads_as = Breaking


@quirk(
    "one-place-one-reading",
    replaces="open_device_channel",
    bugs=("T02", "cuda-ipc-early-reuse-race"),
    caught_by=("TRANSPORT-79",),
)
class OnePlaceOneReading(DeviceChannel):
    """The requests of parallel sampling share one place, which is free again when the first of them has its copy."""

    def send(self, values: Sequence[Any], copies: int = 1) -> list[bytes]:
        return super().send(values, 1) * copies
