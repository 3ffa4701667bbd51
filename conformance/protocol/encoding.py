"""The embeddings of the media in one step of a batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import torch

from conformance import returns as answer
from conformance.protocol.encoder_cache import EncoderCache
from conformance.returns import returns
from reference.items import Chunk, Item, Modality, Request, Span

Encoder: TypeAlias = Callable[[Sequence[Item]], torch.Tensor | Sequence[torch.Tensor]]
"""A model's encoder: items of one modality -> their rows, one tensor [token_count, hidden] an item, or all in one."""


class Encoding(Protocol):
    """The embeddings of the media in one step of a batch."""

    @returns(answer.integer)
    def count_in_chunk(self, spans: Sequence[Span], chunk: Chunk) -> int:
        """How many positions of `spans`, which are disjoint, lie in the chunk."""

    @returns(answer.rows)
    def slice_chunk(self, embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """The rows of `embedding` [token_count, hidden] whose positions lie in the chunk, in order.

        The k-th row belongs to the k-th position of the spans, which are disjoint and in ascending order. Raises
        ValueError for an embedding with another number of rows.
        """

    @returns(answer.function)
    def find_encoder(self, modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
        """The encoder of a modality: the registered one, else the model's `get_image_feature`, `get_video_feature` or
        `get_audio_feature`. Raises an error that names the modality and what was looked for."""

    @returns(answer.rows_or_error_each)
    def encode(
        self, batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder], cache: EncoderCache | None
    ) -> Sequence[torch.Tensor | Exception]:
        """For each request the rows of its chunk, [positions of media in the chunk, hidden], by position.

        Items have an identity. Items outside their chunk are not encoded; items of a modality with the same identity
        and token count are encoded once; all misses of a modality go to its encoder in one call, in order of first
        appearance: by request, then by position. Precomputed embeddings are used as they are; a sparse one may be refused.
        Where the chunk has no media there are 0 rows, of any width.

        A request whose rows cannot be had has an exception in its place, and other requests are served: an item whose
        encoder (or precomputed embedding) gives another number of rows than the item has tokens, a modality without an
        encoder, an encoder that raises. When one tensor for all items has a wrong total, or a list a wrong length, no
        item of that call has rows. Nothing of such an item is cached, and nothing at all where the cache was cleared
        meanwhile.
        """
