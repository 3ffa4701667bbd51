"""A bench for preprocessors: work that begins when the engine says so and ends when the rule says so.

No rule sleeps. A rule waits for what must happen, and its patience can only run out on an engine that hangs; what must not
happen is looked for at the end, when all work has been let go and the preprocessor is closed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Condition, current_thread
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL.Image import Image

from conformance.cases import Pair
from conformance.compare import Mismatch, equal, holds, unless_refused
from conformance.engine import Engine
from conformance.oracles.preprocessing import UNIT, RunList, Script, State, Step, drained, units
from conformance.protocol.preprocessing import Preprocessor
from conformance.suite.preprocessing_cases import Asked, Uses
from conformance.witness import EngineRaised
from reference.items import Format, Item, Modality

PATIENCE_S = 2.5
"""How long a rule waits for what must happen."""

GLANCE_S = 0.05
"""How long it waits before it looks whether something else has happened."""

NOTHING = f"nothing within {PATIENCE_S:g} s"
PROCESSOR = "ImageProcessor 1"
ROOM = 1 << 30


class Call(NamedTuple):
    """What the work was given."""

    item: Item
    processor: str
    options: Mapping[str, Any]


class Bench:
    """The work, how often it was begun, and the end of each run, which is held until it is told.

    A run in the thread of the rule itself is not held, for nobody could tell its end; `in_place` says that there was one.
    """

    def __init__(self, make: Callable[[Call, int], Any]) -> None:
        self.calls: list[Call] = []
        self.most_at_once = 0
        self.in_place = False
        self._rule = current_thread()
        self._make = make
        self._running = 0
        self._ends: dict[int, BaseException | None] = {}
        self._open = False
        self._changed = Condition()

    def work(self, item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        """What the engine is given to run: it returns, or raises, when its end is told."""
        with self._changed:
            number = len(self.calls)
            self.calls.append(Call(item, processor, options))
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
            self._changed.notify_all()
            if current_thread() is self._rule:
                self.in_place = True
                self._ends[number] = None
            self._changed.wait_for(lambda: number in self._ends or self._open, 3 * PATIENCE_S)
            self._running -= 1
            end = self._ends.get(number)
            run = 1 + sum(name_of(call.item) == name_of(item) for call in self.calls[:number])
        if end is not None:
            raise end
        return self._make(self.calls[number], run)

    @property
    def begun(self) -> tuple[str, ...]:
        """The names of the media on which work has begun, in this order."""
        with self._changed:
            return tuple(name_of(call.item) for call in self.calls)

    def await_begun(self, count: int, limit_s: float = PATIENCE_S) -> bool:
        """Wait until work has begun so often; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.calls) >= count, limit_s)

    def end(self, name: str, error: BaseException | None = None) -> None:
        """Let the first run on this medium that is still held return, or raise."""
        with self._changed:
            held = [n for n, call in enumerate(self.calls) if name_of(call.item) == name and n not in self._ends]
            if not held:
                raise Mismatch(f"no work on {name} is left to be ended, for it has ended by itself")
            self._ends[held[0]] = error
            self._changed.notify_all()

    def let_go(self) -> None:
        """Let every run return, now and from now on."""
        with self._changed:
            self._open = True
            self._changed.notify_all()


def medium(name: str, modality: Modality = Modality.IMAGE) -> Item:
    """The raw picture that a script calls by this letter."""
    return Item(modality=modality, feature=np.full((2, 2, 3), ord(name), dtype=np.uint8), format=Format.RAW)


def name_of(item: Item) -> str:
    """The letter of a picture, judged by its first pixel."""
    return chr(int(np.asarray(item.feature).flat[0]))


def labelled(call: Call, run: int) -> dict[str, Any]:
    """A result that says which run on which medium it is of."""
    return {"of": name_of(call.item), "run": run}


def seen(call: Call, run: int) -> dict[str, Any]:
    """A result that says what the work was given."""
    item = call.item
    content = {"feature": plain(item.feature), "fields": plain(item.fields)}
    return {"modality": int(item.modality), **content, "processor": call.processor, "options": plain(call.options)}


def given_to(asked: Asked) -> dict[str, Any]:
    """What the work must be given, in the words of `seen`."""
    return seen(Call(asked.item, asked.processor, asked.options.get(asked.item.modality, {})), 1)


def plain(value: Any) -> Any:
    """Plain data with every tensor, array and picture as nested lists of numbers."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | torch.Tensor | Image) else value


def keys_of(engine: Engine, pair: Pair) -> tuple[bytes, bytes]:
    """The keys of two things that are asked."""
    return engine.preprocessing_key(*pair.first), engine.preprocessing_key(*pair.second)


@contextmanager
def bench(
    engine: Engine,
    workers: int,
    queued: int,
    *,
    room: int = ROOM,
    make: Callable[[Call, int], Any] = labelled,
) -> Iterator[tuple[Preprocessor, Bench]]:
    """A preprocessor and the work that it runs; in the end all work is let go and the preprocessor closed."""
    one = Bench(make)
    preprocessor = engine.open_preprocessor(one.work, workers, queued, room)
    try:
        yield preprocessor, one
    finally:
        one.let_go()
        with suppress(EngineRaised):  # how it closes is a matter of its own rule
            preprocessor.close()


def preprocessor_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a preprocessor that has these, beside what every rule asks."""
    return ("open_preprocessor", *(f"open_preprocessor.{method}" for method in ("submit", "result", "close", *methods)))


def submit(preprocessor: Preprocessor, name: str) -> Any:
    """Submit a picture by its letter."""
    return preprocessor.submit(medium(name), PROCESSOR, {})


def outcome(preprocessor: Preprocessor, ticket: Any, limit_s: float = PATIENCE_S) -> str:
    """What came of a ticket, in words: "a 2" is the result of the second run on a."""
    try:
        result = preprocessor.result(ticket, limit_s)
    except EngineRaised as raised:
        if isinstance(raised.error, TimeoutError):
            return NOTHING
        return "cancelled" if type(raised.error).__name__ == "CancelledError" else "failed"
    return f"{result['of']} {result['run']}" if isinstance(result, Mapping) and {"of", "run"} <= {*result} else str(result)


def outcomes(preprocessor: Preprocessor, tickets: Sequence[Any]) -> list[str]:
    """What came of several tickets, for which a rule has patience once and not for each."""
    out_of_patience = monotonic() + PATIENCE_S
    return [outcome(preprocessor, ticket, max(out_of_patience - monotonic(), GLANCE_S)) for ticket in tickets]


def error_of(preprocessor: Preprocessor, ticket: Any) -> str:
    """The error that a ticket ends with, its kind and its words."""
    try:
        return f"none, but {preprocessor.result(ticket, PATIENCE_S)}"
    except EngineRaised as raised:
        return f"{type(raised.error).__name__}: {raised.error}"


def use(engine: Engine, given: Uses) -> list[tuple[int, int]]:
    """For each use how often work has begun by then, and the bytes that are said to be in use."""
    with bench(engine, 1, 9, room=given.room * UNIT + UNIT // 2, make=unit) as (preprocessor, work):
        work.let_go()
        return [_use(preprocessor, work, name) for name in given.order]


def unit(call: Call, run: int) -> np.ndarray:
    """A result of so many units as the letter of its picture stands for."""
    return np.full(units(name_of(call.item)) * UNIT, run, dtype=np.uint8)


def scribble(value: Any) -> None:
    """Write into everything that can be written to, however deep; what can only be read is safe already."""
    for part in [*value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else []:
        scribble(part)
    with suppress(ValueError, TypeError, RuntimeError):
        match value:
            case np.ndarray() | torch.Tensor():
                value[...] = 99
            case list():
                value.append(99)
            case dict():
                value["scribble"] = 99


def follows(engine: Engine, given: Script) -> None:
    """The engine does at each step of a script what the model does, and in the end has begun the same work."""
    whole = drained(given)
    states = whole.measured or RunList(whole.workers, whole.queued).states(whole.steps)
    tickets: list[Any] = []
    with bench(engine, whole.workers, whole.queued) as (preprocessor, work):
        for number, (step, expected) in enumerate(zip(whole.steps, states, strict=True)):
            _take(preprocessor, work, step, tickets)
            observed = _settle(preprocessor, work, expected, tickets)
            equal(observed.ended, expected.ended, f"the outcomes at {whole.where(number)}, by ticket")
            equal(observed.begun, expected.begun, f"the work begun until {whole.where(number)}", where="run {}".format)
    equal(work.begun, states[-1].begun, "the work begun in all", where="run {}".format)
    holds(work.most_at_once <= whole.workers, f"{work.most_at_once} runs at once, and {whole.workers} are allowed")


def _use(preprocessor: Preprocessor, work: Bench, name: str) -> tuple[int, int]:
    preprocessor.result(submit(preprocessor, name), PATIENCE_S)
    return len(work.begun), preprocessor.used_bytes()


REFUSED, ENDED = object(), object()
"""What stands in the place of a ticket that was never given, and of one whose outcome is known."""


def _take(preprocessor: Preprocessor, work: Bench, step: Step, tickets: list[Any]) -> None:
    match step.operation:
        case "submit":
            tickets += unless_refused(lambda: submit(preprocessor, step.what), "what finds no place") or [REFUSED]
        case "cancel":
            preprocessor.cancel(tickets[int(step.what)])
        case "clear":
            preprocessor.clear()
        case "finish":
            work.end(step.what)
        case "fail":
            work.end(step.what, ValueError(f"{step.what} cannot be decoded"))


def _settle(preprocessor: Preprocessor, work: Bench, expected: State, tickets: list[Any]) -> State:
    """The state when everything that is expected has happened, or something that is not, or when patience has run out."""
    ended: dict[int, str] = {}
    out_of_patience = monotonic() + PATIENCE_S
    while monotonic() < out_of_patience:
        for number, ticket in enumerate(tickets):
            what = _glance(preprocessor, ticket, expected.ended.get(number))
            if what != NOTHING:
                ended[number], tickets[number] = what, ENDED
        work.await_begun(len(expected.begun), GLANCE_S)
        if (len(work.begun) >= len(expected.begun) and {*ended} >= {*expected.ended}) or {*ended} - {*expected.ended}:
            break
        if work.begun != expected.begun[: len(work.begun)]:
            break
    return State(work.begun, ended)


def _glance(preprocessor: Preprocessor, ticket: Any, expected: str | None) -> str:
    if ticket is ENDED:
        return NOTHING
    if ticket is REFUSED or expected == "refused":
        return "refused" if ticket is REFUSED else "a ticket"
    return outcome(preprocessor, ticket, GLANCE_S if expected else 0.0)
