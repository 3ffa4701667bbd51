"""Ways in which engines have counted canvases, tiles and patches of pictures wrongly."""

from collections.abc import Mapping
from typing import Any

from conformance.quirk import quirk
from reference import planning as right
from reference.items import Size
from reference.planning import llava, tiles

Settings = Mapping[str, Any]


@quirk(
    "unpadded-with-swapped-sides",
    replaces="count_image_tokens",
    bugs=("llava-unpad-rounding",),
    caught_by=("PLANNING-04", "PLANNING-05"),
)
def swapped(family: str, settings: Settings, size: Size) -> int:
    """Height and width change places before the padding is taken away."""
    turned = Size(size.width, size.height) if family in ("llava_next", "llava_onevision") else size
    return right.count_image_tokens(family, settings, turned)


@quirk(
    "unpadded-without-rounding",
    replaces="count_image_tokens",
    bugs=("llava-unpad-rounding",),
    caught_by=("PLANNING-04", "PLANNING-05"),
)
def unrounded(family: str, settings: Settings, size: Size) -> int:
    """The side that was padded is cut to an integer as it is, so k - 1e-12 counts as k - 1."""
    count = right.count_image_tokens(family, settings, size)
    if family not in ("llava_next", "llava_onevision"):
        return count
    side = settings["image_size"] // settings["patch_size"] if family == "llava_next" else 27
    best = llava.canvas(size, settings["image_grid_pinpoints"])
    rows, columns = (length // settings["image_size"] * side for length in (best.height, best.width))
    shown_rows, shown_columns = llava.unpadded(size, best, settings["image_size"], side)
    if size.width / size.height > columns / rows:
        lost = (rows - int(size.height * (columns / size.width))) // 2 * 2 - (rows - shown_rows)
        return int(count + lost * (columns + 1))
    lost = (columns - int(size.width * (rows / size.height))) // 2 * 2 - (columns - shown_columns)
    return int(count + lost * rows)


@quirk(
    "odd-padding-taken-away-whole",
    replaces="count_image_tokens",
    bugs=("llava-pad-odd-length",),
    caught_by=("PLANNING-04",),
)
def all_padding(family: str, settings: Settings, size: Size) -> int:
    """Where the rows of padding are odd in number the last one goes, too, though half of them went on either side."""
    count = right.count_image_tokens(family, settings, size)
    if family != "llava_next":
        return count
    side = settings["image_size"] // settings["patch_size"]
    best = llava.canvas(size, settings["image_grid_pinpoints"])
    rows, columns = (length // settings["image_size"] * side for length in (best.height, best.width))
    if size.width / size.height > columns / rows:
        return int(count - (rows - int(round(size.height * (columns / size.width), 7))) % 2 * (columns + 1))
    shown_rows, _ = llava.unpadded(size, best, settings["image_size"], side)
    return int(count - (columns - int(round(size.width * (rows / size.height), 7))) % 2 * shown_rows)


@quirk("canvas-padding-kept", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-04",))
def padded(family: str, settings: Settings, size: Size) -> int:
    """The padding of the canvas is counted with the picture."""
    if family != "llava_next":
        return right.count_image_tokens(family, settings, size)
    best = llava.canvas(size, settings["image_grid_pinpoints"])
    return right.count_image_tokens(family, settings, best)


@quirk(
    "thumbnail-of-a-single-tile",
    replaces="count_image_tokens",
    bugs=("internvl-small-image-tiles",),
    caught_by=("PLANNING-06",),
)
def always_a_thumbnail(family: str, settings: Settings, size: Size) -> int:
    """A picture of one tile has a thumbnail too."""
    count = right.count_image_tokens(family, settings, size)
    return 2 * count if family == "internvl" and count == settings["image_seq_length"] else count


@quirk(
    "larger-canvas-always-preferred",
    replaces="count_image_tokens",
    bugs=("internvl-small-image-tiles",),
    caught_by=("PLANNING-06",),
)
def largest_canvas(family: str, settings: Settings, size: Size) -> int:
    """Of several arrangements as near in aspect ratio, the one with most tiles is taken however small the picture is."""
    if family != "internvl":
        return right.count_image_tokens(family, settings, size)
    return right.count_image_tokens(family, settings, Size(size.height * 1_000, size.width * 1_000))


@quirk("interpolation-forgotten", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-05",))
def never_interpolated(family: str, settings: Settings, size: Size) -> int:
    """A canvas of LLaVA-OneVision keeps all its tokens, however many tiles it has."""
    most = {"vision_aspect_ratio": "anyres_max_1000"} if family == "llava_onevision" else {}
    return right.count_image_tokens(family, {**settings, **most}, size)


@quirk(
    "larger-canvas-never-preferred",
    replaces="count_image_tokens",
    bugs=("internvl-small-image-tiles",),
    caught_by=("PLANNING-06",),
)
def smallest_canvas(family: str, settings: Settings, size: Size) -> int:
    """Of several arrangements as near in aspect ratio, the one with fewest tiles is taken however large the picture is."""
    if family != "internvl":
        return right.count_image_tokens(family, settings, size)
    return right.count_image_tokens(family, {**settings, "image_size": 1_000_000}, size)


@quirk(
    "tiles-of-the-picture-unscaled",
    replaces="count_image_tokens",
    bugs=("tgi-slot-alloc-mismatch",),
    caught_by=("PLANNING-07", "PLANNING-08"),
)
def unscaled(family: str, settings: Settings, size: Size) -> int:
    """Tiles are counted on the picture as it came, though it is scaled to its longest edge first."""
    if family not in ("idefics3", "smolvlm") or not settings["do_image_splitting"]:
        return right.count_image_tokens(family, settings, size)
    rows, columns = tiles.tile_counts(size, settings["max_image_size"])
    return int((rows * columns + (rows * columns > 1)) * settings["image_seq_len"])


@quirk(
    "tiles-of-landscapes-only",
    replaces="count_image_tokens",
    bugs=("llamacpp-aspect-tiles-segv",),
    caught_by=("PLANNING-06",),
)
def landscape(family: str, settings: Settings, size: Size) -> int:
    """The tiles of a tall picture are planned for an aspect ratio of at least 1."""
    wide = Size(min(size.height, size.width), size.width)
    return right.count_image_tokens(family, settings, wide if family == "internvl" else size)


@quirk("no-separators", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-12",))
def no_separators(family: str, settings: Settings, size: Size) -> int:
    """The learned separator between the views of DeepSeek-VL2 is forgotten."""
    return right.count_image_tokens(family, settings, size) - (family == "deepseek_vl2")


@quirk("patch-taken-for-the-stride", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-09",))
def unmerged(family: str, settings: Settings, size: Size) -> int:
    """Every patch has a token, though spatial_merge_size squared of them become one."""
    return right.count_image_tokens(
        family, {name: 1 if name == "spatial_merge_size" else settings[name] for name in settings}, size
    )


@quirk("row-breaks-counted", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-09",))
def with_breaks(family: str, settings: Settings, size: Size) -> int:
    """The break after each row of Pixtral is counted, though the encoder has no row for it."""
    count = right.count_image_tokens(family, settings, size)
    one_column = Size(size.height, 1)
    return count + right.count_image_tokens(family, settings, one_column) if family == "pixtral" else count


@quirk("patches-of-the-picture-unscaled", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-10",))
def own_patches(family: str, settings: Settings, size: Size) -> int:
    """A picture for LLaVA-1.5 that is smaller than the square has only the patches of its own pixels."""
    if family != "llava":
        return right.count_image_tokens(family, settings, size)
    side = min(settings["image_size"], max(size.height, size.width, settings["patch_size"]))
    return right.count_image_tokens(family, {**settings, "image_size": side}, size)


@quirk("class-token-kept", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-04", "PLANNING-10"))
def class_token(family: str, settings: Settings, size: Size) -> int:
    """The class token of LLaVA's vision tower is counted, though its strategy leaves it out."""
    strategy = {"vision_feature_select_strategy": "full"} if "vision_feature_select_strategy" in settings else {}
    return right.count_image_tokens(family, {**settings, **strategy}, size)


@quirk("crops-not-counted", replaces="count_image_tokens", bugs=("mm-kwargs-ignored",), caught_by=("PLANNING-35",))
def uncropped(family: str, settings: Settings, size: Size) -> int:
    """The crops of Gemma 3's pan and scan are not counted, whatever the settings say."""
    off = {"do_pan_and_scan": False} if family == "gemma3" else {}
    return right.count_image_tokens(family, {**settings, **off}, size)


@quirk("crops-of-any-side", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-35",))
def any_crop(family: str, settings: Settings, size: Size) -> int:
    """A picture for Gemma 3 is cropped even where its crops are smaller than they may be."""
    least = {"pan_and_scan_min_crop_size": 1} if family == "gemma3" else {}
    return right.count_image_tokens(family, {**settings, **least}, size)


@quirk("picture-as-one-frame", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-33",))
def one_frame(family: str, settings: Settings, size: Size) -> int:
    """A picture for GLM-4V has all the pixels that its limits allow, as for Qwen2-VL, and not half of them."""
    return right.count_image_tokens("qwen2_vl" if family == "glm4v" else family, settings, size)


@quirk("canvas-that-enlarges-most", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-34",))
def enlarged(family: str, settings: Settings, size: Size) -> int:
    """A picture for Llama 4 is put on the canvas that enlarges it most, whatever the settings say."""
    most = {"resize_to_max_canvas": True} if family == "llama4" else {}
    return right.count_image_tokens(family, {**settings, **most}, size)


@quirk("no-thumbnail-of-tiles", replaces="count_image_tokens", bugs=(), caught_by=("PLANNING-06", "PLANNING-34"))
def no_thumbnail(family: str, settings: Settings, size: Size) -> int:
    """The whole that follows the tiles of InternVL and Llama 4 is forgotten."""
    count = right.count_image_tokens(family, settings, size)
    if family not in ("internvl", "llama4"):
        return count
    side = settings["image_size"] // settings.get("patch_size", 1)
    one = settings["image_seq_length"] if family == "internvl" else side**2 // settings["downsample_ratio"]
    return int(max(count - one, one))
