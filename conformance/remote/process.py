"""A process that speaks with this one on its standard input and output."""

import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO
from weakref import finalize

from conformance.remote.peer import Peer


class Worker:
    """A process that was started, and the peer that it is.

    peer: speaks with it. process: which process has started it.

    Raises OSError or ValueError for a command that cannot be started.
    """

    def __init__(self, command: str, environment: Mapping[str, str] | None = None) -> None:
        said = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the worker)
        try:
            self._popen = subprocess.Popen(
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True,
                env=None if environment is None else {**os.environ, **environment},
            )  # fmt: skip
        except (OSError, ValueError):
            said.close()
            raise
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._said = said
        self.process = os.getpid()
        self.stop = finalize(self, _end, self._popen, said)
        self.peer = Peer(self._popen.stdout, self._popen.stdin, "s", _Epitaph(self._popen, said))


class _Epitaph:
    """Why a worker has gone: its status, and the last line that it wrote to standard error."""

    def __init__(self, worker: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
        self._worker, self._said = worker, said

    def __call__(self) -> str:
        self._worker.wait(10)
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f"the worker has ended with status {self._worker.returncode}" + (f": {lines[-1]}" if lines else "")


def _end(worker: "subprocess.Popen[bytes]", said: IO[bytes]) -> None:
    worker.kill()
    worker.wait()
    with contextlib.suppress(OSError):  # something was still to be written
        assert worker.stdin is not None
        worker.stdin.close()
    said.close()
