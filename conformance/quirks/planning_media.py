"""Ways in which engines have counted the tokens of videos and recordings wrongly."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.quirk import quirk
from reference import planning as right
from reference.items import Size
from reference.planning.qwen_vl import Grid

Settings = Mapping[str, Any]


def _step(settings: Settings) -> int:
    return int(settings.get("temporal_patch_size", 1))


@quirk(
    "frames-padded-by-the-remainder",
    replaces="count_video_tokens",
    bugs=("temporal-pad-estimate",),
    caught_by=("PLANNING-19", "PLANNING-20", "PLANNING-21"),
)
def padded_by_remainder(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Frames are padded with as many as are over, which is right for steps of two frames only."""
    step = _step(settings)
    count = right.count_video_tokens(family, settings, frames, size)
    return count if step == 1 else count // -(-frames // step) * ((frames + frames % step) // step)


@quirk("last-frames-dropped", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-19", "PLANNING-20", "PLANNING-21"))
def dropped(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Frames that do not fill a time step are dropped."""
    step = _step(settings)
    count = right.count_video_tokens(family, settings, frames, size)
    return count if step == 1 else count // -(-frames // step) * (frames // step)


@quirk("tokens-of-each-frame", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-19", "PLANNING-20", "PLANNING-21"))
def each_frame(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Every frame has the tokens of a time step."""
    return right.count_video_tokens(family, settings, frames, size) * _step(settings)


@quirk("newline-after-each-frame", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-22",))
def many_newlines(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Each frame of LLaVA-OneVision ends with a newline, though one ends the video."""
    count = right.count_video_tokens(family, settings, frames, size)
    return count + frames - 1 if family == "llava_onevision" else count


@quirk("frames-in-tiles", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-23",))
def tiled_frames(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Each frame of a video for InternVL is cut into tiles like a picture."""
    if family != "internvl":
        return right.count_video_tokens(family, settings, frames, size)
    return frames * right.count_image_tokens(family, settings, size)


@quirk("budget-for-each-frame", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-21",))
def each_its_own(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Each frame of Qwen3-VL may have the pixels that the limits allow to all frames together."""
    right.count_video_tokens(family, settings, frames, size)
    return right.count_video_tokens("qwen2_vl" if family == "qwen3_vl" else family, settings, frames, size)


@quirk("budget-for-padded-frames", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-21",))
def filled_up(family: str, settings: Settings, frames: int, size: Size) -> int:
    """The limits of Qwen3-VL are compared with the frames after the last time step was filled up."""
    padding = -frames % _step(settings) if family == "qwen3_vl" else 0
    return right.count_video_tokens(family, settings, frames + padding, size)


@quirk(
    "grid-frames-padded-by-the-remainder",
    replaces="video_grid",
    bugs=("temporal-pad-estimate",),
    caught_by=("PLANNING-24", "PLANNING-25"),
)
def grid_by_remainder(family: str, settings: Settings, frames: int, size: Size) -> Grid:
    """The time steps of a grid count as many more frames as are over, which is right for steps of two frames only."""
    grid, step = right.video_grid(family, settings, frames, size), _step(settings)
    return grid._replace(time=(frames + frames % step) // step)


@quirk("grid-of-frames", replaces="video_grid", bugs=(), caught_by=("PLANNING-24", "PLANNING-25"))
def grid_of_frames(family: str, settings: Settings, frames: int, size: Size) -> Grid:
    """The grid counts frames and not time steps."""
    return right.video_grid(family, settings, frames, size)._replace(time=frames)


@quirk(
    "videos-without-frames-counted",
    replaces="count_video_tokens",
    bugs=("video-zero-frames-short",),
    caught_by=("PLANNING-26", "PLANNING-27"),
)
def no_frames(family: str, settings: Settings, frames: int, size: Size) -> int:
    """A video without frames has no tokens, and is not refused."""
    return right.count_video_tokens(family, settings, frames, size) if frames > 0 else 0


@quirk(
    "counted-frames-are-sampled-again",
    replaces="count_video_tokens",
    bugs=("F01", "do-sample-frames-metadata-override"),
    caught_by=("PLANNING-19", "PLANNING-20", "PLANNING-21", "PLANNING-22", "PLANNING-23"),
)
def sampled_again(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Frames that were sampled already are counted as a file of which every second one is taken."""
    return right.count_video_tokens(family, settings, -(-frames // 2), size)


@quirk(
    "a-default-number-of-frames",
    replaces="count_video_tokens",
    bugs=("video-numframes-vs-fps",),
    caught_by=("PLANNING-19", "PLANNING-20", "PLANNING-21", "PLANNING-22", "PLANNING-23"),
)
def default_frames(family: str, settings: Settings, frames: int, size: Size) -> int:
    """The tokens are those of 32 frames, the default of a request, though this one says how many it wants."""
    return right.count_video_tokens(family, settings, min(frames, 0) or 32, size)


@quirk(
    "two-frames-at-least",
    replaces="count_video_tokens",
    bugs=("F04", "video-zero-frames-short"),
    caught_by=("PLANNING-22", "PLANNING-23"),
)
def two_at_least(family: str, settings: Settings, frames: int, size: Size) -> int:
    """A video of one frame is counted as two, which one family needs and the others do not have."""
    return right.count_video_tokens(family, settings, 2 if frames == 1 else frames, size)


@quirk(
    "grid-of-frames-sampled-again",
    replaces="video_grid",
    bugs=("do-sample-frames-metadata-override", "F05"),
    caught_by=("PLANNING-24", "PLANNING-25"),
)
def grid_sampled_again(family: str, settings: Settings, frames: int, size: Size) -> Grid:
    """The grid is that of every second frame: positions and times follow one sampler, and the pixels another."""
    return right.video_grid(family, settings, -(-frames // 2), size)


@quirk("frames-of-smolvlm-in-tiles", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-37",))
def smolvlm_tiles(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Each frame of a video for SmolVLM is cut into tiles like a picture."""
    if family != "smolvlm":
        return right.count_video_tokens(family, settings, frames, size)
    return frames * right.count_image_tokens(family, settings, size)


@quirk("frames-not-pooled", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-38",))
def unpooled(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Every patch of a frame of LLaVA-NeXT-Video has a token."""
    twice = {"image_size": 2 * settings["image_size"]} if family == "llava_next_video" else {}
    return right.count_video_tokens(family, {**settings, **twice}, frames, size)


@quirk("limits-of-glm-for-each-frame", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-36",))
def glm_frames(family: str, settings: Settings, frames: int, size: Size) -> int:
    """Each frame of GLM-4V may have the pixels that the limits allow to all frames together."""
    right.count_video_tokens(family, settings, frames, size)
    return right.count_video_tokens("qwen2_vl" if family == "glm4v" else family, settings, frames, size)


@quirk("window-of-whisper-for-omni", replaces="count_audio_tokens", bugs=(), caught_by=("PLANNING-39",))
def short_window(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A recording for Qwen2.5-Omni is cut after the 30 seconds of Whisper."""
    window = {"chunk_length": 30} if family == "qwen2_5_omni" else {}
    return right.count_audio_tokens(family, {**settings, **window}, samples, rate)


@quirk("begun-hops-of-omni-counted", replaces="count_audio_tokens", bugs=(), caught_by=("PLANNING-40",))
def begun(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A hop that the recording does not fill is counted for Qwen3-Omni, as for Qwen2-Audio."""
    more = settings["hop_length"] - 1 if family == "qwen3_omni_moe" and rate == settings["sampling_rate"] else 0
    return right.count_audio_tokens(family, settings, samples + more if samples > 0 else samples, rate)


@quirk("omni-not-in-chunks", replaces="count_audio_tokens", bugs=(), caught_by=("PLANNING-40",))
def one_chunk(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A recording for Qwen3-Omni is halved three times as a whole, as if it were a single chunk."""
    window = {"n_window": 10**9} if family == "qwen3_omni_moe" else {}
    return right.count_audio_tokens(family, {**settings, **window}, samples, rate)


@quirk("hops-in-32-bit-floats", replaces="count_audio_tokens", bugs=("audio-float32-ceil",), caught_by=("PLANNING-28",))
def float32(family: str, settings: Settings, samples: int, rate: int) -> int:
    """Hops are rounded up in 32-bit floats, which lose a sample of a long recording."""
    heard = min(samples * settings["sampling_rate"] // rate, settings["sampling_rate"] * settings["chunk_length"])
    hops = int(np.ceil(np.float32(heard) / np.float32(settings["hop_length"])))
    return right.count_audio_tokens(family, settings, hops * settings["hop_length"], settings["sampling_rate"])


@quirk("begun-hops-dropped", replaces="count_audio_tokens", bugs=(), caught_by=("PLANNING-28",))
def floored(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A hop that the recording does not fill is not counted."""
    hop, target = settings["hop_length"], settings["sampling_rate"]
    heard = samples * target // rate
    return right.count_audio_tokens(family, settings, heard // hop * hop if heard > hop else heard, target)


@quirk("beyond-the-window", replaces="count_audio_tokens", bugs=(), caught_by=("PLANNING-28", "PLANNING-29", "PLANNING-30"))
def uncut(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A recording that is longer than the window is counted to its end."""
    return right.count_audio_tokens(family, {**settings, "chunk_length": settings["chunk_length"] * 1_000}, samples, rate)


@quirk(
    "counted-before-resampling",
    replaces="count_audio_tokens",
    bugs=("audio-count-before-resample",),
    caught_by=("PLANNING-30", "PLANNING-31"),
)
def not_resampled(family: str, settings: Settings, samples: int, rate: int) -> int:
    """Samples are counted as they came, at whatever rate."""
    return right.count_audio_tokens(family, settings, samples, settings["sampling_rate"])


@quirk(
    "rates-divided-in-integers",
    replaces="count_audio_tokens",
    bugs=("audio-count-before-resample",),
    caught_by=("PLANNING-30",),
)
def whole_ratio(family: str, settings: Settings, samples: int, rate: int) -> int:
    """Samples are divided by the whole number of times that their rate holds the model's, which is 2 for 44,100."""
    ratio = max(1, rate // settings["sampling_rate"])
    return right.count_audio_tokens(family, settings, samples // ratio, settings["sampling_rate"])


@quirk("silence-of-the-window-not-heard", replaces="count_audio_tokens", bugs=(), caught_by=("PLANNING-29",))
def sound_only(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A recording for Whisper has rows for its sound only, though the window is padded with silence."""
    count = right.count_audio_tokens(family, settings, samples, rate)
    heard = -(-samples * settings["sampling_rate"] // rate)
    return min(count, -(-heard // settings["hop_length"] // 2)) if family == "whisper" else count


@quirk("one-token-at-least", replaces="count_audio_tokens", bugs=("audio-short-tail-zero-embeds",), caught_by=("PLANNING-31",))
def at_least_one(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A recording that is too short for a row of the encoder has one token all the same."""
    longest = settings["hop_length"] * 4 * rate // settings["sampling_rate"]
    return right.count_audio_tokens(family, settings, samples if samples < 1 else max(samples, longest), rate)


@quirk("silence-counted", replaces="count_audio_tokens", bugs=("audio-short-tail-zero-embeds",), caught_by=("PLANNING-32",))
def silence(family: str, settings: Settings, samples: int, rate: int) -> int:
    """A recording without samples is padded to the window like any other."""
    return right.count_audio_tokens(family, settings, samples if samples > 0 else 480_000, rate)


@quirk(
    "cap-of-a-frame-ignored",
    replaces="count_video_tokens",
    bugs=("mm-kwargs-ignored",),
    caught_by=("PLANNING-41", "PLANNING-42"),
)
def cap_ignored(family: str, settings: Settings, frames: int, size: Size) -> int:
    """The preprocessor caps the pixels of a frame, as it was told; who counts the tokens was not told."""
    known = {name: value for name, value in settings.items() if name not in ("cap_pixels_per_frame", "max_video_tokens")}
    return right.count_video_tokens(family, known, frames, size)


@quirk("cap-without-a-least", replaces="count_video_tokens", bugs=(), caught_by=("PLANNING-41", "PLANNING-42"))
def cap_without_a_least(family: str, settings: Settings, frames: int, size: Size) -> int:
    """The cap falls with the number of frames, and nothing keeps it above the least that a frame has."""
    if not settings.get("cap_pixels_per_frame"):
        return right.count_video_tokens(family, settings, frames, size)
    factor = settings["patch_size"] * settings["merge_size"]
    budget = int(settings["max_video_tokens"] * factor**2 * 0.9) * settings["temporal_patch_size"] // frames
    if family == "qwen3_vl":
        budget = min(settings["max_video_tokens"] * factor**2, settings["max_pixels"] // frames) * frames
    known = {name: value for name, value in settings.items() if name not in ("cap_pixels_per_frame", "max_video_tokens")}
    capped = {**known, "min_pixels": 1, "max_pixels": max(1, min(settings["max_pixels"], budget))}
    return right.count_video_tokens(family, capped, frames, size)


@quirk("each-picture-as-if-alone", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-43",))
def each_as_if_alone(family: str, settings: Settings, size: Size) -> int:
    """A picture is counted in tiles, whatever else is in its prompt; the preprocessor tiles none of several."""
    known = {name: value for name, value in settings.items() if name != "pictures_in_prompt"}
    return right.count_image_tokens(family, known, size)


@quirk("newline-of-a-lone-tile-forgotten", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-43",))
def no_newline(family: str, settings: Settings, size: Size) -> int:
    """A picture that is one tile has as many tokens as its encoder has rows, and the newline behind it is forgotten."""
    count = right.count_image_tokens(family, settings, size)
    return count - 1 if settings.get("pictures_in_prompt", 1) > 1 else count
