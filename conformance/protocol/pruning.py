"""Efficient video sampling: which tokens of a video are kept."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.protocol.encoder_cache import EncoderCache
from conformance.protocol.encoding import Encoder
from conformance.returns import WrongAnswer, returns
from reference.items import Chunk, Item, Modality, Request, Span


def mask(value: Any) -> NDArray[np.bool_]:
    """A one-dimensional array of bools: a list, numpy or torch."""
    bits = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    if bits.dtype != np.bool_ or bits.ndim != 1:
        raise WrongAnswer("a one-dimensional array of bools")
    return bits


def pruned_prompt(value: Any) -> tuple[NDArray[np.int64], tuple[tuple[Span, ...], ...]]:
    """A pair: int64 [m], and for each item its spans."""
    if not isinstance(value, list | tuple) or len(value) != 2 or not isinstance(value[1], list | tuple):
        raise WrongAnswer("a pair: int64 [m], and for each item its spans")
    return answer.int64_array(value[0]), tuple(map(answer.spans, value[1]))


def pruned_positions(value: Any) -> tuple[NDArray[np.int64], int]:
    """A pair: int64 [3, m] and an int."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise WrongAnswer("a pair: int64 [3, m] and a delta")
    table = value[0].detach().cpu().numpy() if isinstance(value[0], torch.Tensor) else value[0]
    if not isinstance(table, np.ndarray) or table.dtype != np.int64 or table.ndim != 2 or len(table) != 3:
        raise WrongAnswer("a pair: int64 [3, m] and a delta")
    return table, answer.integer(value[1])


def ids_and_rows_or_error_each(value: Any) -> tuple[tuple[NDArray[np.int64], torch.Tensor] | Exception, ...]:
    """For each request a pair, int64 [n] and a tensor [rows, hidden], or the exception that failed it."""
    found: list[tuple[NDArray[np.int64], torch.Tensor] | Exception] = []
    for one in value if isinstance(value, list | tuple) else (None,):
        if not isinstance(one, Exception) and (not isinstance(one, tuple | list) or len(one) != 2):
            raise WrongAnswer("for each request a pair, int64 [n] and a tensor [rows, hidden], or an exception")
        found.append(one if isinstance(one, Exception) else (answer.int64_array(one[0]), answer.rows(one[1])))
    return tuple(found)


class Pruning(Protocol):
    """Efficient video sampling: which tokens of a video are kept.

    A grid is (frames, height, width) in tokens, after the spatial merge. The tokens of a video are ordered by frame, then
    by row, then by column. A rate is the share of tokens that go: 0 <= rate < 1, anything else is a ValueError.
    """

    @returns(answer.integer)
    def retained_count(self, tokens_per_frame: int, frames: int, rate: float) -> int:
        """How many tokens of a video are kept, known from its grid alone: max(tokens_per_frame, the whole part of
        tokens_per_frame * frames * (1 - rate))."""

    @returns(mask)
    def retention_mask(self, embeddings: torch.Tensor, grid: tuple[int, int, int], rate: float) -> NDArray[np.bool_]:
        """Which tokens are kept: bool [frames * height * width], `retained_count` of them True.

        embeddings: [frames * height * width, hidden], what the encoder gave.
        The first frame is kept whole, and then the tokens with the largest 1 - cosine to the token at the same place of
        the previous frame.
        """

    @returns(pruned_prompt)
    def prune_prompt(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], masks: Sequence[NDArray[np.bool_] | None]
    ) -> tuple[NDArray[np.int64], tuple[tuple[Span, ...], ...]]:
        """The prompt without the positions of pruned tokens, int64 [m] in a new array, and for each item its spans in it.

        input_ids: int64 [n], with a placeholder id for each token before pruning, or as this engine's `pad_spans` made it.
        items: in any order, of any modality. The spans of a video are its frames, or one span is all of them.
        masks: one an item, bool [token_count]: which of its tokens are kept; None where nothing is pruned.

        Each span has as many positions as tokens of it are kept, in place of the old ones; one of which nothing is kept is
        not among the spans. Raises ValueError for a mask of another length.
        """

    @returns(pruned_positions)
    def prune_positions(
        self, positions: NDArray[np.int64], items: Sequence[Item], masks: Sequence[NDArray[np.bool_] | None]
    ) -> tuple[NDArray[np.int64], int]:
        """The M-RoPE positions of the pruned prompt, int64 [3, m], and the delta: the token after it stands at m + delta.

        positions: int64 [3, n], those of the prompt before pruning. items and masks as in `prune_prompt`, of which
        something is kept. A token that is kept has the position that it had, relative to the text before it.
        """

    @returns(ids_and_rows_or_error_each)
    def encode_pruned(
        self,
        batch: Sequence[tuple[Request, Chunk]],
        encoders: Mapping[Modality, Encoder],
        cache: EncoderCache | None,
        rate: float,
    ) -> Sequence[tuple[NDArray[np.int64], torch.Tensor] | Exception]:
        """`encode` for a step of an engine that prunes videos: for each request the ids of its chunk, int64
        [chunk.length], and its rows, [positions of media in the chunk, hidden], by position.

        batch: requests as before pruning, with a placeholder for each token that the encoder gives; the chunks count
        positions of the pruned prompt, and end within it. A video has the field `video_grid_thw`, a tuple of ints whose
        first is its number of frames, all of as many tokens. One item ends before the next begins.
        encoders: give all rows of an item, before pruning.
        cache: what this engine's `open_encoder_cache` gave, or None.

        Where the chunk has no media there are 0 rows, of any width. A request whose rows cannot be had has an exception
        in its place, and other requests are served.
        """
