"""The suite's side: an engine whose methods are answered by a worker."""

import os
import subprocess
from typing import Any

from conformance.engine import EngineNotLoaded, Traits
from conformance.remote import PROTOCOL
from conformance.remote.peer import PeerGone
from conformance.remote.plain import NotPlain
from conformance.remote.process import Worker
from conformance.remote.references import There
from conformance.time_limit import TookTooLong, time_limit

START_S = 300.0
"""How long a worker may take to start: engines import much."""


class RemoteEngine:
    """An engine in a process of its own, which `command` starts.

    A worker that ended, hung or belongs to the process that this one was forked from is replaced when it is asked again.
    What it had opened is gone with it.

    Raises EngineNotLoaded when there is no worker at the other end.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._others: list[Worker] = []
        described = self._start()
        self.name, self.version, self.traits = described["name"], described["version"], described["traits"]

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_") or method not in (self._subject._methods or ()):
            raise AttributeError(f"the engine has no method {method!r}")

        def ask(*arguments: Any) -> Any:
            if self._worker.process != os.getpid():
                self._worker.stop.detach()  # that worker is the other process's
                self._others.append(self._worker)  # so are its pipes: to close them here would wait for its threads
                self._start()
            elif self._worker.peer.gone:
                self._worker.stop()
                self._start()
            return getattr(self._subject, method)(*arguments)

        return ask

    def _start(self) -> dict[str, Any]:
        """Start a worker and hear who is there."""
        try:
            self._worker = Worker(self._command)
        except (OSError, ValueError) as error:
            raise EngineNotLoaded(f"the worker {self._command!r} cannot be started: {error}") from error
        try:
            with time_limit(START_S):
                described: dict[str, Any] = self._worker.peer.call(0, "describe", (), {})
        except (PeerGone, NotPlain, TookTooLong, TypeError, subprocess.TimeoutExpired) as error:
            self._worker.stop()
            raise EngineNotLoaded(f"the worker {self._command!r} does not answer: {error}") from error
        if described.get("protocol") != PROTOCOL or not isinstance(described.get("traits"), Traits):
            raise EngineNotLoaded(f"the worker {self._command!r} speaks another version of the protocol than {PROTOCOL}")
        self._subject: There = described["engine"]
        return described
