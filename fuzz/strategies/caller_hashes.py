"""Hashes that callers supply with a request."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import identity as oracle
from conformance.suite.identity_hash_cases import Hashes
from reference.items import Modality

DIGITS = st.text("0123456789abcdefABCDEF", min_size=1, max_size=16)
"""Well-formed hashes. Shrinks to the digit 0."""

OTHERS = (st.none() | st.integers() | st.text(max_size=20) | st.text("0123456789abcdefx_+- \n", max_size=20)).filter(
    lambda text: not oracle.is_hash(text)
)
"""What is no hash, near misses among them. Shrinks to None."""


@st.composite
def hashes(draw: st.DrawFn, texts: SearchStrategy[Any] = DIGITS, surplus: int = 0, kinds: int = 3) -> Hashes:
    """A request of up to five items of `kinds` modalities, with hashes for some of the modalities.

    surplus: how far the number of hashes may be off in either direction. Shrinks to no items.
    """
    modalities = tuple(draw(st.lists(st.sampled_from(list(Modality)[:kinds]), max_size=5)))
    given = {}
    for modality in draw(st.lists(st.sampled_from(list(Modality)[:kinds]), unique=True)):
        count = max(0, modalities.count(modality) + draw(st.integers(-surplus, surplus)))
        given[modality] = draw(st.lists(texts, min_size=count, max_size=count))
    return Hashes(modalities, given, oracle.adopted(modalities, given)[0])


def is_miscounted(case: Hashes) -> bool:
    """Whether the number of hashes is wrong for any modality; an empty list may pass for none at all."""
    return any(given and len(given) != case.modalities.count(modality) for modality, given in case.hashes.items())


def is_malformed(case: Hashes) -> bool:
    """Whether any hash is none."""
    return not all(oracle.is_hash(text) for given in case.hashes.values() for text in given)
