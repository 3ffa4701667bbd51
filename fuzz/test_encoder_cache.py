"""Search for embeddings and sequences of operations that break a rule about the encoder cache."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Pair
from conformance.oracles.encoder_cache import Script, script
from conformance.suite.encoder_cache_cases import Mismatch
from conformance.suite.test_encoder_cache_keys import Keyed, of
from fuzz.search import searches
from fuzz.strategies.cache_scripts import scripts

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.int8]
PUTS_AND_GETS = ("put", "get", "get")
PINS = ("put", "put", "get", "get", "pin", "unpin")


@st.composite
def embeddings(choose: st.DrawFn) -> torch.Tensor:
    """Any bits as 1 to 6 rows of 1 to 6 numbers, perhaps cut from a batch or transposed; shrinks to a single zero."""
    dtype = choose(st.sampled_from(DTYPES))
    rows, hidden = choose(st.integers(1, 6)), choose(st.integers(1, 6))
    step, size = choose(st.integers(1, 3)), dtype.itemsize
    bits = choose(st.binary(min_size=rows * step * hidden * size, max_size=rows * step * hidden * size))
    tensor = torch.frombuffer(bytearray(bits), dtype=torch.uint8).view(dtype).reshape(rows * step, hidden)[::step]
    return tensor.T if rows > 1 and choose(st.booleans()) else tensor


def mismatches() -> SearchStrategy[Mismatch]:
    """Two different numbers of rows, from 1 to 300; shrinks to 1 and 2."""
    count = st.integers(1, 300)
    return st.builds(Mismatch, count, count).filter(lambda one: one.kept != one.wanted)


@searches("ENCODER_CACHE-01")
def test_any_embedding_comes_back() -> SearchStrategy[torch.Tensor]:
    return embeddings()


@searches("ENCODER_CACHE-02")
def test_any_other_number_of_rows_is_no_hit() -> SearchStrategy[Mismatch]:
    return mismatches()


@searches("ENCODER_CACHE-03")
def test_any_other_number_of_rows_drops_the_entry() -> SearchStrategy[Mismatch]:
    return mismatches()


@searches("ENCODER_CACHE-04")
def test_any_operations_evict_the_right_entries() -> SearchStrategy[Script]:
    return scripts(PUTS_AND_GETS)


@searches("ENCODER_CACHE-05")
def test_any_operations_stay_in_the_budget() -> SearchStrategy[Script]:
    return scripts(PUTS_AND_GETS, oversized=True)


@searches("ENCODER_CACHE-06")
def test_any_operations_are_counted() -> SearchStrategy[Script]:
    return scripts(PUTS_AND_GETS, oversized=True)


@searches("ENCODER_CACHE-07")
def test_anything_oversized_evicts_nothing() -> SearchStrategy[Script]:
    return scripts(PUTS_AND_GETS, oversized=True)


@searches("ENCODER_CACHE-08")
def test_any_fresh_value_replaces_the_old_one() -> SearchStrategy[Script]:
    count = st.integers(1, 9)
    return st.builds(lambda old, new: script(9, f"put a {old}", f"renew a {new}", f"get a {new}"), count, count)


@searches("ENCODER_CACHE-10")
def test_any_two_rows_of_a_batch() -> SearchStrategy[int]:
    return st.integers(0, 8)


@searches("ENCODER_CACHE-12")
def test_clear_at_any_time() -> SearchStrategy[Script]:
    return scripts(("put", "put", "get", "get", "clear"))


@searches("ENCODER_CACHE-15")
def test_any_pins_hold() -> SearchStrategy[Script]:
    return scripts(PINS)


@searches("ENCODER_CACHE-16")
def test_any_pins_are_released() -> SearchStrategy[Script]:
    return scripts(("put", "put", "pin", "unpin", "unpin", "get"))


@searches("ENCODER_CACHE-17")
def test_any_pins_leave_what_they_leave() -> SearchStrategy[Script]:
    return scripts(PINS, oversized=True)


@searches("ENCODER_CACHE-19")
def test_clear_at_any_time_takes_pinned_entries() -> SearchStrategy[Script]:
    return scripts((*PINS, "clear"))


def keyed(versions: SearchStrategy[str], changes_encoder: bool = True) -> SearchStrategy[Keyed]:
    """An item with an adapter or none; shrinks to none."""
    adapters = st.none() | st.tuples(st.text("ab:/1", max_size=4), versions)
    return st.builds(lambda name, adapter: of(name, adapter, changes_encoder), st.sampled_from("ab"), adapters)


@searches("ENCODER_CACHE-23")
def test_any_items_and_adapters() -> SearchStrategy[Pair]:
    def is_told_apart(two: tuple[Keyed, Keyed]) -> bool:
        names = {one.adapter and one.adapter[0] for one in two}
        return two[0].identity != two[1].identity or len(names) == 2

    one = keyed(st.text("ab:/1", max_size=4))
    return st.tuples(one, one).filter(is_told_apart).map(lambda two: Pair(*two))


@searches("ENCODER_CACHE-24")
def test_any_adapter_that_was_loaded_again() -> SearchStrategy[Pair]:
    name, versions = st.text("ab:/1", max_size=4), st.lists(st.text("ab:/1", max_size=4), min_size=2, max_size=2, unique=True)
    return st.builds(lambda name, two: Pair(*(of("a", (name, version)) for version in two)), name, versions)


@searches("ENCODER_CACHE-25")
def test_any_adapters_of_the_language_model() -> SearchStrategy[Pair]:
    one = keyed(st.text("ab:/1", max_size=4), changes_encoder=False)
    return st.tuples(one, one).map(lambda two: Pair(two[0], two[1]._replace(identity=two[0].identity)))
