"""Ways in which engines have planned their steps wrongly."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from conformance.protocol.scheduling import Budget
from conformance.quirk import quirk
from reference import scheduling as right
from reference.items import Chunk, Item, Span

Items = Sequence[Item]
Requests = Sequence[tuple[int, Items]]


def plan(length: int, items: Items, budget: Budget, prefix: int = 0) -> list[Chunk]:
    """What the reference makes of a request."""
    return right.plan_chunks(length, items, right.Budget(**asdict(budget)), prefix)


def plan_until_stuck(length: int, items: Items, budget: Budget, prefix: int) -> tuple[list[Chunk], int]:
    """The reference's chunks as far as they go, and where they end, however that is."""
    for stop in range(length, prefix, -1):
        try:
            chunks = plan(stop, [item for item in items if item.spans[-1].last < stop], budget, prefix)
        except right.NeverSchedulable:
            continue
        return chunks, stop
    return [], prefix


@quirk(
    "plans-nothing-for-ever",
    replaces="plan_chunks",
    bugs=("K09", "enc-budget-livelock-two-items", "two-images-infinite-rollback"),
    caught_by=("SCHEDULING-12",),
)
def livelock(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """A chunk that alignment or a full encoder cache rounds down to nothing is planned again in every step."""
    try:
        return plan(length, items, budget, prefix)
    except right.NeverSchedulable:
        chunks, stop = plan_until_stuck(length, items, budget, prefix)
        return chunks + [Chunk(stop, 0)] * 1000


@quirk("too-long-is-done-at-once", replaces="plan_chunks", bugs=("L13",), caught_by=("SCHEDULING-12",))
def done_at_once(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """A request that can never be computed is held to be done, and whoever sent it gets an answer with nothing in it."""
    try:
        return plan(length, items, budget, prefix)
    except right.NeverSchedulable:
        return []


@quirk(
    "tail-rounded-down-to-nothing",
    replaces="plan_chunks",
    bugs=("K09",),
    caught_by=("SCHEDULING-05",),
)
def no_tail(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """The end of the prompt is aligned as well, so that a tail shorter than a block is never computed."""
    chunks = plan(length, items, budget, prefix)
    return [c for c in chunks if c.stop % budget.alignment_tokens == 0] if chunks else chunks


@quirk("prefix-computed-again", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-05", "SCHEDULING-07", "SCHEDULING-14"))
def from_the_beginning(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """The plan begins at the first position, whatever is in the cache."""
    try:
        return plan(length, items, budget, 0)
    except right.NeverSchedulable:
        return plan(length, items, budget, prefix)


@quirk("a-picture-counts-as-one-token", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-06",))
def pictures_are_one_token(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """A step counts the tokens of the unexpanded prompt, in which a picture is one placeholder."""
    surplus = max((item.token_count - 1 for item in items), default=0)
    plan(length, items, budget, prefix)
    return plan(length, items, replace(budget, tokens_per_step=budget.tokens_per_step + surplus), prefix)


@quirk("encoder-counts-what-is-in-the-chunk", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-07", "SCHEDULING-14"))
def by_positions_in_the_chunk(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """The encoder's budget limits the media positions of a chunk, though the encoder makes the whole of every item."""
    plan(length, items, budget, prefix)
    limits = [limit for limit in (budget.embeddings_per_step, budget.tokens_per_step) if limit is not None]
    return plan(length, items, replace(budget, embeddings_per_step=None, tokens_per_step=max(1, min(limits))), prefix)


@quirk(
    "budget-stretched-to-the-largest-item",
    replaces="plan_chunks",
    bugs=("enc-budget-too-large-item",),
    caught_by=("SCHEDULING-07", "SCHEDULING-12"),
)
def stretched(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """The encoder's budget is raised to the sum of the two largest items, so that the encoder runs out of memory instead."""
    largest = sum(sorted(item.token_count for item in items)[-2:])
    made = None if budget.embeddings_per_step is None else max(budget.embeddings_per_step, largest)
    return plan(length, items, replace(budget, embeddings_per_step=made), prefix)


@quirk("freed-slots-counted-twice", replaces="plan_chunks", bugs=("encdec-slots-inflate",), caught_by=("SCHEDULING-08",))
def inflated(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """An item is freed again in every step after its last one, so that there seems to be ever more room for embeddings."""
    chunks = plan(length, items, budget, prefix)
    for number, chunk in enumerate(chunks[:-1]):
        read = [item for item in items if item.spans[-1].last < chunk.stop]
        if read and budget.embeddings_kept is not None:
            more = replace(budget, embeddings_kept=budget.embeddings_kept + read[0].token_count)
            return chunks[: number + 1] + plan(length, items, more, chunk.stop)
    return chunks


@quirk(
    "freed-at-the-first-position",
    replaces="plan_chunks",
    bugs=(),
    caught_by=("SCHEDULING-07", "SCHEDULING-08", "SCHEDULING-10"),
)
def freed_at_once(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """An embedding is given free with the first chunk that reads it, and the next chunk of its item finds it gone."""
    plan(length, items, budget, prefix)
    firsts = [replace(item, spans=(item.spans[0],)) if len(item.spans) > 1 else item for item in items]
    made = budget.embeddings_kept if budget.embeddings_per_step is None else budget.embeddings_per_step
    return plan(length, firsts, replace(budget, embeddings_kept=None, embeddings_per_step=made), prefix)


@quirk("item-in-the-prefix-is-free", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-07",))
def free_in_the_prefix(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """An item that begins in the cached prefix costs nothing, though its rest cannot be had without encoding it."""
    plan(length, items, budget, prefix)
    return plan(length, [item for item in items if item.spans[0].first >= prefix], budget, prefix)


@quirk("cut-after-aligning", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-09",))
def cut_after_aligning(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """The end of a chunk is rounded first and moved for the encoder's sake afterwards, to where no block ends."""
    plan(length, items, budget, prefix)
    return plan(length, items, replace(budget, alignment_tokens=1), prefix)


@quirk("cuts-any-item", replaces="plan_chunks", bugs=("ollama-image-split-batches",), caught_by=("SCHEDULING-10",))
def cuts_any_item(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """A chunk ends wherever the tokens end, inside a picture too whose positions attend to one another."""
    plan(length, items, budget, prefix)
    return plan(length, items, replace(budget, whole_items=False), prefix)


@quirk("cuts-between-the-spans-of-an-item", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-10",))
def cuts_between_spans(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """Each span counts as an item of its own, so that the frames of one video are computed in several steps."""
    plan(length, items, budget, prefix)
    return plan(length, [replace(item, spans=(span,)) for item in items for span in item.spans], budget, prefix)


@quirk(
    "budget-by-span",
    replaces="plan_chunks",
    bugs=("budget-by-span-not-embeds", "enc-budget-special-tokens"),
    caught_by=("SCHEDULING-11",),
)
def by_span(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """An item costs what lies between its first and its last position, separators and text included."""
    wide = [replace(item, spans=(Span(item.spans[0].first, item.spans[-1].last),)) for item in items]
    try:
        return plan(length, wide, budget, prefix)
    except right.NeverSchedulable:
        raise
    except ValueError:
        return plan(length, items, budget, prefix)


@quirk(
    "all-of-a-budget-is-too-much",
    replaces="plan_chunks",
    bugs=("enc-budget-too-large-item",),
    caught_by=("SCHEDULING-11", "SCHEDULING-13", "SCHEDULING-14"),
)
def one_less(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """An item must be smaller than the budget of the encoder, where it may be as large."""
    limits = ("embeddings_per_step", "embeddings_kept")
    less = {name: value - 1 for name in limits if (value := getattr(budget, name))}
    return plan(length, items, replace(budget, **less), prefix)


@quirk("refuses-without-a-reason", replaces="plan_chunks", bugs=("enc-budget-too-large-item",), caught_by=("SCHEDULING-13",))
def without_a_reason(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """A request that can never be computed is refused, and nobody is told what was too small."""
    try:
        return plan(length, items, budget, prefix)
    except right.NeverSchedulable:
        raise ValueError("the request is too large") from None


@quirk("one-item-a-step", replaces="plan_chunks", bugs=(), caught_by=("SCHEDULING-14",))
def one_item_a_step(length: int, items: Items, budget: Budget, prefix: int) -> list[Chunk]:
    """A chunk ends where the next item begins, though there is room for it."""
    chunks = plan(length, items, budget, prefix)
    begins = {item.spans[0].first for item in items if item.spans[0].first % budget.alignment_tokens == 0}
    more = set() if budget.whole_items else {stop for stop in begins if stop > prefix}
    stops = sorted({chunk.stop for chunk in chunks} | more)
    return [Chunk(first, stop - first) for first, stop in zip([prefix, *stops], stops, strict=False)]


def steps(requests: Requests, budget: Budget) -> list[dict[int, Chunk]]:
    """What the reference makes of a line of requests."""
    return right.plan_steps(requests, right.Budget(**asdict(budget)))


@quirk(
    "failed-attempt-keeps-its-embeddings",
    replaces="plan_steps",
    bugs=("enc-cache-waiting-leak",),
    caught_by=("SCHEDULING-15", "SCHEDULING-17"),
)
def leaking(requests: Requests, budget: Budget) -> list[dict[int, Chunk]]:
    """What was set aside for a request that then found no KV slots is not given back, until nobody can begin an item."""
    made = steps(requests, budget)
    if budget.kv_tokens is None or budget.embeddings_kept is None:
        return made
    needs = {number: sum(item.token_count for item in items) for number, (_, items) in enumerate(requests)}
    left = budget.embeddings_kept - sum(need for number, need in needs.items() if number not in made[0])
    stuck = {number for number, need in needs.items() if number not in made[0] and need > left}
    served = [{number: chunk for number, chunk in step.items() if number not in stuck} for step in made]
    return [step for step in served if step] + [dict[int, Chunk]()] * (1000 if stuck else 0)


@quirk("waiting-request-forgotten", replaces="plan_steps", bugs=(), caught_by=("SCHEDULING-15",))
def forgotten(requests: Requests, budget: Budget) -> list[dict[int, Chunk]]:
    """Who is in the line when a step is full is never looked at again."""
    made = steps(requests, budget)
    served = [{number: chunk for number, chunk in step.items() if number in made[0]} for step in made]
    return [step for step in served if step]


@quirk("a-budget-for-each-request", replaces="plan_steps", bugs=(), caught_by=("SCHEDULING-16",))
def a_budget_each(requests: Requests, budget: Budget) -> list[dict[int, Chunk]]:
    """Every request of a step may take all of the budget."""
    plans = [plan(length, items, budget) for length, items in requests]
    return [{number: chunks[k] for number, chunks in enumerate(plans) if k < len(chunks)} for k in range(max(map(len, plans)))]


@quirk("a-step-to-hand-back", replaces="plan_steps", bugs=(), caught_by=("SCHEDULING-17",))
def a_step_to_hand_back(requests: Requests, budget: Budget) -> list[dict[int, Chunk]]:
    """After a request is done a step passes that does nothing but return what it held."""
    made = []
    for step in steps(requests, budget):
        made += [step] + [dict[int, Chunk]()] * any(chunk.stop == requests[number][0] for number, chunk in step.items())
    return made


@quirk("last-come-first-served", replaces="plan_steps", bugs=(), caught_by=("SCHEDULING-18",))
def last_come(requests: Requests, budget: Budget) -> list[dict[int, Chunk]]:
    """The line is a stack: whoever came last is computed first."""
    last = len(requests) - 1
    return [{last - number: chunk for number, chunk in step.items()} for step in steps(requests[::-1], budget)]
