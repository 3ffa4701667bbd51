"""SCHEDULING: which positions are computed in which step."""

from functools import partial

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import scheduling as oracle
from conformance.oracles.scheduling import Job, Line, Step
from conformance.requirement import SHOULD, requirement
from conformance.suite.scheduling_cases import (
    ALIGNED,
    BATCHES,
    CULPRITS,
    DIVIDED_CHUNKS,
    DIVIDED_PREFIXES,
    IMPOSSIBLE,
    KEPT,
    LINES,
    MADE,
    PLANS,
    WHOLE,
    Culprit,
    refusals,
)  # fmt: skip


@requirement(
    "SCHEDULING-01",
    needs="encoder_lengths",
    cases={name: Exact(batch, list(map(oracle.decoder_part, batch))) for name, batch in BATCHES.items()},
)
def test_the_decoder_counts_without_the_encoder_part(engine: Engine, case: Exact) -> None:
    """Prefix and length of the decoder MUST count its own positions only; the encoder part is cached or in the chunk."""
    observed = [(part.encoder_length, part.is_cached, part.chunk) for part in engine.encoder_lengths(case.given)]
    equal(observed, case.expected, "encoder length, whether it is cached, and the decoder's chunk", where="request {}".format)


@requirement(
    "SCHEDULING-02",
    needs="encoder_lengths",
    cases={name: Exact(batch, list(map(oracle.decoder_ids, batch))) for name, batch in BATCHES.items()},
)
def test_the_decoder_gets_its_own_ids(engine: Engine, case: Exact) -> None:
    """The decoder MUST get the ids of its own positions in the chunk: all of them, and none of the encoder part."""
    observed = [part.input_ids for part in engine.encoder_lengths(case.given)]
    equal(len(observed), len(case.expected), "the number of requests")
    for number, (ids, expected) in enumerate(zip(observed, case.expected, strict=True)):
        equal(ids, expected, f"the decoder's ids of request {number}")


@requirement("SCHEDULING-03", needs="encoder_lengths", cases=DIVIDED_PREFIXES)
def test_a_prefix_that_divides_the_encoder_part_is_refused(engine: Engine, case: list[Step]) -> None:
    """A prefix that holds some positions of the encoder part, and not all, MUST be refused with a clear error."""
    refuses(lambda: engine.encoder_lengths(case), f"{[(chunk, length) for _, chunk, length in case]}")


@requirement("SCHEDULING-04", needs="encoder_lengths", cases=DIVIDED_CHUNKS)
def test_a_chunk_that_ends_inside_the_encoder_part_is_refused(engine: Engine, case: list[Step]) -> None:
    """A chunk that ends inside the encoder part MUST be refused with a clear error."""
    refuses(lambda: engine.encoder_lengths(case), f"{[(chunk, length) for _, chunk, length in case]}")


@requirement("SCHEDULING-05", needs="plan_chunks", cases=PLANS, bugs=("K09", "enc-budget-livelock-two-items"))
def test_chunks_follow_one_another_to_the_end(engine: Engine, case: Job) -> None:
    """The chunks of a plan MUST begin at the prefix, follow one another to the end of the prompt, and never be empty."""
    for chunks in unless_refused(lambda: engine.plan_chunks(*case), f"{case.budget}"):
        sentence = f"{chunks} are not the positions {case.prefix} to {case.length}, each in one chunk"
        holds(oracle.tiles(chunks, case.prefix, case.length), sentence)


@requirement("SCHEDULING-06", needs="plan_chunks", cases=PLANS)
def test_media_count_like_text(engine: Engine, case: Job) -> None:
    """A chunk MUST NOT have more positions than one step computes, positions of media included."""
    for chunks in unless_refused(lambda: engine.plan_chunks(*case), f"{case.budget}"):
        beyond = [chunk for chunk in chunks if oracle.exceeds(chunk.length, case.budget.tokens_per_step)]
        equal(beyond, [], f"the chunks of more than {case.budget.tokens_per_step} positions")


@requirement("SCHEDULING-07", needs="plan_chunks", cases=MADE, bugs=("enc-budget-too-large-item",))
def test_the_encoder_makes_no_more_than_its_budget(engine: Engine, case: Job) -> None:
    """The items that a step begins MUST NOT have more embeddings together than the encoder makes in one step."""
    for chunks in unless_refused(lambda: engine.plan_chunks(*case), f"{case.budget}"):
        limit, made = case.budget.embeddings_per_step, oracle.made(case.items, chunks, case.prefix)
        beyond = [(chunk, n) for chunk, n in zip(chunks, made, strict=True) if oracle.exceeds(n, limit)]
        equal(beyond, [], f"the chunks that need more than {limit} new embeddings")


@requirement("SCHEDULING-08", needs="plan_chunks", cases=KEPT, bugs=("encdec-slots-inflate",))
def test_no_more_is_kept_than_there_is_room_for(engine: Engine, case: Job) -> None:
    """The items that a step reads MUST NOT have more embeddings together than can be kept, to the last step of each."""
    for chunks in unless_refused(lambda: engine.plan_chunks(*case), f"{case.budget}"):
        limit, kept = case.budget.embeddings_kept, oracle.kept(case.items, chunks, case.prefix)
        beyond = [(chunk, n) for chunk, n in zip(chunks, kept, strict=True) if oracle.exceeds(n, limit)]
        equal(beyond, [], f"the chunks that read more than {limit} embeddings")


@requirement("SCHEDULING-09", needs="plan_chunks", cases=ALIGNED)
def test_chunks_end_where_they_should(engine: Engine, case: Job) -> None:
    """Every chunk but the last MUST end at a multiple of the alignment.

    An engine with the trait `alignment="but for media"` may end a chunk before an item too, and anywhere when no multiple
    is within its budget.
    """
    for chunks in unless_refused(lambda: engine.plan_chunks(*case), f"{case.budget}"):
        strays = oracle.strays(case, chunks, engine.traits)
        equal(strays, [], f"the chunks that end between multiples of {case.budget.alignment_tokens}")


@requirement("SCHEDULING-10", needs="plan_chunks", cases=WHOLE, bugs=("ollama-image-split-batches",))
def test_whole_items_are_not_cut(engine: Engine, case: Job) -> None:
    """Where items are whole, a chunk MUST NOT end after the first position of an item and before its last one.

    An item that the cached prefix cuts is not whole any more.
    """
    for chunks in unless_refused(lambda: engine.plan_chunks(*case), f"{case.budget}"):
        equal([chunk for chunk in chunks if oracle.cuts(case, chunk)], [], "the chunks that end inside an item")


@requirement(
    "SCHEDULING-11",
    needs="plan_chunks",
    cases=PLANS,
    bugs=("enc-budget-too-large-item", "enc-budget-special-tokens", "budget-by-span-not-embeds"),
)
def test_what_can_be_computed_is_not_refused(engine: Engine, case: Job) -> None:
    """A request for which there is a plan MUST NOT be refused: also one that needs all of a budget.

    An item costs an embedding for each position of its spans, and nothing for what lies between them.
    """
    for job in oracle.promised(case, engine.traits):
        plans = unless_refused(partial(engine.plan_chunks, *job), f"{job.budget}")
        equal(len(plans), 1, f"the number of plans for {job.length} positions within {job.budget}")


@requirement(
    "SCHEDULING-12",
    needs="plan_chunks",
    cases=IMPOSSIBLE,
    bugs=("K09", "enc-budget-too-large-item", "enc-budget-livelock-two-items", "two-images-infinite-rollback"),
)
def test_what_can_never_be_computed_is_refused(engine: Engine, case: Job) -> None:
    """A request for which there is no plan MUST be refused at admission, and not be tried for ever."""
    for job in oracle.impossible(case, engine.traits):
        refuses(partial(engine.plan_chunks, *job), f"{job.length} positions within {job.budget}")


@requirement("SCHEDULING-13", level=SHOULD, needs="plan_chunks", cases=CULPRITS, bugs=("enc-budget-too-large-item",))
def test_a_refusal_states_the_limit(engine: Engine, case: Culprit) -> None:
    """A refusal SHOULD state the limit that stands in the way, so that it can be raised."""
    for job in oracle.impossible(case.job, engine.traits):
        for words in refusals(partial(engine.plan_chunks, *job)):
            holds(str(case.limit) in words, f"the limit of {case.limit} is not named in {words!r}")


@requirement("SCHEDULING-14", level=SHOULD, needs="plan_chunks", cases=PLANS)
def test_a_plan_has_no_step_too_many(engine: Engine, case: Job) -> None:
    """A plan SHOULD take the fewest steps that the budget allows."""
    for job in oracle.promised(case, engine.traits):
        for chunks in unless_refused(partial(engine.plan_chunks, *job), f"{job.budget}"):
            fewest = oracle.fewest(oracle.bound(job, engine.traits))
            holds(not oracle.exceeds(len(chunks), fewest), f"{len(chunks)} steps were planned where {fewest} do")


@requirement("SCHEDULING-15", needs="plan_steps", cases=LINES, bugs=("enc-cache-waiting-leak",))
def test_every_request_of_a_line_is_computed_to_the_end(engine: Engine, case: Line) -> None:
    """The chunks of every request in a line MUST follow one another to the end of its prompt."""
    steps = engine.plan_steps(*case)
    for number, (length, _) in enumerate(case.requests):
        chunks = oracle.of_request(steps, number)
        holds(oracle.tiles(chunks, 0, length), f"the chunks of request {number}, {chunks}, are not its {length} positions")


@requirement("SCHEDULING-16", needs="plan_steps", cases=LINES)
def test_requests_share_one_budget(engine: Engine, case: Line) -> None:
    """What the requests of a step take together MUST be within each limit of the budget."""
    spent = oracle.spent(case, engine.plan_steps(*case))
    beyond = [
        (number, name) for number, step in enumerate(spent) for name in step
        if oracle.exceeds(step[name], getattr(case.budget, name))
    ]  # fmt: skip
    equal(beyond, [], "the steps that go beyond a limit")


@requirement("SCHEDULING-17", needs="plan_steps", cases=LINES, bugs=("enc-cache-waiting-leak", "K09"))
def test_every_step_computes_something(engine: Engine, case: Line) -> None:
    """Every step MUST compute at least one position, as long as a request of the line is not done."""
    steps = engine.plan_steps(*case)
    idle = [number for number, step in enumerate(steps) if not any(chunk.length for chunk in step.values())]
    equal(idle, [], "the steps that compute nothing")


@requirement("SCHEDULING-18", level=SHOULD, needs="plan_steps", cases=LINES)
def test_who_comes_first_is_not_overtaken_by_its_like(engine: Engine, case: Line) -> None:
    """A request SHOULD be done no later than one behind it whose prompt is as long and has media in the same places."""
    observed = oracle.overtaken(case, engine.plan_steps(*case))
    equal(observed, [], "the pairs of requests of which the second was done first")
