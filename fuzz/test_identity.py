"""Search for contents and hashes that break a rule about identity."""

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from PIL import Image

from conformance.cases import Exact, Pair
from conformance.oracles import identity as oracle
from conformance.suite.identity_cases import image, images, palette_picture
from conformance.suite.identity_hash_cases import Hashes
from fuzz.search import searches
from fuzz.strategies.caller_hashes import DIGITS, OTHERS, hashes, is_malformed, is_miscounted
from fuzz.strategies.contents import (
    COMMON_DTYPES,
    LAYOUTS,
    Memory,
    fields,
    memories,
    rebit,
    reframed,
    reshaped,
    retyped,
    spelled,
    trees,
    two,
)
from reference.items import Item, Modality, Span

TENSORS = memories().map(Memory.tensor)
COMMON_TENSORS = memories(COMMON_DTYPES).map(Memory.tensor)
RELAID = st.builds(Memory.tensor, memories(), st.sampled_from(sorted(LAYOUTS)))
POSITIONS = st.integers(0, 2**31).map(lambda first: (Span(first, first + 3),))
NAMES = st.integers(0, 2**64 - 1)
CHANNELS = {"L": 1, "LA": 2, "P": 1, "RGB": 3, "RGBA": 4, "CMYK": 4}


def tensors(pair: Pair) -> Pair:
    """Two pictures from two tensors that were written down."""
    return images(pair.first.tensor(), pair.second.tensor())


@st.composite
def pixels(draw: st.DrawFn) -> tuple[str, tuple[int, int], bytes]:
    """Mode, size and bytes of a small picture, of one grey level or of many. Shrinks to one black pixel."""
    mode, size = draw(st.sampled_from(sorted(CHANNELS))), draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    length = size[0] * size[1] * CHANNELS[mode]
    return (
        mode,
        size,
        draw(st.binary(min_size=length, max_size=length) | st.integers(0, 255).map(lambda n: bytes([n]) * length)),
    )


def _look_different(pair: Pair) -> bool:
    """Whether two pictures show anything else: an engine may tell them apart when it has made RGB of both."""
    shown = [Image.frombytes(*one).convert("RGBA") for one in pair]
    behind = [Image.alpha_composite(Image.new("RGBA", one.size, "white"), one) for one in shown]
    return behind[0].size != behind[1].size or behind[0].tobytes() != behind[1].tobytes()


@searches("IDENTITY-01")
def test_any_layout_of_any_tensor() -> SearchStrategy[Pair]:
    return memories().flatmap(
        lambda m: st.sampled_from(sorted(LAYOUTS)).map(lambda layout: images(m.tensor(), m.tensor(layout)))
    )


@searches("IDENTITY-02")
def test_any_array_in_either_byte_order() -> SearchStrategy[Pair]:
    numbers = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=6)
    return numbers.map(lambda n: images(np.array(n, dtype="<i4"), np.array(n, dtype=">i4")))


@searches("IDENTITY-05")
def test_any_byte_of_any_payload() -> SearchStrategy[Pair]:
    return rebit().map(lambda pair: images(pair.first.data, pair.second.data))


@searches("IDENTITY-06")
def test_any_two_shapes() -> SearchStrategy[Pair]:
    return reshaped().map(tensors)


@searches("IDENTITY-07")
def test_any_two_dtypes() -> SearchStrategy[Pair]:
    return retyped().map(tensors)


@searches("IDENTITY-08")
def test_any_bits_of_any_value() -> SearchStrategy[Pair]:
    return rebit(COMMON_DTYPES).map(tensors)


@searches("IDENTITY-09")
def test_any_division_of_a_list() -> SearchStrategy[Pair]:
    return reframed().map(lambda pair: images(*([Memory("uint8", (len(d),), d).tensor() for d in data] for data in pair)))


@searches("IDENTITY-10")
def test_any_content_of_two_modalities() -> SearchStrategy[Pair]:
    modalities = two(st.sampled_from(Modality))
    return st.builds(lambda f, pair: Pair(*(Item(modality=one, feature=f) for one in pair)), trees(COMMON_TENSORS), modalities)


@searches("IDENTITY-11")
def test_any_feature_as_an_embedding() -> SearchStrategy[Pair]:
    return TENSORS.map(lambda tensor: Pair(image(tensor), Item(modality=Modality.IMAGE, embedding=tensor)))


@searches("IDENTITY-12")
def test_any_two_sets_of_fields() -> SearchStrategy[Pair]:
    return two(fields(), unique_by=spelled).map(
        lambda pair: Pair(*(Item(modality=Modality.VIDEO, feature=torch.zeros(1), fields=one) for one in pair))
    )


@searches("IDENTITY-13")
def test_any_order_of_fields() -> SearchStrategy[Pair]:
    def item(ordered: list[tuple[str, Any]]) -> Item:
        return Item(modality=Modality.IMAGE, feature=torch.zeros(1), fields={"all": dict(ordered)} | dict(ordered))

    ordered = fields().map(lambda one: list(one.items()))
    return ordered.flatmap(lambda one: st.permutations(one).map(lambda other: Pair(item(one), item(list(other)))))


@searches("IDENTITY-14")
def test_any_two_pictures() -> SearchStrategy[Pair]:
    opaque = two(pixels()).filter(_look_different).map(lambda pair: images(*(Image.frombytes(*one) for one in pair)))
    palettes = two(st.tuples(*[st.integers(0, 255)] * 6)).map(lambda pair: images(*(palette_picture(*one) for one in pair)))
    return opaque | palettes


@searches("IDENTITY-15")
def test_any_position_and_name() -> SearchStrategy[Pair]:
    def labelled(feature: Any, spans: tuple[Span, ...], name: int) -> Pair:
        return Pair(image(feature), Item(modality=Modality.IMAGE, feature=feature, spans=spans, caller_hash=name))

    return st.builds(labelled, trees(COMMON_TENSORS), POSITIONS, NAMES)


@searches("IDENTITY-16")
def test_any_two_contents_of_one_name() -> SearchStrategy[Pair]:
    def renamed(pair: Pair, name: int) -> Pair:
        return Pair(*(Item(modality=Modality.IMAGE, feature=one.tensor(), caller_hash=name) for one in pair))

    return st.builds(renamed, two(memories(COMMON_DTYPES)), NAMES)


@searches("IDENTITY-17")
def test_any_text_appended() -> SearchStrategy[Pair]:
    def forged(data: bytes, name: str, value: str, between: str) -> Pair:
        return Pair(image(data, **{name: value}), image(data + (name + between + value).encode()))

    return st.builds(forged, st.binary(), st.sampled_from(["a", "fps"]), st.text("ab1"), st.sampled_from(["", "=", ":", "\0"]))


@searches("IDENTITY-18")
def test_any_content() -> SearchStrategy[Item]:
    return st.builds(
        lambda feature, fields: Item(modality=Modality.VIDEO, feature=feature, fields=fields), trees(RELAID), fields()
    )


@searches("IDENTITY-19")
def test_anything_missing_anywhere() -> SearchStrategy[Item]:
    missing = st.tuples(trees(TENSORS), st.lists(trees(TENSORS), max_size=2)).map(lambda parts: [parts[0], [*parts[1], None]])
    return missing.map(image)


@searches("IDENTITY-21")
def test_any_two_sequences() -> SearchStrategy[Pair]:
    numbers = st.integers(-3, 3) | st.integers(-3, 3).map(lambda n: n + 2**61 - 1) | st.integers(-(2**63), 2**63 - 1)
    return two(st.lists(numbers, min_size=1, max_size=3).map(tuple))


@searches("IDENTITY-23")
def test_any_hashes_of_pictures() -> SearchStrategy[Hashes]:
    return hashes(kinds=1)


@searches("IDENTITY-24")
def test_any_hashes_of_any_modalities() -> SearchStrategy[Hashes]:
    return hashes()


@searches("IDENTITY-25")
def test_any_wrong_number_of_hashes() -> SearchStrategy[Hashes]:
    return hashes(DIGITS | OTHERS, surplus=2).filter(is_miscounted)


@searches("IDENTITY-26")
def test_any_malformed_hashes() -> SearchStrategy[Hashes]:
    return hashes(DIGITS | OTHERS).filter(is_malformed)


@searches("IDENTITY-27")
def test_hash_of_any_bytes() -> SearchStrategy[Exact]:
    return st.binary(max_size=200).map(lambda data: Exact(data, oracle.first_word(data)))


@searches("IDENTITY-28")
def test_hash_of_any_tensors() -> SearchStrategy[Exact]:
    def exact(tree: Any, layout: str) -> Exact:
        return Exact(_built(tree, layout), oracle.first_word(_joined(tree)))

    return st.builds(exact, trees(memories()), st.sampled_from(sorted(LAYOUTS)))


@searches("IDENTITY-29")
def test_hash_of_any_feature() -> SearchStrategy[Exact]:
    flat = memories() | st.lists(memories(), min_size=1, max_size=3)
    return flat.map(lambda one: Exact(_built(one, "copy"), oracle.first_word(_joined(one))))


@searches("IDENTITY-30")
def test_hash_of_anything_else() -> SearchStrategy[Any]:
    return st.none() | st.text() | st.integers() | st.lists(st.integers() | st.text()) | st.lists(TENSORS).map(tuple)


def _built(tree: Any, layout: str) -> Any:
    return tree.tensor(layout) if isinstance(tree, Memory) else [_built(one, layout) for one in tree]


def _joined(tree: Any) -> bytes:
    return tree.data if isinstance(tree, Memory) else b"".join(map(_joined, tree))
