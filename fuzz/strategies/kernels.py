"""What kernels are asked (see `conformance.suite.kernels_cases`)."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.suite.kernels_cases import DTYPES, FAR, Covered, Ids, Merge, Scatter, ids, numbers
from conformance.suite.kernels_cases import merge as merging
from fuzz.strategies.contents import LAYOUTS
from reference.items import Chunk

NEAR_AN_EDGE = [n + d for n in (0, 64, 1024, 2048, 4096) for d in (-3, -1, 0, 1, 2) if n + d >= 0]
SENTINELS = st.integers(-3, 3) | st.integers(FAR, FAR + 4) | st.integers(2**32, 2**32 + 3) | st.integers(-(2**63), 2**63 - 1)


def counts() -> SearchStrategy[int]:
    """Numbers of bytes, 0 included, most of them near the edge of a block; shrinks to 0."""
    return st.sampled_from(NEAR_AN_EDGE) | st.integers(0, 5000)


@st.composite
def octets(choose: st.DrawFn) -> torch.Tensor:
    """Bytes of any number up to some chunks, beginning anywhere in memory; shrinks to none."""
    count, skipped, seed = choose(counts()), choose(st.integers(0, 7)), choose(st.integers(0, 2**32))
    random = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (skipped + count,), dtype=torch.uint8, generator=random)[skipped:]


@st.composite
def looked_for(choose: st.DrawFn) -> Ids:
    """Any ids of either width, and sentinels of which some are among them; shrinks to no ids."""
    sentinels = sorted(choose(st.sets(SENTINELS, max_size=9)))
    far = choose(st.lists(st.sampled_from(sentinels) | SENTINELS if sentinels else SENTINELS, max_size=40))
    narrow = [id for id in far if -(2**31) <= id < 2**31]
    return ids(narrow, sentinels, torch.int32) if choose(st.booleans()) else ids(far, sentinels)


@st.composite
def scatters(choose: st.DrawFn) -> Scatter:
    """Rows of any dtype and layout for any mask; shrinks to no positions."""
    mask = torch.tensor(choose(st.lists(st.booleans(), max_size=40)), dtype=torch.bool)
    width, dtype = choose(st.sampled_from([0, 1, 3, 127, 128, 129])), DTYPES[choose(st.sampled_from(sorted(DTYPES)))]
    laid_out = LAYOUTS[choose(st.sampled_from(sorted(set(LAYOUTS) - {"every-second", "behind-others"})))]
    rows = laid_out(numbers(int(mask.sum()), width, dtype, first=7))
    return Scatter(laid_out(numbers(len(mask), width, dtype)), mask, rows)


@st.composite
def coverings(choose: st.DrawFn) -> Covered:
    """Disjoint spans in any order, and any chunk; shrinks to no spans and an empty chunk."""
    gaps = choose(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=6))
    edges, at = [], 0
    for gap, length in gaps:
        edges.append((at + gap, at + gap + length - 1))
        at += gap + length
    chunk = Chunk(choose(st.integers(0, at + 5)), choose(st.integers(0, at + 5)))
    return Covered(merging(choose(st.permutations(edges)), Chunk(0, 0)).spans, chunk)


@st.composite
def merges(choose: st.DrawFn, levels: int = 2, least_id: int = 0, stop_id: int = 50) -> Merge:
    """A merge of any spans and chunk, with ids of text from least_id to below stop_id; shrinks to an empty chunk."""
    spans, chunk = choose(coverings())
    edges = [(span.first, span.last) for span in spans]
    width, dtype = choose(st.sampled_from([1, 3, 129])), DTYPES[choose(st.sampled_from(sorted(DTYPES)))]
    ids = choose(st.lists(st.integers(least_id, stop_id - 1), min_size=chunk.length, max_size=chunk.length))
    return merging(edges, chunk, levels=choose(st.integers(0, levels)), width=width, dtype=dtype, ids=ids)
