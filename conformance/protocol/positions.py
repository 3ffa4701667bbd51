"""M-RoPE positions: where each position of a prompt lies in time, height and width."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.returns import returns
from reference.items import Chunk, Item, MropeLayout


def triples(value: Any) -> NDArray[np.int64]:
    """An int64 array or tensor [3, n]."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 2 or len(value) != 3:
        raise answer.WrongAnswer("an int64 array [3, n]: time, height and width")
    return value


def axes(value: Any) -> NDArray[np.int64]:
    """An int64 array or tensor [n] of 0, 1 and 2."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1:
        raise answer.WrongAnswer("an int64 array [n]: the axis of each frequency")
    return value


def triples_and_delta(value: Any) -> tuple[NDArray[np.int64], int]:
    """A pair: an int64 array or tensor [3, n], and an int."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise answer.WrongAnswer("a pair: an int64 array [3, n] and an int")
    return triples(value[0]), answer.integer(value[1])


FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v", "qwen2_5_omni", "qwen3_omni_moe")
"""transformers' `model_type` of the models whose positions the suite knows."""


class Positions(Protocol):
    """M-RoPE positions: where each position of a prompt lies in time, height and width."""

    @returns(triples_and_delta)
    def positions(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout
    ) -> tuple[NDArray[np.int64], int]:
        """The time, height and width int64 [3, n] of each position of a prompt, and its delta: the largest + 1 - n.

        input_ids: int64 [n], at least one, expanded, with the layout's placeholder id at media and its tokens around them.
        items: in any order. A picture has the field `image_grid_thw`, a video `video_grid_thw`: frames, height and
        width in patches (a tuple of ints). With `layout.tokens_per_second` a video has `second_per_grid_ts` as well, a
        float. A picture is one span; a video is one span, or with `layout.frames_apart` one for each frame.

        Text counts up alike on all three axes, and goes on behind media at their largest number + 1. Media begin at
        the largest number before them + 1: frames count along time (with `tokens_per_second`: frame * seconds * tokens
        per second, cut off), rows along height, columns along width. Each span of a video whose frames are apart
        counts from anew. A recording counts as text does. It has the field `audio_feature_lengths`, an int: how long its
        spectrogram is, for engines that count its positions from that.

        A video with the field `use_audio_in_video` (true) and the recording that begins in it, or right behind it, fill
        positions without a gap between a start token of each and an end token of each, in spans that take turns. Both
        count from the same number on, and text goes on behind the largest number of both.

        The families are those of `FAMILIES`. An engine says in the trait `numbered_families` which of them it numbers.

        Raises an error for an item without a grid and for a grid that does not fill its spans.
        """

    @returns(triples)
    def extend_positions(self, triples: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """The positions [3, n] of a prompt, n >= 1, extended by text to `length` positions, at least n: int64 [3, length].

        As after a retraction, when the reply so far is computed again as a part of the prompt.
        """

    @returns(triples)
    def stitch_positions(self, previous: NDArray[np.int64], turn: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions [3, m] of the turns before, and behind them a turn [3, n] that was numbered by itself, from 0.

        Both may be empty. Where a reply lies between them, it has been added to `previous` by `extend_positions`.
        """

    @returns(triples)
    def chunk_positions(self, triples: NDArray[np.int64], chunk: Chunk) -> NDArray[np.int64]:
        """The positions of a chunk of a prompt, int64 [3, chunk.length].

        The chunk has at least one position, and ends with the prompt at the latest.
        """

    @returns(axes)
    def rotary_axes(self, sections: tuple[int, int, int], interleaved: bool) -> NDArray[np.int64]:
        """Which axis of a triple rotates each frequency, 0 time, 1 height, 2 width: int64 [sum of the sections].

        sections: how many frequencies time, height and width rotate (`mrope_section`), from the highest frequency on.
        interleaved: False: all of time, then height, then width. True (Qwen3-VL, `mrope_interleaved`): time, height and
        width take turns, as long as height and width have any left; the rest is time's.
        """
