"""Encoder cache: embeddings of media items, kept within a budget of bytes.

Encoding a picture is by far the dearest step before the language model, and the same picture comes again: in the next
chunk of its prompt, in the next turn, in another request. The cache maps an identity to an embedding
[token_count, hidden]. It is small and easy to get wrong in ways that no one sees:

1. A hit is trusted only if it has as many rows as the item has tokens. Whatever else the key failed to tell apart
   (a colliding hash, an option that changed the size), rows of another length never reach a prompt.
2. What counts is the memory that an entry keeps alive. A row range of a batch is a view, and a view keeps the whole
   batch; so a view is copied, and an entry always is exactly its own rows. A tensor that has its storage to itself is
   kept without a copy: it is handed over, and nobody may write to it any more.
3. A fresh value always replaces the old one, and an old value is gone even when the fresh one is too large to keep. A
   miss costs time; a stale hit costs the answer.
4. A pin says that a running request will come back for an entry. Neither pressure nor a `get` of another length
   removes a pinned entry; only `clear`, or a `put` under its own key, makes it void.
5. `clear` is for when embeddings are no longer true (new weights). It takes pinned entries too, and it raises the
   generation, so that an encoder run that began before cannot put its old result back.
6. An adapter (LoRA) that changes the encoder changes the rows, and is part of the key: its name, and which weights are
   loaded under it. One that changes the language model alone is not.

Source: SGLang 0.5.23, `MultiModalStaticCache` (bytes, LRU, views cloned), and the generation of its
`MultimodalPreprocessCache`; the pins are the references of vLLM's `EncoderCacheManager`.
Disagreements: SGLang keeps the old value when a key is put again, and leaves the length to its caller; vLLM counts
embeddings in place of bytes, evicts in the order in which entries became unused, and fails a request that meets an
entry of another length.
"""

from collections import OrderedDict
from dataclasses import dataclass
from operator import index
from threading import RLock

import torch
from blake3 import blake3


def encoder_key(identity: bytes, adapter: tuple[str, str] | None, changes_encoder: bool) -> bytes:
    """The key of an item's rows: its identity, and with it the name and version of an adapter that changes the encoder."""
    if adapter is None or not changes_encoder:
        return identity
    parts = [identity, *(part.encode() for part in adapter)]
    return blake3(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


@dataclass(slots=True)
class _Entry:
    embedding: torch.Tensor
    pins: int = 0


class EncoderCache:
    """Embeddings by identity, least recently used first out, never more than `capacity_bytes` of them.

    All methods may be called from any thread. Each entry counts in full, even one tensor under two keys.

    Raises ValueError for a negative capacity, TypeError for one that is not an integer.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = index(capacity_bytes)
        if self._capacity_bytes < 0:
            raise ValueError(f"a cache has a capacity of at least 0 bytes, not {capacity_bytes}")
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()  # the least recently used entry comes first
        self._used_bytes = 0
        self._generation = 0
        self._lock = RLock()

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        """Keep `embedding` [token_count, hidden] under `key` in place of what was there, whose pins it takes over.

        Evicts unpinned entries, the least recently used first, until it fits. Where it cannot fit, because it is larger
        than the whole capacity or than what pinned entries leave of it, no other entry is evicted, but the old value
        under `key` is gone, pinned or not: it is no longer what the key stands for.

        Returns whether it is kept. Raises ValueError for anything but a tensor with two dimensions.
        """
        if not isinstance(embedding, torch.Tensor) or embedding.ndim != 2:
            shape = list(embedding.shape) if isinstance(embedding, torch.Tensor) else type(embedding).__name__
            raise ValueError(f"an embedding is a tensor [token_count, hidden], not {shape}")
        with self._lock:
            old = self._drop(key)
            leaving = self._oldest(self._used_bytes + embedding.nbytes - self._capacity_bytes)
            if leaving is None:
                return False
            for candidate in leaving:
                self._drop(candidate)
            self._entries[key] = _Entry(_alone(embedding), old.pins if old else 0)
            self._used_bytes += embedding.nbytes
            return True

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        """The embedding under `key` if it has `token_count` rows, else None. It is the entry itself: do not write to it.

        An entry with another number of rows is dropped, unless it is pinned: then somebody still needs it as it is.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry.embedding.shape[0] != token_count:
                if not entry.pins:
                    self._drop(key)
                return None
            self._entries.move_to_end(key)
            return entry.embedding

    def used_bytes(self) -> int:
        """The memory that the entries keep alive, 0 to `capacity_bytes`."""
        with self._lock:
            return self._used_bytes

    def clear(self) -> None:
        """Forget every entry, pinned ones and their pins included, and begin a new generation."""
        with self._lock:
            self._entries.clear()
            self._used_bytes = 0
            self._generation += 1

    def generation(self) -> int:
        """How often the cache was cleared."""
        with self._lock:
            return self._generation

    def put_if_current(self, key: bytes, embedding: torch.Tensor, generation: int) -> bool:
        """`put`, if the cache was not cleared since it had this generation; else False, and nothing changes."""
        with self._lock:
            return generation == self._generation and self.put(key, embedding)

    def pin(self, key: bytes) -> None:
        """Protect an entry from eviction until it was unpinned as often as pinned. Raises KeyError when there is none."""
        with self._lock:
            if key not in self._entries:
                raise KeyError(f"there is no entry {key.hex()} to pin")
            self._entries[key].pins += 1

    def unpin(self, key: bytes) -> None:
        """Take one pin back. Raises KeyError when the entry has none, or is gone: its pins went with it."""
        with self._lock:
            if key not in self._entries or not self._entries[key].pins:
                raise KeyError(f"there is no pinned entry {key.hex()}")
            self._entries[key].pins -= 1

    def _oldest(self, wanted_bytes: int) -> list[bytes] | None:
        """The unpinned entries that free so many bytes, the least recently used first; None where all of them do not."""
        found: list[bytes] = []
        for key, entry in self._entries.items():
            if wanted_bytes <= 0:
                break
            if not entry.pins:
                found.append(key)
                wanted_bytes -= entry.embedding.nbytes
        return found if wanted_bytes <= 0 else None

    def _drop(self, key: bytes) -> _Entry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._used_bytes -= entry.embedding.nbytes
        return entry


def _alone(embedding: torch.Tensor) -> torch.Tensor:
    """The rows in a storage of exactly their own size, without the graph that computed them."""
    rows = embedding.detach()
    return rows if rows.untyped_storage().nbytes() == rows.nbytes else rows.clone()
