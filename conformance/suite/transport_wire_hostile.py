"""Messages in mmproof's format, version 1, that are none, and where they are wrong."""

from math import inf, nan
from typing import Any, NamedTuple

from conformance.oracles.transport_wire import Raw, int64s, pack

SECRET = "nobody-may-read-this"
"""Stands in every message that is refused, and must not stand in the error."""


class Hostile(NamedTuple):
    """A message that must be refused, and where it is wrong; None where there is no such place."""

    data: bytes
    path: str | None


TENSOR: list[Any] = ["tensor", "float32", [3], bytes(12)]
PARTS: dict[str, Any] = {
    "modality": 1, "format": "processor_output", "spans": int64s((3, 4, 6, 7)), "feature": TENSOR, "embedding": None,
    "fields": ["map", "note", SECRET], "identity": bytes(32), "caller_hash": 7,
}  # fmt: skip


IDS = int64s(range(9))


def body(items: Any, id: Any = SECRET, input_ids: Any = IDS) -> bytes:
    """A message of these items, each a list of its parts."""
    return pack(["mmproof", 1, "request", [id, input_ids, items]])


def hostile(at: str, **parts: Any) -> Hostile:
    """A message whose third item has these parts, and where in the item that is wrong."""
    right = [*PARTS.values()]
    return Hostile(body([*(free(right) for _ in range(2)), [*(PARTS | parts).values()]]), f"items[2].{at}")


def free(parts: list[Any]) -> list[Any]:
    """An item without positions."""
    return [*parts[:2], b"", *parts[3:]]


def block(dtype: Any, shape: Any, payload: Any, at: str = "shape") -> Hostile:
    """A message whose third item has this tensor as its feature."""
    return hostile(f"feature.{at}", feature=["tensor", dtype, shape, payload])


RIGHT = body([[*PARTS.values()]])
BEGINNINGS = {
    "empty": Hostile(b"", None),
    "another-name": Hostile(RIGHT.replace(b"mmproof", b"mmprooF"), None),
    "another-version": Hostile(RIGHT.replace(b"mmproof\x01", b"mmproof\x02"), "version"),
    "a-version-of-text": Hostile(RIGHT.replace(b"mmproof\x01", b"mmproof\xa11"), "version"),
    "another-kind": Hostile(RIGHT.replace(b"request", b"Request"), "kind"),
    "no-kind": Hostile(pack(["mmproof", 1, [SECRET]]), None),
    "a-pickle": Hostile(b"\x80\x04]\x94(K\x01K\x02e.", None),
    "json": Hostile(b'["mmproof", 1, "request", []]', None),
    "zeros": Hostile(bytes(64), None),
}
LENGTHS = {
    "cut-short": Hostile(RIGHT[:-1], None),
    "cut-in-the-middle": Hostile(RIGHT[: len(RIGHT) // 2], None),
    "something-behind-it": Hostile(RIGHT + b"\0", None),
    "itself-behind-it": Hostile(RIGHT + RIGHT, None),
    "four-billion-items": Hostile(body(Raw(b"\xdd\xff\xff\xff\xff")), None),
    "a-billion-values": hostile("feature", feature=Raw(b"\xdd\x40\x00\x00\x00")),
    "four-gigabytes": hostile("feature", feature=Raw(b"\xc6\xff\xff\xff\xff")),
    "four-gigabytes-of-text": hostile("feature", feature=Raw(b"\xdb\xff\xff\xff\xff")),
    "a-million-levels": hostile("feature", feature=Raw(b"\x92\xa4list" * 1_000_000 + b"\xc0")),
    "a-thousand-levels": hostile("feature", feature=Raw(b"\x92\xa4list" * 1_000 + b"\xc0")),
    "a-million-values": hostile("feature", feature=["list", *[None] * 1_000_000]),
    "a-million-items": Hostile(body([[]] * 1_000_000), None),
}  # fmt: skip
LENGTHS = {name: one._replace(path=None) for name, one in LENGTHS.items()}
BLOCKS = {
    "negative-size": block("float32", [-3], bytes(12)),
    "two-negative-sizes": block("float32", [-1, -3], bytes(12)),
    "one-byte-short": block("float32", [3], bytes(11)),
    "one-element-more": block("float32", [4], bytes(12)),
    "no-bytes": block("float32", [3], b""),
    "bytes-of-nothing": block("float32", [0], bytes(4)),
    "a-terabyte": block("float32", [2**20, 2**20], bytes(12)),
    "a-product-beyond-64-bits": block("float32", [2**32, 2**32, 2**62], b""),
    "a-product-that-overflows-to-three": block("uint8", [2**63 + 1, 3], bytes(3)),
    "a-product-that-overflows-to-none": block("uint8", [2**32, 2**32], b""),
    "a-nothing-of-huge-sizes": block("float32", [0, 2**62, 2**62], b""),
    "a-size-that-is-no-number": block("float32", [nan], b""),
    "a-size-with-a-fraction": block("float32", [3.0], bytes(12)),
    "a-size-of-true": block("float32", [True], bytes(4)),
    "a-size-of-text": block("float32", ["3"], bytes(12)),
    "a-size-of-none": block("float32", [None], bytes(12)),
    "a-hundred-dimensions": block("float32", [1] * 100, bytes(4)),
    "an-array-one-byte-short": hostile("feature.shape", feature=["array", "int16", [2, 2], bytes(7)]),
    "an-embedding-one-row-short": hostile(
        "embedding.shape", feature=None, embedding=["tensor", "float32", [2, 2], bytes(8)], format="precomputed_embedding"
    ),
    "in-a-list": hostile("feature[1].shape", feature=["list", TENSOR, ["tensor", "float32", [2], bytes(12)]]),
    "in-a-field": hostile("fields[0].shape", fields=["map", SECRET, ["tensor", "float32", [2], bytes(12)]]),
}
FORMS = {
    "one-part-more": Hostile(body([free([*PARTS.values()]), [*PARTS.values(), SECRET]]), "items[1]"),
    "one-part-less": Hostile(body([free([*PARTS.values()]), [*PARTS.values()][:-1]]), "items[1]"),
    "an-item-of-text": Hostile(body([SECRET]), "items[0]"),
    "a-request-of-four": Hostile(pack(["mmproof", 1, "request", [SECRET, b"", [], []]]), None),
    "items-of-text": Hostile(body(SECRET), None),
    "a-field-twice": hostile("fields[1]", fields=["map", SECRET, 1, SECRET, 2]),
    "a-field-twice-but-not-in-a-row": hostile("fields[2]", fields=["map", "a", 1, SECRET, 2, "a", 3]),
    "fields-that-descend": hostile("fields[1]", fields=["map", SECRET, 1, "a", 2]),
    "a-field-without-a-value": hostile("fields", fields=["map", "a", 1, SECRET]),
    "a-field-without-a-name": hostile("fields[0]", fields=["map", 1, SECRET]),
    "fields-in-a-list": hostile("fields", fields=["list", SECRET]),
    "a-map": hostile("", fields=Raw(b"\x81\xa1a\x01"))._replace(path=None),
    "an-extension": hostile("", feature=Raw(b"\xd4\x01\x01"))._replace(path=None),
    "a-time": hostile("", feature=Raw(b"\xd6\xff\0\0\0\0"))._replace(path=None),
    "an-unknown-kind": hostile("feature", feature=["sparse", [0], [1], SECRET]),
    "a-list-without-a-kind": hostile("feature", feature=[1, 2, 3]),
    "a-list-of-nothing": hostile("feature", feature=[]),
    "a-tensor-of-five-parts": hostile("feature", feature=[*TENSOR, SECRET]),
    "a-payload-of-text": hostile("feature", feature=[*TENSOR[:3], SECRET]),
    "an-empty-handle": hostile("feature", feature=["handle", b""]),
    "a-handle-of-text": hostile("feature", feature=["handle", SECRET]),
}
DOMAINS = {
    "an-id-of-bytes": Hostile(body([], id=SECRET.encode()), "id"),
    "ids-of-text": Hostile(body([], input_ids=SECRET), "input_ids"),
    "ids-of-seven-bytes": Hostile(body([], input_ids=bytes(7)), "input_ids"),
    "an-unknown-modality": hostile("modality", modality=4),
    "a-modality-of-true": hostile("modality", modality=True),
    "a-modality-of-text": hostile("modality", modality="IMAGE"),
    "an-unknown-format": hostile("format", format="sparse_embedding"),
    "a-format-that-contradicts": hostile("format", format="precomputed_embedding"),
    "a-feature-and-an-embedding": hostile("embedding", embedding=TENSOR, format="precomputed_embedding"),
    "an-embedding-of-text": hostile("embedding", feature=None, embedding=SECRET, format="precomputed_embedding"),
    "a-list-of-embeddings": hostile("embedding", feature=None, embedding=["list", TENSOR], format="precomputed_embedding"),
    "an-identity-of-31-bytes": hostile("identity", identity=bytes(31)),
    "an-identity-of-text": hostile("identity", identity=SECRET),
    "a-negative-hash": hostile("caller_hash", caller_hash=-1),
    "a-hash-of-true": hostile("caller_hash", caller_hash=True),
    "a-hash-with-a-fraction": hostile("caller_hash", caller_hash=7.0),
    "spans-of-text": hostile("spans", spans=SECRET),
    "half-a-span": hostile("spans", spans=int64s((3, 4, 6))),
    "a-span-before-the-prompt": hostile("spans[0]", spans=int64s((-1, 4))),
    "a-span-behind-the-prompt": hostile("spans[1]", spans=int64s((3, 4, 8, 9))),
    "a-span-of-nothing": hostile("spans[0]", spans=int64s((4, 3))),
    "a-span-beyond-everything": hostile("spans[0]", spans=int64s((0, 2**63 - 1))),
    "spans-out-of-order": hostile("spans[1]", spans=int64s((6, 7, 3, 4))),
    "spans-that-overlap": hostile("spans[1]", spans=int64s((3, 6, 6, 7))),
    "items-that-overlap": Hostile(body([[*PARTS.values()], [*PARTS.values()]]), "items"),
    "an-unknown-dtype": block("float128", [1], bytes(16), "dtype"),
    "a-dtype-that-is-no-dtype": block("nn", [1], bytes(16), "dtype"),
    "an-array-of-objects": hostile("feature.dtype", feature=["array", "object", [1], bytes(8)]),
    "an-array-in-bfloat16": hostile("feature.dtype", feature=["array", "bfloat16", [1], bytes(2)]),
    "a-truth-value-of-two": hostile("feature", feature=["tensor", "bool", [3], b"\0\1\2"]),
    "a-field-that-is-no-number": hostile("fields[0]", fields=["map", "fps", nan]),
    "an-infinite-field": hostile("fields[0][1]", fields=["map", "fps", ["list", 1, inf]]),
}
SPELLINGS = {
    "text-that-is-not-utf-8": hostile("feature", feature=Raw(b"\xa2\xff\xfe")),
    "text-of-half-a-surrogate-pair": hostile("feature", feature=Raw(b"\xa3\xed\xa0\x80")),
    "a-name-that-is-not-utf-8": hostile("feature", fields=["map", Raw(b"\xa1\xff"), 1]),
    "an-id-that-is-not-utf-8": Hostile(body([], id=Raw(b"\xa1\xff")), None),
    "a-float-in-32-bits": hostile("feature", feature=Raw(b"\xca\x3f\x80\0\0")),
    "a-small-number-in-two-bytes": hostile("feature", feature=Raw(b"\xcc\x01")),
    "a-negative-number-in-two-bytes": hostile("feature", feature=Raw(b"\xd0\xff")),
    "a-positive-number-as-a-signed-one": hostile("feature", feature=Raw(b"\xd1\x01\0")),
    "a-short-text-with-a-long-head": hostile("feature", feature=Raw(b"\xd9\x01a")),
    "short-bytes-with-a-long-head": hostile("feature", feature=Raw(b"\xc5\0\x01a")),
    "a-short-list-with-a-long-head": hostile("feature", feature=Raw(b"\xdc\0\x02\xa4list\xc0")),
    "a-byte-that-is-none": hostile("feature", feature=Raw(b"\xc1")),
}
SPELLINGS = {name: one._replace(path=None) for name, one in SPELLINGS.items()}
