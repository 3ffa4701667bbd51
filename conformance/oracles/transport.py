"""What must arrive, in words, and what is left in shared memory, by looking there."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_bytes
from time import monotonic, sleep
from typing import Any

import numpy as np
import torch

FOLDER = Path("/dev/shm")

LINGER_S = 0.3
"""How long what is left may linger: others use the host's shared memory, too."""

LOOKED_THROUGH_BYTES = 1 << 22
"""How much of a file is looked through for a mark."""


def described(value: Any) -> str:
    """What a value is: its kind, dtype and shape, and its bytes in C order, the long ones by their digest."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.str} {list(value.shape)} {_digest(value.tobytes())}"
    if hasattr(value, "on_device"):
        return f"on device {value.on_device}: {described(value.values)}"
    dense = torch.empty(value.shape, dtype=value.dtype)
    dense.copy_(value)
    octets = dense.flatten().view(torch.uint8).numpy().tobytes() if value.numel() else b""
    return f"tensor {str(value.dtype).removeprefix('torch.')} {list(value.shape)} {_digest(octets)}"


def described_all(values: Iterable[Any]) -> list[str]:
    """Each value in words."""
    return [described(value) for value in values]


def _digest(octets: bytes) -> str:
    return octets.hex() if len(octets) <= 16 else f"{octets[:8].hex()}… {hashlib.sha256(octets).hexdigest()[:16]}"


class Watch:
    """Looks at the host's shared memory: what is there now that was not when the watch began, and is of those watched.

    A file is theirs when its name has the number of one of their processes in it, or when a mark of theirs is in it.
    """

    def __init__(self) -> None:
        self._before = set(_files())
        self._mark = token_bytes(16)
        self.processes = {os.getpid()}

    def tensor(self, size_bytes: int, seed: int = 0) -> torch.Tensor:
        """A tensor of so many bytes, of which each 4,096 begin with the mark."""
        octets = np.random.default_rng(seed).integers(0, 256, size_bytes, dtype=np.uint8)
        for first in range(0, size_bytes - len(self._mark) + 1, 4096):
            octets[first : first + len(self._mark)] = np.frombuffer(self._mark, dtype=np.uint8)
        return torch.from_numpy(octets)

    def left(self) -> list[str]:
        """The names of what is left; waits a little for what is about to go."""
        until = monotonic() + LINGER_S
        while (names := self._theirs()) and monotonic() < until:
            sleep(0.02)
        return names

    def count(self) -> int:
        """How many files there are now."""
        return len(self._theirs())

    def clean(self) -> None:
        """Remove what is left."""
        for name in self._theirs():
            with suppress(FileNotFoundError):
                (FOLDER / name).unlink()

    def _theirs(self) -> list[str]:
        return sorted(name for name in set(_files()) - self._before if self._is_theirs(name))

    def _is_theirs(self, name: str) -> bool:
        if self.processes & {int(word) for word in re.split(r"[^0-9A-Za-z]", name) if word.isdecimal()}:
            return True
        try:
            with (FOLDER / name).open("rb") as file:
                return self._mark in file.read(LOOKED_THROUGH_BYTES)
        except OSError:
            return False


@contextmanager
def watch() -> Iterator[Watch]:
    """Watch the host's shared memory; in the end nothing is left of what was watched, whatever an engine leaves."""
    watching = Watch()
    try:
        yield watching
    finally:
        watching.clean()


def _files() -> Iterable[str]:
    return os.listdir(FOLDER) if FOLDER.is_dir() else ()
