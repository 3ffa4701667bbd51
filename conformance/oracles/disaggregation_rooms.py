"""What is obviously right about rooms: what the prefill had is what the decode has, once, or both have an error.

A script is a list of lines, one operation each:

    begin 7 a       the prefill opens the room 7 for the request a
    expect 7 a      the decode waits for it; `expect 7 b`: it was told another prompt
    store 7 3       the rows of up to 3 further positions are computed
    finish 7        the prompt is computed: what has no rows gets them before
    drop 7          the prefill aborts; `leave 7`: the decode aborts
    post            all messages are delivered, and those that they cause, in order; `back`: the last one always first
    lose            all messages on their way are lost
    replay          everything that was ever said is delivered again
    wait 5          poll
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from conformance.oracles.lifecycle import drawn
from reference.items import Item, Request

LIMIT_S = 10.0
WIDTH = 3


class Script(NamedTuple):
    """Requests by name, the deltas of their positions, and what happens to them."""

    prompts: Mapping[str, Request]
    deltas: Mapping[str, int]
    lines: tuple[str, ...]

    def where(self, number: int) -> str:
        return f"line {number} ({self.lines[number]})"


def script(prompts: Mapping[str, str], *lines: str, deltas: Mapping[str, int] | None = None) -> Script:
    """A script on drawn prompts whose items have a grid. Lines may hold several, with semicolons."""
    made = {name: gridded(drawn(name, drawing)) for name, drawing in prompts.items()}
    return Script(made, {} if deltas is None else deltas, tuple(one.strip() for line in lines for one in line.split(";")))


def gridded(request: Request) -> Request:
    """The request as both sides know it: no content, but identities, and fields of all kinds."""
    items = tuple(
        Item(
            modality=item.modality,
            spans=item.spans,
            identity=item.identity,
            fields={"grid_thw": (1, 2, 2 * item.token_count), "times": [0.5, 1.0], "name": f"medium {number}"},
        )
        for number, item in enumerate(request.items)
    )
    return Request(id=request.id, input_ids=request.input_ids, items=items)


def rows_of(request: Request) -> torch.Tensor:
    """What is computed at each position: [positions, WIDTH]. No two requests have one row in common."""
    start = sum(request.id.encode()) * 1000
    return (start + torch.arange(len(request.input_ids) * WIDTH, dtype=torch.float32)).reshape(-1, WIDTH)


def token_of(request: Request) -> int:
    """The first token of its reply."""
    return sum(request.id.encode())


def prompt_of(request: Request) -> Any:
    """What tells a prompt, in plain values."""
    items = [(item.modality, item.spans, item.identity, dict(item.fields)) for item in request.items]
    return request.input_ids.tolist(), items


def expected(case: Script, name: str) -> Any:
    """What is handed over of a request, in plain values."""
    request = case.prompts[name]
    return prompt_of(request), rows_of(request).tolist(), token_of(request), case.deltas.get(name, 0)


def plain(outcome: Any) -> Any:
    """What was handed over, in plain values; any error as the word error."""
    if isinstance(outcome, Exception):
        return "error"
    return prompt_of(outcome.request), outcome.rows.tolist(), outcome.token, outcome.delta


class Player:
    """Does what the lines of a script say, and carries the messages.

    handed, closed: for each room what the decode and the prefill told of it, in their order. held: the bytes that both
    told after each line.
    """

    def __init__(self, prefill: Any, decode: Any, case: Script) -> None:
        self.prefill, self.decode, self.case, self.now = prefill, decode, case, 0.0
        self.mail: list[tuple[Any, Any]] = []
        self.said: list[tuple[Any, Any]] = []
        self.rooms: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.stored: dict[int, int] = {}
        self.handed: dict[int, list[Any]] = {}
        self.closed: dict[int, list[Any]] = {}
        self.held: list[tuple[int, int]] = []

    def play(self) -> "Player":
        for line in self.case.lines:
            self.do(line)
            self.held.append((self.prefill.held_bytes(), self.decode.held_bytes()))
        return self

    def do(self, line: str) -> None:
        operation, *words = line.split()
        alone: dict[str, Callable[[], None]] = {
            "post": lambda: self.deliver(0),
            "back": lambda: self.deliver(-1),
            "lose": self.mail.clear,
            "replay": self.replay,
            "poll": self.poll,
        }
        if operation in alone:
            return alone[operation]()
        if operation == "wait":
            self.now += float(words[0])
            return None
        room = int(words[0])
        if operation == "begin":
            self.names[room], self.stored[room] = words[1], 0
            self.rooms[room] = self.prefill.begin(self.case.prompts[words[1]], room, self.now)
            return None
        here = self.rooms.get(room, room)
        if operation == "expect":
            return self.say(self.prefill, self.decode.expect(self.case.prompts[words[1]], here, self.now))
        if operation == "leave":
            return self.say(self.prefill, self.decode.abort(here))
        if operation == "drop":
            return self.say(self.decode, self.prefill.abort(here))
        return self.compute(here, room, int(words[1]) if operation == "store" else None)

    def compute(self, here: int, room: int, count: int | None) -> None:
        """Rows of so many further positions; or of all, and the end of the prompt."""
        request = self.case.prompts[self.names[room]]
        first, stop = self.stored[room], len(request.input_ids)
        stop = stop if count is None else min(stop, first + count)
        if first < stop:
            self.say(self.decode, self.prefill.store(here, first, rows_of(request)[first:stop]))
        self.stored[room] = stop
        if count is None:
            delta = self.case.deltas.get(self.names[room], 0)
            self.say(self.decode, self.prefill.finish(here, token_of(request), delta))

    def say(self, side: Any, messages: Any) -> None:
        self.mail += [(side, message) for message in messages]
        self.said += [(side, message) for message in messages]

    def replay(self) -> None:
        self.mail += self.said
        self.deliver(0)

    def deliver(self, next_one: int) -> None:
        while self.mail:
            side, message = self.mail.pop(next_one)
            self.say(self.prefill if side is self.decode else self.decode, side.receive(message))

    def poll(self) -> None:
        for told, outcomes in ((self.handed, self.decode.poll(self.now)), (self.closed, self.prefill.poll(self.now))):
            for here, outcome in outcomes.items():
                room = next((room for room, one in self.rooms.items() if one == here), here)
                done = None if outcome is None else plain(outcome)
                told.setdefault(room, []).append(done)
