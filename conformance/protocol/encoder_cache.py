"""Embeddings of media items, kept within a budget of bytes."""

from typing import Protocol

import torch

from conformance import returns as answer
from conformance.returns import Opens, returns


class EncoderCache(Protocol):
    """What `open_encoder_cache` returns: embeddings of items, bounded in bytes."""

    @returns(answer.boolean)
    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        """Keep `embedding` [token_count, hidden] under the identity `key`, in place of what was there; pins stay.

        Evicts the unpinned entries that were used longest ago until it fits. Returns False, and evicts nothing, when it
        cannot fit whatever is evicted: what was under `key` is gone all the same. Using an entry means putting it or a
        hit. Raises ValueError or TypeError for anything but a tensor with two dimensions.
        """

    @returns(answer.rows_or_none)
    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        """The embedding under `key`, or None. An entry with another number of rows is no hit; it is dropped, unless it
        is pinned."""

    @returns(answer.integer)
    def used_bytes(self) -> int:
        """The memory that the cache keeps alive: the storage behind its tensors, not their visible part."""

    @returns(answer.nothing)
    def clear(self) -> None:
        """Forget everything, pinned entries too, and whatever is still being computed for this cache."""

    @returns(answer.integer)
    def generation(self) -> int:
        """A number that every `clear` raises. Work notes it when it starts and gives it to `put_if_current`."""

    @returns(answer.boolean)
    def put_if_current(self, key: bytes, embedding: torch.Tensor, generation: int) -> bool:
        """`put`, unless the cache was cleared since `generation`: then nothing is kept and the answer is False."""

    @returns(answer.nothing)
    def pin(self, key: bytes) -> None:
        """Protect an entry from eviction until it was unpinned as often as pinned. KeyError when there is none."""

    @returns(answer.nothing)
    def unpin(self, key: bytes) -> None:
        """Take one pin back. KeyError when the entry has none."""


class EncoderCaches(Protocol):
    """Embeddings of media items, kept within a budget of bytes."""

    @returns(answer.octets)
    def encoder_key(self, identity: bytes, adapter: tuple[str, str] | None, changes_encoder: bool) -> bytes:
        """The key under which the rows of an item are kept, of any width.

        identity: of the item, 32 bytes. adapter: the adapter (LoRA) of the request, its name and what tells the weights that
        are loaded under it from those that were before, such as a path or a digest; None: it has none.
        changes_encoder: whether the adapter changes the encoder, or what joins it to the language model. One that does not
        leaves the rows as they are, and is no part of the key.
        """

    @returns(Opens(EncoderCache, specimen=(1024,)))
    def open_encoder_cache(self, capacity_bytes: int) -> EncoderCache:
        """An empty cache of embeddings that never keeps more than `capacity_bytes` alive.

        Raises ValueError or TypeError for a capacity that is negative or no number of bytes.
        """
