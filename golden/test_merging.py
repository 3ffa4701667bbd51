"""The length of embeddings, measured on SGLang."""

from conformance.cases import Exact
from conformance.suite.merging_feeds import Fit
from golden.vectors import vectors


@vectors("MERGING-10")
def test_as_many_rows_as_wanted(given: dict[str, int], expected: list[int]) -> Exact:
    return Exact(Fit(given["rows"], given["wanted"]), expected)


@vectors("MERGING-11")
def test_surplus_rows(given: dict[str, int], expected: list[int]) -> Exact:
    return Exact(Fit(given["rows"], given["wanted"]), expected)
