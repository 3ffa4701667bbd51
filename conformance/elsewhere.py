"""What an engine says in another process.

Caches outlive processes and are shared by several: a router, a frontend and an engine must agree on keys. Python salts
its own hashes anew in each process, so whatever was built on them agrees with nobody.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

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
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    command = [sys.executable, "-m", "conformance.elsewhere", spec, ask.__module__, ask.__name__]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the fresh process failed: {done.stderr.strip().rpartition(chr(10))[2]}")
    reply = json.loads(done.stdout.splitlines()[-1])
    if "failed" in reply:
        raise Mismatch(f"in a fresh process {reply['failed']}")
    return [bytes.fromhex(word) for word in reply["answers"]]


def main(spec: str, module: str, function: str) -> None:
    """Print, as one line of JSON, the answers in hex, or how the engine failed."""
    with contextlib.redirect_stdout(sys.stderr):
        engine = Witness(load(spec))
        try:
            reply: dict[str, Any] = {
                "answers": [one.hex() for one in getattr(importlib.import_module(module), function)(engine)]
            }
        except AssertionError as error:
            reply = {"failed": str(error)}
    print(json.dumps(reply))


if __name__ == "__main__":
    main(*sys.argv[1:])
