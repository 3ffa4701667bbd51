"""Search for splits of a model that break a rule about pipeline ranks."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Pair
from conformance.suite.pipeline_ranks_cases import Split, split
from conformance.world.qwen3_vl_text import LAYERS
from fuzz.search import searches
from fuzz.strategies.feeds import chunks
from fuzz.strategies.prompts import prompts
from reference.items import Chunk

MOST_RANKS = 4


@st.composite
def splits(choose: st.DrawFn, first: bool = False, part: bool = True) -> Split:
    """Any chunk on up to 4 ranks with up to 3 layers each and up to 3 levels; shrinks to one rank without deepstack.

    first: all levels on the first rank. part: a chunk, and not always the whole prompt.
    """
    lengths = tuple(choose(st.lists(st.integers(1, 3), min_size=1, max_size=MOST_RANKS)))
    layers = range(lengths[0] if first else sum(lengths))
    levels = tuple(choose(st.lists(st.sampled_from(layers), max_size=3, unique=True)))
    prompt = choose(prompts())
    length = len(prompt.input_ids)
    return split(prompt, lengths, levels, choose(chunks(length)) if part else Chunk(0, length))


@st.composite
def models(choose: st.DrawFn) -> Split:
    """A prompt for the model of six layers, on any number of ranks, with up to six levels; shrinks to one rank."""
    cuts = sorted(choose(st.sets(st.integers(1, LAYERS - 1))))
    lengths = tuple(stop - start for start, stop in zip([0, *cuts], [*cuts, LAYERS], strict=True))
    prompt = choose(prompts().filter(lambda prompt: len(prompt.input_ids) > 0))
    return split(prompt, lengths, tuple(range(choose(st.integers(0, LAYERS)))))


@searches("PIPELINE_RANKS-01")
def test_the_first_rank_of_any_split() -> SearchStrategy[Split]:
    return splits(first=True)


@searches("PIPELINE_RANKS-02")
def test_the_later_ranks_of_any_split() -> SearchStrategy[Split]:
    return splits(first=True)


@searches("PIPELINE_RANKS-03")
def test_the_encoders_of_any_split() -> SearchStrategy[Split]:
    return splits(first=True)


@searches("PIPELINE_RANKS-04")
def test_the_levels_of_any_split() -> SearchStrategy[Split]:
    return splits()


@searches("PIPELINE_RANKS-05")
def test_what_any_split_hands_on() -> SearchStrategy[Split]:
    return splits()


@searches("PIPELINE_RANKS-06")
def test_any_split_of_a_model() -> SearchStrategy[Split]:
    return models()


@searches("PIPELINE_RANKS-09")
def test_any_two_chunks_in_turn() -> SearchStrategy[Pair]:
    return st.tuples(splits(first=True), splits(first=True)).map(lambda two: Pair(*two))


@searches("PIPELINE_RANKS-10")
def test_what_any_split_receives() -> SearchStrategy[Split]:
    return splits(first=True)
