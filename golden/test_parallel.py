"""Launch plans, shares of encoder ranks and rooms, measured on SGLang and on vLLM."""

from typing import Any

from conformance.cases import Exact
from conformance.protocol.parallel import Layout
from conformance.suite.parallel_cases import Shares
from golden.vectors import vectors


@vectors("PARALLEL-05")
def test_where_ranks_run(given: dict[str, int], expected: list[list[int]]) -> Exact:
    return Exact(Layout(**given), [tuple(place) for place in expected])


@vectors("PARALLEL-34")
def test_the_rank_of_a_room(given: dict[str, Any], expected: int) -> Exact:
    return Exact((given["ranks"], given["room"], ()), expected)


@vectors("PARALLEL-51")
def test_the_largest_share(given: dict[str, Any], expected: int) -> Exact:
    return Exact(Shares(given["ranks"], tuple(given["sizes"])), expected)
