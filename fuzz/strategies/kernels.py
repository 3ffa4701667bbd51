"""What kernels are asked (see `conformance.suite.kernels_cases`)."""

from collections.abc import Callable, Sequence

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles.kernels_computing import Film, Heads
from conformance.suite import kernels_computing_cases as computing
from conformance.suite.kernels_cases import DTYPES, FAR, Covered, Ids, Merge, Scatter, ids, numbers
from conformance.suite.kernels_cases import merge as merging
from conformance.world.videos import DIRECTIONS
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
def scatters(choose: st.DrawFn, dtypes: Sequence[str] = tuple(sorted(DTYPES))) -> Scatter:
    """Rows of any of these dtypes and any layout for any mask; shrinks to no positions."""
    mask = torch.tensor(choose(st.lists(st.booleans(), max_size=40)), dtype=torch.bool)
    width, dtype = choose(st.sampled_from([0, 1, 3, 127, 128, 129])), DTYPES[choose(st.sampled_from(dtypes))]
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


@st.composite
def turns(choose: st.DrawFn, numbers: Callable[..., torch.Tensor] | None = None, least: int = 1, most: int = 4) -> Heads:
    """Heads of any form, size and dtype, for so many triples and any sections; shrinks to the fewest and one frequency."""
    form = choose(st.sampled_from(computing.FORMS))
    if form.startswith("interleaved"):
        height = choose(st.integers(0, 4))
        width = height - choose(st.integers(0, min(1, height)))
        sections = (max(height, 1) + choose(st.integers(0, 3)), height, width)
    else:
        sections = (choose(st.integers(0, 5)), choose(st.integers(0, 4)), choose(st.integers(1, 4)))
    n = choose(st.integers(least, most))
    triples = choose(st.lists(st.lists(st.integers(0, 12), min_size=n, max_size=n), min_size=3, max_size=3))
    dtype = choose(st.sampled_from(list(computing.DTYPES.values())))
    return computing.heads(
        sections,
        form,
        positions=triples,
        counts=(choose(st.integers(1, 5)), choose(st.integers(1, 3))),
        head_dim=2 * sum(sections) + choose(st.integers(0, 5)),
        dtype=dtype,
        table_dtype=choose(st.sampled_from([torch.float32, dtype])),
        numbers=numbers,
    )


@st.composite
def laid_out_turns(choose: st.DrawFn) -> Heads:
    """The same with heads, triples and table as parts of others; shrinks as `turns` does."""
    case = choose(turns())
    for change in choose(st.lists(st.sampled_from([computing.among_others, computing.of_a_longer_prompt]), max_size=2)):
        case = change(case)
    wider = torch.cat([case.table, case.table], dim=1)[:, : case.table.shape[1]]
    return case._replace(table=wider) if choose(st.booleans()) else case


@st.composite
def exact_films(choose: st.DrawFn) -> Film:
    """Drawn videos, whose cosines are exact; shrinks to one frame of one token."""
    frames, tokens = choose(st.integers(1, 4)), choose(st.integers(1, 5))
    letters = st.text("".join(sorted(set(DIRECTIONS) - {"0"})) + "ABX", min_size=tokens, max_size=tokens)
    drawing = "|".join(choose(st.lists(letters, min_size=frames, max_size=frames)))
    dtype = choose(st.sampled_from(list(computing.DTYPES.values())))
    return computing.film(drawing, dtype, hidden=4 * choose(st.sampled_from([1, 4, 64])))


@st.composite
def empty_films(choose: st.DrawFn) -> Film:
    """The same with some tokens of zeros; shrinks to a video of zeros alone."""
    case = choose(exact_films())
    kept = choose(st.lists(st.booleans(), min_size=len(case.embeddings), max_size=len(case.embeddings)))
    return case._replace(embeddings=case.embeddings * torch.tensor(kept)[:, None])


@st.composite
def rough_films(choose: st.DrawFn) -> Film:
    """Videos whose numbers have all their digits, of any width and dtype; shrinks to one frame of one token."""
    sizes = choose(st.integers(1, 3)), choose(st.integers(1, 3)), choose(st.integers(1, 140))
    return computing.rough_film(*sizes, choose(st.sampled_from(list(computing.DTYPES.values()))))
