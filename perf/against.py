"""Two engines on the same inputs, in turns: how many times as long the other one takes as the reference.

    python -m perf.against --engine sglang [--base reference] [--case WORDS]

prints one table, by stage. First both answer, through their witnesses, and their answers must be equal, to the bit; where they
are not, the exit status is 1. Then they are timed in rounds of base, other, other, base; each round gives one ratio, and the
median of all counts, with the interval in which 95 % of the medians lie that could be drawn from these rounds. A case that
takes long has fewer rounds, and one that takes seconds goes only one way. Where a plain copy of what is answered says how much
is left to gain, it takes part in every round.

Time of the processor counts, which neighbours disturb least; where an engine uses several threads, time on the wall.

An adapter converts types, and its engine would not. Where `OWN` knows which functions of an engine answer, the time in them
counts and nothing around it. A wanted ratio that is missed is marked, and is no failure: machines differ.
"""

import argparse
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from operator import attrgetter
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from conformance.compare import Mismatch, equal
from conformance.loading import load
from conformance.witness import Witness
from perf.against_cases import CASES, Case
from perf.sized import Job
from perf.verdict import Round, interval

ROUNDS, FEWEST, CASE_NS, SLOW_NS, LONG_NS, SAMPLE_NS = 21, 3, 1_000_000_000, 2_000_000_000, 100_000_000, 5_000_000
WIDTH = 128
COLUMNS = (
    "{base} ms: what one call takes. {other} /: how many times as long {other} takes, the median of the rounds. 95 %: the "
    "interval of that median. wanted: the least that the ratio should be: met where all of the interval is, MISSED where none "
    "of it is, else open. in copies: how many times as long as a plain copy of what is answered {base} takes, and the most "
    "that it should. Time of the processor; (wall): time on the wall, where several threads take part."
)
Clock: TypeAlias = Callable[[], int]

EMBED, MASK = "sglang.srt.managers.mm_utils:embed_mm_inputs", "sglang.srt.managers.mm_schedule:_get_multimodal_mask"
ENCODED = "sglang.srt.managers.mm_utils:get_embedding_and_mask"
CACHE = "sglang.srt.mem_cache.multimodal_cache:MultiModalStaticCache."
PADDED = "sglang.srt.managers.mm_utils:pad_mm_tokens"
NAMED = "sglang.srt.managers.schedule_batch:MultimodalDataItem.set_identity"

OWN = {
    "sglang": {
        "identify": ("sglang.srt.managers.mm_utils:hash_feature",),
        "tensor_hash": ("sglang.srt.managers.mm_utils:tensor_hash",),
        "pad_spans": (PADDED, NAMED),
        "pad_pairs": ("sglang.srt.managers.mm_utils:pad_mm_token_pairs", NAMED),
        "token_modalities": ("sglang.srt.managers.schedule_batch:MultimodalProcessorOutput.build_token_modalities",),
        "find_spans": ("sglang.srt.multimodal.processors.base_processor:BaseMultimodalProcessor.get_mm_items_offset",),
        "sentinels": (NAMED, "sglang.srt.managers.schedule_batch:MultimodalDataItem.padding_values"),
        "chunk_positions": ("sglang.srt.model_executor.forward_batch_info:ForwardBatch._compute_mrope_positions_extend",),
        "prefix_cache.match": ("sglang.srt.mem_cache.radix_cache:RadixCache.match_prefix", PADDED, NAMED),
        "join_positions": ("sglang.srt.managers.schedule_batch:Req._extend_session_image_inputs",),
        "placeholder_mask": (MASK,),
        "scatter_rows": ("sglang.srt.managers.mm_utils:_scatter_mm_embedding",),
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

    def __init__(self, functions: tuple[str, ...], clock: Clock) -> None:
        self.spent_ns = 0
        self._functions = functions
        self._clock = clock
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
            began = self._clock()
            answer = function(*arguments, **named)
            self.spent_ns += sign * (self._clock() - began - self._look_ns)
            return answer

        return counted


class Runner:
    """A job, so many times in a row that one sample lasts some milliseconds, with all that an adapter does."""

    def __init__(self, job: Job, own: tuple[str, ...] | None, clock: Clock) -> None:
        self._job = job
        self._watch = Stopwatch(own, clock) if own else None
        self._clock = clock
        self._times = 1
        self._whole_ns = LONG_NS
        self.sample()
        self._times = max(1, SAMPLE_NS // max(self._whole_ns, 1))

    def sample(self) -> float:
        """Nanoseconds of one call. Another one goes before, so that none asks the system for memory that others gave back."""
        if self._whole_ns < LONG_NS:
            self._job()
        with ExitStack() as counting:
            if self._watch:
                counting.enter_context(self._watch.running())
            began = self._clock()
            for _ in range(self._times):
                self._job()
            self._whole_ns = self._clock() - began
        return (self._watch.spent_ns if self._watch else self._whole_ns) / self._times


class Ratio(NamedTuple):
    """The median of the rounds, and the interval in which 95 % of such medians lie."""

    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"

    def mark(self, wanted: float | None) -> str:
        """Whether it is at least what is wanted: met, MISSED, or open where the interval does not say."""
        if wanted is None:
            return ""
        return "met" if self.low >= wanted else "MISSED" if self.high < wanted else "open"


class Measured(NamedTuple):
    """Milliseconds of the base, and how many times as long the other and a copy take."""

    base_ms: float
    other: Ratio
    copy: Ratio | None


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
    clock = perf_counter_ns if case.waits else process_time_ns
    runners = [Runner(case.ask(engine), OWN.get(engine.name, {}).get(case.method), clock) for engine in (base, other)]
    if case.copy is not None:
        runners.append(Runner(case.copy(), None, clock))
    rounds: list[list[float]] = []
    gc.collect()
    gc.disable()
    began = process_time_ns()
    while len(rounds) < FEWEST or (len(rounds) < ROUNDS and process_time_ns() - began < CASE_NS):
        there = [runner.sample() for runner in runners]
        back = [runner.sample() for runner in reversed(runners)] if sum(there) < SLOW_NS else there[::-1]
        rounds.append([one + two for one, two in zip(there, reversed(back), strict=True)])
    gc.enable()
    ratios = [ratio([Round(times[0], times[n], times[0]) for times in rounds]) for n in range(1, len(runners))]
    return Measured(median(times[0] for times in rounds) / 2e6, ratios[0], ratios[1] if case.copy else None)


def ratio(rounds: list[Round]) -> Ratio:
    """What the rounds amount to."""
    low, high = interval([rounds])
    return Ratio(low, median(one.ratio for one in rounds), high)


def row(case: Case, found: Measured) -> list[str]:
    """A line of the table."""
    wanted = "" if case.wanted is None else f"{case.wanted:g} {found.other.mark(case.wanted)}"
    copies = ""
    if found.copy is not None and case.copies is not None:
        copies = f"{1 / found.copy.middle:.2f} of {case.copies:g} {found.copy.mark(1 / case.copies)}"
    name = f"{case.name} (wall)" if case.waits else case.name
    return [case.stage, name, f"{found.base_ms:.3f}", f"{found.other.middle:.2f}", str(found.other), wanted, copies]


def main(given: list[str] | None = None) -> int:
    """The exit status: 1 where answers are unequal."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--engine", required=True, help="as for mmproof run")
    arguments.add_argument("--base", default="reference", help="as for mmproof run")
    arguments.add_argument("--case", default="", help="only cases with these words in their name")
    asked = arguments.parse_args(given)
    torch.set_num_threads(1)
    base, other = load(asked.base), load(asked.engine)
    heads = ("stage", "case", f"{base.name} ms", f"{other.name} /", "95 %", "wanted", "in copies")
    table = Table(*heads)
    unequal = []
    for case in CASES:
        if asked.case in case.name and all(Witness(engine).can(case.needs) for engine in (base, other)):
            try:
                agree(case, base, other)
            except Mismatch as mismatch:
                unequal.append(f"{case.stage}, {case.name}: {mismatch}")
            else:
                table.add_row(*row(case, measure(case, base, other)))
    console = Console(width=WIDTH)
    console.print(table)
    console.print(COLUMNS.format(base=base.name, other=other.name), markup=False, highlight=False)
    for problem in unequal:
        console.print(f"UNEQUAL: {problem}", markup=False)
    return bool(unequal)


if __name__ == "__main__":
    sys.exit(main())
