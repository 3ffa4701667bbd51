"""Pruning: efficient video sampling, which drops the tokens of a video that look like those of the frame before.

A token is compared with the one at the same place in the previous frame; of all tokens of a video the most unlike ones
are kept. How many is known before the video was looked at, which ones only after it was encoded.

1. The number of tokens that are kept follows from the grid and the rate alone, so that the length of the prompt, its
   KV memory and its schedule are settled before the encoder runs. The rate is the decimal that was written: 0.9 of ten
   tokens leaves one, which binary arithmetic makes none (10 * (1 - 0.9) is 0.9999...).
2. The first frame is kept whole, by construction and not by a large number that something else might exceed: every
   later token is told by what it adds to it. There is always a first frame, so no video vanishes.
3. Ties keep the earlier token: the mask is a function of the embeddings, equal on every machine and every time. A zero
   vector has no direction and counts as unlike anything, 1 - 0. Cosines are computed in 64 bits, where a product of two
   numbers of 32 bits is exact and no length overflows, and their products are added in one order: the k-th goes to lane
   k mod 128, and then neighbouring lanes are added until one is left. The product of both squared lengths has one root, so
   that a token which equals its predecessor is unlike it by exactly 0.
4. A frame has as many positions as the mask kept of it, never an even share: with text between the frames, a share puts
   rows under the timestamps of other frames. A span is cut behind, so that it begins with the first sentinel still.
5. A token that is kept keeps its position, and so does all text: pruning takes columns out of the position table and
   moves nothing, so that the model sees the same distances. The delta grows by what was taken out.
6. A step encodes the items that its chunk may touch, which is known beforehand by point 1; then their masks say where
   the chunk lies in them. Every request is laid out by itself, with its own counts, whatever else is in the batch.
7. The encoder cache holds what the encoder gave, and the mask is taken again from it: no counts travel beside a tensor,
   and an entry does not depend on the rate. Where rates differ between requests, the rate belongs among the fields of
   an item, for pruned ids of two rates may be alike.

Source: the paper arXiv 2510.14624; SGLang 0.5.23, `srt/multimodal/evs`; vLLM 0.33.0, `multimodal/video_prune/evs.py`.
Disagreements: both compute the count in binary floating point, one token below in some cases. SGLang fills spans with
one sentinel instead of four, redistributes only where the batch is one request, and fails where a video has one span.
vLLM lets text continue at the width of the video's grid and not behind its largest position, which is less where a
video has more frames than columns.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from reference.encoder_cache import EncoderCache
from reference.encoding import Encoder, EncodingError, encode, slice_chunk
from reference.items import Chunk, Item, Modality, Request, Span, all_spans, check_disjoint, check_within

Grid: TypeAlias = tuple[int, int, int]
"""Frames, height and width of a video in tokens, after the spatial merge."""

LANES = 128
"""How many sums the products of two tokens are added up in, before these are added."""

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
    unlike = dissimilarity(embeddings, grid)[height * width :]
    mask = torch.zeros(len(embeddings), dtype=torch.bool, device=embeddings.device)
    mask[: height * width] = True
    mask[height * width + torch.argsort(unlike, descending=True, stable=True)[: count - height * width]] = True
    return mask


def dissimilarity(embeddings: torch.Tensor, grid: Grid) -> torch.Tensor:
    """1 - cosine of each token and the one at its place in the previous frame: float64 [frames * height * width].

    embeddings: as for `retention_mask`. The tokens of the first frame have infinity.

    Raises ValueError for another number of rows.
    """
    check_grid(embeddings, grid)
    first = grid[1] * grid[2]
    rows = embeddings.detach()
    squares = torch.zeros(len(rows), LANES, dtype=torch.float64, device=rows.device)
    products = torch.zeros(len(rows) - first, LANES, dtype=torch.float64, device=rows.device)
    for start in range(0, rows.shape[1], LANES):
        part = rows[:, start : start + LANES].to(torch.float64)
        squares[:, : part.shape[1]] += part * part
        products[:, : part.shape[1]] += part[:-first] * part[first:]
    lengths, both = _add_up(squares), _add_up(products)
    scale = lengths[:-first] * lengths[first:]
    root = np.sqrt(torch.where(scale == 0, 1, scale).cpu().numpy())  # torch's is not always the nearest number on a CPU
    unlike = torch.full((len(rows),), torch.inf, dtype=torch.float64, device=rows.device)
    unlike[first:] = 1 - both / torch.from_numpy(root).to(rows.device)
    return unlike


def check_grid(embeddings: torch.Tensor, grid: Grid) -> None:
    """Raise ValueError for a grid without tokens, and for embeddings that are not its rows."""
    if min(grid) < 1:
        raise ValueError(f"a video has at least 1 frame of 1 token, not {tuple(grid)}")
    if embeddings.ndim != 2 or len(embeddings) != grid[0] * grid[1] * grid[2]:
        raise ValueError(
            f"the embeddings of a grid {tuple(grid)} have {grid[0] * grid[1] * grid[2]} rows: {list(embeddings.shape)}"
        )


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


def encode_pruned(
    batch: Sequence[tuple[Request, Chunk]],
    encoders: Mapping[Modality, Encoder],
    cache: EncoderCache | None,
    rate: float,
) -> list[tuple[NDArray[np.int64], torch.Tensor] | EncodingError]:
    """`encode` for a step in which videos are pruned: for each request the ids int64 [chunk.length] and the rows of its
    chunk, [positions of media in the chunk, hidden], by position.

    batch: requests as they are before pruning; the chunks count positions of the pruned prompt. Videos have the field
    `video_grid_thw`, of which only the number of frames is looked at. Items are encoded and cached whole.

    A request that cannot be served has an EncodingError in its place: as with `encode`, and for a chunk outside the
    pruned prompt, a video without frames, and items that lie between the frames of another. Raises ValueError unless
    0 <= rate < 1.
    """
    _exact(rate)
    plans = [_plan(request, chunk, rate) for request, chunk in batch]
    asked = [(request, _cover(plan)) for (request, _), plan in zip(batch, plans, strict=True)]
    answers: list[tuple[NDArray[np.int64], torch.Tensor] | EncodingError] = []
    for (request, chunk), plan, rows in zip(batch, plans, encode(asked, encoders, cache), strict=True):
        if isinstance(plan, EncodingError):
            answers.append(plan)
        elif isinstance(rows, EncodingError):
            answers.append(rows)
        else:
            answers.append(_prune_step(request, chunk, rate, plan, rows))
    return answers


def _add_up(lanes: torch.Tensor) -> torch.Tensor:
    """The sum of each row of lanes: neighbours are added, until one number is left."""
    while lanes.shape[1] > 1:
        lanes = lanes[:, 0::2] + lanes[:, 1::2]
    return lanes[:, 0]


def _exact(rate: float) -> Fraction:
    """The rate as the decimal that was written: the shortest one that this number stands for."""
    try:
        written = Fraction(str(rate))
    except ValueError:
        raise ValueError(f"a pruning rate is a number, not {rate!r}") from None
    if not 0 <= written < 1:
        raise ValueError(f"a pruning rate lies from 0 up to but not including 1, not at {rate}")
    return written


def _retained(item: Item, rate: float) -> int:
    """How many tokens of an item are kept."""
    if item.modality is not Modality.VIDEO:
        return item.token_count
    return retained_count(item.token_count // _frames(item), _frames(item), rate)


def _frames(video: Item) -> int:
    frames = int(video.read("video_grid_thw")[0])
    if frames < 1 or video.token_count % frames:
        raise ValueError(f"the {video.token_count} tokens of a video are no {frames} frames")
    return frames


def _plan(request: Request, chunk: Chunk, rate: float) -> list[Item] | EncodingError:
    """The items, by position, that a chunk of the pruned prompt may touch: how far each one reaches there is known
    without its mask, for the retained count is."""
    try:
        items = sorted((item for item in request.items if item.spans), key=lambda item: item.spans[0])
        check_disjoint([Span(item.spans[0].first, item.spans[-1].last) for item in items])
        needed, gone = [], 0
        for item in items:
            first = item.spans[0].first - gone
            gone += item.token_count - _retained(item, rate)
            if first < chunk.stop and chunk.prefix <= item.spans[-1].last - gone:
                needed.append(item)
        if chunk.stop > len(request.input_ids) - gone:
            raise ValueError(f"{chunk} ends outside a pruned prompt of {len(request.input_ids) - gone} positions")
    except (ValueError, KeyError) as error:
        return EncodingError(f"request {request.id}: {error}")
    return needed


def _cover(plan: list[Item] | EncodingError) -> Chunk:
    """The part of the prompt before pruning in which all of these items lie, and no others."""
    if isinstance(plan, EncodingError) or not plan:
        return Chunk(0, 0)
    first = plan[0].spans[0].first
    return Chunk(first, plan[-1].spans[-1].stop - first)


def _prune_step(
    request: Request, chunk: Chunk, rate: float, needed: list[Item], rows: torch.Tensor
) -> tuple[NDArray[np.int64], torch.Tensor]:
    """The ids and rows of a chunk, from the rows of all items that it may touch.

    Of any other video only the number of tokens matters, and not which of them are kept.
    """
    whole = dict(zip(needed, torch.split(rows, [item.token_count for item in needed]), strict=True)) if needed else {}
    masks: list[torch.Tensor | None] = []
    for item in request.items:
        if item.modality is not Modality.VIDEO:
            masks.append(None)
        elif item in whole:
            frames = _frames(item)
            masks.append(retention_mask(whole[item], (frames, 1, item.token_count // frames), rate))
        else:
            masks.append(torch.arange(item.token_count) < _retained(item, rate))
    ids, spans = prune_prompt(request.input_ids, request.items, [None if mask is None else mask.cpu() for mask in masks])
    parts = {
        item: slice_chunk(whole[item] if mask is None else whole[item][mask], new, chunk)
        for item, mask, new in zip(request.items, masks, spans, strict=True)
        if item in whole
    }
    return ids[chunk.prefix : chunk.stop], torch.cat([parts[item] for item in needed]) if needed else rows


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
