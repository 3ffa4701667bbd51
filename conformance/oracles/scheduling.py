"""What is obviously right about scheduling: each chunk is judged by itself, and every plan is tried."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.engine import Traits
from conformance.protocol.scheduling import Budget
from reference.items import Chunk, Item, Span

Step = tuple[NDArray[np.int64], Chunk, int]
"""What `encoder_lengths` is asked about one request: the ids of its chunk, the chunk, and the length of the encoder part."""


class Job(NamedTuple):
    """What `plan_chunks` is asked."""

    length: int
    items: tuple[Item, ...]
    budget: Budget
    prefix: int = 0


class Line(NamedTuple):
    """What `plan_steps` is asked."""

    requests: tuple[tuple[int, tuple[Item, ...]], ...]
    budget: Budget


def decoder_positions(step: Step) -> list[int]:
    """The positions of the chunk, in the whole prompt, that are the decoder's."""
    _, chunk, encoder_length = step
    return [position for position in range(chunk.prefix, chunk.stop) if position >= encoder_length]


def decoder_part(step: Step) -> tuple[int, bool, Chunk]:
    """Length of the encoder part, whether it is cached, and the chunk of the decoder."""
    _, chunk, encoder_length = step
    is_cached = all(position < chunk.prefix for position in range(encoder_length))
    done = sum(position >= encoder_length for position in range(chunk.prefix))
    return encoder_length, is_cached, Chunk(done, len(decoder_positions(step)))


def decoder_ids(step: Step) -> NDArray[np.int64]:
    """The ids at the decoder's positions."""
    ids, chunk, _ = step
    return np.array([ids[position - chunk.prefix] for position in decoder_positions(step)], dtype=np.int64)


def tiles(chunks: Sequence[Chunk], prefix: int, length: int) -> bool:
    """Whether chunks follow one another from `prefix` to `length`, none of them empty."""
    positions = [position for chunk in chunks for position in range(chunk.prefix, chunk.stop)]
    return positions == list(range(prefix, length)) and all(chunk.length for chunk in chunks)


def read(items: Sequence[Item], chunk: Chunk, prefix: int = 0) -> set[int]:
    """The numbers of the items that were begun behind the prefix, in a step or before it, and are not done before it."""
    left = {number: [p for span in item.spans for p in ends_of(span, prefix)] for number, item in enumerate(items)}
    return {
        number
        for number, positions in left.items()
        if positions and positions[0] < chunk.stop and positions[-1] >= chunk.prefix
    }


def ends_of(span: Span, prefix: int) -> list[int]:
    """The first and the last position of a span that lie behind the prefix."""
    return [max(span.first, prefix), span.last] if span.last >= prefix else []


def embeddings(items: Sequence[Item], numbers: Iterable[int]) -> int:
    """How many embeddings these items have: one for each position of a span."""
    return sum(span.last - span.first + 1 for number in numbers for span in items[number].spans)


def made(items: Sequence[Item], chunks: Sequence[Chunk], prefix: int = 0) -> list[int]:
    """For each chunk of a request the embeddings of the items that no chunk before it has read."""
    begun: set[int] = set()
    counts = []
    for chunk in chunks:
        counts.append(embeddings(items, read(items, chunk, prefix) - begun))
        begun |= read(items, chunk, prefix)
    return counts


def kept(items: Sequence[Item], chunks: Sequence[Chunk], prefix: int = 0) -> list[int]:
    """For each chunk of a request the embeddings that it reads."""
    return [embeddings(items, read(items, chunk, prefix)) for chunk in chunks]


def is_aligned(job: Job, chunk: Chunk) -> bool:
    return chunk.stop % job.budget.alignment_tokens == 0 or chunk.stop == job.length


def cuts(job: Job, chunk: Chunk) -> bool:
    """Whether the chunk ends inside an item that the prefix does not cut."""
    extents = [(item.spans[0].first, item.spans[-1].last) for item in job.items]
    return any(job.prefix <= first < chunk.stop <= last for first, last in extents)


def exceeds(number: int, limit: int | None) -> bool:
    return limit is not None and number > limit


def allows(job: Job, chunk: Chunk) -> bool:
    """Whether one chunk of a plan is within the budget, whatever else the plan has."""
    before = read(job.items, Chunk(job.prefix, chunk.prefix - job.prefix), job.prefix)
    reads = read(job.items, chunk, job.prefix)
    return (
        chunk.length <= job.budget.tokens_per_step
        and not exceeds(embeddings(job.items, reads - before), job.budget.embeddings_per_step)
        and not exceeds(embeddings(job.items, reads), job.budget.embeddings_kept)
        and is_aligned(job, chunk)
        and not (job.budget.whole_items and cuts(job, chunk))
    )


def ends(job: Job, start: int) -> set[int]:
    """Every position at which a chunk from `start` on may end."""
    furthest = min(start + job.budget.tokens_per_step, job.length)
    return {stop for stop in range(start + 1, furthest + 1) if allows(job, Chunk(start, stop - start))}


def fewest(job: Job) -> int | None:
    """The fewest steps of any plan, found by trying all of them; None when there is no plan."""
    if exceeds(job.length, job.budget.kv_tokens):
        return None
    reached, frontier, steps = {job.prefix}, {job.prefix}, 0
    while job.length not in frontier:
        frontier = {stop for start in frontier for stop in ends(job, start)} - reached
        reached |= frontier
        steps += 1
        if not frontier:
            return None
    return steps


def bound(job: Job, traits: Traits) -> Job:
    """The job with the limit that an engine keeps by itself."""
    return job._replace(budget=replace(job.budget, whole_items=job.budget.whole_items or not traits.splits_items))


def has_plan(job: Job, traits: Traits) -> bool:
    """Whether an engine of these traits can compute the job."""
    alignment = job.budget.alignment_tokens if traits.alignment == "always" else 1
    return fewest(bound(job._replace(budget=replace(job.budget, alignment_tokens=alignment)), traits)) is not None


def knobs(budget: Budget) -> set[str]:
    """The limits that a budget sets."""
    return {knob.name for knob in fields(budget) if getattr(budget, knob.name) != knob.default}


def promised(job: Job, traits: Traits) -> list[Job]:
    """The job, if an engine of these traits has to compute it."""
    return [job] if knobs(job.budget) <= set(traits.knobs) and has_plan(job, traits) else []


def impossible(job: Job, traits: Traits) -> list[Job]:
    """The job, if an engine of these traits has to refuse it."""
    return [job] if knobs(job.budget) <= set(traits.knobs) and not has_plan(job, traits) else []


def strays(job: Job, chunks: Sequence[Chunk], traits: Traits) -> list[Chunk]:
    """The chunks that end where they should not."""
    wrong = [chunk for chunk in chunks if not is_aligned(job, chunk)]
    before_items = {item.spans[0].first for item in job.items}
    return [
        chunk for chunk in wrong if traits.alignment == "always" or (chunk.stop not in before_items and ends(job, chunk.prefix))
    ]


def of_request(steps: Sequence[Mapping[int, Chunk]], number: int) -> list[Chunk]:
    """The chunks of one request, step by step."""
    return [step[number] for step in steps if number in step]


def spent(line: Line, steps: Sequence[Mapping[int, Chunk]]) -> list[dict[str, int]]:
    """For each step what its requests together take of the budget."""
    plans = [of_request(steps, number) for number, _ in enumerate(line.requests)]
    fresh = {n: dict(zip(plan, made(line.requests[n][1], plan), strict=True)) for n, plan in enumerate(plans)}
    return [
        {
            "tokens_per_step": sum(chunk.length for chunk in step.values()),
            "embeddings_per_step": sum(fresh[n][chunk] for n, chunk in step.items()),
            "embeddings_kept": sum(embeddings(line.requests[n][1], read(line.requests[n][1], c)) for n, c in step.items()),
            "kv_tokens": slots(line, steps[: number + 1]),
        }
        for number, step in enumerate(steps)
    ]


def slots(line: Line, steps: Sequence[Mapping[int, Chunk]]) -> int:
    """The positions that were computed, in these steps, of the requests that were not done before the last one."""
    plans = [of_request(steps, number) for number, _ in enumerate(line.requests)]
    live = [plan for n, plan in enumerate(plans) if n in steps[-1] or (plan and plan[-1].stop < line.requests[n][0])]
    return sum(plan[-1].stop for plan in live)


def overtaken(line: Line, steps: Sequence[Mapping[int, Chunk]]) -> list[tuple[int, int]]:
    """The pairs of like requests, of one length and with items of the same spans, of which the second is done first."""
    asked = range(len(line.requests))
    last = [max((k for k, step in enumerate(steps) if number in step), default=len(steps)) for number in asked]
    alike = [(length, [item.spans for item in items]) for length, items in line.requests]
    return [(a, b) for b in range(len(last)) for a in range(b) if alike[a] == alike[b] and last[a] > last[b]]
