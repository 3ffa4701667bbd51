"""Search for values, packets and lives of packets that break a rule about channels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from conformance.oracles.transport_lives import Life
from conformance.suite.transport_cases import Damage, Wrapped, bits, numbers
from fuzz.search import searches
from fuzz.strategies.packet_lives import packet_lives

DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int64,
    torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
    torch.complex64, torch.complex128,
)  # fmt: skip
SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 7, 40, 64)), max_size=4).map(tuple)


@st.composite
def _tensors(draw: DrawFn) -> torch.Tensor:
    """A tensor of any dtype and shape, as a view of some layout."""
    shape = draw(SHAPES)
    made = bits(draw(st.sampled_from(DTYPES)), *shape) if shape else torch.tensor(draw(st.booleans()))
    made = made.permute(draw(st.permutations(range(made.ndim))))
    if made.ndim and draw(st.booleans()):
        made = made[:: draw(st.integers(1, 3))]
    return made


def values() -> SearchStrategy[list[Any]]:
    """Lists of tensors, arrays and None. Shrinks to few and small ones."""
    arrays = st.integers(0, 3000).map(lambda n: np.arange(n, dtype="<f4")[::-1])
    return st.lists(st.none() | _tensors() | arrays, max_size=4)


def damages() -> SearchStrategy[Damage]:
    """One byte changed, or some cut out. Shrinks to the first byte."""

    def change(place: int, by: int) -> Callable[[bytes], bytes]:
        return lambda packet: (
            packet[: place % len(packet)] + bytes([packet[place % len(packet)] ^ by]) + packet[place % len(packet) + 1 :]
        )

    def cut(place: int, by: int) -> Callable[[bytes], bytes]:
        return lambda packet: packet[: place % len(packet)] + packet[place % len(packet) + by :]

    places, by = st.integers(0, 9999), st.integers(1, 255)
    return (st.builds(change, places, by) | st.builds(cut, places, by)).map(Damage)


@searches("TRANSPORT-32", examples=25)
def test_any_list_arrives() -> SearchStrategy[list[Any]]:
    return values()


@searches("TRANSPORT-33", examples=15)
def test_any_packet_is_a_part() -> SearchStrategy[Wrapped]:
    lists = st.integers(1, 4).flatmap(
        lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1)), st.integers(1, 3))
    )
    return lists.map(lambda made: Wrapped([numbers(n, 64 << 2 * n) for n in range(made[0])], tuple(made[1]), made[2]))


@searches("TRANSPORT-43", examples=80)
def test_any_life_of_packets() -> SearchStrategy[Life]:
    return packet_lives()


@searches("TRANSPORT-44", examples=80)
def test_any_life_holds_what_may_be_read() -> SearchStrategy[Life]:
    return packet_lives()


@searches("TRANSPORT-47")
def test_any_damage_is_noticed() -> SearchStrategy[Damage]:
    return damages()
