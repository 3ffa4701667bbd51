"""Drawn prompts with budgets, and lines of them (see `conformance.world.prompts`)."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles.scheduling import Job, Line, Step
from conformance.protocol.scheduling import Budget
from conformance.suite.scheduling_cases import Culprit, step
from conformance.world.prompts import draw
from reference.items import Item


@st.composite
def drawings(choose: st.DrawFn, letters: str = "ijkv") -> str:
    """Items of up to 2 spans of up to 6 positions, one after the other, and text; shrinks to one position of text."""
    gap = st.integers(0, 4).map(lambda length: "." * length)
    drawing = choose(gap)
    for letter in letters:
        spans = choose(st.lists(st.integers(1, 6), max_size=2))
        drawing += choose(gap).join(letter * length for length in spans) + choose(gap)
    return drawing or "."


def largest(items: tuple[Item, ...]) -> int:
    """The embeddings of the largest item, 0 where there is none."""
    return max((item.token_count for item in items), default=0)


@st.composite
def jobs(choose: st.DrawFn, limits: tuple[str, ...] = ()) -> Job:
    """A prompt of up to 84 positions with any budget, often just enough; shrinks to text and to no limits.

    There is a slot more than positions at least: an engine may want it for the first token of its answer.

    limits: those that are always set.
    """
    drawing = choose(drawings())
    items = draw(drawing).items
    embeddings = st.integers(largest(items), largest(items) + 6)

    def limit(name: str, values: SearchStrategy[int]) -> int | None:
        return choose(values if name in limits else st.none() | values)

    budget = Budget(
        tokens_per_step=choose(st.integers(1, 16)),
        embeddings_per_step=limit("embeddings_per_step", embeddings),
        embeddings_kept=limit("embeddings_kept", embeddings),
        kv_tokens=limit("kv_tokens", st.integers(len(drawing) + 1, len(drawing) + 3)),
        alignment_tokens=choose(st.integers(2, 5) if "alignment_tokens" in limits else st.sampled_from([1, 1, 2, 3, 4])),
        whole_items="whole_items" in limits or choose(st.booleans()),
    )
    return Job(len(drawing), items, budget, choose(st.just(0) | st.integers(0, len(drawing))))


@st.composite
def impossible_jobs(choose: st.DrawFn) -> Job:
    """A prompt with an item that is larger than a limit; shrinks as the jobs do."""
    job = choose(jobs().filter(lambda job: job.items and not job.prefix))
    less = choose(st.integers(0, largest(job.items) - 1))
    budgets = [replace(job.budget, embeddings_per_step=less), replace(job.budget, embeddings_kept=less)]
    return job._replace(budget=choose(st.sampled_from(budgets)))


@st.composite
def culprits(choose: st.DrawFn) -> Culprit:
    """A prompt that one limit alone makes impossible; shrinks as the drawings do."""
    drawing = choose(drawings().filter(lambda drawing: set(drawing) - {"."}))
    items, roomy = draw(drawing).items, Budget(tokens_per_step=1000)
    made = choose(st.integers(0, largest(items) - 1))
    slots = choose(st.integers(0, len(drawing) - 1))
    tight = [
        (replace(roomy, embeddings_per_step=made), made),
        (replace(roomy, embeddings_kept=made), made),
        (replace(roomy, kv_tokens=slots), slots),
    ]
    budget, limit = choose(st.sampled_from(tight))
    return Culprit(Job(len(drawing), items, budget), limit)


@st.composite
def lines(choose: st.DrawFn) -> Line:
    """Up to 3 prompts with items of their own and a budget that each fits alone; shrinks to few, of text, without limits."""
    drawn = [choose(drawings(letters)) for letters in ("ij", "kv", "wa")[: choose(st.integers(1, 3))]]
    requests = tuple((len(drawing), draw(drawing).items) for drawing in drawn)
    most = max(largest(items) for _, items in requests)
    longest = max(length for length, _ in requests)
    budget = Budget(
        tokens_per_step=choose(st.integers(1, 16)),
        embeddings_per_step=choose(st.none() | st.integers(most, most + 6)),
        embeddings_kept=choose(st.none() | st.integers(2 * most, 2 * most + 6)),
        kv_tokens=choose(st.none() | st.integers(longest + 1, longest + 9)),
    )
    return Line(requests, budget)


def twins() -> SearchStrategy[Line]:
    """A line whose first prompt comes once more, behind the others, as text; shrinks as the lines do."""
    return lines().map(lambda line: line._replace(requests=(*((n, ()) for n, _ in line.requests), (line.requests[0][0], ()))))


@st.composite
def batches(choose: st.DrawFn) -> list[Step]:
    """Up to 4 requests whose encoder part is whole or absent; shrinks to one request without an encoder part."""
    encoders = choose(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    return [step(*choose(_undivided(length)), length) for length in encoders]


def _undivided(length: int) -> SearchStrategy[tuple[int, int]]:
    fresh = st.tuples(st.just(0), st.integers(length, length + 5))
    return fresh | st.tuples(st.integers(length, length + 5), st.integers(0, 5))


@st.composite
def batches_that_divide(choose: st.DrawFn, *, prefix: bool) -> list[Step]:
    """A batch of which one request divides its encoder part, by its prefix or by its end; shrinks as the batches do."""
    good = choose(batches())
    length = choose(st.integers(2, 7))
    cut = choose(st.integers(1, length - 1))
    bad = step(cut, choose(st.integers(0, 9)), length) if prefix else step(0, cut, length)
    good.insert(choose(st.integers(0, len(good))), bad)
    return good
