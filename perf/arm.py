"""One arm of a comparison: a process that has an engine, and times calls of it when it is told to.

    python -m perf.arm SPEC [SLOWER] CORE

speaks with `perf.gate` on standard input and output. SPEC names the engine as `--engine` does. SLOWER: so many per cent of
what each sample takes are added to it, to see whether the gate finds them (`perf.gate_quality`).
"""

import gc
import hashlib
import importlib
import json
import os
import platform
import sys
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import numpy
import torch

from conformance.loading import load
from conformance.remote.peer import Peer
from conformance.remote.plain import to_plain
from conformance.witness import capabilities
from perf import growth
from perf.counters import Counts, count
from perf.sized import SIZED, Asked, Job

STAGES = sorted(path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py"))
"""The stages that have sized cases, each in a module of its own."""


class Arm:
    """What the gate can ask: object 0."""

    def __init__(self, engine: Any, slower: int) -> None:
        self._engine = engine
        self._slower = slower
        self._job: Job = lambda: None
        self._answered: Any = None

    def subjects(self, stages: list[str]) -> list[tuple[str, str]]:
        """The cases of these stages that the engine can do: stage and name."""
        for stage in stages:
            importlib.import_module(f"perf.test_{stage}")
        can = set(capabilities(self._engine))
        return [(one.stage, name) for name, one in SIZED.items() if one.stage in stages and can.issuperset(one.needs)]

    def prepare(self, stage: str, name: str) -> None:
        """Prepare a case, and run it once. The garbage collector need not look again at what is there then."""
        importlib.import_module(f"perf.test_{stage}")
        self._job = SIZED[name].prepare(Asked(self._engine))
        self._job()
        gc.collect()
        gc.freeze()

    def sample(self, calls: int) -> list[int]:
        """The nanoseconds that so many calls take: on the wall, and of this process's time on the processor.

        Where a GPU is at work, until it has nothing left to do.
        """
        job, answered, self._answered = self._job, None, None
        finish = torch.cuda.synchronize if self.waits() else bool
        gc.collect()
        finish()
        gc.disable()
        wall, processor = perf_counter_ns(), process_time_ns()
        for _ in range(calls):
            answered = job()
        finish()
        if self._slower:
            end = processor + (process_time_ns() - processor) * (100 + self._slower) // 100
            while process_time_ns() < end:
                pass
        processor, wall = process_time_ns() - processor, perf_counter_ns() - wall
        gc.enable()
        self._answered = answered
        return [wall, processor]

    def waits(self) -> bool:
        """Whether this process waits for others: for a GPU, whose time is none of the processor's."""
        return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]

    def allowances(self, name: str) -> tuple[float, dict[str, int], str]:
        """By how much the time of a case and its counters may grow before they have grown, and why more than elsewhere."""
        return SIZED[name].margin, dict(SIZED[name].allowed), SIZED[name].because

    def made_of(self) -> dict[str, str]:
        """The engine's name, and what its calls run through: counters can be compared where all of this is the same."""
        versions = {module.__name__: str(module.__version__) for module in (numpy, torch)}
        return {"engine": str(self._engine.name), "python": platform.python_version(), **versions}

    def count(self, stage: str, name: str) -> Counts:
        """What a call of a case does, after one that is not counted (`perf.counters`)."""
        self.prepare(stage, name)
        return count(self._job, uncounted=SIZED[name].uncounted)

    def growing(self) -> list[tuple[str, str]]:
        """The workloads and stages whose growth the engine can be asked for."""
        return growth.steps(capabilities(self._engine))

    def grow(self, workload: str, stage: str) -> tuple[dict[str, float], tuple[float, float, float]]:
        """How the cost of a stage grows (`perf.growth`)."""
        found = growth.measure(Asked(self._engine), workload, stage)
        return found.counts, found.time

    def answer(self) -> str:
        """What the last timed call has answered, as a digest. Objects that are no values count by their types."""
        plain = to_plain(self._answered, lambda other: {"$": "mine", "type": type(other).__name__})
        return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def main(spec: str, *more: str) -> None:
    """Serve until the gate hangs up, on one core. What the engine prints goes to standard error."""
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    torch.set_num_threads(1)
    *slower, core = map(int, more)
    arm = Arm(load(spec), sum(slower))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})  # only now: what the arms import, they import side by side
    Peer(reading, writing, "a", lambda: "the gate has hung up", arm).serve()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
