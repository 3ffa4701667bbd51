"""What is obviously right about the life of a request: rows looked up one by one, and a list of who needs what.

A script is a list of lines, one operation each:

    admit a         the request a, or `admit a s`: a turn of the session s
    step a 4 b 2    up to 4 further positions of a and 2 of b, in one step
    reply a 2       2 generated tokens
    retract a       and a's next step begins at position 0, or after `cached a 3`, at position 3
    finish a        abort a        close s
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.oracles.encoding import positions as every_position
from conformance.world.doubles import HIDDEN, encoded, medium, precomputed
from conformance.world.prompts import VOCABULARY, draw
from reference.items import Chunk, Item, Request

TABLE = -0.5 - torch.arange(VOCABULARY * HIDDEN, dtype=torch.float32).reshape(VOCABULARY, HIDDEN)
"""Text embeddings: no row equals that of a medium."""

ROW_BYTES = HIDDEN * torch.float32.itemsize
REPLY = (120, 11, 121, 12, 122)
"""What is generated, over and over: text ids, and placeholder ids that stand for nothing."""

FIRST = {"i": 1, "j": 2, "k": 3, "v": 1, "w": 2, "a": 1, "b": 2}
DTYPES = (torch.float32, torch.float64, torch.int16, torch.int8)
"""Of the features of the media 0, 1, 2 and 3: each of them has another number of bytes."""


class Script(NamedTuple):
    """Requests by name, what is done with them, and room for how many rows of encoder output there is."""

    prompts: Mapping[str, Request]
    lines: tuple[str, ...]
    cache_rows: int

    def where(self, number: int) -> str:
        return f"line {number} ({self.lines[number]})"


def script(
    prompts: Mapping[str, str], *lines: str, cache_rows: int = 0, embedded: str = "", numbers: Mapping[str, int] = FIRST
) -> Script:
    """A script on drawn prompts. Arguments as of `drawn`."""
    return Script({name: drawn(name, drawing, embedded, numbers) for name, drawing in prompts.items()}, lines, cache_rows)


def drawn(name: str, drawing: str, embedded: str = "", numbers: Mapping[str, int] = FIRST) -> Request:
    """A drawing as a request, its media with content.

    embedded: the letters of media that come with the encoder's rows and not with a feature. numbers: of the media that
    the letters stand for; two letters may stand for one.
    """
    ids, items = draw(drawing)
    letters = dict.fromkeys(letter for letter in drawing if letter in FIRST)
    filled = [_medium(numbers[letter], item, letter in embedded) for letter, item in zip(letters, items, strict=True)]
    return Request(id=name, input_ids=ids, items=tuple(filled))


def play(requests: Any, case: Script) -> list[Any]:
    """For each line what it answers: for a step, by request, a list of rows or the word error."""
    player = Player(requests, case)
    return [player.do(line) for line in case.lines]


def weigh(requests: Any, case: Script, method: str = "held_bytes") -> list[int]:
    """The bytes that this method tells after each line."""
    player = Player(requests, case)
    return [(player.do(line), getattr(requests, method)())[1] for line in case.lines]


class Player:
    """Does what the lines of a script say, and knows how far each request is."""

    def __init__(self, requests: Any, case: Script) -> None:
        self.requests, self.prompts = requests, case.prompts
        self.at: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.running: dict[str, str] = {}
        self.finished: dict[str, Request] = {}
        self.generated = 0

    def do(self, line: str) -> Any:
        operation, *words = line.split()
        if operation == "step":
            return self.step(dict(zip(words[::2], map(int, words[1::2]), strict=True)))
        if operation == "admit":
            return self.admit(*words)
        if operation == "reply":
            return self.reply(words[0], int(words[1]))
        if operation == "cached":
            self.at[words[0]] = int(words[1])
            return None
        if operation == "retract":
            self.at[words[0]] = 0
        if operation == "finish" and words[0] in self.running:
            self.finished[self.running[words[0]]] = self.prompts[words[0]]
        if operation in ("finish", "abort"):
            self.running.pop(words[0], None)
        if operation == "close":
            self.finished.pop(words[0], None)
            self.running = {id: session for id, session in self.running.items() if session != words[0]}
        return getattr(self.requests, operation)(*words)

    def admit(self, id: str, session: str | None = None) -> Any:
        """Of what the session's last finished turn had, only the place is told."""
        request = self.prompts[id]
        self.at[id], self.ends[id] = 0, len(request.input_ids)
        if session is not None:
            self.running[id] = session
        kept = self.finished[session].items if session in self.finished else ()
        items = tuple(_hollow(item) if _named(kept, item) else item for item in request.items)
        return self.requests.admit(Request(id=id, input_ids=request.input_ids, items=items), session, None)

    def reply(self, id: str, count: int) -> Any:
        """No two requests say the same."""
        tokens = [REPLY[(self.generated + n) % len(REPLY)] for n in range(count)]
        self.generated, self.ends[id] = self.generated + count, self.ends[id] + count
        return self.requests.reply(id, tokens)

    def step(self, lengths: Mapping[str, int]) -> dict[str, Any]:
        chunks = {id: Chunk(self.at[id], min(length, self.ends[id] - self.at[id])) for id, length in lengths.items()}
        chunks = {id: chunk for id, chunk in chunks.items() if chunk.length}
        answers = self.requests.step(chunks)
        self.at |= {id: chunk.stop for id, chunk in chunks.items()}
        return {id: "error" if isinstance(answer, Exception) else answer.tolist() for id, answer in answers.items()}


class PlainRequests:
    """The right answers: every row is looked up when it is asked for.

    broken: the numbers of media that cannot be encoded.
    """

    def __init__(self, broken: Sequence[int] = ()) -> None:
        self.broken = broken
        self.alive: dict[str, Request] = {}
        self.turn_of: dict[str, str] = {}
        self.replies: dict[str, list[int]] = {}
        self.last_turns: dict[str, Request] = {}
        self.turns: dict[str, list[Request]] = {}

    def admit(self, request: Request, session: str | None, triples: NDArray[np.int64] | None) -> None:
        kept = self.last_turns[session].items if session in self.last_turns else ()
        items = tuple(_refilled(item, _named(kept, item)[0]) if item.is_empty else item for item in request.items)
        self.alive[request.id] = Request(id=request.id, input_ids=request.input_ids, items=items)
        self.replies[request.id] = []
        if session is not None:
            self.turn_of[request.id] = session

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, Any]:
        answers = {id: self.rows(self.alive[id], chunk) for id, chunk in chunks.items()}
        for id, answer in answers.items():
            if isinstance(answer, Exception):
                self.abort(id)
        return answers

    def reply(self, id: str, token_ids: Sequence[int]) -> None:
        self.replies[id] += token_ids

    def retract(self, id: str) -> None:
        """Nothing that was computed makes a difference to what comes."""

    def finish(self, id: str) -> None:
        if id in self.turn_of:
            self.last_turns[self.turn_of[id]] = self.alive[id]
            self.turns.setdefault(self.turn_of[id], []).append(self.alive[id])
        self.abort(id)

    def abort(self, id: str) -> None:
        self.alive.pop(id, None)
        self.turn_of.pop(id, None)

    def close(self, session: str) -> None:
        self.turn_of = {id: other for id, other in self.turn_of.items() if other != session}
        self.last_turns.pop(session, None)
        self.turns.pop(session, None)

    def held_bytes(self) -> int:
        """The bytes of all media that somebody needs, each once."""
        needed = [item for one in (*self.alive.values(), *self.last_turns.values()) for item in one.items]
        return sum({_name(item): _bytes(item) for item in needed}.values())

    def most_bytes(self) -> int:
        """The same, but each request and each finished turn of an open session has media of its own."""
        turns = [turn for turns in self.turns.values() for turn in turns]
        return sum(_bytes(item) for one in (*self.alive.values(), *turns) for item in one.items)

    def rows(self, request: Request, chunk: Chunk) -> Any:
        owners = {position: item for item in request.items for position in every_position(item.spans)}
        ids = [*request.input_ids.tolist(), *self.replies[request.id]]
        found = []
        for position in range(chunk.prefix, chunk.stop):
            item = owners.get(position)
            if item is None:
                found.append(TABLE[ids[position]])
            elif item.embedding is None and int(item.feature.item()) in self.broken:
                return ValueError("it cannot be encoded")
            else:
                found.append(encoded(item)[every_position(item.spans).index(position)])
        return torch.stack(found)


def _medium(number: int, item: Item, is_embedded: bool) -> Item:
    made = medium(item.modality, number, *((span.first, span.last) for span in item.spans))
    feature = made.feature.to(DTYPES[number])
    known = Item(modality=made.modality, spans=made.spans, feature=feature, identity=made.identity)
    return precomputed(made) if is_embedded else known


def _hollow(item: Item) -> Item:
    return Item(modality=item.modality, spans=item.spans, identity=item.identity)


def _named(items: Sequence[Item], wanted: Item) -> list[Item]:
    """Those with the same content: an embedding fits one length only."""
    alike = [item for item in items if item.identity == wanted.identity]
    return [item for item in alike if item.embedding is None or len(item.embedding) == wanted.token_count]


def _refilled(item: Item, kept: Item) -> Item:
    known: dict[str, Any] = {"identity": item.identity, "feature": kept.feature, "embedding": kept.embedding}
    return Item(modality=item.modality, spans=item.spans, **known)


def _name(item: Item) -> tuple[Any, ...]:
    return item.identity, None if item.embedding is None else item.token_count


def _bytes(item: Item) -> int:
    return int((item.feature if item.embedding is None else item.embedding).nbytes)
