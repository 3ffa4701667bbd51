"""Sentinels: the ids that stand for a media item in `input_ids`.

A prefix cache compares ids and nothing else. Were every picture padded with the same special id, two prompts with
different pictures would look alike, and one user would be answered from another user's picture. So an item is padded
with ids that are derived from its content:

1. `SHIFT` lifts them above every vocabulary: a sentinel can never be taken for text.
2. Four values are used in turn, and a match may stop after any of them, so each one alone must tell two items apart.
3. Each carries 62 bits, the most for which `SHIFT + value` still is a signed 64-bit id.

Source: SGLang 0.5.23, `_compute_pad_values`, `MultimodalDataItem.set_identity`, `set_hash` and `padding_sequence`.
Disagreements: SGLang up to 0.5.9 uses a single value of 30 bits; vLLM keeps identity out of the ids. For a negative
length SGLang returns a few sentinels or none; here it is an error.
"""

import hashlib
from collections.abc import Iterable
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reference.items import IDENTITY_BYTES, Item

SHIFT = 1_000_000

Sentinels: TypeAlias = tuple[int, int, int, int]

_TAGGED = hashlib.sha256(b"sglang-mm-wide-pad-v1")
"""Copied for each digest, which is less work than to hash the tag anew."""
_LOW_62_BITS = (1 << 62) - 1


def sentinels(identity: bytes) -> Sentinels:
    """The sentinels of an item whose content identity is known.

    Raises ValueError unless `identity` has 32 bytes.
    """
    if len(identity) != IDENTITY_BYTES:
        raise ValueError(f"an identity has {IDENTITY_BYTES} bytes, this one has {len(identity)}")
    return _only(_derive([identity]))


def sentinels_from_hash(value: int) -> Sentinels:
    """The sentinels of an item that is known by a 64-bit hash only, for example one that a router supplied.

    Raises ValueError unless 0 <= value < 2**64: a wider number would silently lose its upper bits.
    """
    if not 0 <= value < 1 << 64:
        raise ValueError(f"an item's hash is an unsigned 64-bit number, not {value}")
    return _only(_derive([value.to_bytes(8, "big")]))


def item_sentinels(item: Item) -> Sentinels:
    """The sentinels of an item: by the caller's hash where there is one, else by content.

    Raises ValueError for an item that has neither: without them it could not be told from another.
    """
    return _only(sentinel_table([item]))


def sentinel_table(items: Iterable[Item]) -> NDArray[np.int64]:
    """The sentinels of many items, int64 [items, 4]. Raises ValueError as `item_sentinels` does."""
    return _derive(
        [item.identity or _refuse(item) if item.caller_hash is None else item.caller_hash.to_bytes(8, "big") for item in items]
    )


def fill(values: Sentinels | NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """The ids int64 [length] of a span of `length` positions: the sentinels in turn, beginning with the first.

    Of many spans of one length, given int64 [spans, 4], the ids int64 [spans, length]. Raises ValueError for a negative
    length.
    """
    if length < 0:
        raise ValueError(f"a span cannot have {length} positions")
    rounds = -(-length // 4)
    return np.tile(np.asarray(values, dtype=np.int64), rounds)[..., :length]


def check_vocabulary(size: int) -> None:
    """Refuse a model whose ids reach into the sentinels, once, when the engine starts.

    A vocabulary of exactly `SHIFT` ids is fine: its largest id is SHIFT - 1. Raises ValueError for a larger one.
    """
    if size > SHIFT:
        raise ValueError(f"a vocabulary of {size} ids reaches into the sentinels, which begin at {SHIFT}")


def _refuse(item: Item) -> NoReturn:
    raise ValueError(f"this {item.modality.name.lower()} has no identity yet; identify it before padding")


def _derive(seeds: Iterable[bytes]) -> NDArray[np.int64]:
    """One row of four for each seed."""
    digests = []
    for seed in seeds:
        state = _TAGGED.copy()
        state.update(seed)
        digests.append(state.digest())
    words = np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 4)
    return (SHIFT + (words & _LOW_62_BITS)).astype(np.int64)


def _only(table: NDArray[np.int64]) -> Sentinels:
    a, b, c, d = table[0].tolist()
    return a, b, c, d
