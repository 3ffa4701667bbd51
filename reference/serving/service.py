"""Service: what a client sees of a server. Requests go in, tokens or errors come out, and nobody waits for ever.

1. Each request has one outcome. When a process has died, every request that waits has failed within a second, and so has
   every later one; all other processes are ended.
2. Sockets lie in a folder that only this user may enter, and it is removed at the end.
3. A request that waits for longer than it may has failed, and is given up, whatever it waits for.
4. `close` asks everybody to stop, and ends whoever does not within a few seconds.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from reference.serving.nursery import Nursery, clear
from reference.serving.post import Message, Post

START_S, STOP_S, TICK_S = 120.0, 5.0, 0.1


class RequestFailed(RuntimeError):
    """A request has no answer; the message says why."""


class ProcessLost(RequestFailed):
    """A process of the server has died, and with it all requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which processes there are: a tokenizer, and `tp` ranks, or an encoder, a prefill and a decode.

    chunk_length: the most positions of a prompt that are computed in one step. media: folders of which files may be read.
    """

    tp: int = 1
    disaggregated: bool = False
    chunk_length: int | None = None
    media: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.tp < 1 or (self.disaggregated and self.tp > 1):
            raise ValueError("there is at least one rank, and exactly one where encoder, prefill and decode are apart")

    def processes(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """By name, the role and what is to be known in it."""
        shared = {"chunk_length": self.chunk_length, "media": list(self.media)}
        if self.disaggregated:
            receivers, bare = ["encoder"], ["decode", "prefill"]
            others = {name: (name, shared) for name in ("encoder", "prefill", "decode")}
        else:
            receivers, bare = ["rank-0"], []
            others = {f"rank-{n}": ("rank", {**shared, "rank": n, "size": self.tp}) for n in range(self.tp)}
        return {"tokenizer": ("tokenizer", {**shared, "receivers": receivers, "bare": bare}), **others}


class Service:
    """A server that is running. patience_s: how long a request may wait. Raises RuntimeError when it does not start."""

    def __init__(self, nursery: Nursery, layout: Layout, *, patience_s: float = 600.0) -> None:
        self._patience_s, self._due = patience_s, dict[str, float]()
        self._nursery, self._folder = nursery, Path(tempfile.mkdtemp(prefix="mmproof-"))
        self._post = Post(self._folder, "service")
        self._numbers, self._waiting = count(), dict[str, str]()  # what has come for a former request of an id is not for it
        self._outcomes: dict[str, list[int] | Exception] = {}
        self._processes: dict[str, int] = {}
        self._lost: ProcessLost | None = None
        self._closed = False
        try:
            for name, (role, config) in layout.processes().items():
                self._processes[name] = nursery.bear(name, role, {**config, "folder": str(self._folder)})
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> dict[str, int]:
        """The processes by name."""
        return {name: self._nursery.pid(number) for name, number in self._processes.items()}

    @property
    def lost(self) -> ProcessLost | None:
        """Why the server serves no longer; None while it does."""
        return self._lost

    def submit(self, id: str, text: str, images: Sequence[str] = (), limit: int = 16) -> None:
        """Ask for at most `limit` tokens behind a text with a placeholder for each image (a path or a data URI).

        Raises ValueError for an id that waits already, ProcessLost.
        """
        if id in self._waiting.values() or id in self._outcomes:
            raise ValueError(f"request {id} is alive")
        if self._lost or self._closed:
            raise self._lost or ProcessLost("the server is closed")
        number = next(self._numbers)
        told = {"id": str(number), "room": number, "text": text, "images": list(images), "limit": limit}
        self._post.send("tokenizer", "read", told)
        self._waiting[str(number)], self._due[str(number)] = id, time.monotonic() + self._patience_s

    def abort(self, id: str) -> None:
        """Have no more interest in a request; nothing happens to one that has ended."""
        self._outcomes.pop(id, None)
        for number in [number for number, one in self._waiting.items() if one == id]:
            del self._waiting[number], self._due[number]
            self._post.send("tokenizer", "abort", {"id": number})

    def poll(self, timeout_s: float) -> dict[str, list[int] | Exception]:
        """What has come within this time: tokens or an error, each once. It returns as soon as there is something."""
        until = time.monotonic() + timeout_s
        while not self._outcomes:
            left = until - time.monotonic()
            message = self._post.receive(min(TICK_S, max(0.0, left)))
            if message is not None:
                self._take(message)
            self._look_for_dead()
            self._look_for_late()
            if left <= 0:
                break
        outcomes, self._outcomes = self._outcomes, {}
        return outcomes

    def answer(self, id: str, timeout_s: float = 60.0) -> list[int]:
        """The tokens of one request; those of others stay. Raises RequestFailed, and TimeoutError."""
        until = time.monotonic() + timeout_s
        kept: dict[str, list[int] | Exception] = {}
        while id not in kept and time.monotonic() < until:
            kept |= self.poll(min(TICK_S, timeout_s))
        outcome = kept.pop(id, None)
        self._outcomes |= kept
        if outcome is None:
            raise TimeoutError(f"request {id} has no answer after {timeout_s:g} s")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        """Stop all processes; what waits has failed. Nothing happens the second time."""
        if self._closed:
            return
        self._closed = True
        if self._lost is None:
            for name in self._processes:
                if not name.startswith("rank-") or name == "rank-0":  # it tells the others
                    self._post.send(name, "stop", {})
            until = time.monotonic() + STOP_S
            while self._alive() and time.monotonic() < until:
                self._nursery.dead(TICK_S)
        self._end(ProcessLost("the server was closed"))
        self._post.close()
        clear([str(self._folder)])

    def _start(self) -> None:
        ready, until = set[str](), time.monotonic() + START_S
        while ready != {*self._processes}:
            message = self._post.receive(TICK_S)
            if message is not None and message["kind"] == "ready":
                ready.add(str(message["name"]))
            self._look_for_dead()
            if self._lost or time.monotonic() > until:
                raise self._lost or RuntimeError(f"not ready after {START_S:g} s: {', '.join({*self._processes} - ready)}")

    def _take(self, message: Message) -> None:
        id = self._waiting.pop(str(message.get("id")), None)
        if id is None:
            return
        del self._due[message["id"]]
        failed = message["kind"] == "failed"
        self._outcomes[id] = RequestFailed(str(message.get("error"))) if failed else list(message["tokens"])

    def _alive(self) -> dict[str, int]:
        dead = self._nursery.dead()
        return {name: number for name, number in self._processes.items() if number not in dead}

    def _look_for_dead(self) -> None:
        gone = {*self._processes} - {*self._alive()}
        if gone and self._lost is None:
            name = min(gone)
            status = self._nursery.dead().get(self._processes[name])
            self._end(ProcessLost(f"the process {name} has ended (status {status})"))

    def _look_for_late(self) -> None:
        """A process that hangs is not dead; who waits for it has waited long enough."""
        now = time.monotonic()
        for number in [number for number, due in self._due.items() if due < now]:
            id = self._waiting[number]
            self.abort(id)
            self._outcomes[id] = RequestFailed(f"no answer came in {self._patience_s:g} s")

    def _end(self, error: ProcessLost) -> None:
        """End everybody, and fail whoever waits."""
        self._lost = self._lost or error
        for number in self._alive().values():
            self._nursery.kill(number)
        until = time.monotonic() + STOP_S
        while self._alive() and time.monotonic() < until:
            self._nursery.dead(TICK_S)
        self._outcomes |= dict.fromkeys(self._waiting.values(), self._lost)
        self._waiting.clear()
        self._due.clear()
