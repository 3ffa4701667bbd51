"""POSITIONS: where each position of a prompt lies in time, height and width (M-RoPE).

Prompts are written as in `conformance.world.mrope`.
"""

from dataclasses import replace

import numpy as np
import torch

from conformance.cases import Exact, Pair
from conformance.compare import equal, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import positions as oracle
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.suite import positions_cases as cases
from conformance.world.mrope import Script

WHAT = "the positions (time, height, width)"


def expect_media(engine: Engine, case: Script, clock: oracle.Clock = oracle.exact_time) -> None:
    """Media begin behind the largest number before them, and are laid out from there."""
    observed, _ = engine.positions(*case)
    for item in case.items:
        places = oracle.places(item, case.layout, clock)
        for span in item.spans:
            origin = observed[:, : span.first].max(initial=-1) + 1
            expected = np.array([places[position] for position in range(span.first, span.last + 1)]) + origin
            equal(observed.T[span.first : span.last + 1], expected, f"{WHAT} of {item.modality.name.lower()} at {span}")


@requirement("POSITIONS-01", needs="positions", cases=cases.EVERYTHING, bugs=("hf5-video-t-constant",))
def test_text_goes_on_behind_the_largest_number(engine: Engine, case: Script) -> None:
    """Each position of text MUST be, on all three axes, the largest number before it on any axis plus 1 (from 0).

    transformers 5.24 goes on behind a video at its larger side alone (`get_rope_index`: `current_pos += max(grid_thw[1],
    grid_thw[2])`): five frames of 1 x 2 behind two tokens of text have the times 2 to 6, and the text behind them goes on
    at 4. Its own earlier releases, SGLang, vLLM and the paper of Qwen2-VL go on behind the largest number, here at 7.
    """
    observed, _ = engine.positions(*case)
    text = oracle.text(case)
    equal(observed.shape[1], len(case.input_ids), "the number of positions")
    expected = np.array([[observed[:, :position].max(initial=-1) + 1] * 3 for position in text], dtype=np.int64).reshape(-1, 3)
    equal(observed.T[text], expected, f"{WHAT} of text", where=lambda n: f"position {text[n]}")


@requirement("POSITIONS-02", needs="positions", cases=cases.PICTURES, bugs=("llamacpp-ntokens-vs-npos",))
def test_a_picture_counts_rows_and_columns(engine: Engine, case: Script) -> None:
    """A picture MUST stay at one time, count its rows along height and its columns along width, from one origin.

    The origin is the largest number before it plus 1, on all three axes. The grid is divided by the spatial merge size.
    """
    expect_media(engine, case)


@requirement("POSITIONS-03", needs="positions", cases=cases.FRAMES)
def test_a_video_counts_its_frames(engine: Engine, case: Script) -> None:
    """A video in one span MUST advance by 1 in time with each frame, and count rows and columns anew in each."""
    expect_media(engine, case)


@requirement(
    "POSITIONS-04",
    needs="positions",
    cases=cases.TIMED,
    bugs=("hf-second-per-grid-int", "omni-second-per-grid-name", "hf-generate-drops-second-per-grid", "hf5-video-t-constant"),
)
def test_a_timed_video_advances_by_its_seconds(engine: Engine, case: Script) -> None:
    """With tokens per second, a frame's time MUST be frame * seconds * tokens per second, cut off at the very end.

    Seconds are a fraction for anything above 1 frame a second, so that cutting a factor off makes all times 0. Where
    rounding would decide, no case asks.
    """
    expect_media(engine, case)


@requirement("POSITIONS-05", needs="positions", cases=cases.APART)
def test_frames_apart_count_as_pictures(engine: Engine, case: Script) -> None:
    """Where frames are apart, each MUST be placed as a picture of its own: time is in the text between them."""
    expect_media(engine, case)


@requirement(
    "POSITIONS-06", needs="positions", cases=cases.EVERYTHING, bugs=("mlx-mrope-chunk-offset-delta", "llamacpp-ntokens-vs-npos")
)
def test_delta_is_the_largest_number_and_one_less_the_length(engine: Engine, case: Script) -> None:
    """The delta of a prompt of n positions MUST be the largest number on any axis plus 1, minus n."""
    observed, delta = engine.positions(*case)
    equal(delta, oracle.delta(observed), "the delta")


@requirement(
    "POSITIONS-07",
    needs="positions",
    cases={name: Exact(script, oracle.triples(script)) for name, script in (cases.MIXED | cases.TEXT).items()},
    bugs=("R03",),
)
def test_a_whole_prompt_is_numbered(engine: Engine, case: Exact) -> None:
    """The positions of a prompt with pictures and videos MUST be those that its grids give, each taken by its own item."""
    observed, delta = engine.positions(*case.given)
    equal(observed.T, case.expected.T, WHAT, where=oracle.where(case.given.items))
    equal(delta, oracle.delta(case.expected), "the delta")


@requirement("POSITIONS-08", needs="positions", cases=cases.WITHOUT_GRID, bugs=("R03", "R04", "cached-req-state-no-grid"))
def test_media_without_a_grid_are_refused(engine: Engine, case: Script) -> None:
    """A picture or video without a grid MUST be refused: numbered as text it would be read all the same, but wrongly."""
    refuses(lambda: engine.positions(*case), f"{[dict(item.fields) for item in case.items]} with spans")


@requirement("POSITIONS-09", needs="positions", cases=cases.WRONG_GRIDS)
def test_a_grid_that_does_not_fill_its_spans_is_refused(engine: Engine, case: Script) -> None:
    """A grid that has more or fewer positions than the spans of its item MUST be refused."""
    refuses(lambda: engine.positions(*case), f"{[(dict(item.fields), item.spans) for item in case.items]}")


@requirement(
    "POSITIONS-10",
    needs="positions",
    cases=cases.TYPED,
    bugs=("O02", "text-literal-placeholder-steals-binding", "text-only-vision-tokens-crash"),
    level=SHOULD,
)
def test_a_token_that_a_user_typed_takes_no_grid(engine: Engine, case: Pair) -> None:
    """A token of media outside all spans SHOULD be refused or be numbered as text, and not take the grid of an item.

    An engine that refuses such a prompt when it is read never comes here with one.
    """
    plain, typed = case
    expected, _ = engine.positions(*plain)
    for observed, _ in unless_refused(lambda: engine.positions(*typed), "a token of media that was typed"):
        equal(observed.T, expected.T, WHAT, where=oracle.where(plain.items))


@requirement("POSITIONS-11", needs="positions", cases=cases.TOUCHING, level=SHOULD)
def test_items_that_touch_are_told_apart(engine: Engine, case: Script) -> None:
    """Items, and frames that are apart, SHOULD be placed each by itself where no token stands between them.

    The templates of the models write tokens around media. An engine that finds media by these may need them.
    """
    expect_media(engine, case)


@requirement("POSITIONS-12", needs="positions", cases=cases.WITHOUT_SECONDS, bugs=("omni-second-per-grid-name",), level=SHOULD)
def test_a_timed_video_without_seconds_is_refused(engine: Engine, case: Script) -> None:
    """With tokens per second, a video without seconds SHOULD be refused: any default is wrong for another frame rate.

    transformers and SGLang take 1 second, and so hide that a processor's field has got another name on the way.
    """
    refuses(lambda: engine.positions(*case), f"{[dict(item.fields) for item in case.items]}")


@requirement("POSITIONS-13", needs="positions", profile=SGLANG, cases=cases.ROUNDED, bugs=("hf-second-per-grid-int",))
def test_times_have_the_exact_values(engine: Engine, case: Script) -> None:
    """Times MUST equal those of float32: frame * seconds, times tokens per second, each rounded, then cut off.

    So does the models' original code. transformers 5.24 multiplies seconds by tokens per second first, vLLM all in float64.
    """
    expect_media(engine, case, oracle.float32_time)


@requirement("POSITIONS-14", needs="positions", cases=cases.SEVERAL, bugs=("Q01", "O05"))
def test_the_order_of_the_list_of_items_is_free(engine: Engine, case: Script) -> None:
    """The positions of a prompt MUST NOT depend on the order in which its items are listed: spans say where they are."""
    expected, _ = engine.positions(*case)
    observed, _ = engine.positions(case.input_ids, case.items[::-1], case.layout)
    equal(observed.T, expected.T, f"{WHAT} with the items in another order", where=oracle.where(case.items))


@requirement("POSITIONS-15", needs="positions", cases=cases.SEVERAL, bugs=("R03", "R04"))
def test_the_form_of_an_item_makes_no_difference(engine: Engine, case: Script) -> None:
    """The positions of an item MUST be the same whether it comes with a feature, or with the encoder's embedding."""
    made = [replace(item, feature=torch.zeros(4 * item.token_count, 8)) for item in case.items]
    encoded = [replace(item, format=None, embedding=torch.zeros(item.token_count, 8)) for item in case.items]
    expected, _ = engine.positions(case.input_ids, made, case.layout)
    for items in (encoded, [*made[:1], *encoded[1:]]):
        observed, _ = engine.positions(case.input_ids, items, case.layout)
        equal(observed.T, expected.T, f"{WHAT} of an item with an embedding", where=oracle.where(case.items))
