"""Search for prompts, budgets and lines that break a rule about scheduling."""

from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact
from conformance.oracles import scheduling as oracle
from conformance.oracles.scheduling import Job, Line, Step
from conformance.suite.scheduling_cases import Culprit
from fuzz.search import searches
from fuzz.strategies.schedules import batches, batches_that_divide, culprits, impossible_jobs, jobs, lines, twins


@searches("SCHEDULING-01")
def test_the_lengths_of_any_batch() -> SearchStrategy[Exact]:
    return batches().map(lambda batch: Exact(batch, list(map(oracle.decoder_part, batch))))


@searches("SCHEDULING-02")
def test_the_ids_of_any_batch() -> SearchStrategy[Exact]:
    return batches().map(lambda batch: Exact(batch, list(map(oracle.decoder_ids, batch))))


@searches("SCHEDULING-03")
def test_any_prefix_that_divides_an_encoder_part() -> SearchStrategy[list[Step]]:
    return batches_that_divide(prefix=True)


@searches("SCHEDULING-04")
def test_any_chunk_that_divides_an_encoder_part() -> SearchStrategy[list[Step]]:
    return batches_that_divide(prefix=False)


@searches("SCHEDULING-05")
def test_the_chunks_of_any_job() -> SearchStrategy[Job]:
    return jobs()


@searches("SCHEDULING-06")
def test_the_positions_in_a_step_of_any_job() -> SearchStrategy[Job]:
    return jobs()


@searches("SCHEDULING-07")
def test_the_embeddings_made_for_any_job() -> SearchStrategy[Job]:
    return jobs(("embeddings_per_step",))


@searches("SCHEDULING-08")
def test_the_embeddings_kept_for_any_job() -> SearchStrategy[Job]:
    return jobs(("embeddings_kept",))


@searches("SCHEDULING-09")
def test_the_ends_of_any_job() -> SearchStrategy[Job]:
    return jobs(("alignment_tokens",))


@searches("SCHEDULING-10")
def test_the_whole_items_of_any_job() -> SearchStrategy[Job]:
    return jobs(("whole_items",))


@searches("SCHEDULING-11", examples=200)
def test_any_job_that_has_a_plan() -> SearchStrategy[Job]:
    return jobs()


@searches("SCHEDULING-12", examples=200)
def test_any_job_that_has_none() -> SearchStrategy[Job]:
    return impossible_jobs() | jobs(("alignment_tokens", "whole_items", "embeddings_kept"))


@searches("SCHEDULING-13")
def test_any_single_limit() -> SearchStrategy[Culprit]:
    return culprits()


@searches("SCHEDULING-14")
def test_the_number_of_steps_of_any_job() -> SearchStrategy[Job]:
    return jobs()


@searches("SCHEDULING-15")
def test_the_requests_of_any_line() -> SearchStrategy[Line]:
    return lines()


@searches("SCHEDULING-16")
def test_the_budget_of_any_line() -> SearchStrategy[Line]:
    return lines()


@searches("SCHEDULING-17")
def test_the_steps_of_any_line() -> SearchStrategy[Line]:
    return lines()


@searches("SCHEDULING-18")
def test_the_order_of_any_line() -> SearchStrategy[Line]:
    return twins()
