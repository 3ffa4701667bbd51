"""Pruning: efficient video sampling, which drops the tokens of a video that look like those of the frame before.

A token is compared with the one at the same place in the previous frame; of all tokens of a video the most unlike ones
are kept. How many is known before the video was looked at, which ones only after it was encoded.

1. The number of tokens that are kept follows from the grid and the rate alone, so that the length of the prompt, its
   KV memory and its schedule are settled before the encoder runs. The rate is the decimal that was written: 0.9 of ten
   tokens leaves one, which binary arithmetic makes none (10 * (1 - 0.9) is 0.9999...).
2. The first frame is kept whole, by construction and not by a large number that something else might exceed: every
   later token is told by what it adds to it. There is always a first frame, so no video vanishes.
3. Ties keep the earlier token: the mask is a function of the embeddings, equal on every machine and every time. A zero
   vector has no direction and counts as unlike anything, 1 - 0.
4. A frame has as many positions as the mask kept of it, never an even share: with text between the frames, a share puts
   rows under the timestamps of other frames. A span is cut behind, so that it begins with the first sentinel still.
5. A token that is kept keeps its position, and so does all text: pruning takes columns out of the position table and
   moves nothing, so that the model sees the same distances. The delta grows by what was taken out.
6. The encoder cache holds what the encoder gave, and the mask is taken again from it: no counts travel beside a tensor,
   and an entry does not depend on the rate. Where rates differ between requests, the rate belongs among the fields of
   an item, for pruned ids of two rates may be alike.

Source: the paper arXiv 2510.14624; SGLang 0.5.23, `srt/multimodal/evs`; vLLM 0.33.0, `multimodal/video_prune/evs.py`.
Disagreements: both compute the count in binary floating point, one token below in some cases. SGLang fills spans with
one sentinel instead of four, redistributes only where the batch is one request, and fails where a video has one span.
vLLM lets text continue at the width of the video's grid and not behind its largest position, which is less where a
video has more frames than columns.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from reference.items import Item, Span, all_spans, check_within

Grid: TypeAlias = tuple[int, int, int]
"""Frames, height and width of a video in tokens, after the spatial merge."""

Mask: TypeAlias = Sequence[bool] | NDArray[np.bool_] | torch.Tensor
"""For each token of an item, in the order of its positions, whether it is kept."""


def retained_count(tokens_per_frame: int, frames: int, rate: float) -> int:
    """How many of `tokens_per_frame` * `frames` tokens are kept: those of one frame at least, else the whole part of
    (1 - rate) of them, with `rate` as the decimal that it is written as.

    Raises ValueError unless 0 <= rate < 1, tokens_per_frame >= 1 and frames >= 1.
    """
    if tokens_per_frame < 1 or frames < 1:
        raise ValueError(f"a video has at least 1 frame of 1 token, not {frames} of {tokens_per_frame}")
    return max(tokens_per_frame, int(tokens_per_frame * frames * (1 - _exact(rate))))


def retention_mask(embeddings: torch.Tensor, grid: Grid, rate: float) -> torch.Tensor:
    """Which tokens of a video are kept: bool [frames * height * width], `retained_count` of them True.

    embeddings: [frames * height * width, hidden], what the encoder gave: by frame, then by row, then by column.

    The first frame is kept whole; then those with the largest 1 - cosine to the token at the same place of the previous
    frame, of equals the earlier one. Raises ValueError for another number of rows, and as `retained_count`.
    """
    frames, height, width = grid
    count = retained_count(height * width, frames, rate)
    if embeddings.ndim != 2 or len(embeddings) != frames * height * width:
        raise ValueError(
            f"the embeddings of a grid {tuple(grid)} have {frames * height * width} rows: {list(embeddings.shape)}"
        )
    directions = torch.nn.functional.normalize(embeddings.detach().to(torch.float64), dim=1)
    previous, current = directions[: -height * width], directions[height * width :]
    unlike = 1 - (previous * current).sum(dim=1)
    mask = torch.zeros(len(embeddings), dtype=torch.bool, device=embeddings.device)
    mask[: height * width] = True
    mask[height * width + torch.argsort(unlike, descending=True, stable=True)[: count - height * width]] = True
    return mask


def prune_prompt(
    input_ids: NDArray[np.int64], items: Sequence[Item], masks: Sequence[Mask | None]
) -> tuple[NDArray[np.int64], tuple[tuple[Span, ...], ...]]:
    """The prompt without the positions of pruned tokens, and the spans that each item has in it.

    input_ids: int64 [n], with a placeholder or sentinel for each token before pruning.
    masks: one an item; None where nothing is pruned.

    Of each span the first ids stay, as many as its mask keeps; all text stays. A span of which nothing is kept is not
    among the new ones. Raises ValueError when masks and items do not match, or spans overlap or leave the prompt.
    """
    masks = _checked(items, masks, len(input_ids))
    counts = [_counts(item, mask) for item, mask in zip(items, masks, strict=True)]
    stays = np.ones(len(input_ids), dtype=np.bool_)
    for item, kept in zip(items, counts, strict=True):
        for span, count in zip(item.spans, kept, strict=True):
            stays[span.first + count : span.stop] = False
    moved: NDArray[np.int64] = np.cumsum(stays) - stays
    spans = (
        tuple(_span(int(moved[span.first]), count) for span, count in zip(item.spans, kept, strict=True) if count)
        for item, kept in zip(items, counts, strict=True)
    )
    return input_ids[stays], tuple(spans)


def prune_positions(
    positions: NDArray[np.int64], items: Sequence[Item], masks: Sequence[Mask | None]
) -> tuple[NDArray[np.int64], int]:
    """The positions of the pruned prompt, int64 [axes, m], and its delta: the next token stands at m + delta.

    positions: int64 [axes, n], those of the prompt before pruning.
    masks: one an item; None where nothing is pruned.

    Raises ValueError as `prune_prompt`, and for a prompt without positions.
    """
    masks = _checked(items, masks, positions.shape[1])
    stays = np.ones(positions.shape[1], dtype=np.bool_)
    for item, mask in zip(items, masks, strict=True):
        for span, part in zip(item.spans, np.split(mask, np.cumsum([len(span) for span in item.spans])), strict=False):
            stays[span.first : span.stop] = part
    kept = positions[:, stays]
    if kept.size == 0:
        raise ValueError("a prompt without positions has no largest one, and so no delta")
    return kept, int(kept.max()) + 1 - kept.shape[1]


def _exact(rate: float) -> Fraction:
    """The rate as the decimal that was written: the shortest one that this number stands for."""
    try:
        written = Fraction(str(rate))
    except ValueError:
        raise ValueError(f"a pruning rate is a number, not {rate!r}") from None
    if not 0 <= written < 1:
        raise ValueError(f"a pruning rate lies from 0 up to but not including 1, not at {rate}")
    return written


def _checked(items: Sequence[Item], masks: Sequence[Mask | None], length: int) -> list[NDArray[np.bool_]]:
    """A mask for every item, after a check that each has one bit a token."""
    check_within(all_spans(items), length)
    if len(masks) != len(items):
        raise ValueError(f"{len(items)} items have one mask each, not {len(masks)}")
    checked = []
    for number, (item, mask) in enumerate(zip(items, masks, strict=True)):
        bits = np.ones(item.token_count, dtype=np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)
        if bits.shape != (item.token_count,):
            raise ValueError(f"item {number} has {item.token_count} tokens, but its mask has the shape {list(bits.shape)}")
        checked.append(bits)
    return checked


def _counts(item: Item, mask: NDArray[np.bool_]) -> list[int]:
    """How many tokens of each span are kept."""
    before = np.concatenate([[0], np.cumsum(mask)])
    ends = np.cumsum([0, *map(len, item.spans)])
    counts: list[int] = np.diff(before[ends]).tolist()
    return counts


def _span(first: int, count: int) -> Span:
    return Span(first, first + count - 1)
