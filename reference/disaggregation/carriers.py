"""Carriers: how rows get from one process to another.

Rows are *offered* where they were made, under a *ticket* that travels in a message, and *fetched* where they are needed.
The one who offers keeps them until it withdraws them: it knows when nobody reads any more, and the reader may die.

1. A ticket names its offer by a random word. One that was withdrawn, forged or cut short finds nothing, and never the rows
   of somebody else.
2. What is offered is a copy. Who offers may go on with its own tensor.
3. The kinds that stand here need no package, and their frames are those of `wire`. Those of `registered` do, and are
   loaded when one is opened.

Source: SGLang 0.5.23, `EncoderDelivery` (ZMQ, Mooncake); vLLM 0.33, `ec_transfer` (NIXL, Mooncake).
Disagreements: SGLang pushes pickled metadata and raw bytes to a port of the receiver; with Mooncake it writes into memory
that the receiver has registered. vLLM's consumer reads from the producer's memory with NIXL.
"""

import secrets
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Protocol

import torch

from reference.disaggregation.wire import BadMessage, pack, unpack

WORD_BYTES = 16
_LENGTH = struct.Struct(">q")
_NOTHING = -1
PATIENCE_S = 30.0


class NoOffer(LookupError):
    """There is no offer of this ticket, or no longer."""


class PackageMissing(ImportError):
    """A carrier needs a package that is not installed."""


class Carrier(Protocol):
    """What every carrier can do; see `conformance.protocol`."""

    def offer(self, rows: torch.Tensor) -> bytes: ...
    def fetch(self, ticket: bytes) -> torch.Tensor: ...
    def withdraw(self, ticket: bytes) -> None: ...
    def held_bytes(self) -> int: ...
    def close(self) -> None: ...


def open_carrier(kind: str) -> Carrier:
    """A carrier of this kind. Raises ValueError for an unknown one, PackageMissing for one whose package is missing."""
    if kind not in KINDS:
        raise ValueError(f"there is no carrier {kind!r}; there are {', '.join(KINDS)}")
    return KINDS[kind]()


class MemoryCarrier:
    """Within one process."""

    def __init__(self) -> None:
        self._offers: dict[bytes, torch.Tensor] = {}

    def offer(self, rows: torch.Tensor) -> bytes:
        """Keep a copy."""
        ticket = secrets.token_bytes(WORD_BYTES)
        self._offers[ticket] = rows.detach().clone()
        return ticket

    def fetch(self, ticket: bytes) -> torch.Tensor:
        """A copy of what was offered. Raises NoOffer."""
        if ticket not in self._offers:
            raise NoOffer("there is no offer of this ticket, or no longer")
        return self._offers[ticket].clone()

    def withdraw(self, ticket: bytes) -> None:
        """Forget an offer."""
        self._offers.pop(ticket, None)

    def held_bytes(self) -> int:
        """The bytes on offer."""
        return sum(rows.nbytes for rows in self._offers.values())

    def close(self) -> None:
        """Forget everything."""
        self._offers.clear()


class TcpCarrier:
    """Between processes, on one host or several. The ticket is the word of the offer, and where it is served.

    host: the address under which others reach this process.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._frames: dict[bytes, tuple[bytes, int]] = {}
        self._lock = threading.Lock()
        self._is_closed = False
        self._server = socket.create_server((host, 0))
        self._address = f"{host}:{self._server.getsockname()[1]}".encode()
        self._thread = threading.Thread(target=self._serve, name="tcp-carrier", daemon=True)
        self._thread.start()

    def offer(self, rows: torch.Tensor) -> bytes:
        """Serve a copy from now on. Raises RuntimeError after `close`."""
        word, frame = secrets.token_bytes(WORD_BYTES), pack({}, [rows])
        with self._lock:
            if self._is_closed:
                raise RuntimeError("this carrier is closed")
            self._frames[word] = (frame, rows.nbytes)
        return word + self._address

    def fetch(self, ticket: bytes) -> torch.Tensor:
        """Ask whoever serves it. Raises NoOffer, also where nobody listens (any more)."""
        host, _, port = bytes(ticket[WORD_BYTES:]).partition(b":")
        try:
            with socket.create_connection((host.decode("ascii"), int(port)), timeout=PATIENCE_S) as peer:
                peer.sendall(ticket[:WORD_BYTES])
                (length,) = _LENGTH.unpack(_read(peer, _LENGTH.size))
                _, tensors = unpack(_read(peer, length)) if length != _NOTHING else ({}, [])
        except (OSError, ValueError, OverflowError) as error:
            raise NoOffer(f"the offer of this ticket cannot be fetched: {error}") from error
        if len(tensors) != 1:
            raise NoOffer("there is no offer of this ticket, or no longer")
        return tensors[0]

    def withdraw(self, ticket: bytes) -> None:
        """Serve it no longer. Whoever is reading it reads it to the end."""
        with self._lock:
            self._frames.pop(bytes(ticket[:WORD_BYTES]), None)

    def held_bytes(self) -> int:
        """The bytes on offer."""
        with self._lock:
            return sum(size for _, size in self._frames.values())

    def close(self) -> None:
        """Withdraw everything, and stop listening."""
        with self._lock:
            self._frames.clear()
            if self._is_closed:
                return
            self._is_closed = True
        socket.create_connection(self._server.getsockname(), timeout=PATIENCE_S).close()  # wakes the one who listens
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        while True:
            peer, _ = self._server.accept()
            if self._is_closed:
                peer.close()
                return
            threading.Thread(target=self._answer, args=(peer,), name="tcp-carrier-peer", daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        with peer:
            try:
                peer.settimeout(PATIENCE_S)
                word = _read(peer, WORD_BYTES)
                with self._lock:
                    frame, _ = self._frames.get(word, (None, 0))
                peer.sendall(_LENGTH.pack(_NOTHING if frame is None else len(frame)))
                if frame is not None:
                    peer.sendall(frame)
            except OSError:
                return  # it has gone


def _read(peer: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ConnectionError if the other side stops before."""
    if count < 0:
        raise BadMessage(f"{count} bytes cannot be read")
    parts = []
    while count:
        part = peer.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side stopped in the middle")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _registered(kind: str) -> Carrier:
    """With a library that is loaded only now."""
    registered = import_module("reference.disaggregation.registered")
    carrier: Carrier = registered.RegisteredCarrier(registered.LIBRARIES[kind]())
    return carrier


KINDS: dict[str, Callable[[], Carrier]] = {
    "memory": MemoryCarrier,
    "tcp": TcpCarrier,
    "shared_memory": partial(_registered, "shared_memory"),
    "mooncake": partial(_registered, "mooncake"),
    "nixl": partial(_registered, "nixl"),
}
