"""Search for prompts and chunks that break a rule about merging."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.suite.merging_feeds import Chunked, Feed, Fit
from conformance.world.prompts import VOCABULARY
from fuzz.search import searches
from fuzz.strategies.feeds import feeds, lengths
from fuzz.strategies.prompts import TEXT_AND_MEDIA, prompts

MOST_LEVELS = 3
PICTURES = ".ijkvw"
"""Text, and what has levels: no recording of any model has."""


@searches("MERGING-01")
def test_the_text_of_any_chunk() -> SearchStrategy[Feed]:
    return feeds()


@searches("MERGING-02")
def test_the_media_of_any_chunk() -> SearchStrategy[Feed]:
    return feeds()


@searches("MERGING-03")
def test_any_chunks_of_any_prompt() -> SearchStrategy[Chunked]:
    return prompts(TEXT_AND_MEDIA).flatmap(lambda prompt: lengths(len(prompt.input_ids)).map(lambda cut: Chunked(prompt, cut)))


@searches("MERGING-04")
def test_literal_placeholders_anywhere() -> SearchStrategy[Feed]:
    return feeds("..##ijv")


@searches("MERGING-05")
def test_the_arguments_of_any_chunk() -> SearchStrategy[Feed]:
    return feeds()


@searches("MERGING-06")
def test_any_smaller_number_of_rows() -> SearchStrategy[Pair]:
    fed = feeds().filter(lambda feed: len(feed.media) > 0)
    return fed.flatmap(lambda feed: st.integers(0, len(feed.media) - 1).map(lambda count: Pair(feed, count)))


@searches("MERGING-18")
def test_any_larger_number_of_rows() -> SearchStrategy[Pair]:
    return feeds().flatmap(lambda feed: st.integers(1, 60).map(lambda more: Pair(feed, len(feed.media) + more)))


@searches("MERGING-07")
def test_any_other_width() -> SearchStrategy[int]:
    return st.integers(0, 40).filter(lambda width: width != 4)


@searches("MERGING-08")
def test_any_types() -> SearchStrategy[Feed]:
    return feeds()


@searches("MERGING-09")
def test_any_id_outside_the_table() -> SearchStrategy[int]:
    return st.integers(VOCABULARY, 2**63 - 1) | st.integers(-(2**63), -1)


@searches("MERGING-10")
def test_any_length_that_fits() -> SearchStrategy[Exact]:
    return st.integers(0, 50).map(lambda count: Exact(Fit(count, count), list(range(count))))


@searches("MERGING-11")
def test_any_surplus() -> SearchStrategy[Exact]:
    two = st.tuples(st.integers(0, 50), st.integers(1, 50))
    return two.map(lambda two: Exact(Fit(sum(two), two[0]), list(range(two[1], sum(two)))))


@searches("MERGING-12")
def test_any_shortage() -> SearchStrategy[Exact]:
    return st.tuples(st.integers(0, 50), st.integers(1, 50)).map(lambda two: Exact(Fit(two[0], sum(two)), None))


@searches("MERGING-13")
def test_the_first_layer_of_any_chunk() -> SearchStrategy[Feed]:
    return feeds(PICTURES, levels=MOST_LEVELS)


@searches("MERGING-14")
def test_the_levels_of_any_chunk() -> SearchStrategy[Feed]:
    return feeds(PICTURES, levels=MOST_LEVELS)


@searches("MERGING-15")
def test_the_levels_at_text_of_any_chunk() -> SearchStrategy[Feed]:
    return feeds(PICTURES, levels=MOST_LEVELS)


@searches("MERGING-16")
def test_any_two_chunks_in_turn() -> SearchStrategy[Pair]:
    return st.tuples(feeds(PICTURES, levels=MOST_LEVELS), feeds(PICTURES, levels=MOST_LEVELS)).map(lambda two: Pair(*two))


@searches("MERGING-17")
def test_any_width_that_does_not_divide() -> SearchStrategy[int]:
    return st.integers(1, 40).filter(lambda width: width % 4 != 0)
