"""Search for prompts, chunks and batches that break a rule about encoding."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact
from conformance.oracles import encoding as oracle
from conformance.oracles.encoding import Batch
from conformance.suite.encoding_cases import Again, Chunked, Rows, beside
from conformance.world.doubles import encoded, image, precomputed, request, whole
from fuzz.search import searches
from fuzz.strategies.batches import batches, chunkings, layouts
from fuzz.strategies.feeds import chunks, lengths
from fuzz.strategies.turns import whose_items_may_take_turns
from reference.items import Chunk, Span


@st.composite
def spans_and_chunks(choose: st.DrawFn) -> tuple[tuple[Span, ...], Chunk]:
    """The spans of an item and any chunk of its prompt; shrinks to one position and an empty chunk."""
    spans, length = choose(layouts())
    return spans, choose(chunks(length))


@searches("ENCODING-01")
def test_any_chunk_is_counted() -> SearchStrategy[Exact]:
    return spans_and_chunks().map(lambda case: Exact(case, len(oracle.rows_in_chunk(*case))))


@searches("ENCODING-02")
def test_any_chunk_gets_its_rows() -> SearchStrategy[Exact]:
    return spans_and_chunks().map(lambda case: Exact(case, oracle.rows_in_chunk(*case)))


@searches("ENCODING-03")
def test_the_slices_of_any_chunks_make_the_whole() -> SearchStrategy[tuple[tuple[Span, ...], list[int]]]:
    return layouts().flatmap(lambda layout: lengths(layout[1]).map(lambda cut: (layout[0], list(cut))))


@searches("ENCODING-04")
def test_any_other_number_of_rows_is_not_sliced() -> SearchStrategy[Rows]:
    drawn = st.tuples(layouts(), st.integers(0, 40))
    return drawn.map(lambda pair: Rows(pair[0][0], pair[1])).filter(lambda case: sum(map(len, case.spans)) != case.rows)


@searches("ENCODING-05", asked=whose_items_may_take_turns)
def test_any_batch_gets_its_rows() -> SearchStrategy[Batch]:
    return batches()


@searches("ENCODING-06", examples=50, asked=whose_items_may_take_turns)
def test_any_batch_in_any_order() -> SearchStrategy[Batch]:
    return batches()


@searches("ENCODING-07", asked=whose_items_may_take_turns)
def test_any_item_is_encoded_once() -> SearchStrategy[Batch]:
    return batches()


@searches("ENCODING-08", asked=whose_items_may_take_turns)
def test_any_items_are_encoded_together() -> SearchStrategy[Batch]:
    return batches(ready=False)


@searches("ENCODING-09", asked=whose_items_may_take_turns)
def test_any_items_are_encoded_in_order() -> SearchStrategy[Batch]:
    return batches(ready=False, whole=True)


@searches("ENCODING-10")
def test_any_lengths_of_one_identity() -> SearchStrategy[Batch]:
    last = st.lists(st.integers(0, 9), min_size=2, max_size=4)
    return last.map(lambda ends: [whole(request(f"to-{end}", 10, image(1, (0, end)))) for end in ends])


@searches("ENCODING-11", asked=whose_items_may_take_turns)
def test_only_what_any_chunk_needs_is_encoded() -> SearchStrategy[Batch]:
    return batches()


@searches("ENCODING-12", asked=whose_items_may_take_turns)
def test_any_chunking_equals_no_chunking() -> SearchStrategy[Chunked]:
    return chunkings()


@searches("ENCODING-13", examples=50, asked=whose_items_may_take_turns)
def test_any_rows_may_come_in_one_tensor() -> SearchStrategy[Batch]:
    return batches(ready=False)


@searches("ENCODING-14", asked=whose_items_may_take_turns)
def test_any_order_of_items() -> SearchStrategy[Batch]:
    return batches(most=1, whole=True)


@searches("ENCODING-16", asked=whose_items_may_take_turns)
def test_any_items_may_be_precomputed() -> SearchStrategy[Batch]:
    return batches()


@searches("ENCODING-17")
def test_any_wrong_precomputed_embedding() -> SearchStrategy[Batch]:
    rows = st.integers(0, 20).filter(lambda count: count != 5)
    return rows.map(lambda count: beside(precomputed(image(1, (1, 5)), torch.ones(count, 5))))


@st.composite
def sparse_batches(choose: st.DrawFn) -> Batch:
    """A sparse embedding some of whose values come in two parts; shrinks to none."""
    rows = encoded(image(1, (1, 5)))
    parts = choose(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(0, 9), max_size=25))
    stated = [(row, column, float(rows[row, column]) - parts.get((row, column), 0)) for row in range(5) for column in range(5)]
    stated = choose(st.permutations(stated + [(*place, float(part)) for place, part in parts.items()]))
    indices = torch.tensor([[row, column] for row, column, _ in stated]).T
    values = torch.tensor([value for *_, value in stated])
    return beside(precomputed(image(1, (1, 5)), torch.sparse_coo_tensor(indices, values, (5, 5), check_invariants=True)))


@searches("ENCODING-28")
def test_any_sparse_embedding() -> SearchStrategy[Batch]:
    return sparse_batches()


@searches("ENCODING-21", examples=50)
def test_any_two_batches_that_share_a_cache() -> SearchStrategy[Again]:
    return st.builds(Again, batches(), batches())


@searches("ENCODING-22")
def test_any_other_number_of_cached_rows() -> SearchStrategy[int]:
    return st.integers(1, 40).filter(lambda count: count != 5)


@searches("ENCODING-23")
def test_a_cache_of_any_size() -> SearchStrategy[int]:
    return st.integers(0, 40)
