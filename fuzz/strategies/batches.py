"""Prompts with media, and the steps that compute them (see `conformance.world.doubles`)."""

from hypothesis import strategies as st

from conformance.oracles.encoding import Batch
from conformance.suite.encoding_cases import Chunked
from conformance.world.doubles import medium, precomputed, request
from fuzz.strategies.feeds import chunks, lengths
from reference.items import Chunk, Item, Modality, Request, Span


@st.composite
def layouts(choose: st.DrawFn, most: int = 8) -> tuple[tuple[Span, ...], int]:
    """Up to `most` disjoint spans of 1 to 4 positions with gaps of 0 to 3, at least one, and the length of the prompt.

    Shrinks to one span of one position.
    """
    spans, end = [], 0
    for _ in range(choose(st.integers(1, most))):
        first = end + choose(st.integers(0, 3))
        spans.append(Span(first, first + choose(st.integers(0, 3))))
        end = spans[-1].stop
    return tuple(spans), end + choose(st.integers(0, 3))


@st.composite
def requests(choose: st.DrawFn, id: str = "any", ready: bool = True) -> Request:
    """A prompt with up to 4 media whose spans may interleave, listed in any order, some of them precomputed if `ready`.

    There are two media of each modality and token count, so that media repeat and no identity has two lengths. Shrinks
    to a single raw picture of one position.
    """
    spans, length = choose(layouts())
    owners = [choose(st.integers(0, 3)) for _ in spans]
    owners = owners if choose(st.booleans()) else sorted(owners)
    items = [
        choose(_items([span for span, one in zip(spans, owners, strict=True) if one == owner], ready)) for owner in set(owners)
    ]
    return request(id, length, *choose(st.permutations(items)))


@st.composite
def batches(choose: st.DrawFn, most: int = 3, ready: bool = True, whole: bool = False) -> Batch:
    """1 to `most` prompts and a chunk of each, or the `whole` of it; shrinks to one prompt and an empty chunk."""
    drawn = [choose(requests(f"request-{number}", ready)) for number in range(choose(st.integers(1, most)))]
    return [(one, Chunk(0, len(one.input_ids)) if whole else choose(chunks(len(one.input_ids)))) for one in drawn]


@st.composite
def chunkings(choose: st.DrawFn) -> Chunked:
    """A prompt and the lengths of chunks that make it up; shrinks as the prompts and the lengths do."""
    one = choose(requests())
    return Chunked(one, choose(lengths(len(one.input_ids))))


@st.composite
def _items(choose: st.DrawFn, spans: list[Span], ready: bool) -> Item:
    modality = choose(st.sampled_from(Modality))
    number = 10 * sum(map(len, spans)) + choose(st.integers(0, 1))
    item = medium(modality, number, *((span.first, span.last) for span in spans))
    return precomputed(item) if ready and choose(st.booleans()) else item
