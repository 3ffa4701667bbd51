"""What the wire is tried on: requests that travel, and those that cannot."""

from collections.abc import Callable
from math import inf, nan
from typing import Any, ClassVar

import numpy as np
import torch

from reference.items import Format, Handle, Item, Modality, Request, Span

TORCH = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32",
    "float64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128",
)  # fmt: skip
NUMPY = tuple(name for name in TORCH if name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"))


def image(feature: Any, *spans: tuple[int, int], **parts: Any) -> Item:
    """A picture with this feature."""
    return Item(modality=Modality.IMAGE, spans=tuple(Span(*span) for span in spans), feature=feature, **parts)


def request(*items: Item, length: int = 9, id: str = "r") -> Request:
    """A prompt of these items."""
    return Request(id=id, input_ids=np.arange(length, dtype=np.int64) - 4, items=items)


def holding(value: Any) -> Request:
    """A request with this value as a feature."""
    return request(image(value, (0, 1)))


def stating(value: Any) -> Request:
    """A request with this value as a field."""
    return request(image(b"picture", fields={"field": value}))


def any_bits(name: str) -> torch.Tensor:
    """Elements of every byte, among them NaNs of many kinds, infinities and both zeros."""
    dtype = getattr(torch, name)
    if dtype == torch.bool:
        return torch.tensor([True, False, True])
    ramp = torch.arange(256, dtype=torch.uint8)
    return torch.cat([ramp, ramp.flip(0), ramp.new_full((32,), 255), ramp.new_tensor([0, 0, 0xC0, 0x7F] * 8)]).view(dtype)


RAMP = torch.arange(24.0).reshape(4, 6)
EXTREMES = np.array([0, -1, 2**63 - 1, -(2**63), 7], dtype=np.int64)

REQUESTS = {
    "text": request(),
    "nothing": request(length=0),
    "a-picture": request(image(RAMP, (2, 5), fields={"image_grid_thw": (1, 4, 6)}, identity=bytes(range(32)))),
    "extreme-ids": Request(id="r", input_ids=EXTREMES),
    "a-name-in-other-letters": request(id="ő-画像-\N{SLICE OF PIZZA}\0"),
    "an-item-without-positions": request(image(RAMP)),
    "every-modality": request(*(Item(modality=one, spans=(Span(2 * one, 2 * one),), feature=b"x") for one in Modality)),
    "every-format": request(image(b"x", format=Format.RAW), image(b"x"), Item(modality=Modality.IMAGE, embedding=RAMP)),
    "a-hash-of-zero": request(image(b"x", caller_hash=0)),
    "the-largest-hash": request(image(b"x", caller_hash=2**64 - 1)),
    "items-in-another-order": request(image(b"b", (6, 7)), image(b"a", (0, 3))),
    "the-same-picture-twice": request(image(RAMP, (0, 1), identity=bytes(32)), image(RAMP, (4, 5), identity=bytes(32))),
    "no-feature": request(image(None)),
    "features-in-lists": holding([RAMP, [b"x", RAMP[:1]], []]),
    "many-items": request(*(image(bytes([n]), (n, n)) for n in range(100)), length=100),
}  # fmt: skip
TENSORS = {f"{name.replace('_', '-')}": holding(any_bits(name)) for name in TORCH}
ARRAYS = {name: holding(any_bits(name).numpy()) for name in NUMPY}
SHAPES = {
    "no-dimension": holding(torch.tensor(1.5)),
    "no-dimension-in-an-array": holding(np.array(1.5)),
    "empty": holding(torch.empty(0)),
    "empty-in-the-middle": holding(torch.empty(3, 0, 2, dtype=torch.bfloat16)),
    "empty-array": holding(np.empty((0, 4), dtype=np.uint8)),
    "ones": holding(torch.ones(1, 1, 1)),
    "eight-dimensions": holding(torch.arange(256).reshape([2] * 8)),
}
LAYOUTS = {
    "transposed": holding(RAMP.T),
    "every-second": holding(RAMP[:, ::2]),
    "one-for-all": holding(torch.tensor([7.0]).expand(3, 4)),
    "behind-others": holding(RAMP[2:, 1:3]),
    "conjugated": holding(torch.tensor([1 + 2j, 3 - 4j]).conj()),
    "negated": holding(torch.tensor([1 + 2j, 3 - 4j]).conj().imag),
    "with-a-gradient": holding(torch.ones(2, requires_grad=True)),
    "a-parameter": holding(torch.nn.Parameter(torch.ones(2))),
    "backwards": holding(np.arange(6)[::-1]),
    "column-major": holding(np.asfortranarray(np.arange(6).reshape(2, 3))),
    "big-endian": holding(np.arange(6, dtype=">i4")),
    "read-only": holding(np.frombuffer(b"abcd", dtype=np.uint8)),
}
HOLES = {
    "one-hole": request(image(torch.ones(4, 2), (3, 4), (6, 7))),
    "no-hole-between-neighbours": request(image(torch.ones(4, 2), (3, 4), (5, 6))),
    "single-positions": request(image(b"x", (0, 0), (2, 2), (4, 4), (8, 8))),
    "within-one-another": request(image(b"a", (0, 1), (6, 7)), image(b"b", (3, 4))),
    "an-embedding": request(Item(modality=Modality.VIDEO, spans=(Span(0, 1), Span(5, 6)), embedding=torch.ones(4, 2))),
}
VALUES: dict[str, Any] = {
    "nothing": None, "true": True, "one": 1, "a-float": 1.0, "a-negative-zero": -0.0, "the-least": -(2**63),
    "the-most": 2**64 - 1,
    "text": "ő\0\n", "bytes": b"\xff\0", "no-text": "", "no-bytes": b"", "an-empty-list": [], "an-empty-mapping": {},
    "a-tuple": (1, (2.5, "x")), "a-mapping": {"b": {"z": [1], "a": None}, "a": torch.ones(2)}, "a-small-number": 5e-324,
    "a-tensor": torch.tensor([[1, 4, 6]]), "an-array": np.array([1.5]), "a-long-list": list(range(300)),
    "long-text": "x" * 70_000,
}  # fmt: skip
FIELDS = {name: stating(value) for name, value in VALUES.items()} | {
    "names": request(image(b"x", fields={"": 1, "ő": 2, "feature": 3, "é": 4})),
}
HANDLES = {
    "a-feature": holding(Handle(b"segment 7")),
    "beside-the-same-bytes": request(image(b"segment 7"), image(Handle(b"segment 7"))),
    "an-embedding": request(Item(modality=Modality.AUDIO, embedding=Handle(b"\0\xff" * 32))),
    "among-tensors": holding([RAMP, Handle(b"7"), b"7"]),
}


class Steals:
    """An object whose unpickling calls a function that its sender chose."""

    stolen: ClassVar[list[str]] = []

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return Steals.stolen.append, ("code of the sender ran",)


def nested(levels: int) -> list[Any]:
    """A list in a list, so many levels deep."""
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


def sparse(place: list[list[int]], shape: tuple[int, ...]) -> torch.Tensor:
    """A sparse tensor of one value at a place that may be none."""
    return torch.sparse_coo_tensor(torch.tensor(place), torch.ones(1), shape, check_invariants=False)


CODE = {"a-feature": holding(Steals()), "a-field": stating(Steals()), "in-a-list": holding([RAMP, Steals()])}
BOMBS = {
    "larger-than-memory": request(Item(modality=Modality.IMAGE, embedding=sparse([[0], [0]], (2**20, 2**20)))),
    "an-index-below-zero": request(Item(modality=Modality.IMAGE, embedding=sparse([[-1], [0]], (4, 4)))),
    "an-index-behind-the-end": request(Item(modality=Modality.IMAGE, embedding=sparse([[9], [0]], (4, 4)))),
    "one-value-for-all": holding(torch.zeros(1).expand(2**20, 2**20)),
    "without-values": holding(torch.empty(4, 4, device="meta")),
}
ODD = {
    "a-set": stating({1, 2}),
    "a-complex-number": stating(1j),
    "more-than-64-bits": stating(2**64),
    "less-than-64-bits": stating(-(2**63) - 1),
    "half-a-surrogate-pair": stating("\ud800"),
    "no-number": stating(nan),
    "infinite": stating(-inf),
    "a-number-as-a-name": stating({1: 2}),
    "an-array-of-objects": holding(np.array([None, "x"])),
    "an-array-of-text": holding(np.array(["x"])),
    "a-masked-array": holding(np.ma.masked_array([1, 2], mask=[True, False])),
    "an-object": holding(object()),
    "a-function": stating(len),
    "two-hundred-levels": stating(nested(200)),
    "an-embedding-of-bytes": request(Item(modality=Modality.IMAGE, embedding=b"rows")),
}
