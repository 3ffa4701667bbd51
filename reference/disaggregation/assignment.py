"""Assignment: where the media of a request are encoded, and who encodes which.

An instance that has not loaded an encoder must not guess: with an empty tower it would answer fluently about nothing.

1. What has an embedding needs no encoder. Only the other items count, whatever the first one is.
2. Without a tower nothing is encoded here. Without an encoder in reach it is encoded here only if the router allows it:
   an instance that was sized for text may not have the memory for pictures.
3. A part holds items of one modality, neighbours in their order. An encoder runs one modality at a time, and the next
   modality goes on where the one before stopped, so that no encoder has two items more than another.
4. Options go with their items. An encoder that does not know them makes another number of rows than the prefill has
   positions.

Source: SGLang 0.5.23, `MMReceiverBase._assign_items_by_modality`, `TokenizerManager._tokenize_one_request` and
`MMEncoder._lookup_global_cache`; vLLM 0.33, `ECCPUScheduler._fail_or_fallback`.
Disagreements: SGLang shuffles the encoders for each request, and processes media by itself when no encoder is registered;
vLLM's router asks for each item by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch

from reference.items import Item, Modality

Options = Mapping[str, Any]
Load = Callable[[bytes], torch.Tensor | None]
Encode = Callable[[Sequence[Item]], Sequence[torch.Tensor]]


class NoEncoder(ValueError):
    """Media have to be encoded, and there is nobody who can."""


class Part(NamedTuple):
    """What one encoder is asked for at once: the numbers of its items, and the options of each."""

    encoder: int
    items: tuple[int, ...]
    options: tuple[Options, ...]


def place_encoding(
    items: Sequence[Item], *, has_tower: bool, encoders: int, may_fall_back: bool, local_up_to: int
) -> Literal["encoders", "local", "nobody"]:
    """Who encodes the media of a request. Arguments as in `conformance.protocol`; raises NoEncoder for no one."""
    count = sum(item.embedding is None for item in items)
    if count == 0:
        return "nobody"
    if has_tower and (count <= local_up_to or (encoders < 1 and may_fall_back)):
        return "local"
    if encoders > 0:
        return "encoders"
    here = "its router does not allow it to encode by itself" if has_tower else "this instance has loaded no encoder"
    raise NoEncoder(
        f"{count} media have to be encoded, but no encoder instance can be reached and {here}: "
        "start an encoder instance and register it here, or send precomputed embeddings"
    )


def assign_parts(items: Sequence[Item], options: Sequence[Options], encoders: int) -> list[Part]:
    """Share the items without an embedding among so many encoders, as evenly as it goes: the parts by their numbers.

    options: one mapping for each item. Raises ValueError if there are more or fewer, and NoEncoder for no encoders.
    """
    if len(options) != len(items):
        raise ValueError(f"{len(items)} items have {len(options)} mappings of options: each has one, which may be empty")
    raw = [number for number, item in enumerate(items) if item.embedding is None]
    if not raw:
        return []
    if encoders < 1:
        raise NoEncoder(
            f"{len(raw)} media have to be encoded, and there are {encoders} encoder instances: at least 1 is needed"
        )
    parts, first = [], 0
    for modality in Modality:
        numbers = [number for number in raw if items[number].modality is modality]
        share, surplus = divmod(len(numbers), encoders)
        at = 0
        for turn in range(encoders):
            length = share + (turn < surplus)
            mine = tuple(numbers[at : at + length])
            at += length
            if mine:
                parts.append(Part((first + turn) % encoders, mine, tuple(options[number] for number in mine)))
        first += surplus
    return parts


def encode_part(items: Sequence[Item], load: Load, encode: Encode) -> torch.Tensor:
    """The rows of all items, one after the other, on the host: loaded where that works, encoded where it does not.

    load: asked once for each identity; it may raise, and rows that are not as many as the item has positions are no use.
    Raises ValueError for no items, and if the encoder gives other rows than it was asked for.
    """
    if not items:
        raise ValueError("a part has at least one item")
    identities = dict.fromkeys(item.identity for item in items)
    loaded = {identity: None if identity is None else _load(load, identity) for identity in identities}
    found = [_fitting(loaded[item.identity], item) for item in items]
    missing = [number for number, rows in enumerate(found) if rows is None]
    if missing:
        made = encode([items[number] for number in missing])
        if len(made) != len(missing):
            raise ValueError(f"the encoder was given {len(missing)} items and returned rows for {len(made)}")
        for number, rows in zip(missing, made, strict=True):
            if len(rows) != items[number].token_count:
                raise ValueError(f"item {number} has {items[number].token_count} positions; the encoder made {len(rows)} rows")
            found[number] = rows
    return torch.cat([rows.cpu() for rows in found if rows is not None])


def _load(load: Load, identity: bytes) -> torch.Tensor | None:
    try:
        return load(identity)
    except Exception:  # whatever is wrong with a cache, the item can be encoded
        return None


def _fitting(rows: torch.Tensor | None, item: Item) -> torch.Tensor | None:
    return rows if rows is not None and len(rows) == item.token_count else None
