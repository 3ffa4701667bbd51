"""Registered memory: carriers that read from another process's memory: shared, or with Mooncake, or with NIXL.

An offer is a buffer that is registered with the library: a random word, and behind it the elements of the tensor. The
ticket says where the buffer is. Who reads it reads the word, too, and takes the rows only if it is that of the ticket:
an address says nothing about what lies there by now.

1. The word is wiped before the buffer is given back. A reader that comes late finds another word, or no memory at all.
2. A buffer is registered once, for all its readers, and goes when the offer is withdrawn; a reader that is in the middle
   has an error, or finds the word gone. So an offer is withdrawn when its readers have said that they are done.
3. Both libraries need no special network: Mooncake is asked for TCP and NIXL for UCX, which find what there is. On one
   host neither is needed: a segment of shared memory is a place, too.

Source: Mooncake 0.3.13, `TransferEngine`; NIXL 1.5, `nixl_agent`; SGLang 0.5.23, `MooncakeTransferEngine`; vLLM 0.33,
`ec_connector/cpu/data/nixl.py`.
Disagreements: SGLang and Mooncake write into memory of the receiver; NIXL's connectors read, as here.
"""

import json
import secrets
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import torch

from reference.disaggregation.carriers import WORD_BYTES, NoOffer, PackageMissing
from reference.disaggregation.wire import DTYPES, tensor_bytes, tensor_from
from reference.transport.segment import FOLDER, Segment

Place = dict[str, Any]
"""Where a buffer is, in plain data: what the library needs to read it from elsewhere."""


class Library(Protocol):
    """What a library does for a carrier."""

    def register(self, buffer: torch.Tensor) -> Place: ...
    def unregister(self, buffer: torch.Tensor) -> None: ...
    def read(self, place: Place, buffer: torch.Tensor) -> None:
        """Fill a buffer from a place. Raises OSError where that cannot be done."""

    def close(self) -> None: ...


class RegisteredCarrier:
    """Offers in memory that others read, by one of the libraries."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._offers: dict[bytes, torch.Tensor] = {}
        self._is_closed = False

    def offer(self, rows: torch.Tensor) -> bytes:
        """Register a copy. Raises RuntimeError after `close`, and OSError where the memory cannot be registered."""
        if self._is_closed:
            raise RuntimeError("this carrier is closed")
        word = secrets.token_bytes(WORD_BYTES)
        buffer = torch.frombuffer(bytearray(word + tensor_bytes(rows)), dtype=torch.uint8)
        form = [str(rows.dtype).removeprefix("torch."), list(rows.shape), len(buffer)]
        place = self._library.register(buffer)
        self._offers[word] = buffer
        return word + json.dumps([form, place]).encode()

    def fetch(self, ticket: bytes) -> torch.Tensor:
        """Read what a ticket names. Raises NoOffer where there is nothing, or something else."""
        word, text = bytes(ticket[:WORD_BYTES]), bytes(ticket[WORD_BYTES:])
        try:
            (name, shape, length), place = json.loads(text)
            dtype = DTYPES[name]
            if self._is_closed:
                raise OSError("this carrier is closed")
            buffer = torch.zeros(length, dtype=torch.uint8)
            self._library.read(place, buffer)
            if bytes(buffer[:WORD_BYTES].numpy()) != word:
                raise OSError("something else is there by now")
            return tensor_from(buffer[WORD_BYTES:].numpy(), dtype, shape)
        except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
            raise NoOffer(f"the offer of this ticket cannot be fetched: {error}") from error

    def withdraw(self, ticket: bytes) -> None:
        """Wipe the word, and take the memory back."""
        buffer = self._offers.pop(bytes(ticket[:WORD_BYTES]), None)
        if buffer is not None:
            buffer[:WORD_BYTES] = 0
            self._library.unregister(buffer)

    def held_bytes(self) -> int:
        """The bytes on offer."""
        return sum(len(buffer) - WORD_BYTES for buffer in self._offers.values())

    def close(self) -> None:
        """Withdraw everything, and leave the library."""
        for word in list(self._offers):
            self.withdraw(word)
        if not self._is_closed:
            self._is_closed = True
            self._library.close()


class SharedMemory:
    """A segment of shared memory for each buffer, on one host."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}

    def register(self, buffer: torch.Tensor) -> Place:
        """Copy it into a segment."""
        segment = Segment.create(FOLDER, len(buffer))
        try:
            segment.reserve(len(buffer))
            with segment.map(0, len(buffer), shared=True) as pages:
                pages[:] = buffer.numpy().tobytes()
        except BaseException:
            segment.remove()
            raise
        self._segments[buffer.data_ptr()] = segment
        return {"segment": segment.path.name}

    def unregister(self, buffer: torch.Tensor) -> None:
        """Remove the segment. Who has opened it reads it to the end."""
        self._segments.pop(buffer.data_ptr()).remove()

    def read(self, place: Place, buffer: torch.Tensor) -> None:
        """Copy from a segment that this process or another one has made."""
        name = str(place["segment"])
        if name != Path(name).name:
            raise ValueError(f"{name!r} is not the name of a segment")
        segment = Segment.open(FOLDER / name, len(buffer))
        try:
            buffer[:] = torch.frombuffer(segment.read(0, len(buffer)), dtype=torch.uint8)
        finally:
            segment.close()

    def close(self) -> None:
        """There is nothing left."""


class Mooncake:
    """Mooncake's transfer engine, peer to peer over TCP. host: the address under which others reach this process."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        engine = load("mooncake.engine", "mooncake-transfer-engine", "mooncake-transfer-engine-non-cuda without CUDA")
        self._engine = engine.TransferEngine()
        if self._engine.initialize(host, "P2PHANDSHAKE", "tcp", ""):
            raise OSError(f"Mooncake cannot listen on {host}")
        self._address = f"{host}:{self._engine.get_rpc_port()}"

    def register(self, buffer: torch.Tensor) -> Place:
        """Where others read it."""
        if status := self._engine.register_memory(buffer.data_ptr(), len(buffer)):
            raise OSError(f"Mooncake cannot register {len(buffer)} bytes: status {status}")
        return {"peer": self._address, "address": buffer.data_ptr()}

    def unregister(self, buffer: torch.Tensor) -> None:
        """Nobody reads it any more."""
        self._engine.unregister_memory(buffer.data_ptr())

    def read(self, place: Place, buffer: torch.Tensor) -> None:
        """Read it into memory that is registered for as long as that takes."""
        self.register(buffer)
        try:
            status = self._engine.transfer_sync_read(str(place["peer"]), buffer.data_ptr(), int(place["address"]), len(buffer))
        finally:
            self.unregister(buffer)
        if status < 0:
            raise OSError(f"Mooncake cannot read {len(buffer)} bytes from {place['peer']}: status {status}")

    def close(self) -> None:
        """The engine ends with its last reference."""
        del self._engine


class Nixl:
    """NIXL's agent, with UCX."""

    def __init__(self) -> None:
        api = load("nixl._api", "nixl", "nixl-cu12 or nixl-cu13 beside it")
        self._name = secrets.token_hex(8)
        self._agent = api.nixl_agent(self._name, api.nixl_agent_config(backends=["UCX"]))
        self._registered: dict[int, Any] = {}

    def register(self, buffer: torch.Tensor) -> Place:
        """Where others read it: this agent, and its descriptors."""
        known = self._registered[buffer.data_ptr()] = self._agent.register_memory(buffer)
        descriptors = self._agent.get_serialized_descs(known.trim())
        return {"agent": self._agent.get_agent_metadata().hex(), "at": descriptors.hex(), "name": self._name}

    def unregister(self, buffer: torch.Tensor) -> None:
        """Nobody reads it any more."""
        self._agent.deregister_memory(self._registered.pop(buffer.data_ptr()))

    def read(self, place: Place, buffer: torch.Tensor) -> None:
        """Read it into memory that is registered for as long as that takes. Nothing is known of its agent afterwards."""
        name, is_own = str(place["name"]), place["name"] == self._name
        self.register(buffer)
        try:
            if not is_own:
                self._agent.add_remote_agent(bytes.fromhex(place["agent"]))
            there = self._agent.deserialize_descs(bytes.fromhex(place["at"]))
            handle = self._agent.initialize_xfer("READ", self._registered[buffer.data_ptr()].trim(), there, name)
            state = self._agent.transfer(handle)
            while state == "PROC":
                state = self._agent.check_xfer_state(handle)
            self._agent.release_xfer_handle(handle)
        except Exception as error:  # the library's errors have a base of their own, which differs between its builds
            raise OSError(f"NIXL cannot read {len(buffer)} bytes: {error}") from error
        finally:
            self.unregister(buffer)
            if not is_own:
                self._forget(name)
        if state != "DONE":
            raise OSError(f"NIXL cannot read {len(buffer)} bytes: {state}")

    def close(self) -> None:
        """The agent ends with its last reference."""
        del self._agent

    def _forget(self, name: str) -> None:
        try:
            self._agent.remove_remote_agent(name)
        except Exception:
            return  # it was never known


def load(module: str, package: str, hint: str) -> Any:
    """A module of a package that is not needed otherwise. Raises PackageMissing, which names the package."""
    try:
        return import_module(module)
    except ImportError as error:
        raise PackageMissing(
            f"this carrier needs the package {package}, which is not installed here or cannot be loaded ({error}): "
            f"pip install {package} (or {hint})"
        ) from error


LIBRARIES: dict[str, Callable[[], Library]] = {"shared_memory": SharedMemory, "mooncake": Mooncake, "nixl": Nixl}
