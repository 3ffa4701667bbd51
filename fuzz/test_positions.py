"""Search for prompts, replies, turns and chunks that break a rule about positions."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from conformance.cases import Exact, Pair
from conformance.oracles import positions as oracle
from conformance.suite.positions_cases import Chunked, Conversation, Extension, Retractions, Turns, regrid, typed
from conformance.world.mrope import QWEN2_5_VL, QWEN2_VL, Medium, Script, image, lacking, video, write
from fuzz.search import searches
from fuzz.strategies.scripts import SIDES, conversations, film_scripts, media, scripts, scripts_of, tables, touching_scripts
from reference.items import Chunk


@searches("POSITIONS-01")
def test_the_text_of_any_prompt() -> SearchStrategy[Script]:
    return scripts()


@searches("POSITIONS-02")
def test_any_pictures() -> SearchStrategy[Script]:
    pictures = st.lists(st.builds(image, SIDES, SIDES) | st.integers(0, 3), min_size=1, max_size=6)
    return pictures.filter(any).map(lambda written: write(QWEN2_VL, *written))


@searches("POSITIONS-03")
def test_any_videos() -> SearchStrategy[Script]:
    return film_scripts(tokens_per_second=None, frames_apart=False)


@searches("POSITIONS-04")
def test_any_timed_videos() -> SearchStrategy[Script]:
    return film_scripts(family="qwen2_5_vl")


@searches("POSITIONS-05")
def test_any_frames_apart() -> SearchStrategy[Script]:
    return scripts_of(frames_apart=True)


@searches("POSITIONS-06")
def test_the_delta_of_any_prompt() -> SearchStrategy[Script]:
    return scripts()


@searches("POSITIONS-07", examples=5000)
def test_any_prompt() -> SearchStrategy[Exact]:
    return scripts().map(lambda script: Exact(script, oracle.triples(script)))


@searches("POSITIONS-08")
def test_any_medium_without_its_grid() -> SearchStrategy[Script]:
    def without(before: list[Medium], medium: Medium) -> Script:
        return write(QWEN2_5_VL, *before, lacking(medium, f"{medium.modality.name.lower()}_grid_thw"), 1)

    return st.builds(without, st.lists(media(), max_size=2), media())


@searches("POSITIONS-09")
def test_any_grid_that_does_not_fill_its_span() -> SearchStrategy[Script]:
    def spoil(height: int, width: int, more: int) -> Script:
        return regrid(write(QWEN2_VL, 1, image(height, width), 9), (1, 2 * height, 2 * (width + more)))

    return st.builds(spoil, SIDES, SIDES, st.integers(1, 9))


@searches("POSITIONS-10")
def test_any_typed_placeholder() -> SearchStrategy[Pair]:
    def type_into(before: int, medium: Medium, name: str, place: int) -> Pair:
        return typed(write(QWEN2_VL, before, medium, 3), min(place, before - 1), name)

    return st.builds(type_into, st.integers(1, 5), media(), st.sampled_from(["image", "video"]), st.integers(0, 4))


@searches("POSITIONS-11")
def test_any_media_that_touch() -> SearchStrategy[Script]:
    return touching_scripts()


@searches("POSITIONS-12")
def test_any_video_without_seconds() -> SearchStrategy[Script]:
    videos = st.builds(video, SIDES, SIDES, SIDES)
    return videos.map(lambda medium: write(QWEN2_5_VL, 1, lacking(medium, "second_per_grid_ts"), 1))


@searches("POSITIONS-13")
def test_any_seconds() -> SearchStrategy[Script]:
    seconds = st.floats(1 / 64, 8, allow_nan=False, width=64)
    return st.builds(lambda t, s: write(QWEN2_5_VL, 1, video(t, 1, 1, s), 1), st.integers(1, 40), seconds)


@searches("POSITIONS-14")
def test_any_items_in_another_order() -> SearchStrategy[Script]:
    return scripts()


@searches("POSITIONS-15")
def test_any_items_in_another_form() -> SearchStrategy[Script]:
    return scripts()


@searches("POSITIONS-16")
def test_any_reply() -> SearchStrategy[Exact]:
    extensions = st.builds(lambda table, more: Extension(table, table.shape[1] + more), tables(), st.integers(0, 9))
    return extensions.map(lambda case: Exact(case, oracle.extended(*case)))


@searches("POSITIONS-28")
def test_any_retractions() -> SearchStrategy[Retractions]:
    replies = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(lambda replies: tuple(sorted(replies)))
    return st.builds(Retractions, tables(), replies)


@searches("POSITIONS-17")
def test_any_second_attempt() -> SearchStrategy[Extension]:
    return st.builds(lambda table, more: Extension(table, table.shape[1] + more), tables(), st.integers(0, 9))


@searches("POSITIONS-18")
def test_the_reply_to_any_prompt() -> SearchStrategy[Script]:
    return scripts()


@searches("POSITIONS-19")
def test_any_turns() -> SearchStrategy[Turns]:
    return st.builds(Turns, tables(), tables())


@searches("POSITIONS-20")
def test_any_conversation() -> SearchStrategy[Conversation]:
    return conversations()


@searches("POSITIONS-21")
def test_any_chunk() -> SearchStrategy[Chunked]:
    def cut(table: NDArray[np.int64], prefix: int, length: int) -> Chunked:
        first = min(prefix, table.shape[1] - 1)
        return Chunked(table, Chunk(first, min(length, table.shape[1] - first)))

    return st.builds(cut, tables(), st.integers(0, 80), st.integers(1, 80))


@searches("POSITIONS-22", examples=30)
def test_any_table_in_chunks_of_every_length() -> SearchStrategy[NDArray[np.int64]]:
    return tables()
