"""Ways in which engines have resized pictures wrongly before they counted, or have not looked at the settings."""

from collections.abc import Callable, Mapping
from math import ceil, floor, sqrt
from typing import Any

from conformance.quirk import quirk
from conformance.world import families as known
from reference import planning as right
from reference.items import Size
from reference.planning import qwen_vl

Settings = Mapping[str, Any]
Resize = Callable[..., tuple[int, int]]

QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
_LAST: dict[str, Any] = {}
PUBLISHED = {family.name: family.settings for family in vars(known).values() if isinstance(family, known.Family)}


def _counted(resize: Resize, family: str, settings: Settings, size: Size) -> int:
    """The tokens with another way to resize for Qwen: the sides in tokens from height, width, the factor and the limits."""
    count = right.count_image_tokens(family, settings, size)
    if family not in QWEN:
        return count
    factor = settings["patch_size"] * settings["merge_size"]
    height, width = resize(size.height, size.width, factor, settings["min_pixels"], settings["max_pixels"])
    return height * width


def _fitted(height: int, width: int, rounded: tuple[int, int], factor: int, fewest: int, most: int) -> tuple[int, int]:
    """The rounded sides where their area is within the limits, else the sides shrunk or grown, in factors."""
    area = rounded[0] * rounded[1] * factor**2
    if area > most:
        shrink = sqrt(height * width / most) * factor
        return max(1, floor(height / shrink)), max(1, floor(width / shrink))
    if area < fewest:
        grow = sqrt(fewest / (height * width))
        return ceil(height * grow / factor), ceil(width * grow / factor)
    return rounded


def _lifted(height: int, width: int, factor: int, fewest: int, most: int) -> tuple[int, int]:
    return _fitted(height, width, (max(1, round(height / factor)), max(1, round(width / factor))), factor, fewest, most)


def _half_up(height: int, width: int, factor: int, fewest: int, most: int) -> tuple[int, int]:
    return _fitted(height, width, (floor(height / factor + 0.5), floor(width / factor + 0.5)), factor, fewest, most)


def _unguarded(height: int, width: int, factor: int, fewest: int, most: int) -> tuple[int, int]:
    rounded = round(height / factor), round(width / factor)
    fitted = _fitted(height, width, rounded, factor, fewest, most)
    shrink = sqrt(height * width / most) * factor
    return (floor(height / shrink), floor(width / shrink)) if rounded[0] * rounded[1] * factor**2 > most else fitted


def _exact(height: int, width: int, factor: int, fewest: int, most: int) -> tuple[int, int]:
    rounded = round(height / factor), round(width / factor)
    if rounded[0] * rounded[1] * factor**2 >= fewest:
        return _fitted(height, width, rounded, factor, fewest, most)
    return ceil(round(sqrt(fewest * height / width) / factor, 9)), ceil(round(sqrt(fewest * width / height) / factor, 9))


@quirk(
    "thin-sides-lifted-before-the-area",
    replaces="count_image_tokens",
    bugs=(),
    caught_by=("PLANNING-01", "PLANNING-02", "PLANNING-03"),
)
def guarded_first(family: str, settings: Settings, size: Size) -> int:
    """A side is lifted to one token before the area is compared with its limits, so a thin picture is never grown."""
    return _counted(_lifted, family, settings, size)


@quirk("ties-rounded-up", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-01", "PLANNING-02", "PLANNING-03"))
def half_up(family: str, settings: Settings, size: Size) -> int:
    """A side halfway between two multiples is rounded up and not to the even one."""
    return _counted(_half_up, family, settings, size)


@quirk("side-of-zero", replaces="count_image_tokens", bugs=("smart-resize-zero-dim",), caught_by=("PLANNING-01", "PLANNING-02"))
def zero_side(family: str, settings: Settings, size: Size) -> int:
    """A side that is scaled down may become 0, and the picture has no token."""
    return _counted(_unguarded, family, settings, size)


@quirk("exact-where-the-processor-floats", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-01", "PLANNING-03"))
def exact(family: str, settings: Settings, size: Size) -> int:
    """Sides that are grown are computed without the error of floats that the model owner's processor makes."""
    return _counted(_exact, family, settings, size)


@quirk(
    "one-token-a-picture",
    replaces="count_image_tokens",
    bugs=("W01",),
    caught_by=(
        "PLANNING-01",
        "PLANNING-02",
        "PLANNING-03",
        "PLANNING-04",
        "PLANNING-05",
        "PLANNING-06",
        "PLANNING-07",
        "PLANNING-08",
        "PLANNING-09",
        "PLANNING-10",
        "PLANNING-11",
        "PLANNING-12",
        "PLANNING-13",
    ),
)
def unexpanded(family: str, settings: Settings, size: Size) -> int:
    """The placeholder is counted before it is expanded."""
    return min(right.count_image_tokens(family, settings, size), 1)


@quirk(
    "overrides-not-seen",
    replaces="count_image_tokens",
    bugs=("mm-kwargs-ignored",),
    caught_by=(
        "PLANNING-01",
        "PLANNING-02",
        "PLANNING-03",
        "PLANNING-04",
        "PLANNING-05",
        "PLANNING-06",
        "PLANNING-07",
        "PLANNING-08",
        "PLANNING-09",
        "PLANNING-10",
        "PLANNING-11",
        "PLANNING-12",
        "PLANNING-13",
        "PLANNING-17",
    ),
)
def checkpoint_only(family: str, settings: Settings, size: Size) -> int:
    """Tokens are counted with the settings of the checkpoint, whatever the request overrides."""
    return right.count_image_tokens(family, PUBLISHED.get(family, settings), size)


@quirk("settings-of-the-request-before", replaces="count_image_tokens", bugs=("mm-kwargs-ignored",), caught_by=("PLANNING-13",))
def settings_before(family: str, settings: Settings, size: Size) -> int:
    """The last count is kept by family and size, so the next request of that size gets the settings of the one before."""
    key = (family, size)
    if _LAST.get("key") != key:
        _LAST.update(count=right.count_image_tokens(family, settings, size), key=key)
    count: int = _LAST["count"]
    return count


@quirk("pictures-without-tokens-taken", replaces="count_image_tokens", bugs=("W03",), caught_by=("PLANNING-14", "PLANNING-15"))
def no_tokens(family: str, settings: Settings, size: Size) -> int:
    """A picture that is too thin is taken and has no token; the model answers about nothing."""
    try:
        return right.count_image_tokens(family, settings, size)
    except ValueError as error:
        if "too thin" in str(error):
            return 0
        raise


@quirk("unknown-families-guessed", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-16",))
def guessed(family: str, settings: Settings, size: Size) -> int:
    """A family that the engine does not know is counted like Qwen2-VL."""
    return right.count_image_tokens(family if family in right.FAMILIES else "qwen2_vl", settings, size)


@quirk("unknown-settings-dropped", replaces="count_image_tokens", bugs=("mm-kwargs-ignored",), caught_by=("PLANNING-17",))
def dropped(family: str, settings: Settings, size: Size) -> int:
    """A setting that the planner does not know is dropped without a word."""
    known_settings = PUBLISHED.get(family, settings)
    return right.count_image_tokens(family, {k: v for k, v in settings.items() if k in known_settings}, size)


@quirk("grid-with-swapped-sides", replaces="image_grid", bugs=(), caught_by=("PLANNING-18",))
def transposed(family: str, settings: Settings, size: Size) -> tuple[int, int, int]:
    """The grid names the width before the height."""
    time, height, width = right.image_grid(family, settings, size)
    return time, width, height


@quirk("grid-of-tokens", replaces="image_grid", bugs=(), caught_by=("PLANNING-18",))
def merged(family: str, settings: Settings, size: Size) -> tuple[int, int, int]:
    """The grid counts tokens and not patches."""
    time, height, width = right.image_grid(family, settings, size)
    return time, height // settings["merge_size"], width // settings["merge_size"]


@quirk("grid-of-the-picture-unscaled", replaces="image_grid", bugs=("smart-resize-zero-dim",), caught_by=("PLANNING-18",))
def unscaled_grid(family: str, settings: Settings, size: Size) -> qwen_vl.Grid:
    """The grid is that of the rounded sides, which the limits of the area do not change; a thin picture has a side of 0."""
    right.image_grid(family, settings, size)
    factor, merge = settings["patch_size"] * settings["merge_size"], settings["merge_size"]
    return qwen_vl.Grid(1, round(size.height / factor) * merge, round(size.width / factor) * merge)
