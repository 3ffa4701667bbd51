"""Search for options, uses and sequences of events that break a rule about preprocessing."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Pair
from conformance.oracles.preprocessing import Script
from conformance.oracles.preprocessing_mirrors import Traffic
from conformance.suite.preprocessing_cases import Asked, Uses, asked
from fuzz.search import searches
from fuzz.strategies.preprocessing_scripts import scripts, traffics
from reference.items import Modality

NAMES = st.text("abk_12", min_size=1, max_size=4)
VALUES = st.recursive(
    st.integers(-9, 1 << 40) | st.text("abk_12", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OPTIONS = st.dictionaries(NAMES, VALUES, max_size=4)


def a_picture(options: dict[str, Any]) -> Asked:
    """One picture with these options; they are given as a mapping, for a name may be any."""
    one = asked()
    return one._replace(options={Modality.IMAGE: options})


def turned(value: Any) -> Any:
    """The same value with every mapping in the opposite order."""
    if isinstance(value, dict):
        return {name: turned(value[name]) for name in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


@searches("PREPROCESSING-03")
def test_any_other_options() -> SearchStrategy[Pair]:
    two = st.tuples(OPTIONS, OPTIONS).filter(lambda both: both[0] != both[1])
    return two.map(lambda both: Pair(*map(a_picture, both)))


@searches("PREPROCESSING-04")
def test_any_bounds_within_a_word() -> SearchStrategy[Pair]:
    cuts = st.tuples(st.text("ab1", min_size=4, max_size=8), st.integers(1, 3), st.integers(1, 3))
    return cuts.filter(lambda cut: cut[1] != cut[2]).map(
        lambda cut: Pair(*(a_picture({cut[0][:place]: cut[0][place:]}) for place in cut[1:]))
    )


@searches("PREPROCESSING-05")
def test_any_options_of_another_modality() -> SearchStrategy[Pair]:
    return st.tuples(OPTIONS, OPTIONS, OPTIONS).map(
        lambda three: Pair(
            *(asked()._replace(options={Modality.VIDEO: other, Modality.IMAGE: three[0]}) for other in three[1:])
        )
    )


@searches("PREPROCESSING-06")
def test_any_order_of_options() -> SearchStrategy[Pair]:
    return OPTIONS.map(lambda options: Pair(a_picture(options), a_picture(turned(options))))


@searches("PREPROCESSING-08")
def test_any_number_of_workers() -> SearchStrategy[Script]:
    return scripts(("submit", "submit", "finish"), most_queued=30)


@searches("PREPROCESSING-09")
def test_any_number_of_places() -> SearchStrategy[Script]:
    return scripts(("submit", "submit", "submit", "finish", "fail"))


@searches("PREPROCESSING-12", examples=200)
def test_any_events() -> SearchStrategy[Script]:
    return scripts()


@searches("PREPROCESSING-18")
def test_anybody_leaves() -> SearchStrategy[Script]:
    return scripts(("submit", "submit", "submit", "finish", "cancel"), most_queued=30)


@searches("PREPROCESSING-21")
def test_everybody_leaves() -> SearchStrategy[Script]:
    return scripts(all_leave=True)


@searches("PREPROCESSING-24")
def test_clear_at_any_time() -> SearchStrategy[Script]:
    return scripts(("submit", "submit", "finish", "clear"), most_queued=30)


@searches("PREPROCESSING-31")
def test_any_uses() -> SearchStrategy[Uses]:
    return st.builds(Uses, st.integers(0, 6), st.text("abcdAB", min_size=1, max_size=24))


@searches("PREPROCESSING-32")
def test_any_uses_stay_in_the_budget() -> SearchStrategy[Uses]:
    return st.builds(Uses, st.integers(0, 6), st.text("abcdAB", min_size=1, max_size=24))


@searches("PREPROCESSING-37")
def test_any_traffic_in_order() -> SearchStrategy[Traffic]:
    return traffics()


@searches("PREPROCESSING-38")
def test_any_uses_of_what_was_sent() -> SearchStrategy[Uses]:
    return st.builds(Uses, st.integers(0, 6), st.text("abcdAB", min_size=1, max_size=24))


@searches("PREPROCESSING-39")
def test_any_requests_that_do_not_fit() -> SearchStrategy[Traffic]:
    return traffics(together=False)


@searches("PREPROCESSING-40")
def test_any_order_of_messages() -> SearchStrategy[Traffic]:
    return traffics(in_order=False)


@searches("PREPROCESSING-41")
def test_any_traffic_stays_in_the_budget() -> SearchStrategy[Traffic]:
    return traffics(in_order=False)
