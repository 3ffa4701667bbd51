"""The operations that engines move onto a GPU, each by itself."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from conformance import returns as answer
from conformance.returns import WrongAnswer, returns
from reference.items import Chunk, Span


def mask(value: Any) -> torch.Tensor:
    """A tensor [positions] of bools."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.bool or value.ndim != 1 or value.device.type == "meta":
        raise WrongAnswer("a tensor [positions] of bools")
    return value.detach().cpu()


def turned(value: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A pair of tensors [positions, heads, head_dim]: queries and keys."""
    pair = list(value) if isinstance(value, list | tuple) else []
    if len(pair) != 2 or not all(isinstance(one, torch.Tensor) and one.ndim == 3 and one.device.type != "meta" for one in pair):
        raise WrongAnswer("a pair of tensors [positions, heads, head_dim]: queries and keys")
    return pair[0].detach().cpu(), pair[1].detach().cpu()


def numbers(value: Any) -> torch.Tensor:
    """A tensor [tokens] of floating point numbers."""
    kind = value.is_floating_point() and value.ndim == 1 if isinstance(value, torch.Tensor) else False
    if not kind or value.device.type == "meta":
        raise WrongAnswer("a tensor [tokens] of floating point numbers")
    tensor: torch.Tensor = value.detach().cpu()
    return tensor


ROTATIONS = ("contiguous-halves", "interleaved-halves", "contiguous-neighbours", "interleaved-neighbours", "table")
"""The forms of M-RoPE: how the sections lie, and what is a pair; and "table": positions are looked up in a table."""


class Kernels(Protocol):
    """The operations that engines move onto a GPU, each by itself.

    The suite gives tensors on a CPU, in any memory layout, and an adapter brings them to its device; answers may lie
    anywhere. Tensors of one call lie on one device; those of several, and tensors without memory, are refused.
    """

    @returns(answer.integer)
    def word_hash(self, tensor: torch.Tensor) -> int:
        """The unsigned 64-bit hash of SGLang's kernel (`gpu_tensor_hash`), of the bytes of a tensor in the order of its
        elements: little-endian words of 32 bits, the last one filled up with zeros. Without any byte it is 0."""

    @returns(answer.octets)
    def content_digest(self, tensor: torch.Tensor) -> bytes:
        """The BLAKE3 digest, 32 bytes, of the bytes of a tensor in the order of its elements, of none as well."""

    @returns(mask)
    def placeholder_mask(self, input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
        """Which ids are sentinels: bool [n].

        input_ids: int32 or int64 [n], n may be 0. sentinels: int64 [k], ascending, without repeats; k may be 0.
        """

    @returns(mask)
    def span_mask(self, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """Which positions of a chunk lie in a span of the prompt: bool [chunk.length]. Spans are disjoint, in any order."""

    @returns(answer.rows)
    def scatter_rows(self, destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """A new tensor: `destination` [n, hidden] with the k-th of `rows` [m, hidden] at the k-th True of `mask`, bool [n].

        All of one dtype, which may be any. Another number or width of rows is an error.
        """

    @returns(answer.rows_and_levels)
    def fused_merge(
        self, input_ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What enters the language model for one chunk: [chunk.length, hidden] and [levels, chunk.length, hidden].

        input_ids: of the chunk, int32 or int64 [chunk.length]; whatever they are at positions of media.
        spans: of the whole prompt, inclusive, disjoint, in any order; they say which positions are media.
        rows: [positions of media in the chunk, hidden * (1 + levels)], by position; levels may be 0.
        table: the text embeddings [vocabulary, hidden], of the dtype of the rows, which may be any.

        Media get their row: its first `hidden` columns, and level by level the others. Text gets the embedding of its id,
        and zeros in all levels; an id outside of the table is clamped into it (to 0, or to the last one), or refused.
        Another number or width of rows, and spans that overlap, are errors.
        """

    @returns(turned)
    def apply_mrope(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        positions: torch.Tensor,
        table: torch.Tensor,
        sections: tuple[int, int, int],
        interleaved: bool,
        neighbours: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries and keys turned by the triples of their positions: new tensors of their shapes and dtype.

        query: [n, heads, head_dim]. key: [n, kv_heads, head_dim]. Both float32, bfloat16 or float16; n may be 0.
        positions: int64 [3, n]: time, height and width, each from 0 to below the length of the table.
        table: [positions, rotary_dim], float32 or of the dtype of the heads: the cosine of each frequency, then its sine.
        sections: how many frequencies time, height and width rotate: rotary_dim / 2 in all. interleaved: whether the axes
        take turns (see `rotary_axes`).
        neighbours: False: frequency k turns the numbers k and k + rotary_dim / 2 of a head (Qwen-VL). True: the numbers 2 k
        and 2 k + 1 (GLM-4V). Numbers from rotary_dim on stay as they are.

        A pair (a, b) becomes (a cos - b sin, b cos + a sin). Cosine and sine are rounded to the dtype of the heads, then both
        products, then their sum; an engine may round less often, and later. What does not fit together, and a position outside
        of the table, are errors.
        """

    @returns(numbers)
    def dissimilarity(self, embeddings: torch.Tensor, grid: tuple[int, int, int]) -> torch.Tensor:
        """How unlike the tokens of a video are to those of the frame before: [frames * height * width] of any floating dtype.

        embeddings: [frames * height * width, hidden], float32, bfloat16 or float16: by frame, then by row, then by column.
        grid: frames, height and width in tokens, each at least 1. Another number of rows is an error.

        For a token of the first frame any number above 2. For any other 1 - cosine to the token at its place in the previous
        frame, which is 1 where one of both is zero; computed in no less than 32 bits. Its exact bits are those of 64 bits:
        the k-th product goes to lane k mod 128, each lane adds its products in their order, then neighbouring lanes are added
        until one is left; the sum is divided by the root of the product of both sums of squares.
        """
