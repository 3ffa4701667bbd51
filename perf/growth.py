"""Growth: whether twice as much traffic costs more than twice as much.

A step is asked at n, 2n, 4n and 8n, and the exponent is the slope of its cost over the size, both as logarithms: 1 is linear,
2 is quadratic. Two costs are measured:

1. *Counts*: lines of Python, bytes of objects at peak and bytes of tensors, each by the last doubling, where a term that grows
   faster weighs most. They have no noise, so that one measurement decides.
2. *Time* of the processor, for what hides in compiled code. Sizes take turns, up and down; each round gives one slope by least
   squares; the middle of the rounds counts, with the interval in which 95 % of the middles lie of rounds drawn again.

A step grows too fast if a count's exponent exceeds the limit, or if the whole interval of time does. It is unresolved if
the interval holds the limit. The limit is above 1 because large sizes leave the processor's caches.
"""

import gc
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import log, log2
from statistics import median
from time import process_time_ns
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from perf import counters
from perf.sized import Job
from perf.workloads import STEPS, Workload, batch, film, pictures_and_text

LIMIT = 1.15
FEW = {"lines": 1 << 12, "bytes of objects at peak": 1 << 18, "bytes of tensors": 1 << 12}
"""What says nothing about growth. The interpreter has stocks of small objects, of which the first thousands cost no bytes."""
ROUNDS, SAMPLE_NS = 9, 1_000_000


class Scale(NamedTuple):
    """A workload at four sizes, each twice the one before, and what its size is counted in."""

    make: Callable[[int], Workload]
    sizes: tuple[int, int, int, int]
    unit: str


SCALES = {
    "a batch": Scale(batch, (32, 64, 128, 256), "photos"),
    "a video": Scale(film, (450, 900, 1800, 3600), "frames"),
    "a prompt": Scale(pictures_and_text, (62_500, 125_000, 250_000, 500_000), "positions"),
}


@dataclass(frozen=True, slots=True)
class Growth:
    """How the cost of a step grows: the exponent of each count; that of time, and where its interval begins and ends."""

    workload: str
    stage: str
    counts: dict[str, float]
    time: tuple[float, float, float]

    @property
    def reasons(self) -> list[str]:
        """What grows too fast."""
        found = [f"{name} {exponent:.2f}" for name, exponent in self.counts.items() if exponent > LIMIT]
        return found + ([f"time {self.time[0]:.2f}"] if self.time[1] > LIMIT else [])

    @property
    def is_resolved(self) -> bool:
        return bool(self.reasons) or self.time[2] <= LIMIT


def steps(capable: Collection[str]) -> list[tuple[str, str]]:
    """What is measured of an engine that is capable of these methods: workload and stage."""
    stages = [stage for stage, step in STEPS.items() if set(step.needs).issubset(capable)]
    return [(name, stage) for name in SCALES for stage in stages if stage != "pruning" or name == "a video"]


def measure(engine: Any, workload: str, stage: str) -> Growth:
    """Ask an engine at four sizes."""
    scale = SCALES[workload]
    jobs = [STEPS[stage].ask(engine, scale.make(size)) for size in scale.sizes]
    return Growth(workload, stage, exponents(*jobs[-2:]), interval(slopes(scale.sizes, rounds(jobs))))


def exponents(half: Job, whole: Job) -> dict[str, float]:
    """The exponent of each count, by two jobs of which one is twice as large."""
    small, large = costs(half), costs(whole)
    return {name: doubling(small[name], large[name], few) for name, few in FEW.items()}


def costs(job: Job) -> dict[str, int]:
    """The lines of Python that a call of a job runs, and the bytes that it allocates."""
    job()
    return {"lines": lines(job)} | counters.count(job)


def lines(job: Job) -> int:
    """How many lines of Python a job runs: each time around a loop counts, a comprehension's too."""
    run = 0

    def seen(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal run
        run += event == "line"
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        job()
    finally:
        sys.settrace(before)
    return run


def doubling(small: int, large: int, few: int) -> float:
    """The exponent of a count by one doubling."""
    return log2((large + few) / (small + few))


def rounds(jobs: Sequence[Job], number: int = ROUNDS) -> list[list[float]]:
    """What each job takes, in so many rounds, up and down. Each is called untimed before it is timed."""
    calls, taken = [], []
    gc.collect()
    gc.disable()
    for job in jobs:
        job()
        calls.append(max(1, SAMPLE_NS // _time(job, 1)))
    for turn in range(number):
        found = [0.0] * len(jobs)
        for place in range(len(jobs)) if turn % 2 else reversed(range(len(jobs))):
            jobs[place]()
            found[place] = _time(jobs[place], calls[place]) / calls[place]
        taken.append(found)
    gc.enable()
    return taken


def _time(job: Job, calls: int) -> int:
    began = process_time_ns()
    for _ in range(calls):
        job()
    return max(1, process_time_ns() - began)


def slopes(sizes: Sequence[int], taken: Sequence[Sequence[float]]) -> list[float]:
    """For each round the slope of time over size, both as logarithms, by least squares."""
    return [float(np.polyfit([log(size) for size in sizes], np.log(times), 1)[0]) for times in taken]


def interval(found: Sequence[float], resamples: int = 2000) -> tuple[float, float, float]:
    """The middle, and between what 95 % of the middles lie of rounds drawn again."""
    drawn = np.random.default_rng(0).choice(np.array(found), size=(resamples, len(found)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return median(found), float(low), float(high)


def table(found: Sequence[Growth]) -> Table:
    """What was found, one step a line."""
    made = Table("workload", "stage", "lines", "objects", "tensors", "time", "95 %", "", box=None, pad_edge=False)
    for one in found:
        counts = [f"{exponent:.2f}" for exponent in one.counts.values()]
        middle, low, high = one.time
        said = f"[red]grows too fast: {', '.join(one.reasons)}[/]" if one.reasons else ""
        said = said or ("" if one.is_resolved else "[yellow]unresolved[/]")
        made.add_row(one.workload, one.stage, *counts, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", said)
    return made
