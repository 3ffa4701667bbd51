"""What is obviously right about parts that arrive: for each request a list of what has come.

A script is a list of lines, one operation each. A part is named by one of its items:

    expect a        the request a waits
    arrive a 1      the part with a's item 1 arrives, unless it has; `again a 1`: even then
    broken a 1      the encoder's error arrives in its place
    short a 1       with a row too few; `long`, `wide`, `cast`: with one too many, wider, of another type
    recount a 1     it says that there are more parts than there are; `beyond a`: a part that there is not
    bare a 1        it arrives without fields
    fail a          cancel a, or `cancel` a request without a name         wait 5          poll
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch

from conformance.oracles.lifecycle import FIRST, drawn
from conformance.world.doubles import HIDDEN, encoded
from reference.items import Item, Request

LIMIT_S = 10.0
Split = Literal["ranges", "one"]
Repeats = Literal["drop", "fail"]


class Script(NamedTuple):
    """Requests by name, and what happens to them."""

    prompts: Mapping[str, Request]
    lines: tuple[str, ...]

    def where(self, number: int) -> str:
        return f"line {number} ({self.lines[number]})"


def script(prompts: Mapping[str, str], *lines: str, embedded: str = "", numbers: Mapping[str, int] = FIRST) -> Script:
    """A script on drawn prompts, see `conformance.oracles.lifecycle.drawn`. Lines may hold several, with semicolons."""
    made = {name: drawn(name, drawing, embedded, numbers) for name, drawing in prompts.items()}
    return Script(made, tuple(one.strip() for line in lines for one in line.split(";")))


def split(items: Sequence[Item], how: Split) -> list[list[int]]:
    """The items that have to be encoded in parts: each by itself, or neighbours of one modality in twos."""
    parts: list[list[int]] = []
    for number, item in enumerate(items):
        if item.embedding is not None:
            continue
        fits = parts and len(parts[-1]) < 2 and items[parts[-1][0]].modality is item.modality
        if how == "ranges" and fits:
            parts[-1].append(number)
        else:
            parts.append([number])
    return parts


def found_out(item: Item) -> dict[str, Any]:
    """What an encoder finds out about an item."""
    return {"grid_thw": (1, 2, 2 * item.token_count), "seconds": float(item.feature.item())}


class Player:
    """Does what the lines of a script say; what arrives lies in one buffer, which the next arrival overwrites."""

    def __init__(self, receiver: Any, case: Script, how: Split) -> None:
        self.receiver, self.prompts, self.how, self.now = receiver, case.prompts, how, 0.0
        self.arrived: set[tuple[str, int]] = set()
        self.buffer = torch.zeros(64, HIDDEN)

    def do(self, line: str) -> Any:
        operation, *words = line.split()
        match operation:
            case "wait":
                self.now += float(words[0])
                return None
            case "poll":
                return {id: plain(outcome) for id, outcome in sorted(self.receiver.poll(self.now).items())}
            case "cancel":
                return self.receiver.cancel(words[0] if words else "")
            case "fail":
                return self.receiver.fail(words[0], OSError("no encoder can be reached"))
        request = self.prompts[words[0]]
        parts = split(request.items, self.how)
        if operation == "expect":
            return self.receiver.expect(bare(request), parts, self.now)
        if operation == "beyond":
            return self.receiver.arrive(request.id, len(parts), len(parts), torch.zeros(1, HIDDEN), [{}])
        number = next(number for number, part in enumerate(parts) if int(words[1]) in part)
        return self.arrive(operation, request, number, parts)

    def arrive(self, how: str, request: Request, number: int, parts: list[list[int]]) -> Any:
        if how == "arrive" and (request.id, number) in self.arrived:
            return None
        self.arrived.add((request.id, number))
        items = [request.items[n] for n in parts[number]]
        rows = self.buffered(altered(how, torch.cat([encoded(item) for item in items])))
        made = OSError("the encoder is out of memory") if how == "broken" else rows
        fields = [] if how == "bare" else [found_out(item) for item in items]
        return self.receiver.arrive(request.id, number, len(parts) + (how == "recount"), made, fields)

    def buffered(self, rows: torch.Tensor) -> torch.Tensor:
        """The rows in the one buffer, if they look like those that fit there."""
        if rows.dtype != self.buffer.dtype or rows.shape[1] != HIDDEN:
            return rows
        self.buffer.fill_(-1.0)
        self.buffer[: len(rows)] = rows
        return self.buffer[: len(rows)]


def altered(how: str, rows: torch.Tensor) -> torch.Tensor:
    """The rows with what the word says is wrong with them."""
    wrong = {
        "short": lambda: rows[:-1],
        "long": lambda: torch.cat([rows, rows[-1:]]),
        "wide": lambda: torch.cat([rows, rows[:, :1]], dim=1),
        "cast": lambda: rows.double(),
    }
    return wrong.get(how, lambda: rows)()


def bare(request: Request) -> Request:
    """The request as the prefill knows it: media that have to be encoded have no content there."""
    items = tuple(
        item if item.embedding is not None else Item(modality=item.modality, spans=item.spans, identity=item.identity)
        for item in request.items
    )
    return Request(id=request.id, input_ids=request.input_ids, items=items)


def plain(outcome: Any) -> Any:
    """Items as their rows, fields, places and identities; any error as the word error."""
    if isinstance(outcome, Exception):
        return "error"
    return [
        (item.embedding.tolist(), dict(item.fields), item.spans, item.modality, item.identity)
        for item in outcome
        if item.embedding is not None
    ]


class PlainReceiver:
    """The right answers.

    repeats: what becomes of a part that comes twice.
    """

    def __init__(self, case: Script, how: Split, repeats: Repeats) -> None:
        self.prompts, self.how, self.repeats = case.prompts, how, repeats
        self.began: dict[str, float] = {}
        self.came: dict[str, list[tuple[int, Any, bool]]] = {}
        self.bad: dict[str, Exception] = {}
        self.arrived: dict[str, int] = {}

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        self.began[request.id], self.came[request.id], self.arrived[request.id] = now, [], 0

    def arrive(self, id: str, part: int, parts: int, rows: Any, fields: Sequence[Mapping[str, Any]]) -> None:
        if id in self.came and isinstance(rows, torch.Tensor):
            self.arrived[id] += rows.nbytes
        if id not in self.came or id in self.bad:
            return
        right = split(self.prompts[id].items, self.how)
        is_repeated = part in [number for number, _, _ in self.came[id]]
        if is_repeated and (self.repeats == "drop" or len(self.came[id]) == len(right)):
            return
        if is_repeated or isinstance(rows, Exception) or (part >= len(right) or parts != len(right)):
            self.bad[id] = ValueError("it cannot be computed")
            return
        items = self.prompts[id].items
        alike = [one for one in self.came[id] if items[right[one[0]][0]].modality is items[right[part][0]].modality]
        before = [(other.shape[1], other.dtype) for _, other, _ in alike][:1]
        count = sum(items[n].token_count for n in right[part])
        if len(rows) != count or before not in ([], [(rows.shape[1], rows.dtype)]):
            self.bad[id] = ValueError("it does not fit")
            return
        self.came[id].append((part, rows.clone(), bool(fields)))

    def fail(self, id: str, error: Exception) -> None:
        if id in self.came:
            self.bad[id] = error

    def cancel(self, id: str) -> None:
        self._forget(id)

    def poll(self, now: float) -> dict[str, Any]:
        outcomes: dict[str, Any] = {}
        for id, since in list(self.began.items()):
            right = split(self.prompts[id].items, self.how)
            if id in self.bad:
                outcomes[id] = self.bad[id]
            elif len(self.came[id]) == len(right):
                outcomes[id] = self._whole(id, right)
            elif now - since > LIMIT_S:
                outcomes[id] = TimeoutError("not all parts came")
        for id in outcomes:
            self._forget(id)
        return outcomes

    def held_bytes(self) -> int:
        return sum(self.arrived[id] for id in self.began)

    def _whole(self, id: str, right: list[list[int]]) -> list[Item]:
        """Each item with its embedding, or with the next of the rows of its part that have no owner yet."""
        rows = {part: list(came) for part, came, _ in self.came[id]}
        told = {n for part, _, has_fields in self.came[id] if has_fields for n in right[part]}
        owners = {n: part for part, numbers in enumerate(right) for n in numbers}
        items = []
        for number, item in enumerate(self.prompts[id].items):
            mine = item.embedding
            if number in owners:
                mine = torch.stack([rows[owners[number]].pop(0) for _ in range(item.token_count)])
            known: dict[str, Any] = {"identity": item.identity, "fields": found_out(item) if number in told else {}}
            items.append(Item(modality=item.modality, spans=item.spans, embedding=mine, **known))
        return items

    def _forget(self, id: str) -> None:
        self.began.pop(id, None)
        self.came.pop(id, None)
        self.bad.pop(id, None)
