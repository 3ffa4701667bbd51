"""PLANNING: how many tokens a medium has, from its size alone."""

from conformance.compare import equal, unless_refused
from conformance.engine import Engine
from conformance.requirement import requirement
from conformance.suite import planning_media_cases as cases
from conformance.suite.planning_checks import Refused, Table, counts_are, counts_are_or_refused, is_refused


@requirement("PLANNING-19", needs="count_video_tokens.qwen2_vl", cases=cases.QWEN2_VIDEOS, bugs=("temporal-pad-estimate",))
def test_videos_for_qwen2_vl(engine: Engine, case: Table) -> None:
    """The tokens of a video for Qwen2-VL MUST be as many as the model owner's processor makes, for every number of frames.

    The last time step is filled up with the last frame, so 17 frames in steps of 4 are 5 steps.
    """
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-20", needs="count_video_tokens.qwen2_5_vl", cases=cases.QWEN2_5_VIDEOS, bugs=("temporal-pad-estimate",))
def test_videos_for_qwen2_5_vl(engine: Engine, case: Table) -> None:
    """The tokens of a video for Qwen2.5-VL MUST be as many as the model owner's processor makes."""
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-21", needs="count_video_tokens.qwen3_vl", cases=cases.BUDGETED_TOKENS)
def test_videos_for_qwen3_vl(engine: Engine, case: Table) -> None:
    """The frames of a video for Qwen3-VL MUST be resized together: its limits are for the pixels of all frames.

    The expected counts were measured on transformers 5.24, whose frames count for the limits as rounded to whole time
    steps, half to even.
    """
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-22", needs="count_video_tokens.llava_onevision", cases=cases.ONEVISION_VIDEOS)
def test_videos_for_llava_onevision(engine: Engine, case: Table) -> None:
    """The tokens of a video for LLaVA-OneVision MUST be those of its pooled frames and one newline."""
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-23", needs="count_video_tokens.internvl", cases=cases.INTERNVL_VIDEOS)
def test_videos_for_internvl(engine: Engine, case: Table) -> None:
    """The tokens of a video for InternVL MUST be those of one tile for each frame."""
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-24", needs="video_grid.qwen2_vl", cases=cases.VIDEO_GRIDS, bugs=("temporal-pad-estimate",))
def test_the_grid_of_a_video_is_that_of_the_processor(engine: Engine, case: Table) -> None:
    """The grid of a video MUST be that of the model owner's processor: time steps, then patches in height and width."""
    counts_are(engine, "video_grid", case, "the grids")


@requirement("PLANNING-25", needs="video_grid.qwen3_vl", cases=cases.BUDGETED_GRIDS)
def test_the_grid_of_a_video_for_qwen3_vl_is_within_its_budget(engine: Engine, case: Table) -> None:
    """The grid of a video for Qwen3-VL MUST be that of its frames resized together."""
    counts_are(engine, "video_grid", case, "the grids")


@requirement("PLANNING-26", needs="count_video_tokens.qwen2_vl", cases=cases.NO_FRAMES, bugs=("video-zero-frames-short", "W03"))
def test_a_video_without_frames_is_refused(engine: Engine, case: Refused) -> None:
    """A video without a frame, or whose frames are too thin for the model's processor, MUST be refused."""
    is_refused(engine, "count_video_tokens", case)


@requirement(
    "PLANNING-27", needs="count_video_tokens.qwen3_vl", cases=cases.NO_FRAMES_OF_QWEN3, bugs=("video-zero-frames-short", "W03")
)
def test_a_video_for_qwen3_vl_without_frames_is_refused(engine: Engine, case: Refused) -> None:
    """A video for Qwen3-VL without a frame, or whose frames are too thin for its processor, MUST be refused."""
    is_refused(engine, "count_video_tokens", case)


@requirement("PLANNING-28", needs="count_audio_tokens.qwen2_audio", cases=cases.RECORDINGS, bugs=("audio-float32-ceil",))
def test_recordings_for_qwen2_audio(engine: Engine, case: Table) -> None:
    """The tokens of a recording for Qwen2-Audio MUST be as many as its encoder has rows, in whole numbers at every length.

    A hop that was begun counts. What is beyond the window is cut.
    """
    counts_are(engine, "count_audio_tokens", case, "the tokens")


@requirement("PLANNING-29", needs="count_audio_tokens.whisper", cases=cases.WHISPER)
def test_recordings_for_whisper(engine: Engine, case: Table) -> None:
    """The rows of a recording for Whisper MUST be those of its whole window: it hears silence up to the end."""
    counts_are(engine, "count_audio_tokens", case, "the rows")


@requirement(
    "PLANNING-30", needs="count_audio_tokens.qwen2_audio", cases=cases.RESAMPLED, bugs=("audio-count-before-resample",)
)
def test_a_recording_is_counted_at_the_rate_of_the_model(engine: Engine, case: Table) -> None:
    """The tokens of a recording at another rate MUST be those of its samples after resampling."""
    counts_are(engine, "count_audio_tokens", case, "the tokens")


@requirement("PLANNING-31", needs="count_audio_tokens.qwen2_audio", cases=cases.SHORT, bugs=("audio-short-tail-zero-embeds",))
def test_a_recording_without_rows_has_no_token(engine: Engine, case: Refused) -> None:
    """A recording that is too short for one row of its encoder MUST be refused or have no token, never one."""
    name, settings = case.family.name, case.family.settings
    answers = unless_refused(lambda: engine.count_audio_tokens(name, settings, *case.medium), "a recording without rows")
    equal(answers, [0] * len(answers), "the tokens of a recording without rows")


@requirement(
    "PLANNING-32", needs="count_audio_tokens.qwen2_audio", cases=cases.NO_SAMPLES, bugs=("audio-short-tail-zero-embeds",)
)
def test_a_recording_without_samples_is_refused(engine: Engine, case: Refused) -> None:
    """A recording without a sample MUST be refused."""
    is_refused(engine, "count_audio_tokens", case)


@requirement("PLANNING-36", needs="count_video_tokens.glm4v", cases=cases.GLM4V_VIDEOS)
def test_videos_for_glm4v(engine: Engine, case: Table) -> None:
    """The tokens of a video for GLM-4V MUST be as many as the model owner's processor makes: frames are resized together."""
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-37", needs="count_video_tokens.smolvlm", cases=cases.SMOLVLM_VIDEOS)
def test_videos_for_smolvlm(engine: Engine, case: Table) -> None:
    """The tokens of a video for SmolVLM MUST be those of one tile for each frame, without the text around the frames."""
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-38", needs="count_video_tokens.llava_next_video", cases=cases.NEXT_VIDEOS)
def test_videos_for_llava_next_video(engine: Engine, case: Table) -> None:
    """The tokens of a video for LLaVA-NeXT-Video MUST be those of its frames, pooled to a quarter, without newlines."""
    counts_are(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-39", needs="count_audio_tokens.qwen2_5_omni", cases=cases.OMNI_2_5)
def test_recordings_for_qwen2_5_omni(engine: Engine, case: Table) -> None:
    """The tokens of a recording for Qwen2.5-Omni MUST be as many as its encoder has rows, up to its window of 300 s."""
    counts_are(engine, "count_audio_tokens", case, "the tokens")


@requirement("PLANNING-40", needs="count_audio_tokens.qwen3_omni_moe", cases=cases.OMNI_3)
def test_recordings_for_qwen3_omni(engine: Engine, case: Table) -> None:
    """The tokens of a recording for Qwen3-Omni MUST be 13 for each whole chunk, and those of the rest.

    A hop that was begun does not count, unlike for Qwen2-Audio, and nothing is cut.
    """
    counts_are(engine, "count_audio_tokens", case, "the tokens")


@requirement("PLANNING-41", needs="count_video_tokens.qwen2_vl", cases=cases.CAPPED_QWEN2, bugs=("mm-kwargs-ignored",))
def test_videos_of_capped_pixels_for_qwen2_vl(engine: Engine, case: Table) -> None:
    """A cap on the pixels of a frame of Qwen2-VL MUST be refused, or the tokens be as many as its owner's processor makes."""
    counts_are_or_refused(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-42", needs="count_video_tokens.qwen3_vl", cases=cases.CAPPED_QWEN3, bugs=("mm-kwargs-ignored",))
def test_videos_of_capped_pixels_for_qwen3_vl(engine: Engine, case: Table) -> None:
    """A cap on the pixels of a frame of Qwen3-VL MUST be refused, or the tokens be as many as its owner's processor makes."""
    counts_are_or_refused(engine, "count_video_tokens", case, "the tokens")


@requirement("PLANNING-43", needs="count_image_tokens.llava_onevision", cases=cases.SEVERAL, bugs=("mm-kwargs-ignored",))
def test_pictures_among_several_for_llava_onevision(engine: Engine, case: Table) -> None:
    """Of several pictures in a prompt for LLaVA-OneVision each MUST have the tokens of one tile, or the number be refused."""
    counts_are_or_refused(engine, "count_image_tokens", case, "the tokens")
