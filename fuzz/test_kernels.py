"""Search for bytes, ids and rows that break a rule about kernels."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.suite.kernels_cases import Covered, Ids, Merge, Scatter, digested, flipped, hashed, numbers, swapped
from fuzz.search import searches
from fuzz.strategies.contents import LAYOUTS, memories
from fuzz.strategies.kernels import counts, coverings, looked_for, merges, octets, scatters


@searches("KERNELS-01", examples=50)
def test_the_word_hash_of_any_bytes() -> SearchStrategy[Exact]:
    return octets().map(hashed)


@searches("KERNELS-02")
def test_any_two_words_exchanged() -> SearchStrategy[Pair]:
    words = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=40, unique=True)
    places = words.flatmap(lambda one: st.tuples(st.just(one), st.integers(1, len(one) - 1)))
    return places.map(lambda two: swapped(torch.tensor(two[0], dtype=torch.int32), 0, two[1], 1))


@searches("KERNELS-03")
def test_any_byte_of_any_bytes() -> SearchStrategy[Pair]:
    return counts().filter(bool).flatmap(lambda count: st.integers(0, count - 1).map(lambda place: flipped(count, place)))


@searches("KERNELS-04")
def test_the_word_hash_of_any_layout() -> SearchStrategy[torch.Tensor]:
    return st.builds(lambda memory, layout: memory.tensor(layout), memories(), st.sampled_from(sorted(LAYOUTS)))


@searches("KERNELS-05", examples=30)
def test_the_word_hash_of_any_bytes_anywhere() -> SearchStrategy[torch.Tensor]:
    return octets()


@searches("KERNELS-07")
def test_the_digest_of_any_bytes() -> SearchStrategy[Exact]:
    return octets().map(digested)


@searches("KERNELS-08")
def test_the_digest_of_any_layout() -> SearchStrategy[Exact]:
    return st.builds(lambda memory, layout: digested(memory.tensor(layout)), memories(), st.sampled_from(sorted(LAYOUTS)))


@searches("KERNELS-09", examples=30)
def test_the_digest_of_any_bytes_anywhere() -> SearchStrategy[torch.Tensor]:
    return octets()


@searches("KERNELS-10")
def test_the_mask_of_any_ids() -> SearchStrategy[Ids]:
    return looked_for()


@searches("KERNELS-11")
def test_the_mask_of_any_width() -> SearchStrategy[Ids]:
    return looked_for()


@searches("KERNELS-12")
def test_rows_for_any_mask() -> SearchStrategy[Scatter]:
    return scatters()


@searches("KERNELS-13")
def test_rows_of_any_layout() -> SearchStrategy[Scatter]:
    return scatters()


@searches("KERNELS-14")
def test_any_other_number_of_rows() -> SearchStrategy[Scatter]:
    def other(case: Scatter, count: int) -> Scatter:
        rows = numbers(count, case.rows.shape[1], case.rows.dtype)
        return case._replace(rows=rows)

    return st.builds(other, scatters(), st.integers(0, 45)).filter(lambda case: len(case.rows) != int(case.mask.sum()))


@searches("KERNELS-15")
def test_the_arguments_of_any_scatter() -> SearchStrategy[Scatter]:
    return scatters()


@searches("KERNELS-16")
def test_any_merge() -> SearchStrategy[Merge]:
    return merges()


@searches("KERNELS-17")
def test_the_levels_of_any_merge() -> SearchStrategy[Merge]:
    return merges(levels=3)


@searches("KERNELS-18")
def test_any_id_outside_of_the_table() -> SearchStrategy[Merge]:
    return merges(least_id=-(2**63), stop_id=2**63)


@searches("KERNELS-19")
def test_any_other_number_of_rows_to_merge() -> SearchStrategy[Merge]:
    def other(case: Merge, more: int) -> Merge:
        return case._replace(rows=numbers(max(0, len(case.rows) + more), case.rows.shape[1], case.rows.dtype))

    several = merges().filter(lambda case: len(case.rows) > 0)
    return st.builds(other, several, st.integers(-9, 9).filter(bool))


@searches("KERNELS-20")
def test_the_arguments_of_any_merge() -> SearchStrategy[Merge]:
    return merges()


@searches("KERNELS-21")
def test_any_spans_of_any_chunk() -> SearchStrategy[Covered]:
    return coverings()


@searches("KERNELS-24")
def test_the_mask_of_any_ids_anywhere() -> SearchStrategy[Ids]:
    return looked_for()
