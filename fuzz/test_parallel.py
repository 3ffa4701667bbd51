"""Search for layouts, ranks and traffic that break a rule about many ranks."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact
from conformance.oracles.parallel import greedy_peak, plan
from conformance.protocol.parallel import Layout, Routed
from conformance.suite.parallel_cases import Arrivals, Impossible, Shares
from conformance.suite.parallel_routing_cases import Traffic
from conformance.suite.prefix_cache_cases import Meeting
from fuzz.search import searches
from fuzz.strategies import ranks
from fuzz.strategies.prefixes import meetings


@searches("PARALLEL-01")
def test_any_layout_is_launched_once() -> SearchStrategy[tuple[Layout, ...]]:
    return ranks.layouts()


@searches("PARALLEL-02")
def test_any_layout_has_devices() -> SearchStrategy[tuple[Layout, ...]]:
    return ranks.layouts(steps=True)


@searches("PARALLEL-03")
def test_any_step() -> SearchStrategy[tuple[Layout, ...]]:
    return ranks.layouts(steps=True)


@searches("PARALLEL-04")
def test_any_tensor_group() -> SearchStrategy[tuple[Layout, ...]]:
    return ranks.layouts()


@searches("PARALLEL-05")
def test_any_order() -> SearchStrategy[Exact]:
    return ranks.layouts().map(lambda one: Exact(one[0], sorted(place[:5] for place in plan(one[0]))))


@searches("PARALLEL-06")
def test_any_attention_groups() -> SearchStrategy[tuple[Layout, ...]]:
    return ranks.layouts()


@searches("PARALLEL-07")
def test_any_experts() -> SearchStrategy[tuple[Layout, ...]]:
    return ranks.layouts()


@searches("PARALLEL-08")
def test_any_impossible_layout() -> SearchStrategy[Impossible]:
    return ranks.impossible()


@searches("PARALLEL-11", examples=40)
def test_any_arrivals() -> SearchStrategy[Arrivals]:
    return ranks.arrivals()


@searches("PARALLEL-14", examples=60)
def test_any_faults() -> SearchStrategy[Arrivals]:
    return ranks.arrivals(failing=True)


@searches("PARALLEL-15", examples=40)
def test_any_failure_leaves_nothing() -> SearchStrategy[Arrivals]:
    return ranks.arrivals(failing=True)


@searches("PARALLEL-17", examples=40)
def test_any_groups() -> SearchStrategy[Arrivals]:
    return ranks.arrivals(failing=True, grouped=True)


@searches("PARALLEL-18", examples=40)
def test_any_device() -> SearchStrategy[Arrivals]:
    return ranks.arrivals(grouped=True)


@searches("PARALLEL-21")
def test_any_assignment() -> SearchStrategy[Shares]:
    return ranks.shares(most=30)


@searches("PARALLEL-22", examples=40)
def test_any_balance() -> SearchStrategy[Shares]:
    return ranks.shares(most=5)


@searches("PARALLEL-51")
def test_any_greed() -> SearchStrategy[Exact]:
    return ranks.shares(most=30).map(lambda case: Exact(case, greedy_peak(case.sizes, case.ranks)))


@searches("PARALLEL-23", examples=40)
def test_any_shared_work() -> SearchStrategy[Shares]:
    return ranks.shares()


@searches("PARALLEL-26", examples=40)
def test_any_failing_encoder() -> SearchStrategy[Shares]:
    return ranks.shares(failing=True)


@searches("PARALLEL-27")
def test_any_circle() -> SearchStrategy[Traffic]:
    return ranks.circles()


@searches("PARALLEL-28")
def test_any_burst_of_requests() -> SearchStrategy[Traffic]:
    return ranks.traffic(deaths=True)


@searches("PARALLEL-29")
def test_any_burst_of_tokens() -> SearchStrategy[Traffic]:
    return ranks.traffic(deaths=True)


@searches("PARALLEL-30")
def test_any_reports_of_requests() -> SearchStrategy[Traffic]:
    return ranks.traffic(reports=True)


@searches("PARALLEL-31")
def test_any_reports_of_tokens() -> SearchStrategy[Traffic]:
    return ranks.traffic(reports=True)


@searches("PARALLEL-32")
def test_any_late_report() -> SearchStrategy[Traffic]:
    return ranks.traffic(reports=True)


@searches("PARALLEL-34")
def test_any_room() -> SearchStrategy[Exact]:
    given = st.tuples(st.integers(1, 1000), st.integers(0, 2**63 - 1), st.just(()))
    return given.map(lambda one: Exact(one, one[1] % one[0]))


@searches("PARALLEL-40")
def test_any_prefix() -> SearchStrategy[tuple[Routed, Routed]]:
    return ranks.repeated()


@searches("PARALLEL-44")
def test_any_keys() -> SearchStrategy[Meeting]:
    return meetings()


@searches("PARALLEL-46")
def test_any_keys_of_the_cache() -> SearchStrategy[Meeting]:
    return meetings()


@searches("PARALLEL-48")
def test_any_weight() -> SearchStrategy[Meeting]:
    return meetings()
