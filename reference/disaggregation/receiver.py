"""The receiver: rows of media that come in parts, put together before the prefill.

What reaches the merge is what one process would have made: the same rows, in the order of the items, whatever came first.

1. A request waits under its own id. A part that nobody waits for is dropped: whoever it was for has its outcome.
2. Rows are kept by item, and so is what was found out about each. Lists of what some parts have and others lack would
   move a video's times to its neighbour.
3. Everything about a part is checked before anything of it is kept. Rows that do not fit fail the request: cut or filled
   up they would be a picture of another size.
4. Each request has one outcome: all items, or an error. Nothing waits for ever, since a poll knows the time.

Source: SGLang 0.5.23, `MultiModalEmbeddingData`, `WaitingMMRequestBase` and `_validate_embedding_part`; vLLM 0.33,
`ECCPUScheduler._admit_item`.
Disagreements: SGLang fails a request whose part comes twice, ends every request whose id begins with that of a cancelled
one, and joins metadata of the parts that have some; vLLM asks for rows by identity and falls back to the medium itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from reference.items import Item, Request


class PartsMissing(TimeoutError):
    """Not all parts of a request came in time."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits. parts: the numbers of the items of each. rows, fields: by the number of an item."""

    request: Request
    parts: tuple[tuple[int, ...], ...]
    since: float
    arrived: set[int] = field(default_factory=set)
    rows: dict[int, torch.Tensor] = field(default_factory=dict)
    fields: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        return [number for number in range(len(self.parts)) if number not in self.arrived]


class Receiver:
    """Requests that wait for at most `limit_s` seconds."""

    def __init__(self, limit_s: float) -> None:
        if not limit_s > 0:
            raise ValueError(f"a request waits for a positive number of seconds, not {limit_s}")
        self._limit_s = limit_s
        self._waiting: dict[str, _Waiting] = {}
        self._failed: dict[str, Exception] = {}

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        """Wait for a request in parts. Raises ValueError for one that waits already, and if parts and items do not fit."""
        if request.id in self._waiting or request.id in self._failed:
            raise ValueError(f"request {request.id} waits already")
        named = sorted(number for part in parts for number in part)
        raw = [number for number, item in enumerate(request.items) if item.embedding is None]
        if named != raw:
            raise ValueError(
                f"request {request.id}: the items {raw} have to be encoded, each in one part, but parts name {named}"
            )
        for number, item in enumerate(request.items):
            if item.embedding is not None and len(item.embedding) != item.token_count:
                raise ValueError(
                    f"request {request.id}, item {number}: {len(item.embedding)} rows for {item.token_count} positions"
                )
        self._waiting[request.id] = _Waiting(request, tuple(map(tuple, parts)), now)

    def arrive(
        self,
        id: str,
        part: int,
        parts: int,
        rows: torch.Tensor | Exception,
        fields: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Keep the rows of a part, or fail the request for which they are; nothing for one that does not wait."""
        one = self._waiting.get(id)
        if one is None or part in one.arrived:
            return
        if isinstance(rows, Exception):
            self.fail(id, rows)
            return
        if error := self._misfit(one, part, parts, rows, fields):
            self.fail(id, ValueError(f"request {id}, part {part}: {error}"))
            return
        numbers = one.parts[part]
        lengths = [one.request.items[number].token_count for number in numbers]
        one.arrived.add(part)
        one.rows |= zip(numbers, torch.split(rows.clone(), lengths), strict=True)
        one.fields |= zip(numbers, fields, strict=False)

    def fail(self, id: str, error: Exception) -> None:
        """End a request that waits with this error."""
        if self._waiting.pop(id, None) is not None:
            self._failed[id] = error

    def cancel(self, id: str) -> None:
        """Forget a request."""
        self._waiting.pop(id, None)
        self._failed.pop(id, None)

    def poll(self, now: float) -> dict[str, tuple[Item, ...] | Exception]:
        """The requests that are complete, have failed, or have waited too long; each once."""
        for id, one in list(self._waiting.items()):
            if one.missing and now - one.since > self._limit_s:
                came = f"parts {', '.join(map(str, one.missing))} of {len(one.parts)} did not come within {self._limit_s:g} s"
                self.fail(id, PartsMissing(f"request {id}: {came}"))
        ready = [id for id, one in self._waiting.items() if not one.missing]
        outcomes: dict[str, tuple[Item, ...] | Exception] = {id: _complete(self._waiting.pop(id)) for id in ready}
        outcomes |= self._failed
        self._failed = {}
        return outcomes

    def held_bytes(self) -> int:
        """The bytes of rows that have arrived."""
        return sum(rows.nbytes for one in self._waiting.values() for rows in one.rows.values())

    def _misfit(
        self, one: _Waiting, part: int, parts: int, rows: torch.Tensor, fields: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """What is wrong with a part that has arrived, in words."""
        if parts != len(one.parts) or not 0 <= part < parts:
            return f"it is one of {parts}, but the request has the parts 0 to {len(one.parts) - 1}"
        numbers = one.parts[part]
        expected = sum(one.request.items[number].token_count for number in numbers)
        if rows.ndim != 2 or len(rows) != expected:
            return f"its items {list(numbers)} have {expected} positions, but rows of the shape {list(rows.shape)} came"
        if fields and len(fields) != len(numbers):
            return f"it has {len(numbers)} items, but {len(fields)} mappings of fields came"
        kind = one.request.items[numbers[0]].modality
        for other in [rows for number, rows in one.rows.items() if one.request.items[number].modality is kind]:
            if (other.shape[1], other.dtype) != (rows.shape[1], rows.dtype):
                found, known = f"{rows.dtype}, {rows.shape[1]} wide", f"{other.dtype}, {other.shape[1]} wide"
                return f"its rows are {found}, but others of its modality are {known}"
        return None


def _complete(one: _Waiting) -> tuple[Item, ...]:
    return tuple(
        item
        if number not in one.rows
        else replace(
            item,
            feature=None,
            embedding=one.rows[number],
            format=None,
            fields={**item.fields, **one.fields.get(number, {})},
        )
        for number, item in enumerate(one.request.items)
    )
