"""Prompts of a million positions with ten thousand pictures: what they cost, against a loop, and how the cost grows.

    python -m perf.million [--engine NAME]

prints one table. Engine and loop take turns, and the shortest of several times counts, in time of the processor. The exponent
is the slope of time over length, both as logarithms, by least squares: 1 is linear. Memory is the largest that one call holds,
in bytes a position.
"""

import argparse
import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.loading import load
from conformance.oracles.prefix_cache import NOBODY
from conformance.protocol.scheduling import Budget
from conformance.world.mrope import QWEN2_VL
from perf import loops
from perf.sized import Job
from reference.items import Item, Modality, Request, Span

POSITIONS, PICTURES = 1_000_000, 10_000
STRIDE = POSITIONS // PICTURES
START, END, PLACEHOLDER = 9, 10, 5
GRIDS = ((1, 16, 24), (1, 12, 32), (1, 18, 20), (1, 2, 2))
"""Of 96, 96, 90 and 1 positions."""
SIZES = tuple(POSITIONS // part for part in (8, 4, 2, 1))
ROUNDS = 9


class Prompt(NamedTuple):
    """Text, and in each 100 positions one picture between a start and an end token."""

    input_ids: NDArray[np.int64]
    items: tuple[Item, ...]

    def request(self, id: str) -> Request:
        return Request(id=id, input_ids=self.input_ids, items=self.items)


class Case(NamedTuple):
    """The engine methods that are asked; the call of an engine, and of the loop, for a prompt."""

    needs: tuple[str, ...]
    ask: Callable[[Any, Prompt], Job]
    walk: Callable[[Prompt, Any], Job]


def prompt(length: int) -> Prompt:
    ids = np.arange(length, dtype=np.int64) % 97 + 20
    items = []
    for number, first in enumerate(range(0, length - STRIDE + 1, STRIDE)):
        grid = GRIDS[number % len(GRIDS)]
        count = grid[1] * grid[2] // 4
        ids[first + 1], ids[first + 2 : first + 2 + count], ids[first + 2 + count] = START, PLACEHOLDER, END
        fields, span = {"image_grid_thw": grid}, Span(first + 2, first + 1 + count)
        items.append(Item(modality=Modality.IMAGE, spans=(span,), identity=number.to_bytes(32, "big"), fields=fields))
    return Prompt(ids, tuple(items))


def page(engine: Any) -> int:
    return engine.traits.prefix_page or 16


def matching(engine: Any, one: Prompt) -> Job:
    cache, asked = engine.open_prefix_cache(page(engine)), one.request("met again")
    cache.insert(asked, NOBODY, len(one.input_ids))
    return lambda: cache.match(asked, NOBODY, len(one.input_ids) - 1)


def matching_loop(one: Prompt, engine: Any) -> Job:
    known = loops.pad_spans(*one).tolist()[:-1]
    return lambda: loops.match(known, *one, page(engine))


BUDGET = Budget(tokens_per_step=8192, embeddings_per_step=4096)
CASES = {
    "find_spans": Case(
        ("find_spans",),
        lambda engine, one: lambda: engine.find_spans(one.input_ids, PLACEHOLDER),
        lambda one, _: lambda: loops.find_spans(one.input_ids, PLACEHOLDER),
    ),
    "pad_spans": Case(
        ("pad_spans",), lambda engine, one: lambda: engine.pad_spans(*one), lambda one, _: lambda: loops.pad_spans(*one)
    ),
    "pad_pairs": Case(
        ("pad_pairs",),
        lambda engine, one: lambda: engine.pad_pairs(*one, [(START, END)], (START,)),
        lambda one, _: lambda: loops.pad_pairs(*one, START, END),
    ),
    "token_modalities": Case(
        ("token_modalities",),
        lambda engine, one: lambda: engine.token_modalities(len(one.input_ids), one.items),
        lambda one, _: lambda: loops.token_modalities(len(one.input_ids), one.items),
    ),
    "positions": Case(
        ("positions",),
        lambda engine, one: lambda: engine.positions(*one, QWEN2_VL),
        lambda one, _: lambda: loops.positions(*one, QWEN2_VL),
    ),
    "prefix match": Case(("open_prefix_cache", "open_prefix_cache.insert", "open_prefix_cache.match"), matching, matching_loop),
    "plan_chunks": Case(
        ("plan_chunks",),
        lambda engine, one: lambda: engine.plan_chunks(len(one.input_ids), one.items, BUDGET, 0),
        lambda one, _: lambda: loops.plan_chunks(len(one.input_ids), one.items, 8192, 4096),
    ),
}


def shortest(*jobs: Job) -> list[float]:
    """The shortest time of each job in seconds of the processor, which neighbours disturb least.

    Jobs take turns. Each is called twice and timed once, so that none asks the system for memory that another gave back.
    """
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(ROUNDS):
        for job, taken in zip(jobs, times, strict=True):
            job()
            began = process_time()
            job()
            taken.append(process_time() - began)
    return [min(taken) for taken in times]


def peak_bytes(job: Job) -> int:
    """The most memory that a call holds at once."""
    tracemalloc.start()
    job()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--engine", default="reference", help="as for mmproof run")
    engine = load(arguments.parse_args().engine)
    prompts = {size: prompt(size) for size in SIZES}
    heads = [f"{size // 1000}k ms" for size in SIZES]
    print(f"{'':18}" + "".join(f"{head:>10}" for head in (*heads, "exponent", "loop ms", "loop /", "B/pos.")))
    for name, case in CASES.items():
        jobs = [case.ask(engine, prompts[size]) for size in SIZES]
        *times, loop = shortest(*jobs, case.walk(prompts[POSITIONS], engine))
        exponent = np.polyfit(np.log(SIZES), np.log(times), 1)[0]
        memory = peak_bytes(jobs[-1]) / POSITIONS
        numbers = [*(f"{1e3 * time:.1f}" for time in times), f"{exponent:.2f}", f"{1e3 * loop:.0f}", f"{loop / times[-1]:.1f}"]
        print(f"{name:18}" + "".join(f"{number:>10}" for number in (*numbers, f"{memory:.0f}")))


if __name__ == "__main__":
    main()
