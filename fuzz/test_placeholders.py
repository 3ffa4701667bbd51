"""Search for prompts that break a rule about placeholders."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.oracles import placeholders as oracle
from conformance.world.prompts import BadSpans, Pairing, Prompt, draw
from fuzz.search import searches
from fuzz.strategies.prompts import broken_pairings, drawings, outside, overlapping, pairings, prompts

HASHES = st.integers(0, 2**64 - 1)


@searches("PLACEHOLDERS-01")
def test_any_runs() -> SearchStrategy[Exact]:
    ids = drawings(".i").map(lambda drawing: draw(drawing).input_ids)
    return ids.map(lambda ids: Exact((ids, 11), oracle.runs(ids.tolist(), 11)))


@searches("PLACEHOLDERS-02")
def test_the_text_of_any_prompt() -> SearchStrategy[Prompt]:
    return prompts()


@searches("PLACEHOLDERS-03")
def test_the_callers_ids_of_any_prompt() -> SearchStrategy[Prompt]:
    return prompts()


@searches("PLACEHOLDERS-04")
def test_any_prompt_with_the_letters_changed() -> SearchStrategy[Pair]:
    others = str.maketrans("ijkvwab", "jkiwvba")
    return drawings().map(lambda drawing: Pair(draw(drawing), draw(drawing.translate(others))))


@searches("PLACEHOLDERS-05")
def test_the_sentinels_of_any_prompt() -> SearchStrategy[Prompt]:
    return prompts()


@searches("PLACEHOLDERS-06")
def test_any_two_caller_hashes() -> SearchStrategy[Pair]:
    return st.lists(HASHES, min_size=2, max_size=2, unique=True).map(lambda two: Pair(*two))


@searches("PLACEHOLDERS-07")
def test_any_spans_that_overlap() -> SearchStrategy[BadSpans]:
    return overlapping()


@searches("PLACEHOLDERS-17")
def test_any_span_that_leaves_the_prompt() -> SearchStrategy[BadSpans]:
    return outside()


@searches("PLACEHOLDERS-08")
def test_the_modalities_of_any_prompt() -> SearchStrategy[Exact]:
    return prompts().map(lambda p: Exact((len(p.input_ids), p.items), oracle.modalities(len(p.input_ids), p.items)))


@searches("PLACEHOLDERS-09")
def test_the_modalities_of_any_spans_that_overlap_or_leave_the_prompt() -> SearchStrategy[BadSpans]:
    return overlapping() | outside()


@searches("PLACEHOLDERS-10")
def test_the_exact_ids_of_any_prompt() -> SearchStrategy[Exact]:
    return prompts().map(lambda prompt: Exact(prompt, oracle.padded(*prompt)))


@searches("PLACEHOLDERS-11")
def test_any_pairs_against_spans() -> SearchStrategy[Pairing]:
    return pairings()


@searches("PLACEHOLDERS-12")
def test_any_slices() -> SearchStrategy[Pairing]:
    return pairings()


@searches("PLACEHOLDERS-13")
def test_the_text_around_any_pairs() -> SearchStrategy[Pairing]:
    return pairings()


@searches("PLACEHOLDERS-14")
def test_the_callers_ids_of_any_pairs() -> SearchStrategy[Pairing]:
    return pairings()


@searches("PLACEHOLDERS-15")
def test_any_broken_pairs() -> SearchStrategy[Pairing]:
    return broken_pairings()


@searches("PLACEHOLDERS-16")
def test_the_exact_ids_of_any_pairs() -> SearchStrategy[Exact]:
    return pairings().map(lambda pairing: Exact(pairing, oracle.padded(*pairing[:2])))
