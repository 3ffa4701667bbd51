"""Two engines on the same inputs, in turns: how many times as long the other one takes as the reference.

    python -m perf.against --engine sglang [--base reference] [--case WORDS]

prints one table. First both answer, through their witnesses, and their answers must be equal, to the bit. Then they are timed
in rounds of base, other, other, base, in time of the processor, which neighbours disturb least; each round gives one ratio, and
the median of all counts, between the lowest and the highest tenth. A case that takes long has fewer rounds. Where a plain copy
of what is answered says how much is left to gain, it takes part in every round.

An adapter converts types, and its engine would not. Where `OWN` knows which functions of an engine answer, the time in them
counts and nothing around it. These are measurements and no gates: they have no verdict.
"""

import argparse
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from operator import attrgetter
from statistics import median, quantiles
from time import process_time_ns
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from conformance.compare import equal
from conformance.loading import load
from conformance.witness import Witness
from perf.against_cases import CASES, Case
from perf.sized import Job

ROUNDS, FEWEST, CASE_NS, SAMPLE_NS = 21, 3, 15_000_000_000, 5_000_000
EMBED, MASK = "sglang.srt.managers.mm_utils:embed_mm_inputs", "sglang.srt.managers.mm_schedule:_get_multimodal_mask"
ENCODED = "sglang.srt.managers.mm_utils:get_embedding_and_mask"
CACHE = "sglang.srt.mem_cache.multimodal_cache:MultiModalStaticCache."
NAMED = "sglang.srt.managers.schedule_batch:MultimodalDataItem.set_identity"

OWN = {
    "sglang": {
        "identify": ("sglang.srt.managers.mm_utils:hash_feature",),
        "tensor_hash": ("sglang.srt.managers.mm_utils:tensor_hash",),
        "pad_spans": ("sglang.srt.managers.mm_utils:pad_mm_tokens", NAMED),
        "pad_pairs": ("sglang.srt.managers.mm_utils:pad_mm_token_pairs", NAMED),
        "token_modalities": ("sglang.srt.managers.schedule_batch:MultimodalProcessorOutput.build_token_modalities",),
        "positions": ("sglang.srt.layers.rotary_embedding.mrope_rope_index:get_rope_index",),
        "slice_chunk": ("sglang.srt.managers.mm_schedule:get_embedding_chunk",),
        "merge": (EMBED, f"-{ENCODED}", MASK),
        "merge_deepstack": (EMBED, f"-{ENCODED}", MASK),
        "cache.put": (f"{CACHE}set",),
        "cache.get": (f"{CACHE}get_single",),
    }
}
"""For each engine, by method, the functions in which it answers: `module:name`. Behind a minus stand those that are called
from within these and put in by the adapter. SGLang's sentinels are made when an item is named, once, as for padding here."""


class Stopwatch:
    """The time that is spent in some functions of an engine, less what it takes to look at the clock."""

    def __init__(self, functions: tuple[str, ...]) -> None:
        self.spent_ns = 0
        self._functions = functions
        self._look_ns = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """The functions count their time meanwhile."""
        empty = self._counted(int, 1)
        self.spent_ns = 0
        for _ in range(2000):
            empty()
        self._look_ns, self.spent_ns = self.spent_ns // 2000, 0
        with ExitStack() as patched:
            for function in self._functions:
                module, _, path = function.removeprefix("-").partition(":")
                *inside, name = path.split(".")
                owner = attrgetter(".".join(inside))(sys.modules[module]) if inside else sys.modules[module]
                found = inspect.getattr_static(owner, name)
                counted = self._counted(getattr(owner, name), -1 if function.startswith("-") else 1)
                is_static = isinstance(found, staticmethod)
                patched.enter_context(patch.object(owner, name, staticmethod(counted) if is_static else counted))
            yield

    def _counted(self, function: Callable[..., Any], sign: int) -> Callable[..., Any]:
        @wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            began = process_time_ns()
            answer = function(*arguments, **named)
            self.spent_ns += sign * (process_time_ns() - began - self._look_ns)
            return answer

        return counted


class Runner:
    """A job, so many times in a row that one sample lasts some milliseconds, with all that an adapter does."""

    def __init__(self, job: Job, own: tuple[str, ...] | None) -> None:
        self._job = job
        self._watch = Stopwatch(own) if own else None
        self._times = 1
        began = process_time_ns()
        self.sample()
        self._times = max(1, SAMPLE_NS // (process_time_ns() - began))

    def sample(self) -> float:
        """Nanoseconds of one call."""
        with ExitStack() as counting:
            if self._watch:
                counting.enter_context(self._watch.running())
            began = process_time_ns()
            for _ in range(self._times):
                self._job()
            spent = self._watch.spent_ns if self._watch else process_time_ns() - began
        return spent / self._times


class Measured(NamedTuple):
    """Milliseconds of the base, and how many times as long the others take; each a low, a middle and a high value."""

    base_ms: float
    other: tuple[float, float, float]
    copy: tuple[float, float, float] | None


def agree(case: Case, base: Any, other: Any) -> None:
    """Both engines answer alike. Raises Mismatch."""
    if case.is_comparable:
        ours, theirs = (case.ask(Witness(engine))() for engine in (base, other))
        for one, another in zip(parts(theirs), parts(ours), strict=True):
            equal(one, another, f"what {other.name} and {base.name} answer")


def parts(answer: Any) -> list[Any]:
    """Arrays and tensors by themselves, where an answer has several."""
    has_several = isinstance(answer, list | tuple) and any(isinstance(one, np.ndarray | torch.Tensor) for one in answer)
    return list(answer) if has_several else [answer]


def measure(case: Case, base: Any, other: Any) -> Measured:
    """The case in rounds of base, other, copy, copy, other, base."""
    runners = [Runner(case.ask(engine), OWN.get(engine.name, {}).get(case.method)) for engine in (base, other)]
    if case.copy is not None:
        runners.append(Runner(case.copy(), None))
    rounds: list[list[float]] = []
    gc.collect()
    gc.disable()
    began = process_time_ns()
    while len(rounds) < FEWEST or (len(rounds) < ROUNDS and process_time_ns() - began < CASE_NS):
        there = [runner.sample() for runner in runners]
        back = [runner.sample() for runner in reversed(runners)]
        rounds.append([one + two for one, two in zip(there, reversed(back), strict=True)])
    gc.enable()
    shares = [spread([times[n] / times[0] for times in rounds]) for n in range(1, len(runners))]
    return Measured(median(times[0] for times in rounds) / 2e6, shares[0], shares[1] if case.copy else None)


def spread(values: list[float]) -> tuple[float, float, float]:
    """The end of the lowest tenth, the median, and where the highest tenth begins."""
    tenths = quantiles(values, n=10)
    return tenths[0], median(values), tenths[-1]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--engine", required=True, help="as for mmproof run")
    arguments.add_argument("--base", default="reference", help="as for mmproof run")
    arguments.add_argument("--case", default="", help="only cases with these words in their name")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    base, other = load(given.base), load(given.engine)
    table = Table("case", f"{base.name} ms", f"{other.name} /", "80 % of rounds", "wanted", "in copies")
    for case in CASES:
        if given.case in case.name and all(Witness(engine).can(case.needs) for engine in (base, other)):
            agree(case, base, other)
            found = measure(case, base, other)
            low, middle, high = found.other
            copies = "" if found.copy is None else f"{1 / found.copy[1]:.2f}"
            wanted = f"{case.wanted:g}" if case.wanted else ""
            table.add_row(case.name, f"{found.base_ms:.3f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}", wanted, copies)
    Console().print(table)


if __name__ == "__main__":
    main()
