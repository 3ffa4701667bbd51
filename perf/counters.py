"""Counters: what one call of a case does, in numbers that no neighbour changes.

Time tells 3 % from nothing with some hundred measurements. What is counted here is the same each time, so that one more is one
more. Each counter has a call of the case to itself, untimed; counters that need the same instrument share one.

1. *Encoder calls* and *encoded items*: by the encoders that a case hands in (`tallied`).
2. *Hash calls* and *hashed bytes*: of hashlib, blake3 and xxhash, in any thread. Whatever module holds one of their functions
   by a name of its own is given a wrapper meanwhile.
3. *Python calls*: of functions, those of C included, in the thread that calls. A loop over the positions of a prompt shows.
4. *Bytes of objects* are those of Python and numpy: what was added between two calls of functions, if that is 4 KiB or more,
   for below that the interpreter keeps stocks of its own. *At peak*: the most that there was at one time beyond what there was
   before, small or large. Small objects come and go with the order of sets, and so these may grow by 16 KiB.
5. *Bytes of tensors* are those of torch on the CPU, as its profiler sees them; *at peak* as for objects.
6. *Operators of torch*: as they are dispatched, after autograd, views included. With a GPU there are its *launches*, too, and
   its *bytes at peak*.
7. *Copied bytes*: what the operators `COPYING` write, in place those of their last tensor; and what the methods
   `COPYING_METHODS` of numpy's arrays read. What a function of numpy copies is among the bytes of objects.

Of other threads only hashes and encoders are counted, and the bytes depend on when threads do what they do. A case with
threads says so (`sized(..., uncounted=REASON)`), and only 1 and 2 remain of it.
"""

import gc
import hashlib
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from itertools import accumulate
from types import FrameType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import blake3
import numpy as np
import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

Counts: TypeAlias = dict[str, int]
Encoder = TypeVar("Encoder", bound=Callable[..., Any])

SMALL = 4096
"""Bytes: what the interpreter adds of less than this is not counted."""
ALLOWED = {"bytes of objects": 4 * SMALL, "bytes of objects at peak": 4 * SMALL}
"""By how much a counter may grow before it has grown: 20 processes with other hash seeds differed by less than 4 KiB."""
COPYING = frozenset({
    "_to_copy", "cat", "clone", "copy_", "gather", "index", "index_copy", "index_copy_", "index_put", "index_put_",
    "index_select", "masked_scatter", "masked_scatter_", "masked_select", "repeat", "scatter", "scatter_", "stack",
})  # fmt: skip
COPYING_METHODS = frozenset({"astype", "copy", "flatten", "tobytes", "tolist"})
"""`astype` counts as a copy, whether it makes one or not."""


class Tally:
    """What encoders were asked."""

    calls = 0
    items = 0


def tallied(encoder: Encoder) -> Encoder:
    """An encoder whose calls are counted: of several items, or of one."""

    @wraps(encoder)
    def called(items: Any) -> Any:
        Tally.calls += 1
        Tally.items += len(items) if isinstance(items, Sequence) else 1
        return encoder(items)

    return called  # type: ignore[return-value]


def count(job: Callable[[], object], *, uncounted: str = "") -> Counts:
    """What a call of a job does. uncounted: why only hashes and encoders can be counted, if so."""
    found: Counts = {}
    of_a_gpu = (_launches,) if torch.cuda.is_available() else ()
    gc.collect()
    gc.disable()
    try:
        for counter in (_asked,) if uncounted else (_asked, _calls, _operators, _tensors, *of_a_gpu):
            found |= {name: found.get(name, 0) + number for name, number in counter(job).items()}
    finally:
        gc.enable()
    return found


def grown(
    base: Mapping[str, int], other: Mapping[str, int], allowed: Mapping[str, int] | None = None
) -> dict[str, tuple[int, int]]:
    """The counters in which the other exceeds the base by more than is allowed: how much each of them has."""
    limits = ALLOWED | dict(allowed or {})
    both = {name: (base[name], other[name]) for name in base if name in other}
    return {name: (ours, theirs) for name, (ours, theirs) in both.items() if theirs > ours + limits.get(name, 0)}


class Counted(NamedTuple):
    """What a case counts, and whether it stops a change that anything of it grew.

    control: the base once more. A counter in which the base differs from itself says nothing.
    """

    base: Counts
    other: Counts
    control: Counts
    allowed: Mapping[str, int]
    stops: bool

    @property
    def more(self) -> dict[str, tuple[int, int]]:
        """The counters in which the engine exceeds the base: how much each of them has."""
        unsteady = grown(self.base, self.control) | grown(self.control, self.base)
        found = grown(self.base, self.other, self.allowed)
        return {name: numbers for name, numbers in found.items() if name not in unsteady}

    @property
    def lines(self) -> list[str]:
        """These, each in a sentence."""
        return [f"{name}: {theirs:,} where the base has {ours:,}" for name, (ours, theirs) in self.more.items()]


def _asked(job: Callable[[], object]) -> Counts:
    """What encoders and hash functions are asked."""
    hashed: list[int] = []
    Tally.calls = Tally.items = 0
    with _watched(hashed):
        job()
    return {
        "encoder calls": Tally.calls, "encoded items": Tally.items, "hash calls": len(hashed), "hashed bytes": sum(hashed)
    }  # fmt: skip


class _Watched:
    """A hash object that notes how many bytes it is given."""

    def __init__(self, hashing: Any, hashed: list[int]) -> None:
        self._hashing, self._hashed = hashing, hashed

    def update(self, data: Any, *more: Any, **options: Any) -> Any:
        self._hashed.append(_bytes(data))
        self._hashing.update(data, *more, **options)
        return self

    def copy(self) -> "_Watched":
        return _Watched(self._hashing.copy(), self._hashed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hashing, name)


@contextmanager
def _watched(hashed: list[int]) -> Iterator[None]:
    """All hash functions note meanwhile how many bytes each call of them is given, wherever a module holds one."""
    functions = _hash_functions()
    wrappers = {id(function): _noting(function, hashed) for function in functions}
    holders = _namespaces(len(sys.modules), *functions)
    replaced = [(names, name, value) for names in holders for name, value in list(names.items()) if id(value) in wrappers]
    try:
        for names, name, value in replaced:
            names[name] = wrappers[id(value)]
        yield
    finally:
        for names, name, value in replaced:
            names[name] = value


@cache
def _namespaces(modules: int, *functions: Any) -> list[dict[str, Any]]:
    """The modules that hold one of these functions, whether they are known by a name or not; looked for when there are more."""
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    holders = [one for one in gc.get_referrers(*functions) if type(one) is dict and "__builtins__" in one]
    if was_frozen:
        gc.freeze()
    return holders


def _hash_functions() -> list[Callable[..., Any]]:
    xxhash = vars(sys.modules["xxhash"]) if "xxhash" in sys.modules else {}
    theirs = [value for name, value in xxhash.items() if name.startswith("xxh") and callable(value)]
    return [blake3.blake3, hashlib.new, *(getattr(hashlib, name) for name in sorted(hashlib.algorithms_guaranteed)), *theirs]


def _noting(function: Callable[..., Any], hashed: list[int]) -> Callable[..., Any]:
    @wraps(function, updated=())
    def noting(*arguments: Any, **options: Any) -> Any:
        hashed.append(sum(map(_bytes, [*arguments[:2], *options.values()])))
        made = function(*arguments, **options)
        return _Watched(made, hashed) if hasattr(made, "update") else made

    return noting


def _bytes(data: Any) -> int:
    try:
        return memoryview(data).nbytes
    except TypeError:
        return 0


def _calls(job: Callable[[], object]) -> Counts:
    """Calls of functions, and what Python and numpy add, hold and copy."""
    calls = added = copied = last = highest = 0

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls, added, copied, last, highest
        calls += event.endswith("call")
        if event == "c_call" and argument.__name__ in COPYING_METHODS and isinstance(argument.__self__, np.ndarray):
            copied += argument.__self__.nbytes
        now, most = tracemalloc.get_traced_memory()
        added += most - last if most - last >= SMALL else 0
        last, highest = now, max(highest, most)
        tracemalloc.reset_peak()

    tracemalloc.start()
    sys.setprofile(seen)
    try:
        job()
    finally:
        sys.setprofile(None)  # this call is counted, too
        tracemalloc.stop()
    return {
        "Python calls": calls - 1, "bytes of objects": added, "bytes of objects at peak": highest, "copied bytes": copied
    }  # fmt: skip


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators, and what they copy."""

    operators = copied = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = func(*args, **(kwargs or {}))
        self.operators += 1
        name = func.overloadpacket.__name__
        if name in COPYING:
            tensors = [one for one in args if isinstance(one, torch.Tensor)]
            self.copied += (tensors[-1] if name.endswith("_") else answer).nbytes
        return answer


def _operators(job: Callable[[], object]) -> Counts:
    with _Operators() as seen:  # type: ignore[no-untyped-call]
        job()
    return {"operators of torch": seen.operators, "copied bytes": seen.copied}


def _tensors(job: Callable[[], object]) -> Counts:
    """What torch allocates on the CPU."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        job()
    events: list[Any] = list(seen.profiler.kineto_results.experimental_event_tree())
    sizes = []
    while events:
        event = events.pop()
        events += event.children
        if event.tag == _EventType.Allocation and event.extra_fields.device.type == "cpu":
            sizes.append((event.start_time_ns, event.extra_fields.alloc_size))
    steps = [size for _, size in sorted(sizes)]
    return {
        "bytes of tensors": sum(max(0, size) for size in steps),
        "bytes of tensors at peak": max(accumulate(steps, initial=0)),
    }


def _launches(job: Callable[[], object]) -> Counts:
    """What a GPU is asked."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        job()
        torch.cuda.synchronize()
    launches = sum("LaunchKernel" in event.name for event in seen.events() or ())
    return {"launches": launches, "bytes of the GPU at peak": torch.cuda.max_memory_allocated() - before}
