"""Post: messages between the processes of a server.

Each process has one box, a socket in a folder that only its owner may enter, and puts messages into those of others. A
message is a mapping of plain data with a `kind`, on the wire of `transport`: no object is built, and no code comes along.

What cannot be read is dropped and counted. A process that dies on a message takes everybody's requests with it.

Source: SGLang 0.5.23, `TokenizerManager` and `Scheduler`, which push and pull pickled objects over ZMQ.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zmq

from reference.transport.survey import WireError
from reference.transport.wire import decode_value, encode_value

Message = dict[str, Any]
LARGEST_BYTES = 1 << 30
LINGER_MS = 1000
QUEUE = 10_000


class Post:
    """The box `name` in a folder, and the way to all others."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self._folder, self.dropped = name, folder, 0
        self._context = zmq.Context(io_threads=1)
        self._box = self._context.socket(zmq.PULL)
        self._box.setsockopt(zmq.MAXMSGSIZE, LARGEST_BYTES)
        self._box.setsockopt(zmq.RCVHWM, QUEUE)
        self._box.bind(f"ipc://{folder / name}")
        self._others: dict[str, zmq.Socket[bytes]] = {}

    def send(self, name: str, kind: str, content: Mapping[str, Any]) -> None:
        """Put a message into a box; it waits there until it is fetched. Raises WireError for what is no plain data."""
        if name not in self._others:
            other = self._context.socket(zmq.PUSH)
            other.setsockopt(zmq.SNDHWM, QUEUE)
            other.connect(f"ipc://{self._folder / name}")
            self._others[name] = other
        self._others[name].send(encode_value({**content, "kind": kind}), zmq.NOBLOCK)

    def receive(self, timeout_s: float) -> Message | None:
        """The next message, or None if none comes in time."""
        if not self._box.poll(max(0, int(timeout_s * 1000))):
            return None
        try:
            message = decode_value(self._box.recv())
        except WireError:
            message = None
        if isinstance(message, dict) and isinstance(message.get("kind"), str):
            return message
        self.dropped += 1
        return self.receive(0)

    def drain(self, wait_s: float) -> list[Message]:
        """All messages that are there; it waits so long for the first."""
        messages = []
        message = self.receive(wait_s)
        while message is not None:
            messages.append(message)
            message = self.receive(0)
        return messages

    def close(self) -> None:
        """Leave; what was sent is delivered if its receiver is there."""
        self._box.close(0)
        for other in self._others.values():
            other.close(LINGER_MS)
        self._context.term()
