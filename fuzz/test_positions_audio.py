"""Search for recordings, videos with their recordings, and rotary sections that break a rule about positions."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact
from conformance.oracles import positions as oracle
from conformance.suite.positions_audio_cases import Sections, silenced
from conformance.world.mrope import QWEN2_5_OMNI, QWEN3_OMNI, Script, image, write
from fuzz.search import searches
from fuzz.strategies.films import films, omni_scripts, recordings
from fuzz.strategies.scripts import SIDES


def exact(script: Script) -> Exact:
    return Exact(script, oracle.triples(script))


@searches("POSITIONS-23")
def test_any_recordings() -> SearchStrategy[Exact]:
    parts = st.lists(st.integers(0, 4) | st.builds(image, SIDES, SIDES) | recordings(), max_size=5)
    return st.builds(lambda written, last: exact(write(QWEN3_OMNI, *written, last, 1)), parts, recordings())


@searches("POSITIONS-24")
def test_any_videos_with_their_recordings() -> SearchStrategy[Exact]:
    return omni_scripts(QWEN3_OMNI, films()).map(exact)


@searches("POSITIONS-25")
def test_any_pieces() -> SearchStrategy[Script]:
    return st.builds(
        lambda text, one, more: write(QWEN2_5_OMNI, text, one, more), st.integers(0, 3), films(), st.integers(0, 2)
    )


@searches("POSITIONS-26")
def test_any_lost_recording() -> SearchStrategy[Script]:
    return films().map(lambda one: silenced(write(QWEN3_OMNI, 1, one, 1)))


@searches("POSITIONS-27")
def test_any_sections() -> SearchStrategy[Exact]:
    counts = st.integers(0, 40)
    blocked = st.builds(Sections, st.tuples(counts, counts, counts.map(lambda n: n + 1)), st.just(False))
    return (blocked | turns()).map(lambda case: Exact(case, oracle.rotary_axes(*case)))


@st.composite
def turns(choose: st.DrawFn) -> Sections:
    """Sections in which time has its share of each turn, and the rest; shrink to one turn."""
    height = choose(st.integers(1, 30))
    width = choose(st.integers(max(height - 1, 0), height))
    return Sections((choose(st.integers(height, 60)), height, width), True)
