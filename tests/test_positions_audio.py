"""Recordings, and videos with theirs: the reference against transformers' own `get_rope_index`, and in what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from conformance.oracles import positions as oracle
from conformance.suite.positions_audio_cases import FILMS, IN_PIECES, RECORDINGS
from conformance.world.mrope import QWEN2_5_OMNI, QWEN3_OMNI, Film, Script, audio, film, write
from fuzz.search import SEARCH
from fuzz.strategies.films import films
from reference import positions as right
from reference.items import Item, Modality, MropeLayout, Span
from tests.owners import owner


def of_transformers(script: Script) -> tuple[np.ndarray, int]:
    """`get_rope_index` of the family's own class; it needs no weights, only some numbers of its configuration."""
    input_ids, items, layout = script
    tokens = {f"{name}_token_id": number for name, number in layout.token_ids.items()}
    config = SimpleNamespace(
        **tokens,
        position_id_per_seconds=layout.tokens_per_second,
        seconds_per_chunk=2,
        audio_config=SimpleNamespace(n_window=50),
    )
    itself = SimpleNamespace(spatial_merge_size=layout.spatial_merge_size, config=config)
    model = owner(layout.family)
    for name in ("get_llm_pos_ids_for_vision", "get_chunked_index"):
        setattr(itself, name, getattr(model, name).__get__(itself))
    found: dict[str, list[Any]] = {}
    for item in sorted(items, key=lambda item: item.spans):
        for name, value in item.fields.items():
            found.setdefault(name, []).append(value)
    table, delta = model.get_rope_index(
        itself,
        torch.from_numpy(input_ids)[None],
        torch.tensor(found["image_grid_thw"]) if "image_grid_thw" in found else None,
        torch.tensor(found["video_grid_thw"]) if "video_grid_thw" in found else None,
        torch.ones(1, len(input_ids), dtype=torch.int64),
        "use_audio_in_video" in found,
        torch.tensor(found["audio_feature_lengths"]),
        torch.tensor(found.get("second_per_grid_ts", [1.0])),
    )
    return table[:, 0].long().numpy(), int(delta)


def media_of(script: Script) -> list[int]:
    return [place for item in script.items for span in item.spans for place in range(span.first, span.stop)]


def ends_with_the_largest(script: Script) -> bool:
    """Whether the piece that comes last has the largest number of each video and its recording."""
    table = oracle.triples(script)
    for item in script.items:
        if oracle.is_film(item):
            both = [*item.spans, *oracle.soundtrack(script, item).spans]
            largest = max(table[:, span.first : span.stop].max() for span in both)
            last = max(both)
            if table[:, last.last].max() < largest:
                return False
    return True


@pytest.mark.parametrize("script", [*RECORDINGS.values(), *FILMS.values()], ids=[*RECORDINGS, *(f"film-{n}" for n in FILMS)])
def test_positions_are_those_of_transformers_unless_a_video_outlasts_its_recording(script: Script) -> None:
    observed, expected = right.positions(*script), of_transformers(script)
    if ends_with_the_largest(script):
        assert np.array_equal(observed[0], expected[0])
        assert observed[1] == expected[1]
    else:
        assert not np.array_equal(observed[0], expected[0])


@pytest.mark.parametrize("layout", [QWEN2_5_OMNI, QWEN3_OMNI], ids=lambda layout: layout.family)
def test_a_video_and_its_recording_lie_as_in_transformers(layout: MropeLayout) -> None:
    """Of at most 2 seconds a frame: transformers counts the pieces that it meets, and not the seconds. Of Qwen3-Omni with
    whole times: it keeps fractions, which are no int64."""

    @SEARCH
    @given(films().filter(lambda one: one.video.seconds <= 2 and (layout is QWEN2_5_OMNI or one.video.seconds % 0.25 == 0)))
    def agree(one: Film) -> None:
        script = write(layout, 0, one, 1)
        media = media_of(script)
        start = media[0] if layout is QWEN3_OMNI else media[0] - 1
        observed, expected = right.positions(*script)[0][:, media], of_transformers(script)[0][:, media]
        assert np.array_equal(observed - media[0], expected - start)

    agree()


@pytest.mark.parametrize("script", IN_PIECES.values(), ids=IN_PIECES.keys())
def test_qwen2_5_omni_numbers_both_start_tokens_alike_in_transformers(script: Script) -> None:
    table, _ = of_transformers(script)
    first = next(item.spans[0].first for item in script.items if oracle.is_film(item))
    assert table[0, first - 1] == table[0, first - 2]
    assert right.positions(*script)[0][0, first - 1] == right.positions(*script)[0][0, first - 2] + 1


def changed(change: Callable[[Item, Item], tuple[Item, ...]]) -> Callable[[], Any]:
    """Positions of a prompt of which the video and its recording were changed."""
    script = write(QWEN3_OMNI, 1, film(2, 1, 2, sound=6), 4)
    return lambda: right.positions(script.input_ids, change(*script.items), script.layout)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (changed(lambda video, audio: (video,)), "one recording begins in the video from 3 on, or right behind it, and not 0"),
        (
            changed(
                lambda video, audio: (
                    video,
                    replace(audio, spans=audio.spans[:1]),
                    Item(modality=Modality.AUDIO, spans=audio.spans[1:]),
                )
            ),
            "without a gap|and not 2",
        ),
        (changed(lambda video, audio: (video, replace(audio, spans=audio.spans[1:]))), "without a gap"),
        (changed(lambda video, audio: (replace(video, spans=video.spans[:1]), audio)), "a video of 2 frames needs 4 positions"),
        (lambda: right.rotary_axes((2, 0, 2), True), r"4 frequencies are too few .* to take turns \(2, 0, 2\) times"),
        (lambda: right.rotary_axes((2, -1, 2), False), "0 frequencies or more"),
    ],
)
def test_what_cannot_be_right_is_an_error(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_recording_alone_is_numbered_as_text() -> None:
    table, delta = right.positions(np.arange(3), (Item(modality=Modality.AUDIO, spans=(Span(0, 1),)),), QWEN3_OMNI)
    assert table.tolist() == [[0, 1, 2]] * 3
    assert delta == 0


def test_many_films_are_those_of_the_walk() -> None:
    script = write(QWEN3_OMNI, *[part for n in range(200) for part in (1, film(3, 2, 2, 0.5, sound=5 + n % 9), audio(2))])
    assert np.array_equal(right.positions(*script)[0], oracle.triples(script))
