"""Search for bytes, ids and rows that break a rule about kernels."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.oracles.kernels_computing import Film, Heads
from conformance.suite import kernels_computing_cases as computing
from conformance.suite.kernels_cases import Covered, Ids, Merge, Scatter, digested, flipped, hashed, numbers, swapped
from fuzz.search import searches
from fuzz.strategies.contents import LAYOUTS, memories
from fuzz.strategies.kernels import (
    counts,
    coverings,
    empty_films,
    exact_films,
    laid_out_turns,
    looked_for,
    merges,
    octets,
    rough_films,
    scatters,
    turns,
)

COMMON = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64")
"""The dtypes that torch moves on every device; that any other is moved is for KERNELS-12 to say."""


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
    return scatters(COMMON)


@searches("KERNELS-14")
def test_any_other_number_of_rows() -> SearchStrategy[Scatter]:
    def other(case: Scatter, count: int) -> Scatter:
        rows = numbers(count, case.rows.shape[1], case.rows.dtype)
        return case._replace(rows=rows)

    return st.builds(other, scatters(), st.integers(0, 45)).filter(lambda case: len(case.rows) != int(case.mask.sum()))


@searches("KERNELS-15")
def test_the_arguments_of_any_scatter() -> SearchStrategy[Scatter]:
    return scatters(COMMON)


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


@searches("KERNELS-25", examples=60)
def test_any_heads_turned() -> SearchStrategy[Heads]:
    return turns()


@searches("KERNELS-26", examples=60)
def test_the_rounding_of_any_heads() -> SearchStrategy[Heads]:
    return turns(computing.rough)


@searches("KERNELS-27", examples=60)
def test_the_bits_of_any_heads() -> SearchStrategy[Exact]:
    return turns(computing.rough).map(computing.turned)


@searches("KERNELS-28", examples=60)
def test_heads_of_any_layout() -> SearchStrategy[Heads]:
    return laid_out_turns()


@searches("KERNELS-29", examples=60)
def test_any_other_sections() -> SearchStrategy[Heads]:
    def other(case: Heads, axis: int, more: int) -> Heads:
        counts = [count + more * (axis == n) for n, count in enumerate(case.sections)]
        return case._replace(sections=(counts[0], counts[1], counts[2]))

    changed = st.builds(other, turns(), st.integers(0, 2), st.integers(-3, 3).filter(bool))
    return changed.filter(lambda case: min(case.sections) >= 0)


@searches("KERNELS-30", examples=60)
def test_any_position_outside() -> SearchStrategy[Heads]:
    def moved(case: Heads, axis: int, by: int) -> Heads:
        positions = case.positions.clone()
        positions[axis, 0] = by if by < 0 else len(case.table) + by
        return case._replace(positions=positions)

    contiguous = turns().filter(lambda case: case.form == "contiguous-halves")
    return st.builds(moved, contiguous, st.integers(0, 2), st.integers(-(2**62), 2**62))


@searches("KERNELS-31", examples=30)
def test_any_heads_anywhere() -> SearchStrategy[Heads]:
    return turns()


@searches("KERNELS-32", examples=60)
def test_any_drawn_video_compared() -> SearchStrategy[Film]:
    return exact_films()


@searches("KERNELS-33", examples=60)
def test_the_rounding_of_any_video() -> SearchStrategy[Film]:
    return rough_films()


@searches("KERNELS-34", examples=60)
def test_the_first_frame_of_any_video() -> SearchStrategy[Film]:
    return exact_films() | rough_films() | empty_films()


@searches("KERNELS-35", examples=60)
def test_any_tokens_of_zeros() -> SearchStrategy[Film]:
    return empty_films()


@searches("KERNELS-36", examples=60)
def test_any_video_in_which_nothing_moves() -> SearchStrategy[Film]:
    def still(film: Film, frames: int) -> Film:
        tokens = film.grid[1] * film.grid[2]
        return Film(film.embeddings[:tokens].repeat(frames, 1), (frames, 1, tokens))

    return st.builds(still, rough_films(), st.integers(1, 4))


@searches("KERNELS-37", examples=60)
def test_the_bits_of_any_video() -> SearchStrategy[Exact]:
    return rough_films().map(computing.compared)


@searches("KERNELS-38", examples=60)
def test_any_video_of_any_layout() -> SearchStrategy[Film]:
    laid_out = st.sampled_from([LAYOUTS[name] for name in sorted(set(LAYOUTS) - {"every-second", "behind-others"})])
    return st.builds(lambda film, change: film._replace(embeddings=change(film.embeddings)), rough_films(), laid_out)


@searches("KERNELS-39", examples=60)
def test_any_other_number_of_tokens() -> SearchStrategy[Film]:
    def other(film: Film, count: int) -> Film:
        return film._replace(embeddings=computing.rough(count, count, film.embeddings.shape[1]))

    changed = st.builds(other, rough_films(), st.integers(0, 12))
    return changed.filter(lambda film: len(film.embeddings) != film.grid[0] * film.grid[1] * film.grid[2])


@searches("KERNELS-40", examples=30)
def test_any_video_anywhere() -> SearchStrategy[Film]:
    return rough_films()


@searches("KERNELS-41", examples=60)
def test_tokens_of_any_size() -> SearchStrategy[Film]:
    def scaled(film: Film, exponents: list[int]) -> Film:
        factors = torch.tensor([10.0 ** (exponents[n % len(exponents)]) for n in range(len(film.embeddings))])
        return film._replace(embeddings=film.embeddings.to(torch.float32) * factors[:, None])

    return st.builds(scaled, rough_films(), st.lists(st.integers(-30, 30), min_size=1, max_size=5))


@searches("KERNELS-42", examples=30)
def test_no_positions_of_any_heads() -> SearchStrategy[Heads]:
    return turns(most=0, least=0)
