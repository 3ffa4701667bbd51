"""What is obviously right about a cache of embeddings: a list, looked through from end to end for every question."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

HIDDEN = 4
ROW_BYTES = HIDDEN * torch.float32.itemsize


class Step(NamedTuple):
    """One operation on a cache."""

    operation: str
    key: str = ""
    rows: int = 0

    def __str__(self) -> str:
        return " ".join([self.operation, self.key, str(self.rows or "")]).strip()


class Script(NamedTuple):
    """Operations on a cache with room for `capacity` rows. What is put is content of its key; what is renewed is not."""

    capacity: int
    steps: tuple[Step, ...]

    def where(self, number: int) -> str:
        return f"step {number} ({self.steps[number]})"


def script(capacity: int, *steps: str) -> Script:
    """Read a script: `put a 2` puts the 2 rows of the key a, `renew a 2` other rows, `get a 2`, `pin a`, `unpin a`, `clear`."""
    return Script(capacity, tuple(_step(*step.split()) for step in steps))


def key(name: str) -> bytes:
    """The key that a script calls by this name."""
    return name.encode() * 32


def embedding(rows: int, value: float) -> torch.Tensor:
    """Rows that are all filled with one value."""
    return torch.full((rows, HIDDEN), float(value))


def play(cache: Any, steps: Sequence[Step]) -> list[Any]:
    """For each step what the cache answers; a hit as nested lists."""
    return [_answer(cache, number, step) for number, step in enumerate(steps)]


def usage(cache: Any, steps: Sequence[Step]) -> list[int]:
    """The bytes in use after each step."""
    return [(_answer(cache, number, step), cache.used_bytes())[1] for number, step in enumerate(steps)]


def _step(operation: str, key: str = "", rows: str = "0") -> Step:
    return Step(operation, key, int(rows))


def _answer(cache: Any, number: int, step: Step) -> Any:
    if step.operation in ("put", "renew"):
        value = ord(step.key) if step.operation == "put" else number
        return cache.put(key(step.key), embedding(step.rows, value))
    if step.operation == "get":
        hit = cache.get(key(step.key), step.rows)
        return None if hit is None else hit.tolist()
    return getattr(cache, step.operation)(*([key(step.key)] if step.key else []))


class Entry(NamedTuple):
    key: bytes
    embedding: torch.Tensor
    pins: int

    @property
    def bytes(self) -> int:
        return self.embedding.numel() * self.embedding.element_size()


class ListCache:
    """The right answers: entries in a list, the one used longest ago first."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.entries: list[Entry] = []

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        fresh = Entry(key, embedding, sum(self._take(entry).pins for entry in self._under(key)))
        pinned = sum(entry.bytes for entry in self.entries if entry.pins)
        if fresh.bytes + pinned > self.capacity_bytes:
            return False
        while self.used_bytes() + fresh.bytes > self.capacity_bytes:
            self._take(next(entry for entry in self.entries if not entry.pins))
        self.entries.append(fresh)
        return True

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        for entry in self._under(key):
            hit = len(entry.embedding) == token_count
            if hit or not entry.pins:
                self._take(entry)
            if hit:
                self.entries.append(entry)
                return entry.embedding
        return None

    def used_bytes(self) -> int:
        return sum(entry.bytes for entry in self.entries)

    def clear(self) -> None:
        self.entries = []

    def pin(self, key: bytes) -> None:
        self._add_pins(key, 1)

    def unpin(self, key: bytes) -> None:
        self._add_pins(key, -1)

    def _add_pins(self, key: bytes, number: int) -> None:
        self.entries = [e._replace(pins=e.pins + number) if e.key == key else e for e in self.entries]

    def _under(self, key: bytes) -> list[Entry]:
        return [entry for entry in self.entries if entry.key == key]

    def _take(self, entry: Entry) -> Entry:
        self.entries = [other for other in self.entries if other is not entry]
        return entry
