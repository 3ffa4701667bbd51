"""Search for prompts, pictures and chunk lengths that break a rule about the pipeline."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.oracles import pipeline as oracle
from conformance.suite.test_pipeline import Chunked, Mismatched
from conformance.world.checkpoint import PLACEHOLDER
from conformance.world.pictures import TOKENS
from fuzz.search import searches
from fuzz.strategies.pictures import prompts, replaced, swapped

CHUNKED = st.builds(Chunked, prompts(3), st.integers(3, 64))


@searches("PIPELINE-01", examples=25)
def test_any_prompt_enters_as_it_should() -> SearchStrategy[str]:
    return prompts()


@searches("PIPELINE-02", examples=25)
def test_any_chunks_enter_as_they_should() -> SearchStrategy[Chunked]:
    return CHUNKED


@searches("PIPELINE-03", examples=15)
def test_any_prompt_is_answered_as_it_should() -> SearchStrategy[str]:
    return prompts()


@searches("PIPELINE-04", examples=15)
def test_any_chunks_are_answered_as_they_should() -> SearchStrategy[Chunked]:
    return CHUNKED


@searches("PIPELINE-05", examples=15)
def test_any_other_picture_changes_its_rows() -> SearchStrategy[Pair]:
    return replaced()


@searches("PIPELINE-06", examples=15)
def test_any_swapped_pictures_swap_their_rows() -> SearchStrategy[Pair]:
    return swapped()


@searches("PIPELINE-07", examples=15)
def test_any_other_picture_changes_its_ids() -> SearchStrategy[Pair]:
    return replaced()


@searches("PIPELINE-08", examples=50)
def test_any_text_keeps_its_ids() -> SearchStrategy[Exact]:
    return prompts().map(lambda prompt: Exact(prompt, oracle.spell(prompt)))


@searches("PIPELINE-09", examples=25)
def test_any_mismatch_is_refused() -> SearchStrategy[Mismatched]:
    counts = st.tuples(st.integers(0, 3), st.lists(st.sampled_from(sorted(TOKENS)), min_size=1, max_size=3))
    mismatched = counts.filter(lambda drawn: drawn[0] != len(drawn[1]))
    return mismatched.map(lambda drawn: Mismatched(f"Look: {PLACEHOLDER * drawn[0]}", tuple(drawn[1])))


@searches("PIPELINE-10", examples=10)
def test_any_request_that_comes_again_is_served_alike() -> SearchStrategy[Chunked]:
    return CHUNKED


@searches("PIPELINE-11", examples=25)
def test_any_typed_token_takes_no_picture() -> SearchStrategy[str]:
    return st.tuples(prompts(2), st.just("<|image_pad|>"), prompts(2)).map("".join)
