"""Search for parts, arrivals and rooms that break a rule about disaggregation."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import disaggregation as sides
from conformance.oracles import disaggregation_parts as parts
from conformance.oracles import disaggregation_rooms as rooms
from conformance.suite.test_disaggregation import Loads, Shared
from fuzz.search import searches
from fuzz.strategies.instances import MEDIA, encoder_scripts, part_scripts, room_scripts
from fuzz.strategies.lives import drawings


def shares() -> SearchStrategy[Shared]:
    """Any request, some of whose items have embeddings, and up to seven encoders."""
    return st.builds(Shared, drawings(MEDIA, 12), st.integers(1, 7), st.sampled_from(["", "i", "jv", "kb", "ijkvwab"]))


@searches("DISAGGREGATION-01", examples=60)
def test_any_items_are_each_in_one_part() -> SearchStrategy[Shared]:
    return shares()


@searches("DISAGGREGATION-02", examples=40)
def test_any_part_is_for_one_encoder() -> SearchStrategy[Shared]:
    return shares()


@searches("DISAGGREGATION-03", examples=40)
def test_any_items_are_shared_evenly() -> SearchStrategy[Shared]:
    return shares()


@searches("DISAGGREGATION-04", examples=60)
def test_any_options_reach_the_encoder() -> SearchStrategy[Shared]:
    return shares()


@searches("DISAGGREGATION-08", examples=60)
def test_any_cache() -> SearchStrategy[Loads]:
    outcomes = st.sampled_from(["hit", "miss", "raise", "short"])
    return st.lists(outcomes, min_size=1, max_size=8).map(lambda words: Loads(tuple(words)))


@searches("DISAGGREGATION-09", examples=40)
def test_any_tensor_is_carried() -> SearchStrategy[torch.Tensor]:
    dtypes = st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool])
    shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
    return st.builds(
        lambda shape, dtype: (torch.arange(torch.Size(shape).numel()) % 7).reshape(shape).to(dtype), shapes, dtypes
    )


@searches("DISAGGREGATION-14", examples=60)
def test_any_life_of_parts() -> SearchStrategy[sides.Script]:
    return encoder_scripts()


@searches("DISAGGREGATION-16", examples=60)
def test_any_part_ends_when_it_is_over() -> SearchStrategy[sides.Script]:
    return encoder_scripts()


@searches("DISAGGREGATION-19", examples=40)
def test_any_encoder_holds_what_is_needed() -> SearchStrategy[sides.Script]:
    return encoder_scripts()


@searches("DISAGGREGATION-20", examples=40)
def test_any_memory_is_registered_once() -> SearchStrategy[sides.Script]:
    return encoder_scripts()


@searches("DISAGGREGATION-21", examples=40)
def test_any_transfer_keeps_its_memory() -> SearchStrategy[sides.Script]:
    return encoder_scripts()


@searches("DISAGGREGATION-23", examples=80)
def test_any_order_of_parts() -> SearchStrategy[parts.Script]:
    return part_scripts(("arrive",), ())


@searches("DISAGGREGATION-29", examples=100)
def test_any_arrivals() -> SearchStrategy[parts.Script]:
    return part_scripts()


@searches("DISAGGREGATION-32", examples=50)
def test_any_receiver_holds_what_is_needed() -> SearchStrategy[parts.Script]:
    return part_scripts()


@searches("DISAGGREGATION-36", examples=80)
def test_any_rooms_are_handed_over() -> SearchStrategy[rooms.Script]:
    return room_scripts()


@searches("DISAGGREGATION-42", examples=50)
def test_any_abort_frees_both_sides() -> SearchStrategy[rooms.Script]:
    return room_scripts("abort")


@searches("DISAGGREGATION-46", examples=50)
def test_any_rooms_hold_nothing_in_the_end() -> SearchStrategy[rooms.Script]:
    return room_scripts("lose")
