"""A bench for channels: readers and senders in processes of their own, which may be killed at any moment.

A process is a fork of the rule's; whatever engine there is comes with it. It says what it has seen through a pipe, in
JSON, and ends without a trace. Nobody waits for a process for longer than `PATIENCE_S`.
"""

import gc
import json
import os
import select
import signal
import struct
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import torch

from conformance.compare import Mismatch, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.transport import Watch, described_all, watch
from conformance.protocol.transport import Channel, Reader
from conformance.witness import EngineRaised

PATIENCE_S = 20.0
"""How long a rule waits for a process that must say something: only an engine that hangs takes so long."""

ROOM = 1 << 20
"""The room in shared memory that channels have where it does not matter."""

HEAD = struct.Struct("<I")


class Pipe:
    """One end of a conversation of two processes. What is said is JSON, or bytes."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing

    def say(self, value: Any) -> None:
        """Say something. Nothing happens when nobody is there to hear it."""
        data = b"b" + value if isinstance(value, bytes) else b"j" + json.dumps(value).encode()
        left = memoryview(HEAD.pack(len(data)) + data)
        with suppress(BrokenPipeError):
            while left:
                left = left[os.write(self._writing, left) :]

    def hear(self) -> Any:
        """What the other one says. Raises EOFError when it is gone, TimeoutError when it says nothing in time."""
        data = self._read(HEAD.unpack(self._read(HEAD.size))[0])
        return data[1:] if data[:1] == b"b" else json.loads(data[1:])

    def close(self) -> None:
        """Hang up."""
        os.close(self._reading)
        os.close(self._writing)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            if not select.select([self._reading], [], [], PATIENCE_S)[0]:
                raise TimeoutError
            part = os.read(self._reading, count - len(data))
            if not part:
                raise EOFError
            data += part
        return data


class Process:
    """A fork that runs `body`; whatever is said to it and heard from it comes in pairs."""

    def __init__(self, body: Callable[[Pipe], Any], name: str) -> None:
        down, up = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads may be there; the fork needs none of them
            self.pid = os.fork()
        if not self.pid:
            os.close(down[1])
            os.close(up[0])
            _run(body, Pipe(down[0], up[1]))
        os.close(down[0])
        os.close(up[1])
        self._name, self._pipe, self._is_alive = name, Pipe(up[0], down[1]), True

    def say(self, value: Any) -> None:
        """Say something to the process."""
        self._pipe.say(value)

    def hear(self) -> Any:
        """What the process says next. Raises Mismatch for what fails there, for a hang and for an untimely end."""
        try:
            kind, value = self._pipe.hear()
        except TimeoutError:
            raise Mismatch(f"{self._name} has said nothing for {PATIENCE_S:g} s: it hangs") from None
        except EOFError:
            raise Mismatch(f"{self._name} ended before its time: {self._end()}") from None
        if kind == "failed":
            raise Mismatch(f"{self._name}: {value}")
        if kind == "fault":
            raise RuntimeError(f"{self._name}:\n{value}")
        return bytes.fromhex(value[6:]) if isinstance(value, str) and value.startswith("bytes ") else value

    def kill(self) -> None:
        """End it at once, as the kernel does when memory runs out. Nothing happens to one that is dead."""
        if self._is_alive:
            os.kill(self.pid, signal.SIGKILL)
            self._end()

    def close(self) -> None:
        """End it, however far it is."""
        self.kill()
        self._pipe.close()

    def _end(self) -> str:
        self._is_alive = False
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"


class Voice(Pipe):
    """The conversation as the process itself has it."""

    def say(self, value: Any) -> None:
        """Say something to the rule."""
        super().say(["said", f"bytes {value.hex()}" if isinstance(value, bytes) else value])


def _run(body: Callable[[Pipe], Any], pipe: Pipe) -> NoReturn:
    """The life of a fork: nothing of its parent is cleaned up in it."""
    gc.disable()
    try:
        torch.set_num_threads(1)
        body(Voice(pipe._reading, pipe._writing))
    except AssertionError as error:
        pipe.say(["failed", str(error)])
    except EOFError:
        pass  # the rule has hung up
    except BaseException:
        pipe.say(["fault", traceback.format_exc()])
    finally:
        os._exit(0)


class Bench:
    """Processes, and an eye on shared memory."""

    def __init__(self, watching: Watch) -> None:
        self.watch = watching
        self._processes: list[Process] = []
        self._channels: list[Channel] = []

    def process(self, body: Callable[[Pipe], Any], name: str = "another process") -> Process:
        """Begin a process."""
        process = Process(body, name)
        self._processes.append(process)
        self.watch.processes.add(process.pid)
        return process

    def reader(self, channel: Channel, number: int = 0) -> Process:
        """A process that is a reader: it receives each packet that is said to it, and says what was in it."""

        def body(pipe: Pipe) -> None:
            reader = channel.join(number, None)
            while True:
                packet = pipe.hear()
                pipe.say(told(reader, packet))

        return self.process(body, f"reader {number}")

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
    most = engine.traits.channel_readers
    return readers if most is None else min(readers, most)


def told(reader: Reader, packet: bytes) -> list[str]:
    """What a reader receives, in words; "refused" when it refuses the packet with an error that was meant."""
    answers = unless_refused(lambda: described_all(reader.receive(packet)), "a packet")
    return answers[0] if answers else ["refused"]


def ask(process: Process, value: Any) -> Any:
    """Say something to a process and hear what it says then."""
    process.say(value)
    return process.hear()


def refused_if_signed(engine: Engine, reader: Reader, packet: bytes, sent: Sequence[Any], what: str) -> None:
    """A packet that is not as it was sent is refused; where packets are not signed, it may be answered with what was sent."""
    if engine.traits.signed_packets:
        refuses(lambda: reader.receive(packet), what)
    elif told(reader, packet) not in (["refused"], described_all(sent)):
        raise Mismatch(f"{what} was answered with {told(reader, packet)}")


def channel_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a channel that has these, beside what every rule asks."""
    return ("open_channel", *(f"open_channel.{method}" for method in ("join", "send", *methods)))
