"""Two processes that call each other, in lines of JSON.

Each side has objects that the other one knows by number. A line is one of

    ["call", thread, object, name, [argument, ...], {name: argument, ...}]    the object itself is called if name is null
    ["get", thread, object, name]                                             one of its attributes
    ["reply", thread, value, changed]
    ["raise", thread, error, changed]
    ["drop", object, times]                                                   so many references to it are gone

A thread of one side that waits for a reply runs what the other side calls meanwhile under the same name of a thread. So a
call and what it calls back are one thread, whichever process they are in, and threads stay apart. `changed`: what the
arguments have become, if the callee wrote into them; null if it did not.
"""

import json
import os
import threading
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from typing import IO, Any

from conformance.remote.arguments import fingerprint, write_back
from conformance.remote.plain import from_plain, to_plain
from conformance.remote.references import References

MAIN = "main"


class PeerGone(RuntimeError):
    """The other process has ended, or a thread that spoke with it was interrupted."""


class Peer:
    """The other process: what it can be called for, and what it calls here.

    reading, writing: the pipes. side: a letter that keeps names of threads apart. why_gone: explains the end of the other
    process, once it has come. root: what the other side knows as object 0.
    """

    def __init__(
        self, reading: IO[bytes], writing: IO[bytes], side: str, why_gone: Callable[[], str], root: Any = None
    ) -> None:
        self._reading, self._writing, self._side, self._why_gone = reading, writing, side, why_gone
        self._references = References(root, self.call, self._get)
        self._inboxes: dict[str, SimpleQueue[Any]] = {}
        self._threads = count(1)
        self._local = threading.local()
        self._lock, self._sending = threading.RLock(), threading.Lock()  # who reads never waits for one who writes
        self._process = os.getpid()
        self.gone = False
        threading.Thread(target=self._read, daemon=True, name=f"lines from the other side ({side})").start()

    def call(self, number: int, name: str | None, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What an object of the other side returns. Raises what it raises, or PeerGone."""
        line = ["call", self._thread(), number, name, [self._plain(one) for one in arguments], self._plain(named)]
        return self._ask(line, arguments)

    def serve(self) -> None:
        """Run in this thread what the other side calls in its main thread, until it is gone."""
        self._local.name = MAIN
        inbox = self._inbox(MAIN)
        while (line := inbox.get()) is not None:
            self._run(*line)

    def _get(self, number: int, name: str) -> Any:
        return self._ask(["get", self._thread(), number, name], ())

    def _thread(self) -> str:
        if not hasattr(self._local, "name"):
            main = threading.current_thread() is threading.main_thread()
            self._local.name = MAIN if main else f"{self._side}{next(self._threads)}"
        return str(self._local.name)

    def _inbox(self, thread: str) -> "SimpleQueue[Any]":
        with self._lock:
            return self._inboxes.setdefault(thread, SimpleQueue())

    def _ask(self, line: list[Any], arguments: tuple[Any, ...]) -> Any:
        """Send a line and wait for its reply; until then, run what is called."""
        if self._process != os.getpid():
            raise PeerGone("this object belongs to another process")
        inbox = self._inbox(line[1])
        if self.gone:
            raise PeerGone(self._why_gone())
        try:
            self._send(line)
            while (heard := inbox.get()) is not None and heard[0][0] in ("call", "get"):
                self._run(*heard)
        except BaseException:
            self.gone = True  # the other side still works on it: what it says next would answer something else
            raise
        if heard is None:
            inbox.put(None)
            raise PeerGone(self._why_gone())
        (kind, *_), (value, changed) = heard
        if changed is not None:
            write_back(list(arguments), changed)
        if kind == "raise":
            raise value
        return value

    def _run(self, line: list[Any], values: Any) -> None:
        """Run one call of the other side, and send what came of it."""
        kind, thread, number, name, *_ = line
        before = ""
        arguments, named = values
        try:
            if kind == "unreadable":
                raise named
            subject = self._references.own(number)
            made = subject if name is None else getattr(subject, name)
            if kind == "call":
                before = fingerprint(arguments)
                made = made(*arguments, **named)
            reply = ["reply", thread, self._plain(made), None]
        except BaseException as error:
            reply = ["raise", thread, self._plain(error), None]
        if before and fingerprint(arguments) != before:
            reply[3] = [self._plain(one) for one in arguments]
        self._send(reply)

    def _plain(self, value: Any) -> Any:
        return to_plain(value, self._references.refer)

    def _values(self, line: list[Any]) -> Any:
        """The two values of a line: arguments and named ones, or what came of a call and of its arguments."""
        pair = {"call": line[4:6], "get": [[], {}]}.get(line[0], line[2:4])
        return [from_plain(one, self._references.resolve) for one in pair]

    def _send(self, line: list[Any]) -> None:
        """Send a line, and after it what is to be said about references, for it may have held the last one of some."""
        with self._sending:
            data = json.dumps(line).encode() + b"\n"
            gone = self._references.gone
            data += b"".join(json.dumps(gone.popleft()).encode() + b"\n" for _ in range(len(gone)))
            try:
                self._writing.write(data)
                self._writing.flush()
            except (OSError, ValueError) as error:
                raise PeerGone(self._why_gone()) from error

    def _read(self) -> None:
        """Read each line in turn, and hand it to the thread that it is for; to a new one, if there is none of that name."""
        with self._reading:
            for data in self._reading:
                line = json.loads(data)
                if line[0] == "drop":
                    self._references.forget(line[1], line[2])
                    continue
                try:
                    values = self._values(line)
                except Exception as error:
                    asked = line[0] in ("call", "get")
                    line, values = ["unreadable" if asked else "raise", *line[1:4]], [[], error] if asked else [error, None]
                with self._lock:
                    new = line[1] != MAIN and line[1] not in self._inboxes
                    self._inbox(line[1]).put((line, values))
                if new:
                    threading.Thread(target=self._serve_one, args=(line[1],), daemon=True, name=f"for {line[1]}").start()
                del line, values
        with self._lock:
            self.gone = True
            for inbox in self._inboxes.values():
                inbox.put(None)

    def _serve_one(self, thread: str) -> None:
        """Run what a thread of the other side calls, as long as there is anything."""
        self._local.name = thread
        inbox = self._inbox(thread)
        while True:
            with self._lock:
                if inbox.empty():
                    del self._inboxes[thread]
                    return
            if (heard := inbox.get()) is None:
                return
            self._run(*heard)
