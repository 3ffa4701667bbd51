"""Nursery: where the processes of a server come from, and who notices that one has died.

    whoever serves  --orders, one line each-->  nursery  --fork-->  tokenizer, ranks, …
                    <--births and deaths------

1. The nursery loads the libraries and the checkpoint once, and each process is a fork of it: it starts in a moment and
   shares that memory. So the nursery has no thread, no socket and no device.
2. Everybody holds one end of a *lifeline*, a pipe whose other end is with whoever serves. When that ends, by whatever
   death, each process ends at once, also one that waits in a collective. Nobody needs to be told, and nobody is left.
3. A process that ends is reported by the nursery, its parent, within a twentieth of a second.

4. When whoever serves has died, the nursery removes what he has left: folders of sockets, and shared memory.
5. Processes are numbered by birth. A pid is given out again, and then somebody's death is taken for another's.

Orders and reports are lines of JSON: {"number", "name", "role", "config"}, {"kill": number}; {"born": number, "pid"},
{"dead": number, "status"}.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import IO, Any

from reference.transport import owners
from reference.transport.segment import FOLDER

TICK_S = 0.05
PATIENCE_S = 120.0
ORPHANED = 70
"""The exit status of a process whose lifeline has ended."""


class Nursery:
    """A nursery with a checkpoint, named as `package.module:function`; used by one or more servers, one after another or
    at once. Raises RuntimeError when it cannot be loaded."""

    def __init__(self, checkpoint: str) -> None:
        theirs, self._lifeline = os.pipe()
        command = [sys.executable, "-m", "reference.serving.nursery", checkpoint, str(theirs)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs], env=environment
        )
        os.close(theirs)
        self._numbers, self._pids = count(), dict[int, int]()
        self._dead: dict[int, int] = {}
        self._buffer = b""
        if not self._read(PATIENCE_S):
            self.close()
            raise RuntimeError(f"the checkpoint {checkpoint} cannot be loaded")

    def bear(self, name: str, role: str, config: Mapping[str, Any]) -> int:
        """Begin a process; its number. Raises RuntimeError when the nursery is gone."""
        number = next(self._numbers)
        self._order({"number": number, "name": name, "role": role, "config": dict(config)})
        while number not in self._pids:
            if not self._read(PATIENCE_S):
                raise RuntimeError("the nursery is gone")
        return number

    def pid(self, number: int) -> int:
        """The pid of a process."""
        return self._pids[number]

    def kill(self, number: int) -> None:
        """End a process at once."""
        with suppress(RuntimeError):
            self._order({"kill": number})

    def dead(self, timeout_s: float = 0.0) -> dict[int, int]:
        """The processes that have ended, by number, with their status (negative: the signal). All, when the nursery has."""
        if not self._read(timeout_s) and self._process.poll() is not None:
            self._dead = dict.fromkeys(self._pids, -signal.SIGKILL) | self._dead
            self._cut()
        return dict(self._dead)

    def close(self) -> None:
        """End everybody."""
        self._cut()
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()

    def _cut(self) -> None:
        """End the lifeline, and with it everybody."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _order(self, order: Mapping[str, Any]) -> None:
        try:
            os.write(_pipe(self._process.stdin).fileno(), json.dumps(order).encode() + b"\n")
        except (OSError, ValueError) as error:
            raise RuntimeError("the nursery is gone") from error

    def _read(self, timeout_s: float) -> bool:
        """Take in what is reported within this time. Returns whether anything was."""
        reports = _pipe(self._process.stdout).fileno()
        if not select.select([reports], [], [], timeout_s)[0]:
            return False
        data = os.read(reports, 1 << 16)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in map(json.loads, lines):
            if "born" in line:
                self._pids[line["born"]] = line["pid"]
            if "dead" in line:
                self._dead[line["dead"]] = line["status"]
        return bool(data)


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None
    return end


def main(checkpoint: str, lifeline: int) -> None:
    """The nursery's own process: load, and then do what the lines say until they end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever serves is told, and tells
    module, _, name = checkpoint.partition(":")
    loaded = getattr(import_module(module), name)()
    roles = import_module("reference.serving.roles")
    children: dict[int, int] = {}
    folders: set[str] = set()
    _report({"ready": True})
    buffer = b""
    while True:
        while children and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            _report({"dead": children.pop(ended[0]), "status": os.waitstatus_to_exitcode(ended[1])})
        if not select.select([0], [], [], TICK_S)[0]:
            continue
        data = os.read(0, 1 << 16)
        *lines, buffer = (buffer + data).split(b"\n")
        for order in map(json.loads, lines):
            if "kill" in order:
                for pid in [pid for pid, number in children.items() if number == order["kill"]]:
                    os.kill(pid, signal.SIGKILL)
            if "role" in order:
                folders.add(order["config"]["folder"])
                pid = os.fork() or _child(roles, loaded, order, lifeline)
                children[pid] = order["number"]
                _report({"born": order["number"], "pid": pid})
        if not data:
            break
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    clear(folders)


def clear(folders: Iterable[str]) -> None:
    """Remove the folders of servers that have ended, and the shared memory of all processes that are dead."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        owners.sweep(FOLDER)


def _child(roles: Any, checkpoint: Any, order: dict[str, Any], lifeline: int) -> int:
    """The life of a process, from its fork to its end."""
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(2, 1)  # reports are the nursery's
        threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
        roles.run(order["role"], order["name"], order["config"], checkpoint)
        status = 0
    except BaseException as error:
        print(f"{order['name']}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(ORPHANED)


def _report(report: Mapping[str, Any]) -> None:
    with suppress(BrokenPipeError):  # nobody listens any more: the orders end, too, and then everything is cleared away
        os.write(1, json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    os._exit(0)  # nobody waits until every library is taken down
