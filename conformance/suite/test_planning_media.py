"""PLANNING: how many tokens a medium has, from its size alone."""

from conformance.compare import equal, unless_refused
from conformance.engine import Engine
from conformance.requirement import requirement
from conformance.suite import planning_media_cases as cases
from conformance.suite.planning_checks import Refused, Table, counts_are, is_refused


@requirement("PLANNING-11", needs="count_video_tokens", cases=cases.VIDEOS, bugs=("temporal-pad-estimate",))
def test_a_video_has_as_many_tokens_as_the_processor_makes(engine: Engine, case: Table) -> None:
    """The tokens of a video MUST be as many as the model owner's processor makes, for every number of frames.

    The last time step is filled up with the last frame, so 17 frames in steps of 4 are 5 steps.
    """
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-12", needs="count_video_tokens", cases=cases.BUDGETED_TOKENS)
def test_the_frames_of_a_video_share_a_budget_of_pixels(engine: Engine, case: Table) -> None:
    """The frames of a video for Qwen3-VL MUST be resized together: its limits are for the pixels of all frames.

    The expected counts were measured on transformers 5.24, whose frames count for the limits as rounded to whole time
    steps, half to even.
    """
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement(
    "PLANNING-13", needs="video_grid", cases=cases.VIDEO_GRIDS | {f"qwen3-{k}": v for k, v in cases.BUDGETED_GRIDS.items()}
)
def test_the_grid_of_a_video_is_that_of_the_processor(engine: Engine, case: Table) -> None:
    """The grid of a video MUST be that of the model owner's processor: time steps, then patches in height and width."""
    counts_are(engine, "video_grid", case, "the grids")


@requirement("PLANNING-14", needs="count_video_tokens", cases=cases.NO_FRAMES, bugs=("video-zero-frames-short",))
def test_a_video_without_frames_is_refused(engine: Engine, case: Refused) -> None:
    """A video without a frame, or whose frames are too thin for the model's processor, MUST be refused."""
    is_refused(engine, "count_video_tokens", case)


@requirement("PLANNING-15", needs="count_audio_tokens", cases=cases.RECORDINGS, bugs=("audio-float32-ceil",))
def test_a_recording_has_as_many_tokens_as_its_encoder_has_rows(engine: Engine, case: Table) -> None:
    """The tokens of a recording MUST be as many as its encoder has rows, in whole numbers at every length.

    A hop that was begun counts. What is beyond the window is cut. Whisper hears silence up to the end of its window.
    """
    counts_are(engine, "count_audio_tokens", case, "the tokens")


@requirement("PLANNING-16", needs="count_audio_tokens", cases=cases.RESAMPLED, bugs=("audio-count-before-resample",))
def test_a_recording_is_counted_at_the_rate_of_the_model(engine: Engine, case: Table) -> None:
    """The tokens of a recording at another rate MUST be those of its samples after resampling."""
    counts_are(engine, "count_audio_tokens", case, "the tokens")


@requirement("PLANNING-17", needs="count_audio_tokens", cases=cases.SHORT, bugs=("audio-short-tail-zero-embeds",))
def test_a_recording_without_rows_has_no_token(engine: Engine, case: Refused) -> None:
    """A recording that is too short for one row of its encoder MUST be refused or have no token, never one."""
    name, settings = case.family.name, case.family.settings
    answers = unless_refused(lambda: engine.count_audio_tokens(name, settings, *case.medium), "a recording without rows")
    equal(answers, [0] * len(answers), "the tokens of a recording without rows")


@requirement("PLANNING-18", needs="count_audio_tokens", cases=cases.NO_SAMPLES, bugs=("audio-short-tail-zero-embeds",))
def test_a_recording_without_samples_is_refused(engine: Engine, case: Refused) -> None:
    """A recording without a sample MUST be refused."""
    is_refused(engine, "count_audio_tokens", case)
