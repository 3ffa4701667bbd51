"""Requests that travel, and bytes that are nearly messages."""

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles.transport_wire import message
from conformance.suite.transport_wire_hostile import Hostile
from fuzz.strategies.contents import memories
from reference.items import Handle, Item, Modality, Request, Span


def tensors() -> SearchStrategy[torch.Tensor]:
    """A tensor of any bits in any layout. Shrinks to one zero byte."""
    return st.builds(lambda memory, layout: memory.tensor(layout), memories(), st.sampled_from(["copy", "column-major"]))


def values() -> SearchStrategy[Any]:
    """Plain data, a few levels deep. Shrinks to None."""
    numbers = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    blocks = tensors() | st.binary(max_size=4).map(lambda data: np.frombuffer(data, dtype=np.uint8))
    leaves = numbers | st.text(max_size=4) | st.binary(max_size=4) | blocks
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    )


@st.composite
def requests(draw: st.DrawFn, handles: bool = False) -> Request:
    """Up to four items whose spans have holes. Shrinks to an empty prompt."""
    owners = draw(st.lists(st.integers(0, 4), max_size=12))
    media = [
        tuple(Span(place, place) for place, owner in enumerate(owners) if owner == n) for n in range(draw(st.integers(0, 4)))
    ]
    ids = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(owners), max_size=len(owners)))
    content = tensors() | st.binary(min_size=1, max_size=3).map(Handle) if handles else tensors()
    items = tuple(
        Item(
            modality=draw(st.sampled_from(Modality)),
            spans=spans,
            **draw(content.map(lambda rows: {"embedding": rows}) | (values() | content).map(lambda one: {"feature": one})),
            fields=draw(st.dictionaries(st.text(max_size=3), values(), max_size=2)),
            identity=draw(st.none() | st.binary(min_size=32, max_size=32)),
            caller_hash=draw(st.none() | st.integers(0, 2**64 - 1)),
        )
        for spans in media
    )
    return Request(id=draw(st.text(max_size=4)), input_ids=np.array(ids, dtype=np.int64), items=items)


@st.composite
def cut_messages(draw: st.DrawFn) -> Hostile:
    """A message without some bytes at its end. Shrinks to nothing."""
    data = message(draw(requests()))
    return Hostile(data[: draw(st.integers(0, len(data) - 1))], None)


@st.composite
def longer_messages(draw: st.DrawFn) -> Hostile:
    """A message with some bytes more. Shrinks to one zero byte behind it."""
    return Hostile(message(draw(requests())) + draw(st.binary(min_size=1, max_size=9)), None)
