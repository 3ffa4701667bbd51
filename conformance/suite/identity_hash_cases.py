"""Cases of the rules about sequences of identities, callers' hashes and SGLang's hashes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from conformance.cases import Exact, Pair
from conformance.engine import Engine
from conformance.oracles import identity as oracle
from reference.items import Item, Modality

IMAGE, VIDEO, AUDIO = Modality.IMAGE, Modality.VIDEO, Modality.AUDIO
RAMP = torch.arange(24.0).reshape(4, 6)
FLAT = torch.arange(6.0)
SHORT, LONG = FLAT[:2], FLAT[2:]
ARRAY = np.arange(24, dtype=np.float32).reshape(4, 6)

SEQUENCES = {
    "order": Pair((1, 2), (2, 1)),
    "repetition": Pair((1,), (1, 1)),
    "three-times": Pair((1, 1, 1), (1,)),
    "two-pairs": Pair((1, 1), (2, 2)),
    "equal-sums": Pair((1, 4), (2, 3)),
    "one-more": Pair((1, 2), (1, 2, 3)),
    "mersenne": Pair((5, 1), (5 + 2**61 - 1, 1)),
    "minus-one-or-minus-two": Pair((-1, 3), (-2, 3)),
}


class Hashes(NamedTuple):
    """Hashes for a request with one item of each of these modalities, and what becomes of each item."""

    modalities: tuple[Modality, ...]
    hashes: Mapping[Modality, Any]
    expected: tuple[int | None, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(Item(modality=modality, feature=RAMP) for modality in self.modalities)


def trusted(engine: Engine, case: Hashes) -> tuple[int | None, ...]:
    """What is expected of an engine that trusts callers, or nothing at all of one that does not."""
    return case.expected if engine.traits.caller_hashes == "trust" else (None,) * len(case.expected)


THREE = (IMAGE, IMAGE, IMAGE)
MIXED = (AUDIO, IMAGE, VIDEO, IMAGE)

ADOPTED = {
    "one-digit": Hashes((IMAGE,), {IMAGE: ["0"]}, (0,)),
    "upper-case": Hashes((IMAGE,), {IMAGE: ["DeadBeefCafeBabe"]}, (0xDEADBEEFCAFEBABE,)),
    "largest": Hashes((IMAGE,), {IMAGE: ["f" * 16]}, (2**64 - 1,)),
    "zeros-in-front": Hashes((IMAGE,), {IMAGE: ["000000000000001f"]}, (0x1F,)),
    "zeros-behind": Hashes((IMAGE, IMAGE), {IMAGE: ["aaaa000000000000", "bbbb000000000000"]}, (0xAAAA << 48, 0xBBBB << 48)),
    "in-order": Hashes(THREE, {IMAGE: ["c", "a", "b"]}, (0xC, 0xA, 0xB)),
    "twice-the-same": Hashes((IMAGE, IMAGE), {IMAGE: ["a", "a"]}, (0xA, 0xA)),
    "two-modalities": Hashes((IMAGE, AUDIO), {IMAGE: ["a"], AUDIO: ["b"]}, (0xA, 0xB)),
    "none": Hashes(MIXED, {}, (None,) * 4),
}

BY_MODALITY = {
    "interleaved": Hashes(MIXED, {IMAGE: ["1", "2"], AUDIO: ["3"], VIDEO: ["4"]}, (3, 1, 4, 2)),
    "only-audio": Hashes(MIXED, {AUDIO: ["3"]}, (3, None, None, None)),
    "only-images": Hashes(MIXED, {IMAGE: ["1", "2"]}, (None, 1, None, 2)),
}

WRONG_NUMBER = {
    "too-few": Hashes(THREE, {IMAGE: ["a", "b"]}, (None,) * 3),
    "too-many": Hashes(THREE, {IMAGE: ["a", "b", "c", "d"]}, (None,) * 3),
    "of-one-modality": Hashes(MIXED, {IMAGE: ["1", "2"], VIDEO: ["4", "5"]}, (None,) * 4),
    "of-a-modality-that-is-not-there": Hashes((IMAGE,), {IMAGE: ["a"], AUDIO: ["b"]}, (None,)),
    "of-all-items": Hashes(MIXED, {IMAGE: ["1", "2", "3", "4"]}, (None,) * 4),
}

MALFORMED = {
    name: Hashes(THREE, {IMAGE: ["a", text, "c"]}, (0xA, None, 0xC))
    for name, text in {
        "empty": "", "prefix": "0x1f", "underscore": "1_f", "blank": " 1f", "newline": "1f\n", "minus": "-1", "plus": "+1",
        "letters": "xyz", "digits-of-another-script": "\u0663", "seventeen-digits": "1" * 17,
        "sixty-four-digits": "a" * 16 + "0" * 48, "missing": None, "number": 31,
    }.items()
}  # fmt: skip

DATA = {
    name: Exact(data, oracle.first_word(data))
    for name, data in {
        "empty": b"",
        "three-bytes": b"abc",
        "every-byte": bytes(range(256)),
        "one-mebibyte": bytes(2**20),
    }.items()
}

TENSORS = {
    name: Exact(tensors, oracle.first_word(oracle.memory(tensors)))
    for name, tensors in {
        "tensor": RAMP, "transposed": RAMP.T, "repeated": FLAT.expand(2, 6), "bfloat16": RAMP.bfloat16(),
        "bool": torch.tensor([True, False]), "no-elements": torch.empty(0), "no-dimensions": torch.tensor(1.5),
        "requires-grad": FLAT.clone().requires_grad_(), "list": [SHORT, LONG], "other-dtypes": [FLAT, FLAT.long()],
        "nested-list": [[SHORT], [LONG.bfloat16(), [FLAT]]], "empty-list": [],
    }.items()
}  # fmt: skip

FEATURES = {
    name: Exact(feature, oracle.first_word(oracle.memory(feature)))
    for name, feature in {
        "tensor": RAMP.T, "list": [SHORT, LONG.bfloat16()], "array": ARRAY, "array-column-major": np.asfortranarray(ARRAY),
        "array-big-endian": ARRAY.astype(">f4"), "array-without-dimensions": np.array(1.5), "bytes": b"abc",
        "bytearray": bytearray(b"abc"),
    }.items()
}  # fmt: skip

NO_FEATURES = {
    "nothing": None,
    "text": "abc",
    "empty-list": [],
    "numbers": [1, 2.5],
    "tuple": (FLAT,),
    "arrays": [ARRAY],
    "nested-list": [[FLAT]],
}
