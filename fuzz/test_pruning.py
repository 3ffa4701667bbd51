"""Search for videos and prompts that break a rule about pruning."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact
from conformance.oracles import pruning as oracle
from conformance.oracles.pruning import Count
from conformance.suite.test_pruning_steps import Step
from conformance.world.videos import Pruned, Video
from fuzz.search import searches
from fuzz.strategies.videos import RATES, prompts_to_prune, screenplays, videos
from reference.items import Chunk, Request


def agreed(case: Video) -> bool:
    """Whether both readings of the rate keep equally many tokens."""
    frames, height, width = case.grid
    return len(set(oracle.count(height * width, frames, case.rate).right)) == 1


@searches("PRUNING-01", examples=500)
def test_any_count() -> SearchStrategy[Count]:
    return st.builds(oracle.count, st.integers(1, 1 << 12), st.integers(1, 1 << 10), RATES)


@searches("PRUNING-02", examples=500)
def test_any_rate_of_three_digits() -> SearchStrategy[Exact]:
    rates = st.integers(0, 999).map(lambda thousandths: thousandths / 1000)
    given = st.tuples(st.integers(1, 1 << 12), st.integers(1, 1 << 10), rates)
    return given.map(lambda given: Exact(given, oracle.as_written(*given)))


@searches("PRUNING-03")
def test_any_rate_that_is_no_share() -> SearchStrategy[float]:
    return st.floats(min_value=1) | st.floats(max_value=0, exclude_max=True).filter(bool) | st.just(float("nan"))


@searches("PRUNING-04")
def test_the_size_of_any_mask() -> SearchStrategy[Video]:
    return videos("abcdexABCDEX0")


@searches("PRUNING-05")
def test_the_first_frame_of_any_video() -> SearchStrategy[Video]:
    return videos()


@searches("PRUNING-06")
def test_what_any_video_keeps() -> SearchStrategy[Video]:
    return videos()


@searches("PRUNING-07")
def test_any_video_at_rate_0() -> SearchStrategy[Video]:
    return videos("abcdexABCDEX0", st.just(0.0))


@searches("PRUNING-08", examples=200)
def test_the_exact_mask_of_any_video() -> SearchStrategy[Exact]:
    return videos("abcdexABCDEX0").filter(agreed).map(lambda case: Exact(case, oracle.mask(case)))


@searches("PRUNING-09")
def test_the_ids_of_any_prompt() -> SearchStrategy[Exact]:
    return prompts_to_prune().map(lambda case: Exact(case, case.input_ids[oracle.survivors(case)]))


@searches("PRUNING-10")
def test_the_spans_of_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-11")
def test_the_callers_ids_of_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-13")
def test_padding_of_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-14")
def test_the_kept_tokens_of_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-15")
def test_the_order_of_text_in_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-16")
def test_the_text_of_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-17")
def test_the_delta_of_any_prompt() -> SearchStrategy[Pruned]:
    return prompts_to_prune()


@searches("PRUNING-18")
def test_any_prompt_that_is_kept_whole() -> SearchStrategy[Pruned]:
    return prompts_to_prune(whole=True)


@st.composite
def steps(choose: st.DrawFn) -> Step:
    """Up to 3 requests at a rate in eighths, each with any chunk of its pruned prompt; shrinks to one and the whole of it."""
    rate = choose(st.integers(0, 7)) / 8
    batch = []
    for number in range(choose(st.integers(1, 3))):
        request = choose(screenplays(f"screenplay-{number}"))
        length = oracle.length(request, rate)
        first = choose(st.integers(0, length))
        batch.append((request, Chunk(first, length - first - choose(st.integers(0, length - first)))))
    return Step(tuple(batch), rate)


@searches("PRUNING-19", examples=200)
def test_any_step() -> SearchStrategy[Step]:
    return steps()


@searches("PRUNING-20", examples=50)
def test_any_cuts() -> SearchStrategy[tuple[Request, int]]:
    return st.tuples(screenplays(), st.integers(1, 12))


@searches("PRUNING-21", examples=50)
def test_any_two_requests_in_turn() -> SearchStrategy[tuple[Request, Request]]:
    return st.tuples(screenplays(), screenplays("another"))


@searches("PRUNING-22", examples=50)
def test_how_often_any_video_is_encoded() -> SearchStrategy[Request]:
    return screenplays().filter(lambda request: len({item.identity for item in request.items}) == len(request.items))


@searches("PRUNING-23", examples=50)
def test_any_request_at_rate_0() -> SearchStrategy[Request]:
    return screenplays()
