"""What a merge is asked (see `conformance.suite.merging_feeds`)."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.suite.merging_feeds import Feed, feed
from fuzz.strategies.prompts import TEXT_AND_MEDIA, prompts
from reference.items import Chunk

TYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@st.composite
def chunks(choose: st.DrawFn, length: int) -> Chunk:
    """A chunk of a prompt of `length` positions, the empty ones included; shrinks to the beginning."""
    prefix = choose(st.integers(0, length))
    return Chunk(prefix, choose(st.integers(0, length - prefix)))


@st.composite
def feeds(choose: st.DrawFn, characters: str = TEXT_AND_MEDIA, levels: int = 0) -> Feed:
    """Any chunk of any prompt of these characters, with 1 to `levels` levels; shrinks to an empty chunk in float32.

    There are no literal placeholders, unless they are asked for (see MERGING-04).
    """
    prompt = choose(prompts(characters))
    depth = choose(st.integers(min(levels, 1), levels))
    rows, table = choose(st.sampled_from(TYPES)), choose(st.sampled_from(TYPES[:3]))
    return feed(prompt, choose(chunks(len(prompt.input_ids))), levels=depth, rows=rows, table=table)


def lengths(total: int) -> SearchStrategy[tuple[int, ...]]:
    """The lengths of chunks that add up to `total`, some of them 0; shrinks to few chunks."""
    cuts = st.lists(st.integers(0, total), max_size=6).map(sorted)
    return cuts.map(lambda places: tuple(b - a for a, b in zip([0, *places], [*places, total], strict=True)))
