"""Search for identities and hashes that break a rule about sentinels."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.oracles import sentinels as oracle
from fuzz.search import searches

IDENTITIES = st.binary(min_size=32, max_size=32)
HASHES = st.integers(0, 2**64 - 1)


def pairs(values: SearchStrategy[object]) -> SearchStrategy[Pair]:
    """Two different values."""
    return st.lists(values, min_size=2, max_size=2, unique=True).map(lambda two: Pair(*two))


@searches("SENTINELS-01")
def test_any_identity_lies_outside_every_vocabulary() -> SearchStrategy[bytes]:
    return IDENTITIES


@searches("SENTINELS-02")
def test_any_two_identities_are_told_apart() -> SearchStrategy[Pair]:
    return pairs(IDENTITIES)


@searches("SENTINELS-03")
def test_any_two_hashes_are_told_apart() -> SearchStrategy[Pair]:
    return pairs(HASHES)


@searches("SENTINELS-06")
def test_any_identity_has_the_exact_values() -> SearchStrategy[Exact]:
    return IDENTITIES.map(lambda identity: Exact(identity, oracle.expected(identity)))


@searches("SENTINELS-07")
def test_any_hash_has_the_exact_values() -> SearchStrategy[Exact]:
    return HASHES.map(lambda value: Exact(value, oracle.expected(value.to_bytes(8, "big"))))


@searches("SENTINELS-04")
def test_any_other_number_is_refused() -> SearchStrategy[int]:
    return st.integers(max_value=-1) | st.integers(min_value=2**64)


@searches("SENTINELS-05")
def test_any_larger_vocabulary_is_refused() -> SearchStrategy[int]:
    return st.integers(1, 2**40)


@searches("SENTINELS-08")
def test_any_other_length_is_refused() -> SearchStrategy[bytes]:
    return st.binary(max_size=80).filter(lambda identity: len(identity) != 32)


@searches("SENTINELS-09")
def test_any_smaller_vocabulary_is_taken() -> SearchStrategy[int]:
    return st.integers(0, 999_999)
