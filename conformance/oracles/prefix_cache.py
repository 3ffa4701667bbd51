"""What is obviously right about prefixes: requests written out position by position, and compared one by one.

A prompt is drawn as words, with one character a position and none for the spaces:

    AB iii C vvTvv     text, a picture of three positions, text, a video of two frames with text between them

A word with a small letter is one item, whose content the letter names (see `conformance.world.prompts`); its rows stand at
the small letters. Everything else is text. `#` is the placeholder id of pictures, typed by a user. Within a case a letter
always has the same number of positions, as a content has one token count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from conformance.protocol.prefix_cache import Namespace
from conformance.world.prompts import MODALITIES, PLACEHOLDERS, picture
from reference.items import Item, Modality, Request, Span

Position: TypeAlias = tuple[Any, ...]
EVERYTHING = 1 << 40
NOBODY = Namespace()


def ask(drawing: str, **known: bytes | int | None) -> Request:
    """The request of a drawing. known: for a letter the identity or the caller's hash of its item, in place of its own."""
    words, items, first = drawing.split(), [], 0
    for word in words:
        if letters := [character for character in word if character in MODALITIES]:
            items.append(_item(letters[0], _runs(word, first), known))
        first += len(word)
    ids = [_id(character) for word in words for character in word]
    return Request(id=drawing or "empty", input_ids=np.array(ids, dtype=np.int64), items=tuple(items))


def whole(request: Request, namespace: Namespace = NOBODY, limit: int | None = None) -> tuple[Request, Namespace, int]:
    """What a cache is asked about a request: a copy of it, for an engine may write to it, and how much of it counts."""
    return copied(request), namespace, len(request.input_ids) if limit is None else limit


def copied(request: Request) -> Request:
    """The same request with ids of its own."""
    return replace(request, input_ids=request.input_ids.copy())


def semantics(request: Request) -> list[Position]:
    """What stands at each position: a text id, or a row of an item with its token count."""
    sequence: list[Position] = [("text", id) for id in request.input_ids.tolist()]
    for item in request.items:
        places = [position for span in item.spans for position in range(span.first, span.stop)]
        for row, position in enumerate(places):
            sequence[position] = ("row", item.caller_hash, item.identity, len(places), row)
    return sequence


def common(first: Sequence[Any], second: Sequence[Any]) -> int:
    """How many elements two sequences share, from the first on."""
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return length


class Step(NamedTuple):
    """One operation on a cache, and the name of the prompt that it is about, or a number."""

    operation: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.operation} {self.about}".strip()


class Script(NamedTuple):
    """Operations on a cache of pages of `page` positions, about these prompts."""

    page: int
    prompts: Mapping[str, Request]
    steps: tuple[Step, ...]

    def where(self, number: int) -> str:
        return f"step {number} ({self.steps[number]})"


def script(page: int, prompts: Mapping[str, str], *steps: str) -> Script:
    """Read a script: `insert x`, `match x`, `lock x`, `unlock x` (the last lock on x), `evict`, `evict 3`, `used`, `clear`."""
    return Script(page, {name: ask(drawing) for name, drawing in prompts.items()}, tuple(Step(*s.split()) for s in steps))


def play(cache: Any, prompts: Mapping[str, Request], steps: Sequence[Step]) -> list[Any]:
    """What the cache answers to each step; None to `evict`, which evicts all unless it says how much."""
    locks: dict[str, list[Any]] = {name: [] for name in prompts}
    return [_answer(cache, prompts, locks, step) for step in steps]


class ListCache:
    """The right answers, page by page: what is kept, and what is locked, are lists of prefixes of whole pages.

    evicts: which of the positions that are not locked go when only some must: "all" or, while some are left, "none".
    """

    def __init__(self, page: int, items: str = "cut", evicts: str = "all") -> None:
        self.page, self.items, self.evicts = page, items, evicts
        self.kept: list[tuple[Any, ...]] = []
        self.locked: list[tuple[Any, ...]] = []

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        self.kept.append(self._told(request, namespace, min(limit, len(request.input_ids)) // self.page * self.page))

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        asked = self._told(request, namespace, limit)
        longest = max((common(kept, asked) for kept in self.kept if kept[0] == asked[0]), default=1)
        return self._whole(request, longest - 1)

    def lock(self, request: Request, namespace: Namespace, limit: int) -> tuple[Any, ...]:
        held = self._told(request, namespace, self.match(request, namespace, limit))
        self.locked.append(held)
        return held

    def unlock(self, lock: tuple[Any, ...]) -> None:
        self.locked.remove(lock)

    def evict(self, tokens: int) -> int:
        before = self.used_tokens()
        if self.evicts == "all" or tokens >= before:
            self.kept = list(self.locked)
        return before - self.used_tokens()

    def used_tokens(self) -> int:
        pages = {kept[: 1 + stop] for kept in self.kept for stop in range(self.page, len(kept), self.page)}
        return len(pages) * self.page

    def clear(self) -> None:
        self.kept, self.locked = [], []

    def _told(self, request: Request, namespace: Namespace, length: int) -> tuple[Any, ...]:
        return (namespace, *semantics(request)[:length])

    def _whole(self, request: Request, length: int) -> int:
        """The length in whole pages, and in whole items where the trait says so."""
        length = length // self.page * self.page
        inside = [item.spans[0].first for item in request.items if item.spans[0].first < length <= item.spans[-1].last]
        return self._whole(request, min(inside)) if inside and self.items == "whole" else length


def _answer(cache: Any, prompts: Mapping[str, Request], locks: Mapping[str, list[Any]], step: Step) -> Any:
    if step.operation == "unlock":
        return cache.unlock(locks[step.about].pop())
    if step.operation == "evict":
        cache.evict(int(step.about or EVERYTHING))
        return None
    if not step.about:
        return cache.used_tokens() if step.operation == "used" else cache.clear()
    answer = getattr(cache, step.operation)(*whole(prompts[step.about]))
    return locks[step.about].append(answer) if step.operation == "lock" else answer


def _runs(word: str, first: int) -> tuple[Span, ...]:
    """The runs of small letters in a word that begins at a position."""
    spans: list[Span] = []
    for position, character in enumerate(word, first):
        if character in MODALITIES:
            touches = bool(spans) and spans[-1].stop == position
            spans[len(spans) - touches :] = [Span(spans[-1].first if touches else position, position)]
    return tuple(spans)


def _item(letter: str, spans: tuple[Span, ...], known: Mapping[str, bytes | int | None]) -> Item:
    if letter not in known:
        return picture(letter, spans)
    name = known[letter]
    identity = name if isinstance(name, bytes) else None
    return Item(
        modality=MODALITIES[letter], spans=spans, identity=identity, caller_hash=name if isinstance(name, int) else None
    )


def _id(character: str) -> int:
    if character == "#":
        return PLACEHOLDERS[Modality.IMAGE]
    return PLACEHOLDERS[MODALITIES[character]] if character in MODALITIES else ord(character)
