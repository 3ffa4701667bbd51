"""POSITIONS: recordings, videos with their recordings, and the axes of rotary frequencies.

Prompts are written as in `conformance.world.mrope`.
"""

import numpy as np

from conformance.cases import Exact
from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.oracles import positions as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite import positions_audio_cases as cases
from conformance.suite.positions_audio_cases import Sections
from conformance.world.mrope import Script

WHAT = "the positions (time, height, width)"


@requirement(
    "POSITIONS-23",
    needs="positions.qwen3_omni_moe",
    cases={name: Exact(script, oracle.triples(script)) for name, script in cases.RECORDINGS.items()},
    bugs=("A02",),
)
def test_a_recording_counts_as_text(engine: Engine, case: Exact) -> None:
    """A recording that stands by itself MUST count up alike on all three axes, as text does."""
    observed, delta = engine.positions(*case.given)
    equal(observed.T, case.expected.T, WHAT, where=oracle.where(case.given.items))
    equal(delta, oracle.delta(case.expected), "the delta")


@requirement(
    "POSITIONS-24",
    needs="positions.qwen3_omni_moe",
    cases={name: Exact(script, oracle.triples(script)) for name, script in cases.FILMS.items()},
    bugs=("A02",),
)
def test_a_video_and_its_recording_count_from_the_same_number(engine: Engine, case: Exact) -> None:
    """A video and the recording in it MUST count from the same number on, and text go on behind the largest of both.

    transformers 5.24 and SGLang 0.5.23 go on behind the piece that comes last, and so number text like frames before it.
    Which recording is in a video follows from where it begins, and not from counting recordings.
    """
    observed, delta = engine.positions(*case.given)
    equal(observed.T, case.expected.T, WHAT, where=oracle.where(case.given.items))
    equal(delta, oracle.delta(case.expected), "the delta")


@requirement("POSITIONS-25", needs="positions.qwen2_5_omni", cases=cases.IN_PIECES, bugs=("A02",))
def test_pieces_of_two_seconds_count_on(engine: Engine, case: Script) -> None:
    """A video and its recording that take turns every two seconds MUST each count on in their next piece.

    The tokens around them are not looked at: transformers gives one number to both start tokens, vLLM two.
    """
    film = next(item for item in case.items if oracle.is_film(item))
    media = oracle.places(film, case.layout) | oracle.heard(case, film)
    observed, _ = engine.positions(*case)
    origin = observed[:, : film.spans[0].first].max(initial=-1) + 1
    expected = np.array([media[position] for position in sorted(media)]) + origin
    equal(observed.T[sorted(media)], expected, f"{WHAT} of the video and its recording", where=lambda n: f"row {n} of both")


@requirement("POSITIONS-26", needs="positions.qwen3_omni_moe", cases=cases.WITHOUT_RECORDING, level=SHOULD)
def test_a_video_that_lost_its_recording_is_refused(engine: Engine, case: Script) -> None:
    """A video with its recording in it, but without the item of the recording, SHOULD be refused."""
    refuses(lambda: engine.positions(*case), f"{[(item.modality.name, item.spans) for item in case.items]}")


@requirement(
    "POSITIONS-27",
    needs="rotary_axes",
    cases={name: Exact(case, oracle.rotary_axes(*case)) for name, case in cases.SECTIONS.items()},
    bugs=("qwen3-interleaved-vs-blocked",),
)
def test_each_frequency_is_rotated_by_its_axis(engine: Engine, case: Exact) -> None:
    """Each rotary frequency MUST be rotated by the axis that its place in the sections, or its turn, says.

    Text has one number on all axes, so that a test with text alone cannot see the difference.
    """
    given: Sections = case.given
    equal(engine.rotary_axes(*given), case.expected, "the axis (0 time, 1 height, 2 width)", where="frequency {}".format)
