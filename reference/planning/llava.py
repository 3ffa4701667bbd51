"""LLaVA-1.5, LLaVA-NeXT (and its video model), LLaVA-OneVision and DeepSeek-VL2: a picture on the best of a list of canvases.

1. The canvas is the one on which most pixels of the picture survive, and of these the one that wastes least.
2. The picture is seen twice: whole, at the size of one tile, and scaled to fit the canvas, tile by tile.
3. LLaVA takes the rows of padding away again and ends each row of the rest with a learned newline. DeepSeek-VL2 keeps the
   padding, ends the rows of both views with a newline, and separates the views.

Source: transformers 5.24, `select_best_resolution` and `_get_number_of_features` of the processors of LLaVA-NeXT and
LLaVA-OneVision. DeepSeek-VL2 is not in transformers: its rule is that of its paper (arXiv 2412.10302, section 3.1), with
the choice of the canvas as in its published processor. That is a single source.
Disagreements: the unpadded side was once computed without the rounding to 7 digits, by processor or model, and the two
counts differed by a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isqrt, sqrt

from reference.items import Size
from reference.planning.settings import check, check_choice

STRATEGIES = ("default", "full")
"""Which of the rows of the vision tower are used: all but the first, which is that of the class token; or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Llava:
    """LLaVA-1.5: every picture is resized and cropped to a square. image_size: its side."""

    image_size: int
    patch_size: int
    num_additional_image_tokens: int
    vision_feature_select_strategy: str

    def __post_init__(self) -> None:
        check(self, may_be_zero=("num_additional_image_tokens",))
        check_choice("vision_feature_select_strategy", self.vision_feature_select_strategy, STRATEGIES)

    def image_tokens(self, size: Size) -> int:
        """A token for each patch and class token of the square, less the first where the strategy says so."""
        side = self.image_size // self.patch_size
        return side**2 + self.num_additional_image_tokens - (self.vision_feature_select_strategy == "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlavaNext:
    """LLaVA-NeXT. image_grid_pinpoints: the canvases, each a height and a width. image_size: the side of a tile."""

    image_size: int
    patch_size: int
    image_grid_pinpoints: Sequence[Sequence[int]]
    num_additional_image_tokens: int
    vision_feature_select_strategy: str

    def __post_init__(self) -> None:
        check(self, may_be_zero=("num_additional_image_tokens",))
        check_choice("vision_feature_select_strategy", self.vision_feature_select_strategy, STRATEGIES)

    def image_tokens(self, size: Size) -> int:
        """The tokens of the whole, and of the canvas without padding and with newlines."""
        side = self.image_size // self.patch_size
        whole = side**2 + self.num_additional_image_tokens
        rows, columns = unpadded(size, canvas(size, self.image_grid_pinpoints), self.image_size, side)
        return whole + rows * columns + rows - (self.vision_feature_select_strategy == "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlavaNextVideo:
    """LLaVA-NeXT-Video, for videos. image_size: the side of a frame, which is resized and cropped to a square."""

    image_size: int
    patch_size: int

    def __post_init__(self) -> None:
        check(self)

    def video_tokens(self, frames: int, size: Size) -> int:
        """A token for four patches of each frame, rounded down; no newlines and no class token."""
        return frames * ((self.image_size // self.patch_size) ** 2 // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlavaOnevision:
    """LLaVA-OneVision. pictures_in_prompt: of several pictures none is tiled, and each is one tile and a newline.

    num_image_tokens: those of a tile, a square number. vision_aspect_ratio: "anyres_max_N": the tokens of the canvas
    are interpolated down when it has more than those of N tiles by far (a side 1.1 times as long).
    """

    image_size: int
    image_grid_pinpoints: Sequence[Sequence[int]]
    num_image_tokens: int
    vision_aspect_ratio: str
    vision_feature_select_strategy: str
    pictures_in_prompt: int = 1

    def __post_init__(self) -> None:
        check(self)
        check_choice("vision_feature_select_strategy", self.vision_feature_select_strategy, STRATEGIES)
        name, _, tiles = self.vision_aspect_ratio.rpartition("_")
        if name != "anyres_max" or not tiles.isdecimal() or int(tiles) < 1:
            raise ValueError(f"vision_aspect_ratio is anyres_max_ and a number of tiles, not {self.vision_aspect_ratio!r}")

    def image_tokens(self, size: Size) -> int:
        """The tokens of the whole, and of the canvas without padding, interpolated down and with newlines."""
        whole = self.num_image_tokens - (self.vision_feature_select_strategy == "default")
        if self.pictures_in_prompt > 1:
            return whole + 1
        side = isqrt(self.num_image_tokens)
        rows, columns = unpadded(size, canvas(size, self.image_grid_pinpoints), self.image_size, side)
        most = int(self.vision_aspect_ratio.rpartition("_")[2]) * side**2
        ratio = sqrt(rows * columns / most)
        if ratio > 1.1:
            rows, columns = int(rows // ratio), int(columns // ratio)
        return whole + rows * columns + rows

    def video_tokens(self, frames: int, size: Size) -> int:
        """Each frame is one tile, pooled to half its side, rounded up; one newline ends the video."""
        return frames * ceil(isqrt(self.num_image_tokens) / 2) ** 2 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepseekVL2:
    """DeepSeek-VL2, for a prompt of at most two pictures: of more, none is tiled.

    candidate_resolutions: the canvases, each a height and a width. image_size: the side of a tile.
    """

    image_size: int
    patch_size: int
    downsample_ratio: int
    candidate_resolutions: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        check(self)

    def image_tokens(self, size: Size) -> int:
        """The whole and the canvas, with a newline after each row, and a separator between the two."""
        side = ceil(self.image_size // self.patch_size / self.downsample_ratio)
        best = canvas(size, self.candidate_resolutions)
        rows, columns = (length // self.image_size * side for length in (best.height, best.width))
        return side * (side + 1) + 1 + rows * (columns + 1)


def canvas(size: Size, candidates: Sequence[Sequence[int]]) -> Size:
    """The candidate that keeps most pixels of the picture, then the one that wastes least, then the first."""

    def merit(candidate: Size) -> tuple[int, int]:
        scale = min(candidate.width / size.width, candidate.height / size.height)
        kept = min(int(size.width * scale) * int(size.height * scale), size.width * size.height)
        return kept, kept - candidate.width * candidate.height

    return max((Size(height, width) for height, width in candidates), key=merit)


def unpadded(size: Size, best: Size, tile: int, side: int) -> tuple[int, int]:
    """How many rows and columns of tokens of the canvas show the picture; a tile has side x side tokens.

    The side that was padded is rounded to 7 digits before it is cut to an integer, as in the processor: products such
    as k - 1e-12 count as k. Padding is taken away in pairs, so one row of it may remain.
    """
    rows, columns = best.height // tile * side, best.width // tile * side
    if size.width / size.height > columns / rows:
        shown = int(round(size.height * (columns / size.width), 7))
        rows -= (rows - shown) // 2 * 2
    else:
        shown = int(round(size.width * (rows / size.height), 7))
        columns -= (columns - shown) // 2 * 2
    return rows, columns
