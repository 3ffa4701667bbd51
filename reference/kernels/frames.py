"""How unlike each token of a video is to the one at its place in the frame before: what efficient video sampling ranks by.

The arithmetic is that of `reference.pruning.dissimilarity`, to the bit; here it is one pass on a GPU.
"""

import torch

from reference import pruning
from reference.kernels.dispatch import Computed, Path, path_of
from reference.pruning import Grid

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def dissimilarity(embeddings: torch.Tensor, grid: Grid) -> Computed[torch.Tensor]:
    """1 - cosine of each token and its predecessor: float64 [frames * height * width]; infinity in the first frame.

    embeddings: [frames * height * width, hidden], what the encoder gave: by frame, then by row, then by column.

    Raises TypeError for other dtypes than float32, bfloat16 and float16, ValueError for another number of rows.
    """
    path = path_of(embeddings=embeddings)
    if embeddings.dtype not in DTYPES:
        raise TypeError(f"embeddings are {embeddings.dtype}, and not one of {DTYPES}")
    if path is Path.CPU:
        return Computed(pruning.dissimilarity(embeddings, grid), path)
    from reference.kernels.device.frames import compare

    pruning.check_grid(embeddings, grid)
    return Computed(compare(embeddings, grid[1] * grid[2]), path)
