"""Ways in which engines have got sequences of identities, callers' hashes and the hashes of SGLang wrong."""

from collections.abc import Mapping, Sequence
from functools import reduce
from hashlib import sha256
from operator import xor
from typing import Any

import numpy as np
import torch

from conformance.quirk import quirk
from reference import identity as right
from reference.items import Item, Modality

Adopted = tuple[list[int | None], list[str]]
Given = Mapping[Modality, Sequence[str]]


@quirk("sequence-by-builtin-hash", replaces="combine_identities", bugs=("H02",), caught_by=("IDENTITY-21",))
def by_builtin_hash(identities: Sequence[bytes]) -> bytes:
    """Python's hash of a tuple of numbers, for which n and n + 2**61 - 1 are the same, and so are -1 and -2."""
    return _wide(hash(tuple(int.from_bytes(one, "big", signed=True) for one in identities)))


@quirk("sequence-salted-by-process", replaces="combine_identities", bugs=("H02",), caught_by=("IDENTITY-22",))
def salted(identities: Sequence[bytes]) -> bytes:
    """Python's hash of a tuple of bytes, which is salted anew in each process."""
    return _wide(hash(tuple(identities)))


@quirk("sequence-as-a-set", replaces="combine_identities", bugs=("hash-sorted-images-prefix64k",), caught_by=("IDENTITY-21",))
def as_a_set(identities: Sequence[bytes]) -> bytes:
    """The identities are sorted and made unique first: order and repetition are lost."""
    return right.combine_identities(sorted(set(identities)))


@quirk("sequence-by-xor", replaces="combine_identities", bugs=(), caught_by=("IDENTITY-21",))
def by_xor(identities: Sequence[bytes]) -> bytes:
    """The identities are xored: a picture that comes twice takes itself away."""
    return right.combine_identities([_wide(reduce(xor, (int.from_bytes(one, "big") for one in identities), 0))])


@quirk("caller-hash-read-backwards", replaces="adopt_caller_hashes", bugs=(), caught_by=("IDENTITY-23",))
def backwards(items: Sequence[Item], hashes: Given) -> Adopted:
    """The bytes of a hash are read from the wrong end: all is well until the router computes the same key."""
    adopted, problems = right.adopt_caller_hashes(items, hashes)
    return [None if one is None else int.from_bytes(one.to_bytes(8, "little"), "big") for one in adopted], problems


@quirk("caller-hash-of-30-bits", replaces="adopt_caller_hashes", bugs=("C01",), caught_by=("IDENTITY-23",))
def low_30_bits(items: Sequence[Item], hashes: Given) -> Adopted:
    """Only the low 30 bits of a hash are kept: hashes that end in zeros are all the same."""
    adopted, problems = right.adopt_caller_hashes(items, hashes)
    return [None if one is None else one % 2**30 for one in adopted], problems


@quirk("caller-hash-parsed-by-python", replaces="adopt_caller_hashes", bugs=("C02",), caught_by=("IDENTITY-26",))
def parsed_by_python(items: Sequence[Item], hashes: Given) -> Adopted:
    """Python's `int(text, 16)` also takes prefixes, signs, underscores and blanks; what is too long loses its upper bits."""
    return right.adopt_caller_hashes(
        items, {modality: [_lenient(text) for text in given] for modality, given in hashes.items()}
    )


def _lenient(text: Any) -> Any:
    try:
        return f"{int(text, 16) & 2**64 - 1:x}"
    except (TypeError, ValueError):
        return text


@quirk("caller-hash-cut-to-16-digits", replaces="adopt_caller_hashes", bugs=("C01", "C02"), caught_by=("IDENTITY-26",))
def first_16_digits(items: Sequence[Item], hashes: Given) -> Adopted:
    """Of a longer hash only the first 16 digits are read."""
    cut = {
        modality: [text[:16] if text and isinstance(text, str) else text for text in given]
        for modality, given in hashes.items()
    }
    return right.adopt_caller_hashes(items, cut)


@quirk("malformed-caller-hash-drops-all", replaces="adopt_caller_hashes", bugs=("C02",), caught_by=("IDENTITY-26",))
def one_drops_all(items: Sequence[Item], hashes: Given) -> Adopted:
    """One malformed hash makes the engine ignore the good ones beside it."""
    adopted, problems = right.adopt_caller_hashes(items, hashes)
    return [None] * len(items) if problems else adopted, problems


@quirk("caller-hashes-paired-off", replaces="adopt_caller_hashes", bugs=("C03",), caught_by=("IDENTITY-25",))
def paired_off(items: Sequence[Item], hashes: Given) -> Adopted:
    """Too few hashes go to the first items, though the missing one may belong to one of these."""
    counts = {modality: sum(item.modality == modality for item in items) for modality in hashes}
    fitted = {modality: [*given, *[""] * len(items)][: counts[modality]] for modality, given in hashes.items()}
    return right.adopt_caller_hashes(items, fitted)


@quirk(
    "caller-hashes-dropped-silently",
    replaces="adopt_caller_hashes",
    bugs=("C02",),
    caught_by=("IDENTITY-25", "IDENTITY-26"),
)
def silent(items: Sequence[Item], hashes: Given) -> Adopted:
    """Hashes that cannot be used are dropped without a word: the caller's keys never match and nobody knows why."""
    return right.adopt_caller_hashes(items, hashes)[0], []


@quirk("caller-hashes-across-modalities", replaces="adopt_caller_hashes", bugs=(), caught_by=("IDENTITY-24",))
def across_modalities(items: Sequence[Item], hashes: Given) -> Adopted:
    """The hashes of all modalities are one list, given to the items in turn: a recording gets the name of a picture."""
    adopted, problems = right.adopt_caller_hashes(items, hashes)
    in_turn = [one for modality in hashes for item, one in zip(items, adopted, strict=True) if item.modality == modality]
    return in_turn + [None] * (len(items) - len(in_turn)), problems


@quirk("data-hash-of-the-last-bytes", replaces="data_hash", bugs=(), caught_by=("IDENTITY-27",))
def last_bytes(data: bytes) -> int:
    """The last 8 bytes of the digest are taken instead of the first."""
    return int.from_bytes(sha256(data).digest()[-8:], "big")


@quirk("tensor-hash-after-joining", replaces="tensor_hash", bugs=(), caught_by=("IDENTITY-28",))
def after_joining(tensors: Any) -> int:
    """The tensors of a list are joined first, which turns them all into the widest dtype among them."""
    return right.tensor_hash(torch.cat([torch.empty(0, dtype=torch.bool), *(one.reshape(-1) for one in _flat(tensors))]))


@quirk("feature-hash-with-shape", replaces="hash_feature", bugs=("H01",), caught_by=("IDENTITY-29",))
def with_shape(feature: Any) -> int:
    """The shape of an array is hashed with it, as is right, but then no key agrees with those of SGLang."""
    if isinstance(feature, np.ndarray):
        return right.data_hash(str(feature.shape).encode() + feature.tobytes())
    return right.hash_feature(feature)


@quirk("feature-hash-of-anything", replaces="hash_feature", bugs=("H03",), caught_by=("IDENTITY-30",))
def of_anything(feature: Any) -> int:
    """What cannot be hashed is hashed by how it prints."""
    try:
        return right.hash_feature(feature)
    except TypeError:
        return right.data_hash(repr(feature).encode())


def _flat(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [one for part in value for one in _flat(part)]


def _wide(number: int) -> bytes:
    return (number % 2**256).to_bytes(32, "big")
