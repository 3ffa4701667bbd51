"""Ways in which engines have got the pins of the encoder cache wrong."""

import torch

from conformance.quirk import quirk
from conformance.quirks.encoder_cache import bytes_of, drop_unpinned
from reference.encoder_cache import EncoderCache, _Entry


@quirk(
    "pins-ignored",
    replaces="open_encoder_cache",
    bugs=("E04",),
    caught_by=("ENCODER_CACHE-15", "ENCODER_CACHE-16", "ENCODER_CACHE-17"),
)
class IgnoresPins(EncoderCache):
    """Entries are evicted whether or not a running request still needs them."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        for entry in self._entries.values():
            entry.pins = 0
        return super().put(key, embedding)


@quirk(
    "pins-lost-on-put", replaces="open_encoder_cache", bugs=("enc-cache-dup-item-in-request",), caught_by=("ENCODER_CACHE-15",)
)
class LosesPinsOnPut(EncoderCache):
    """An entry that is put again is no longer pinned."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        self._drop(key)
        return super().put(key, embedding)


@quirk(
    "first-unpin-frees", replaces="open_encoder_cache", bugs=("enc-cache-dup-item-in-request",), caught_by=("ENCODER_CACHE-16",)
)
class PinsAreASet(EncoderCache):
    """Pins are a mark and not a number: an item that occurs twice is free after its first use."""

    def pin(self, key: bytes) -> None:
        super().pin(key)
        self._entries[key].pins = 1


@quirk("never-unpinned", replaces="open_encoder_cache", bugs=("enc-cache-waiting-leak",), caught_by=("ENCODER_CACHE-16",))
class LeaksPins(EncoderCache):
    """Pins of requests that were not scheduled are never taken back: the cache fills up for good."""

    def unpin(self, key: bytes) -> None:
        super().unpin(key)
        self._entries[key].pins += 1


@quirk("evicts-beside-pins", replaces="open_encoder_cache", bugs=("E04",), caught_by=("ENCODER_CACHE-17",))
class EvictsBesidePins(EncoderCache):
    """What does not fit beside the pinned entries first evicts all the others."""

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        kept = super().put(key, embedding)
        if not kept and bytes_of(embedding) <= self._capacity_bytes:
            drop_unpinned(self)
        return kept


@quirk(
    "pinned-dropped-on-mismatch",
    replaces="open_encoder_cache",
    bugs=("enc-cache-hit-count-mismatch",),
    caught_by=("ENCODER_CACHE-18",),
)
class DropsPinned(EncoderCache):
    """A request that asks for another length takes the entry from the request that pinned it."""

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        entry = self._entries.get(key)
        if entry and len(entry.embedding) != token_count:
            self._drop(key)
        return super().get(key, token_count)


@quirk(
    "clear-spares-pinned",
    replaces="open_encoder_cache",
    bugs=("weights-update-stale-encoder",),
    caught_by=("ENCODER_CACHE-19",),
)
class SparesPinned(EncoderCache):
    """`clear` leaves pinned entries, which outlive the weights that made them."""

    def clear(self) -> None:
        pinned = {key: entry for key, entry in self._entries.items() if entry.pins}
        super().clear()
        self._entries.update(pinned)
        self._used_bytes = sum(entry.embedding.nbytes for entry in pinned.values())


@quirk("pins-of-nothing", replaces="open_encoder_cache", bugs=("encdec-slots-inflate",), caught_by=("ENCODER_CACHE-20",))
class TakesAnyPin(EncoderCache):
    """Pins are taken and given back for entries that are not there, so that the count drifts."""

    def pin(self, key: bytes) -> None:
        self._entries.get(key, _NOBODY).pins += 1

    def unpin(self, key: bytes) -> None:
        self._entries.get(key, _NOBODY).pins -= 1


_NOBODY = _Entry(torch.empty(0, 0))
