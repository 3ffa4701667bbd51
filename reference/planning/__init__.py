"""Planning: how many tokens a medium has, from its size alone.

A scheduler, a router or a client needs the number before the processor has run. What is counted are the positions that
the encoder fills: the placeholder ids that the model's processor puts into the prompt, and so the rows of its embedding.
Learned newlines and separators are among them; boundary markers, row breaks and tile labels are text and are not.

1. A count is right if it is what the model owner's processor gives, for every size, to the last float: their rounding is
   the law even where another would be better. Nothing is estimated and nothing is a bound.
2. The numbers that a checkpoint states in its preprocessor configuration are settings, and all of them are given: an
   override that a planner does not see is the classic bug of this stage.
3. A medium that would get no token is refused, for what has no position is lost without a word.

Source: transformers 5.24; the modules of this package name the functions, and where engines disagree. Qwen's
`cap_pixels_per_frame` is off unless it is stated. A recording and a video are counted as the only ones of their prompt.
"""

from collections.abc import Mapping
from operator import index
from typing import Any, TypeAlias

from reference.items import Size
from reference.planning.audio import Qwen2Audio, Qwen3Omni, Whisper
from reference.planning.llava import DeepseekVL2, Llava, LlavaNext, LlavaNextVideo, LlavaOnevision
from reference.planning.qwen_vl import Glm4V, Grid, Qwen3VL, QwenVL
from reference.planning.settings import make
from reference.planning.tiles import Gemma3, Idefics3, InternVL, Llama4, Pixtral, SmolVLM

Settings: TypeAlias = Mapping[str, Any]

FAMILIES: Mapping[str, type[Any]] = {
    "qwen2_vl": QwenVL,
    "qwen2_5_vl": QwenVL,
    "qwen3_vl": Qwen3VL,
    "llava": Llava,
    "llava_next": LlavaNext,
    "llava_onevision": LlavaOnevision,
    "deepseek_vl2": DeepseekVL2,
    "internvl": InternVL,
    "idefics3": Idefics3,
    "smolvlm": SmolVLM,
    "pixtral": Pixtral,
    "gemma3": Gemma3,
    "whisper": Whisper,
    "qwen2_audio": Qwen2Audio,
    "glm4v": Glm4V,
    "llama4": Llama4,
    "llava_next_video": LlavaNextVideo,
    "qwen2_5_omni": Qwen2Audio,
    "qwen3_omni_moe": Qwen3Omni,
}
"""The families by their `model_type`. Their settings are the fields of these classes."""


def count_image_tokens(family: str, settings: Settings, size: Size) -> int:
    """How many positions a picture of this size fills; at least 1.

    Raises ValueError for an unknown family, for settings that are missing, unknown or below 1, and for a picture that
    would get no token or is too thin.
    """
    return _some(_method(family, settings, "image_tokens")(size), f"a picture of {size.height} x {size.width}")


def count_video_tokens(family: str, settings: Settings, frames: int, size: Size) -> int:
    """How many positions a video of so many sampled frames fills; at least 1. Settings and errors as for pictures."""
    count = _method(family, settings, "video_tokens")(_positive(frames, "frames"), size)
    return _some(count, f"a video of {frames} frames of {size.height} x {size.width}")


def count_audio_tokens(family: str, settings: Settings, samples: int, rate: int) -> int:
    """How many positions a recording of so many samples, `rate` a second, fills; at least 1. Errors as for pictures."""
    count = _method(family, settings, "audio_tokens")(_positive(samples, "samples"), _positive(rate, "samples a second"))
    return _some(count, f"a recording of {samples} samples")


def image_grid(family: str, settings: Settings, size: Size) -> Grid:
    """How many patches a picture has in time (1), height and width, before patches are merged into tokens.

    For the families of Qwen, and GLM-4V. Errors as for `count_image_tokens`.
    """
    grid: Grid = _method(family, settings, "image_grid")(size)
    return grid


def video_grid(family: str, settings: Settings, frames: int, size: Size) -> Grid:
    """How many patches a video has in time, height and width. Families and errors as above."""
    grid: Grid = _method(family, settings, "video_grid")(_positive(frames, "frames"), size)
    return grid


def _method(family: str, settings: Settings, name: str) -> Any:
    """The method of a family that counts one kind of medium."""
    able = [known for known, kind in FAMILIES.items() if hasattr(kind, name)]
    if family not in FAMILIES:
        raise ValueError(f"there is no family {family!r}; {name.replace('_', ' ')} are known for {', '.join(able)}")
    if family not in able:
        raise ValueError(f"{family} plans no {name.replace('_', ' ')}; these do: {', '.join(able)}")
    return getattr(make(FAMILIES[family], family, settings), name)


def _positive(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"a number of {what} is an integer, not {value!r}")
    if index(value) < 1:
        raise ValueError(f"a number of {what} is at least 1, not {value}")
    return index(value)


def _some(count: int, what: str) -> int:
    if count < 1:
        raise ValueError(f"{what} is too small or too thin to get a token")
    return count
