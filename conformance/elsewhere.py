"""What an engine says in another process.

Caches outlive processes and are shared by several: a router, a frontend and an engine must agree on keys. Python salts
its own hashes anew in each process, so whatever was built on them agrees with nobody.

To load an engine is what takes long, so the process stays for further questions until another engine is asked.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import lru_cache
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any
from weakref import finalize

from conformance.compare import Mismatch
from conformance.loading import load
from conformance.witness import Witness

TIMEOUT_S = 180


def in_a_fresh_process(engine: Any, ask: Callable[[Any], list[bytes]]) -> list[bytes]:
    """What `ask(engine)` returns in a new process with another hash seed, where the engine is loaded again by its name.

    ask: a function at the top of a module. An engine that has no such name (an object) is asked in this process.
    """
    spec = getattr(engine, "spec", None)
    if spec is None:
        return ask(engine)
    reply = json.loads(_process(spec).reply(f"{ask.__module__} {ask.__name__}"))
    if "failed" in reply:
        raise Mismatch(f"in a fresh process {reply['failed']}")
    return [bytes.fromhex(word) for word in reply["answers"]]


class _Process:
    """A process with another hash seed, in which an engine was loaded by its name. It ends with whoever holds it."""

    def __init__(self, spec: str) -> None:
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        self._log = TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "conformance.elsewhere", spec],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        finalize(self, _end, self._process, self._log)

    def reply(self, question: str) -> str:
        """The line that it says to a line. Raises RuntimeError when it ends instead, or takes too long."""
        asking, answering = self._process.stdin, self._process.stdout
        timer = Timer(TIMEOUT_S, self._process.kill)
        timer.start()
        with suppress(BrokenPipeError):
            print(question, file=asking, flush=True)
        line = answering.readline() if answering else ""
        timer.cancel()
        if not line:
            _process.cache_clear()
            self._process.wait()
            self._log.seek(0)
            raise RuntimeError(f"the fresh process failed: {self._log.read().strip().rpartition(chr(10))[2]}")
        return line


def _end(process: "subprocess.Popen[str]", log: IO[str]) -> None:
    process.kill()
    with suppress(BrokenPipeError):
        process.communicate()
    log.close()


@lru_cache(maxsize=1)
def _process(spec: str) -> _Process:
    """The process of the engine that was asked last."""
    return _Process(spec)


def main(spec: str) -> None:
    """For each line with a module and a function of it print one line of JSON: the answers in hex, or how the engine failed."""
    said = sys.stdout
    with redirect_stdout(sys.stderr):
        engine = load(spec)
        for line in sys.stdin:
            module, function = line.split()
            try:
                answers = getattr(importlib.import_module(module), function)(Witness(engine))
                reply: dict[str, Any] = {"answers": [one.hex() for one in answers]}
            except AssertionError as error:
                reply = {"failed": str(error)}
            print(json.dumps(reply), file=said, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
