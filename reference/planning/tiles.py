"""InternVL, Idefics3, SmolVLM, Llama 4, Pixtral and Gemma 3: tiles of a fixed number of tokens, patches, or one fixed number.

Source: transformers 5.24, `get_optimal_tiled_canvas` of GOT-OCR2 (InternVL's image processor), the resizing steps of
Idefics3's image processor, `get_resize_output_image_size` of Pixtral's, `get_best_fit` of Llama 4's, and
`pan_and_scan` of Gemma 3's.
Disagreements: engines have counted tiles of small pictures by another rule than their preprocessing, added a thumbnail
to a single tile, and taken Pixtral's patch of 14 pixels for its stride of 28.
"""

from dataclasses import dataclass
from math import ceil, floor

from reference.items import Size
from reference.planning.settings import check

LONGEST_SIDE = 4096
"""No picture of Idefics3 is scaled beyond this, whatever its settings say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternVL:
    """InternVL, with `crop_to_patches` as its processor sets it. image_size: the side of a tile."""

    image_size: int
    min_patches: int
    max_patches: int
    image_seq_length: int

    def __post_init__(self) -> None:
        check(self)
        if self.min_patches > self.max_patches:
            raise ValueError(f"min_patches is at most max_patches, but {self.min_patches} > {self.max_patches}")

    def image_tokens(self, size: Size) -> int:
        """The tiles of the canvas, and of a thumbnail where there is more than one."""
        rows, columns = arrangement(size, self.image_size, self.min_patches, self.max_patches)
        tiles = rows * columns
        return (tiles + (tiles > 1)) * self.image_seq_length

    def video_tokens(self, frames: int, size: Size) -> int:
        """Each frame is one tile."""
        return frames * self.image_seq_length


@dataclass(frozen=True, slots=True, kw_only=True)
class Idefics3:
    """Idefics3 and SmolVLM. longest_edge: a picture is scaled to it; max_image_size: the side of a tile."""

    longest_edge: int
    max_image_size: int
    image_seq_len: int
    do_image_splitting: bool

    def __post_init__(self) -> None:
        check(self)

    def image_tokens(self, size: Size) -> int:
        """The tiles of the picture, and of the whole at the size of one where there is more than one."""
        if not self.do_image_splitting:
            return self.image_seq_len
        rows, columns = tile_counts(longest_side(size, self.longest_edge), self.max_image_size)
        tiles = rows * columns
        return (tiles + (tiles > 1)) * self.image_seq_len


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolVLM(Idefics3):
    """SmolVLM. As Idefics3, and it takes videos."""

    def video_tokens(self, frames: int, size: Size) -> int:
        """Each frame is one tile. The sentences and times around the frames are text."""
        return frames * self.image_seq_len


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama4:
    """Llama 4. image_size: the side of a tile; downsample_ratio: how many patches become a token; max_patches: of tiles."""

    image_size: int
    patch_size: int
    downsample_ratio: int
    max_patches: int
    resize_to_max_canvas: bool

    def __post_init__(self) -> None:
        check(self)

    def image_tokens(self, size: Size) -> int:
        """The tiles of the canvas, and of the whole at the size of one where there is more than one."""
        tiles = self._tiles(size)
        return (tiles + (tiles > 1)) * ((self.image_size // self.patch_size) ** 2 // self.downsample_ratio)

    def _tiles(self, size: Size) -> int:
        """Those of the canvas that enlarges the picture least, or else shrinks it least; of several, of the smallest.

        With resize_to_max_canvas the canvas enlarges it most.
        """
        smallest: dict[float, int] = {}
        for tiles in range(self.max_patches, 0, -1):
            for rows in (rows for rows in range(1, tiles + 1) if tiles % rows == 0):
                scale = min(tiles // rows * self.image_size / size.width, rows * self.image_size / size.height)
                smallest[scale] = tiles
        enlarging = [scale for scale in smallest if scale >= 1]
        if not enlarging or self.resize_to_max_canvas:
            return smallest[max(smallest)]
        return smallest[min(enlarging)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pixtral:
    """Pixtral, and Mistral Small 3 with spatial_merge_size 2. longest_edge: larger pictures are scaled down to it."""

    longest_edge: int
    patch_size: int
    spatial_merge_size: int

    def __post_init__(self) -> None:
        check(self)

    def image_tokens(self, size: Size) -> int:
        """One token for each square of patch_size * spatial_merge_size pixels that the picture touches.

        The break after each row, and the end, are ids of their own and are not counted.
        """
        stride = self.patch_size * self.spatial_merge_size
        ratio = max(size.height / self.longest_edge, size.width / self.longest_edge, 1)
        height, width = floor(size.height / ratio), floor(size.width / ratio)
        return ceil(height / stride) * ceil(width / stride)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma3:
    """Gemma 3. pan_and_scan_min_ratio_to_activate: a picture that is less long than that is not cropped.

    pan_and_scan_min_crop_size: the least side of a crop, in pixels; pan_and_scan_max_num_crops: the most of them.
    """

    image_seq_length: int
    do_pan_and_scan: bool
    pan_and_scan_min_crop_size: int
    pan_and_scan_max_num_crops: int
    pan_and_scan_min_ratio_to_activate: float

    def __post_init__(self) -> None:
        check(self)

    def image_tokens(self, size: Size) -> int:
        """The whole, resized to a square, and each crop likewise."""
        return (1 + self._crops(size)) * self.image_seq_length

    def _crops(self, size: Size) -> int:
        """How many crops lie along the longest side: nearly square ones, at least 2 before max_num_crops, or none."""
        long, short = max(size.height, size.width), min(size.height, size.width)
        least = self.pan_and_scan_min_crop_size
        if not self.do_pan_and_scan or long / short < self.pan_and_scan_min_ratio_to_activate:
            return 0
        crops = min(max(2, min(long // least, floor(long / short + 0.5))), self.pan_and_scan_max_num_crops)
        return crops if min(ceil(long / crops), short) >= least else 0


def arrangement(size: Size, tile: int, fewest: int, most: int) -> tuple[int, int]:
    """The rows and columns of tiles whose aspect ratio is nearest to the picture's.

    Of several as near, a larger one replaces the best so far if the picture covers more than half of its area.
    """
    ratio, area = size.width / size.height, size.width * size.height
    shapes = [(rows, columns) for columns in range(1, most + 1) for rows in range(1, most // columns + 1)]
    best, nearest = (1, 1), float("inf")
    for rows, columns in sorted((shape for shape in shapes if shape[0] * shape[1] >= fewest), key=lambda s: s[0] * s[1]):
        distance = abs(ratio - columns / rows)
        if distance < nearest or (distance == nearest and area > 0.5 * tile * tile * rows * columns):
            best, nearest = (rows, columns), distance
    return best


def longest_side(size: Size, longest: int) -> Size:
    """The picture scaled until its longest side is `longest`, the other one even, and neither beyond 4096 pixels."""
    ratio = size.width / size.height
    other = int(longest / ratio) if size.width >= size.height else int(longest * ratio)
    other = max(other + other % 2, 1)
    scaled = Size(other, longest) if size.width >= size.height else Size(longest, other)
    ratio = scaled.width / scaled.height
    if scaled.width >= scaled.height and scaled.width > LONGEST_SIDE:
        return Size(max(int(LONGEST_SIDE / ratio), 1), LONGEST_SIDE)
    if scaled.height > scaled.width and scaled.height > LONGEST_SIDE:
        return Size(LONGEST_SIDE, max(int(LONGEST_SIDE * ratio), 1))
    return scaled


def tile_counts(size: Size, tile: int) -> tuple[int, int]:
    """How many rows and columns of tiles a picture has once its sides are scaled up to multiples of a tile.

    First the longest side, then the other one at the same aspect ratio.
    """
    ratio = size.width / size.height
    if size.width >= size.height:
        columns = ceil(size.width / tile)
        return ceil(int(columns * tile / ratio) / tile), columns
    rows = ceil(size.height / tile)
    return rows, ceil(int(rows * tile * ratio) / tile)
