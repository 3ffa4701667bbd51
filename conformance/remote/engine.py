"""The suite's side: an engine whose methods are answered by a worker."""

import contextlib
import os
import shlex
import subprocess
import tempfile
from typing import IO, Any
from weakref import finalize

from conformance.engine import EngineNotLoaded, Traits
from conformance.remote.peer import Peer, PeerGone
from conformance.remote.plain import NotPlain
from conformance.remote.references import There
from conformance.time_limit import TookTooLong, time_limit

PROTOCOL = 1
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
        self._others: list[Peer] = []
        described = self._start()
        self.name, self.version, self.traits = described["name"], described["version"], described["traits"]

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_") or method not in (self._subject._methods or ()):
            raise AttributeError(f"the engine has no method {method!r}")

        def ask(*arguments: Any) -> Any:
            if self._process != os.getpid():
                self._stop.detach()  # that worker is the other process's
                self._others.append(self._peer)  # so are its pipes: to close them here would wait for its threads
                self._start()
            elif self._peer.gone:
                self._stop()
                self._start()
            return getattr(self._subject, method)(*arguments)

        return ask

    def _start(self) -> dict[str, Any]:
        """Start a worker and hear who is there."""
        said = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the worker)
        try:
            worker = subprocess.Popen(
                shlex.split(self._command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise EngineNotLoaded(f"the worker {self._command!r} cannot be started: {error}") from error
        assert worker.stdin is not None
        assert worker.stdout is not None

        def why_gone() -> str:
            worker.wait(10)
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            return f"the worker has ended with status {worker.returncode}" + (f": {lines[-1]}" if lines else "")

        self._stop = finalize(self, _end, worker, said)
        self._process = os.getpid()
        self._peer = Peer(worker.stdout, worker.stdin, "s", why_gone)
        try:
            with time_limit(START_S):
                described: dict[str, Any] = self._peer.call(0, "describe", (), {})
        except (PeerGone, NotPlain, TookTooLong, TypeError, subprocess.TimeoutExpired) as error:
            self._stop()
            raise EngineNotLoaded(f"the worker {self._command!r} does not answer: {error}") from error
        if described.get("protocol") != PROTOCOL or not isinstance(described.get("traits"), Traits):
            raise EngineNotLoaded(f"the worker {self._command!r} speaks another version of the protocol than {PROTOCOL}")
        self._subject: There = described["engine"]
        return described


def _end(worker: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
    worker.kill()
    worker.wait()
    with contextlib.suppress(OSError):  # something was still to be written
        assert worker.stdin is not None
        worker.stdin.close()
    said.close()
