"""The positions of the reference: against transformers' own `get_rope_index`, at length, and in what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conformance.oracles import positions as oracle
from conformance.suite.positions_cases import regrid
from conformance.world.mrope import LAYOUTS, QWEN2_5_VL, QWEN2_VL, QWEN3_VL, Medium, Script, image, video, write
from fuzz.search import SEARCH
from fuzz.strategies.scripts import media
from reference import positions as right
from reference.items import Item, Modality, MropeLayout, Span, UnknownField
from tests.owners import owner


def of_transformers(script: Script) -> tuple[np.ndarray, int]:
    """`get_rope_index` of the model's own class; it needs no weights, only two numbers of its configuration."""
    input_ids, items, layout = script
    model = owner(layout.family)
    vision = SimpleNamespace(spatial_merge_size=layout.spatial_merge_size, tokens_per_second=layout.tokens_per_second)
    itself = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    itself.get_vision_position_ids = lambda *given, **more: model.get_vision_position_ids(itself, *given, **more)
    kinds = torch.zeros(1, len(input_ids), dtype=torch.int64)
    for item in items:
        for span in item.spans:
            kinds[0, span.first : span.stop] = int(item.modality)
    more = {}
    for kind in (Modality.IMAGE, Modality.VIDEO):
        name = f"{kind.name.lower()}_grid_thw"
        grids = [item.fields[name] for item in items if item.modality is kind]
        more[name] = torch.tensor(grids) if grids else None
    seconds = [item.fields["second_per_grid_ts"] for item in items if "second_per_grid_ts" in item.fields]
    if seconds:
        more["second_per_grid_ts"] = torch.tensor(seconds)
    table, delta = model.get_rope_index(itself, torch.from_numpy(input_ids)[None], kinds, **more)
    return table[:, 0].numpy(), int(delta)


def no_longer_than_wide(layout: MropeLayout, medium: Medium) -> bool:
    """Whether a video's time stays within its larger side, where transformers and the models' papers agree."""
    last = (medium.frames - 1) * medium.seconds * (layout.tokens_per_second or 1 / medium.seconds)
    return layout.frames_apart or last < max(medium.height, medium.width)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.family)
def test_positions_are_those_of_transformers_where_a_video_is_no_longer_than_wide(layout: MropeLayout) -> None:
    some = st.lists(st.integers(0, 5) | media().filter(lambda one: no_longer_than_wide(layout, one)), max_size=6)

    @SEARCH
    @given(some.map(lambda written: write(layout, 1, *written)))
    def agree(script: Script) -> None:
        observed, expected = right.positions(*script), of_transformers(script)
        assert np.array_equal(observed[0], expected[0])
        assert observed[1] == expected[1]

    agree()


@pytest.mark.parametrize(
    ("script", "theirs", "ours"),
    [(write(QWEN2_VL, 1, video(5, 1, 2), 2), 5, 8), (write(QWEN2_5_VL, 15, video(3, 1, 2), 3), 19, 26)],
    ids=["qwen2_vl", "qwen2_5_vl"],
)
def test_transformers_goes_on_behind_a_long_video_before_it_ends(script: Script, theirs: int, ours: int) -> None:
    end = script.items[0].spans[0].stop
    table, delta = of_transformers(script)
    assert table[:, end].tolist() == [theirs - 1] * 3
    assert table[0, end - 1] >= theirs - 1, "the last frame lies behind the text that follows it"
    assert table[0, :end].tolist() == right.positions(*script)[0][0, :end].tolist()
    assert right.positions(*script)[0][:, end].tolist() == [ours - 1] * 3
    assert delta == table.max() + 1 - len(script.input_ids)


def test_transformers_multiplies_the_interval_first() -> None:
    script = write(replace(QWEN2_5_VL, tokens_per_second=25), 0, video(7, 1, 1, 0.7))
    observed, theirs = right.positions(*script)[0][0], of_transformers(script)[0][0]
    assert (observed[7] - observed[1], theirs[7] - theirs[1]) == (104, 105)


def test_a_hundred_thousand_positions_are_those_of_the_walk() -> None:
    script = write(QWEN2_VL, *[part for _ in range(1000) for part in (3, image(8, 12))])
    table, delta = right.positions(*script)
    assert np.array_equal(table, oracle.triples(script))
    assert delta == oracle.delta(table)


def unusual(**fields: Any) -> Callable[[], Any]:
    script = write(QWEN2_5_VL, 1, video(2, 2, 2), 1)
    item = replace(script.items[0], fields={**script.items[0].fields, **fields})
    return lambda: right.positions(script.input_ids, (item,), script.layout)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (unusual(video_grid_thw=(2, 4)), r"frames, height and width in patches, both divisible by 2, and not \[2, 4\]"),
        (unusual(video_grid_thw=(2, 3, 4)), r"not \[2, 3, 4\]"),
        (unusual(video_grid_thw=(0, 4, 4)), r"not \[0, 4, 4\]"),
        (unusual(video_grid_thw=(3, 4, 4)), r"needs 1 spans of 12 positions, not 1 of \[8\]"),
        (unusual(second_per_grid_ts=0.0), "a positive number of seconds, not 0.0"),
        (unusual(second_per_grid_ts=float("nan")), "not nan"),
        (unusual(second_per_grid_ts=float("inf")), "not inf"),
        (lambda: right.positions(*regrid(write(QWEN2_VL, image(2, 4)), (2, 4, 4))), "a picture has 1 frame"),
        (lambda: right.positions(*regrid(write(QWEN3_VL, video(2, 1, 1)), (1, 2, 4))), r"needs 1 spans of 2 positions"),
        (
            lambda: right.positions(np.arange(3), write(QWEN2_VL, 5, image(1, 1)).items, QWEN2_VL),
            "ends outside a prompt of 3 positions",
        ),
        (lambda: right.extend_positions(np.zeros((3, 4), dtype=np.int64), 3), "4 positions cannot be extended to 3"),
        (lambda: right.chunk_positions(np.zeros((3, 4), dtype=np.int64), right.Chunk(2, 3)), "ends behind the last of 4"),
        (lambda: MropeLayout(family="qwen2_vl", spatial_merge_size=0), "at least 1 patch each way"),
        (lambda: MropeLayout(family="qwen2_5_vl", tokens_per_second=0), "a positive number a second, not by 0"),
    ],
)
def test_what_cannot_be_right_is_an_error(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_missing_field_is_named() -> None:
    item = Item(modality=Modality.IMAGE, spans=(Span(0, 3),))
    with pytest.raises(UnknownField, match="no field 'image_grid_thw'"):
        right.positions(np.arange(4), (item,), QWEN2_VL)


def test_only_int64_tables_are_positions() -> None:
    with pytest.raises(TypeError, match="int64 array"):
        right.stitch_positions(np.zeros((3, 2), dtype=np.int32), np.zeros((3, 2), dtype=np.int64))
