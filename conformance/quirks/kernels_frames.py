"""Ways in which tokens of a video have been compared wrongly."""

import torch

from conformance.quirk import quirk
from reference.kernels import frames as right
from reference.pruning import Grid


@quirk("frames-compared-with-the-first", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-32", "KERNELS-33"))
def to_the_first(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Every frame is compared with the first one."""
    unlike = right.dissimilarity(embeddings, grid).value
    first = grid[1] * grid[2]
    for start in range(first, len(embeddings), first):
        both = torch.cat([embeddings[:first], embeddings[start : start + first]])
        unlike[start : start + first] = right.dissimilarity(both, (2, *grid[1:])).value[first:]
    return unlike


@quirk("frames-compared-by-place", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-32", "KERNELS-33"))
def by_place(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """A token is compared with the one before it in its own frame."""
    right.dissimilarity(embeddings, grid)
    unlike = right.dissimilarity(embeddings, (len(embeddings), 1, 1)).value
    unlike[: grid[1] * grid[2]] = torch.inf
    return unlike


@quirk("frames-compared-without-a-sign", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-32",))
def by_size(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The sign of the cosine is lost."""
    unlike = right.dissimilarity(embeddings, grid).value
    return torch.where(unlike > 2, unlike, 1 - (1 - unlike).abs())


@quirk("frames-compared-in-their-own-dtype", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-33", "KERNELS-35"))
def in_their_dtype(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Cosines are computed in half precision where the tokens are: a quiet video is noise, and zeros are NaN."""
    right.dissimilarity(embeddings, grid)
    rows, first = embeddings.reshape(grid[0], -1, embeddings.shape[1]), grid[1] * grid[2]
    squares = rows.square().sum(dim=2)
    cosine = (rows[1:] * rows[:-1]).sum(dim=2) / (squares[1:] * squares[:-1]).sqrt()
    return torch.cat([torch.full((first,), torch.inf, dtype=rows.dtype, device=rows.device), (1 - cosine).flatten()])


@quirk("first-frame-compared-with-zeros", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-34",))
def first_with_zeros(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The first frame is compared with zeros, so that a later token may be more unlike."""
    unlike = right.dissimilarity(embeddings, grid).value
    return torch.where(unlike > 2, 1, unlike)


@quirk("zero-tokens-are-alike", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-35",))
def zeros_alike(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """A token of zeros counts as like anything."""
    unlike = right.dissimilarity(embeddings, grid).value
    empty, first = ~embeddings.any(dim=1), grid[1] * grid[2]
    unlike[first:][empty[first:] | empty[:-first]] = 0
    return unlike


@quirk("two-roots", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-36", "KERNELS-37"))
def two_roots(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Both tokens are divided by their lengths first, so that a copy is not quite its original."""
    right.dissimilarity(embeddings, grid)
    first, rows = grid[1] * grid[2], embeddings.to(torch.float64)
    directions = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-300)
    unlike = 1 - (directions[first:] * directions[:-first]).sum(dim=1)
    return torch.cat([torch.full((first,), torch.inf, dtype=torch.float64, device=rows.device), unlike])


@quirk("lanes-in-another-order", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-37",))
def another_order(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Products are added in an order of the device's own: the sum is as good, and its bits are others."""
    return right.dissimilarity(embeddings.flip(1), grid).value


@quirk("tokens-by-dense-strides", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-38",))
def dense_strides(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Tokens are read as if they lay one behind the other."""
    flat = torch.empty(0, dtype=embeddings.dtype, device=embeddings.device).set_(embeddings.untyped_storage())
    read = flat[embeddings.storage_offset() :].repeat(embeddings.numel() + 1)[: embeddings.numel()]
    return right.dissimilarity(read.reshape(embeddings.shape), grid).value


@quirk("tokens-of-any-grid", replaces="dissimilarity", bugs=("evs-video-then-image-mrope",), caught_by=("KERNELS-39",))
def any_grid(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Nobody counts the tokens: what is missing are zeros, and what is too much is dropped."""
    rows = embeddings.reshape(-1, embeddings.shape[-1])
    count = max(grid[0] * grid[1] * grid[2], 1)
    enough = torch.cat([rows, rows.new_zeros(count, rows.shape[1])])[:count]
    return right.dissimilarity(enough, grid if min(grid) else (1, 1, 1)).value


@quirk("lanes-on-the-default-device", replaces="dissimilarity", bugs=("H20",), caught_by=("KERNELS-40",))
def elsewhere(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """What the kernel writes to is made on the default device, and not where the tokens lie."""
    unlike = right.dissimilarity(embeddings, grid).value
    return torch.empty(unlike.shape, dtype=unlike.dtype).copy_(unlike)


@quirk("squares-in-32-bits", replaces="dissimilarity", bugs=(), caught_by=("KERNELS-37", "KERNELS-41"))
def squares_in_32_bits(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """Sums of squares are kept in 32 bits: those of long tokens are infinite, and those of short ones vanish."""
    right.dissimilarity(embeddings, grid)
    rows, first = embeddings.to(torch.float32), grid[1] * grid[2]
    squares = rows.square().sum(dim=1)
    product = squares[first:] * squares[:-first]
    cosine = (rows[first:] * rows[:-first]).sum(dim=1) / torch.where(product == 0, 1, product).sqrt()
    return torch.cat([torch.full((first,), torch.inf, device=rows.device), 1 - cosine])
