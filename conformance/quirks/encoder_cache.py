"""Ways in which engines have got the encoder cache wrong."""

import torch

from conformance.quirk import quirk
from reference.encoder_cache import EncoderCache


@quirk("bfloat16-through-float16", replaces="open_encoder_cache", bugs=(), caught_by=("ENCODER_CACHE-01",))
class ThroughFloat16(EncoderCache):
    """bfloat16 rows pass through float16 on their way in, where large values become infinite and small ones zero."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        return super().put(key, embedding.half().bfloat16() if dtype_of(embedding) == torch.bfloat16 else embedding)


@quirk(
    "hit-of-any-length",
    replaces="open_encoder_cache",
    bugs=("E01", "enc-cache-hit-count-mismatch", "emb-cache-length-check-on-hit"),
    caught_by=("ENCODER_CACHE-02", "ENCODER_CACHE-03", "ENCODER_CACHE-18", "ENCODING-22"),
)
class TrustsItsKey(EncoderCache):
    """A hit is trusted by its key alone, however many rows it has."""

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        return super().get(key, len(self._entries[key].embedding)) if key in self._entries else None


@quirk("mismatch-kept", replaces="open_encoder_cache", bugs=("enc-cache-hit-count-mismatch",), caught_by=("ENCODER_CACHE-03",))
class KeepsMismatches(EncoderCache):
    """An entry of another length is no hit, but it stays and takes room from entries that could be one."""

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        entry = self._entries.get(key)
        return super().get(key, token_count) if entry and len(entry.embedding) == token_count else None


@quirk("first-in-first-out", replaces="open_encoder_cache", bugs=(), caught_by=("ENCODER_CACHE-04",))
class HitsAreNoUse(EncoderCache):
    """A hit does not count as a use: the picture that everybody asks for is evicted like any other."""

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        order = list(self._entries)
        hit = super().get(key, token_count)
        for kept in order:
            if kept in self._entries:
                self._entries.move_to_end(kept)
        return hit


@quirk("stale-eviction", replaces="open_encoder_cache", bugs=("E05",), caught_by=("ENCODER_CACHE-04", "ENCODER_CACHE-06"))
class EvictsLater(EncoderCache):
    """Evictions are carried out once more at the end of a step, on entries that were put again in it."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes)
        self.evicted: set[bytes] = set()

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        before = set(self._entries)
        kept = super().put(key, embedding)
        self.evicted |= before - set(self._entries)
        return kept

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        while self.evicted:
            self._drop(self.evicted.pop())
        return super().get(key, token_count)


@quirk(
    "one-for-one",
    replaces="open_encoder_cache",
    bugs=("E04",),
    caught_by=("ENCODER_CACHE-04", "ENCODER_CACHE-05", "ENCODER_CACHE-06", "ENCODER_CACHE-17"),
)
class OneForOne(EncoderCache):
    """One entry is evicted for each new one, whatever their sizes, so that the budget is exceeded."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        unpinned = [other for other, entry in self._entries.items() if not entry.pins and other != key]
        fits = self._used_bytes + bytes_of(embedding) <= self._capacity_bytes
        if fits or not unpinned or bytes_of(embedding) > self._capacity_bytes:
            return super().put(key, embedding)
        self._drop(unpinned[0])
        capacity, self._capacity_bytes = self._capacity_bytes, 1 << 62
        kept = super().put(key, embedding)
        self._capacity_bytes = capacity
        return kept


@quirk(
    "counted-again-on-every-put",
    replaces="open_encoder_cache",
    bugs=("enc-cache-dup-in-one-step", "encdec-slots-inflate"),
    caught_by=("ENCODER_CACHE-04", "ENCODER_CACHE-05", "ENCODER_CACHE-06"),
)
class CountsAgain(EncoderCache):
    """An entry that is put again is counted again: the cache fills up with bytes that are not there."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        old = self._entries.get(key)
        kept = super().put(key, embedding)
        self._used_bytes += old.embedding.nbytes if old else 0
        return kept


@quirk("evicts-for-the-oversized", replaces="open_encoder_cache", bugs=("E04",), caught_by=("ENCODER_CACHE-07",))
class EvictsForNothing(EncoderCache):
    """Entries are evicted before it turns out that the new one can never fit."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        if bytes_of(embedding) > self._capacity_bytes:
            drop_unpinned(self)
        return super().put(key, embedding)


@quirk("first-value-wins", replaces="open_encoder_cache", bugs=("C08",), caught_by=("ENCODER_CACHE-08",))
class FirstValueWins(EncoderCache):
    """Putting a key again only marks its old value as used: a reused id is answered with the picture of its first use."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        old = self._entries.get(key)
        return super().put(
            key, old.embedding if old and old.embedding.shape == getattr(embedding, "shape", None) else embedding
        )


@quirk("old-value-outlives-refusal", replaces="open_encoder_cache", bugs=("C08",), caught_by=("ENCODER_CACHE-09",))
class OldValueOutlivesRefusal(EncoderCache):
    """A value that is too large to keep leaves the old one of its key in place."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        return bytes_of(embedding) <= self._capacity_bytes and super().put(key, embedding)


@quirk("view-keeps-its-batch", replaces="open_encoder_cache", bugs=(), caught_by=("ENCODER_CACHE-10",))
class KeepsViews(EncoderCache):
    """A view is kept as it is and counted by its visible size: the batch behind it stays in memory, uncounted."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        kept = super().put(key, embedding)
        if kept:
            self._entries[key].embedding = embedding
        return kept


@quirk("shared-storage-counted-once", replaces="open_encoder_cache", bugs=(), caught_by=("ENCODER_CACHE-11",))
class CountsStoragesOnce(EncoderCache):
    """A storage under two keys is counted with the first and given back with whichever goes first."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        shared = any(entry.embedding.data_ptr() == embedding.data_ptr() for entry in self._entries.values())
        kept = super().put(key, embedding)
        self._used_bytes -= embedding.nbytes if shared and kept else 0
        return kept


@quirk(
    "clear-keeps-the-count", replaces="open_encoder_cache", bugs=("p0p1-cache-desync-sleep",), caught_by=("ENCODER_CACHE-12",)
)
class ClearsHalf(EncoderCache):
    """`clear` empties one of two books: entries are gone, their bytes are still in use."""

    def clear(self) -> None:
        used = self._used_bytes
        super().clear()
        self._used_bytes = used


@quirk(
    "clear-does-nothing",
    replaces="open_encoder_cache",
    bugs=("weights-update-stale-encoder",),
    caught_by=("ENCODER_CACHE-12", "ENCODER_CACHE-13", "ENCODER_CACHE-19", "ENCODING-24"),
)
class NeverCleared(EncoderCache):
    """`clear` is silently not supported: new weights are served with the embeddings of the old ones."""

    def clear(self) -> None:
        """Nothing is cleared."""


@quirk(
    "late-work-kept",
    replaces="open_encoder_cache",
    bugs=("weights-update-stale-encoder",),
    caught_by=("ENCODER_CACHE-13", "ENCODING-24"),
)
class KeepsLateWork(EncoderCache):
    """An encoder run that began before a `clear` puts its old result back after it."""

    def put_if_current(self, key: bytes, embedding: torch.Tensor, generation: int) -> bool:
        return self.put(key, embedding)


@quirk("every-put-is-a-generation", replaces="open_encoder_cache", bugs=(), caught_by=("ENCODER_CACHE-14", "ENCODING-21"))
class PutsRaiseGenerations(EncoderCache):
    """Every change raises the generation, so that what two requests compute at the same time is thrown away."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        self._generation += 1
        return super().put(key, embedding)


@quirk("rows-of-any-shape", replaces="open_encoder_cache", bugs=("precomputed-hidden-size",), caught_by=("ENCODER_CACHE-21",))
class TakesAnyShape(EncoderCache):
    """An embedding of any shape is kept, and its first dimension taken for its number of rows."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        rows = torch.as_tensor(embedding)
        return super().put(key, rows.reshape(len(rows), -1))


@quirk("any-capacity", replaces="open_encoder_cache", bugs=(), caught_by=("ENCODER_CACHE-22",))
class TakesAnyCapacity(EncoderCache):
    """A negative capacity is taken for none, and one that is no number for no limit."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(max(0, capacity_bytes) if capacity_bytes == capacity_bytes else 1 << 62)


def dtype_of(embedding: object) -> torch.dtype | None:
    """The dtype of an embedding, None for what is none."""
    return getattr(embedding, "dtype", None)


def bytes_of(embedding: object) -> int:
    """The size of an embedding, 0 for what is none."""
    return int(getattr(embedding, "nbytes", 0))


def drop_unpinned(cache: EncoderCache) -> None:
    """Evict whatever may be evicted."""
    for key in [key for key, entry in cache._entries.items() if not entry.pins]:
        cache._drop(key)
