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
