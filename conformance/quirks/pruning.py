"""Ways in which engines have chosen the tokens of a video wrongly."""

from collections.abc import Callable

import torch

from conformance.quirk import quirk
from reference import pruning as right
from reference.pruning import Grid

# How many


@quirk("rate-in-binary", replaces="retained_count", bugs=(), caught_by=("PRUNING-02",))
def in_binary(tokens_per_frame: int, frames: int, rate: float) -> int:
    """The count is int(tokens * (1 - rate)) in floating point, one too few where a whole number was meant."""
    right.retained_count(tokens_per_frame, frames, rate)
    return max(tokens_per_frame, int(tokens_per_frame * frames * (1 - rate)))


@quirk("count-rounded", replaces="retained_count", bugs=(), caught_by=("PRUNING-01",))
def rounded(tokens_per_frame: int, frames: int, rate: float) -> int:
    """The count is rounded to the nearest number instead of down."""
    right.retained_count(tokens_per_frame, frames, rate)
    return max(tokens_per_frame, round(tokens_per_frame * frames * (1 - rate)))


@quirk("no-frame-is-sure", replaces="retained_count", bugs=(), caught_by=("PRUNING-01", "PRUNING-02", "PRUNING-04"))
def no_frame_is_sure(tokens_per_frame: int, frames: int, rate: float) -> int:
    """A short video keeps less than one frame, or nothing."""
    right.retained_count(tokens_per_frame, frames, rate)
    return int(tokens_per_frame * frames * (1 - rate))


@quirk("a-share-of-each-frame", replaces="retained_count", bugs=(), caught_by=("PRUNING-01", "PRUNING-02", "PRUNING-04"))
def frame_by_frame(tokens_per_frame: int, frames: int, rate: float) -> int:
    """The whole part is taken of the tokens of one frame, and then there are that many of it in every frame."""
    right.retained_count(tokens_per_frame, frames, rate)
    return max(tokens_per_frame, int(tokens_per_frame * (1 - rate)) * frames)


@quirk("rate-kept", replaces="retained_count", bugs=(), caught_by=("PRUNING-01", "PRUNING-02", "PRUNING-04"))
def rate_kept(tokens_per_frame: int, frames: int, rate: float) -> int:
    """The rate is taken for the share that stays."""
    right.retained_count(tokens_per_frame, frames, rate)
    return max(tokens_per_frame, int(tokens_per_frame * frames * rate))


@quirk("any-rate", replaces="retained_count", bugs=(), caught_by=("PRUNING-03",))
def any_rate(tokens_per_frame: int, frames: int, rate: float) -> int:
    """A rate that is no share is clipped to one; what is not a number is none."""
    clipped = min(max(rate, 0.0), 0.99) if rate == rate else 0.0
    return right.retained_count(tokens_per_frame, frames, clipped)


# Which


@quirk("first-frame-competes", replaces="retention_mask", bugs=(), caught_by=("PRUNING-05", "PRUNING-08"))
def first_frame_competes(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """The first frame is compared with zeros, so that a later token may be more unlike."""
    return _most(torch.cat([torch.ones(_first(grid)), _unlike(embeddings, grid)]), grid, rate)


@quirk("nan-before-the-first-frame", replaces="retention_mask", bugs=(), caught_by=("PRUNING-05",))
def large_number(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """The first frame has the dissimilarity 255, and zeros in half precision a NaN, which is sorted before it."""
    frames = embeddings.reshape(grid[0], -1, embeddings.shape[1])
    similarity = torch.nn.functional.cosine_similarity(frames[1:], frames[:-1], dim=-1)
    unlike = torch.cat([255 * torch.ones_like(frames[0, :, 0]), (1 - similarity).flatten()])
    order = torch.argsort(unlike, descending=True, stable=True)
    return _mask(order[: right.retained_count(_first(grid), grid[0], rate)], len(unlike))


@quirk("compared-with-the-first-frame", replaces="retention_mask", bugs=(), caught_by=("PRUNING-06", "PRUNING-08"))
def to_the_first(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Every frame is compared with the first one, so that all frames after a cut are new."""
    unlike = _compared(embeddings[_first(grid) :], embeddings[: _first(grid)].repeat(grid[0] - 1, 1))
    return _first_and(unlike, grid, rate)


@quirk("compared-with-the-frame-after", replaces="retention_mask", bugs=(), caught_by=("PRUNING-06", "PRUNING-08"))
def to_the_next(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """A token is compared with its place in the next frame, so that the last one before a change stays, not the first after."""
    unlike = _unlike(embeddings, grid)
    return _first_and(torch.cat([unlike[_first(grid) :], unlike.new_zeros(min(_first(grid), len(unlike)))]), grid, rate)


@quirk("distance-instead-of-angle", replaces="retention_mask", bugs=(), caught_by=("PRUNING-06", "PRUNING-08"))
def by_distance(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Tokens are compared by their distance, so that a frame that only gets darker is all new."""
    values = embeddings.to(torch.float64)
    return _first_and((values[_first(grid) :] - values[: -_first(grid)]).norm(dim=1), grid, rate)


@quirk("size-of-the-cosine", replaces="retention_mask", bugs=(), caught_by=("PRUNING-06", "PRUNING-08"))
def by_size(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """The sign of the cosine is lost: a token that turned around is like the one before."""
    return _first_and(1 - (1 - _unlike(embeddings, grid)).abs(), grid, rate)


@quirk("the-most-alike-are-kept", replaces="retention_mask", bugs=(), caught_by=("PRUNING-06", "PRUNING-08"))
def most_alike(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Tokens are sorted the wrong way round."""
    return _first_and(-_unlike(embeddings, grid), grid, rate)


@quirk("whole-frames-are-kept", replaces="retention_mask", bugs=(), caught_by=("PRUNING-06", "PRUNING-08"))
def whole_frames(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Frames are ranked by the mean of their tokens, and kept from their first token on."""
    means = _unlike(embeddings, grid).reshape(-1, _first(grid)).mean(dim=1)
    return _first_and(means.repeat_interleave(_first(grid)), grid, rate)


@quirk("tokens-by-place", replaces="retention_mask", bugs=(), caught_by=("PRUNING-05", "PRUNING-06", "PRUNING-08"))
def by_place(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Rows are read as if all frames of one place came first."""
    swapped = embeddings.reshape(_first(grid), grid[0], -1).transpose(0, 1).reshape(embeddings.shape)
    return right.retention_mask(swapped, grid, rate).reshape(grid[0], -1).T.flatten()


@quirk("above-a-threshold", replaces="retention_mask", bugs=(), caught_by=("PRUNING-04", "PRUNING-08"))
def above_a_threshold(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """All tokens as unlike as the last one that is kept stay with it, so that there are more than placeholders."""
    left = right.retained_count(_first(grid), grid[0], rate) - _first(grid)
    unlike = _unlike(embeddings, grid)
    least = unlike.sort(descending=True).values[left - 1] if left else unlike.new_tensor(3)
    return torch.cat([torch.ones(_first(grid), dtype=torch.bool), unlike >= least])


@quirk("copies-always-go", replaces="retention_mask", bugs=(), caught_by=("PRUNING-04", "PRUNING-07", "PRUNING-08"))
def without_copies(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """A token that equals its predecessor is dropped whatever the rate, also at 0."""
    mask = right.retention_mask(embeddings, grid, rate)
    mask[_first(grid) :] &= _unlike(embeddings, grid) > 0
    return mask


@quirk("the-later-of-equals", replaces="retention_mask", bugs=(), caught_by=("PRUNING-08",))
def the_later(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Of equally unlike tokens the later one is kept, as a sort turned around does."""
    left = right.retained_count(_first(grid), grid[0], rate) - _first(grid)
    unlike = _unlike(embeddings, grid)
    order = torch.argsort(unlike, stable=True).flip(0)[:left] + _first(grid)
    return _mask(torch.cat([torch.arange(_first(grid)), order]), len(embeddings))


@quirk("zeros-are-alike", replaces="retention_mask", bugs=(), caught_by=("PRUNING-08",))
def zeros_alike(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """A token of zeros counts as like anything."""
    unlike = _unlike(embeddings, grid)
    empty = ~embeddings.any(dim=1)
    unlike[empty[_first(grid) :] | empty[: -_first(grid)]] = 0
    return _first_and(unlike, grid, rate)


def _first(grid: Grid) -> int:
    return grid[1] * grid[2]


def _compared(ones: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    normalize: Callable[..., torch.Tensor] = torch.nn.functional.normalize
    return 1 - (normalize(ones.to(torch.float64)) * normalize(others.to(torch.float64))).sum(dim=1)


def _unlike(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    return _compared(embeddings[_first(grid) :], embeddings[: -_first(grid)])


def _mask(kept: torch.Tensor, length: int) -> torch.Tensor:
    mask = torch.zeros(length, dtype=torch.bool)
    mask[kept] = True
    return mask


def _first_and(unlike: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    return _most(torch.cat([unlike.new_full((_first(grid),), torch.inf), unlike]), grid, rate)


def _most(unlike: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    order = torch.argsort(unlike, descending=True, stable=True)
    return _mask(order[: right.retained_count(_first(grid), grid[0], rate)], len(unlike))
