"""What is obviously right about messages: MessagePack written value by value, and requests told part by part."""

import struct
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch

from reference.items import Format, Handle, Item, Request


class Raw(NamedTuple):
    """Bytes that stand in a message as they are."""

    data: bytes


def head(short: int | None, most: int, wide: tuple[int, ...], length: int) -> bytes:
    """The head of something with a length: in one byte up to `most`, else behind the first of `wide` that has room."""
    if short is not None and length <= most:
        return bytes([short + length])
    width = next(n for n in (1, 2, 4) if length < 256**n and wide[n.bit_length() - 1])
    return bytes([wide[width.bit_length() - 1]]) + length.to_bytes(width, "big")


def integer(value: int) -> bytes:
    """An integer in its shortest form."""
    if -32 <= value < 128:
        return struct.pack("b" if value < 0 else "B", value)
    forms = (
        ((0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q"))
        if value > 0
        else ((0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q"))
    )
    for first, form in forms:
        try:
            return bytes([first]) + struct.pack(f">{form}", value)
        except struct.error:
            continue
    raise ValueError("an integer has 64 bits")


def pack(value: Any) -> bytes:
    """A value in MessagePack, lists as arrays."""
    if isinstance(value, Raw):
        return value.data
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return head(0xA0, 31, (0xD9, 0xDA, 0xDB), len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return head(None, 0, (0xC4, 0xC5, 0xC6), len(value)) + value
    return head(0x90, 15, (0, 0xDC, 0xDD), len(value)) + b"".join(map(pack, value))


def int64s(values: Any) -> bytes:
    """Integers, one after another."""
    return b"".join(struct.pack("<q", int(value)) for value in values)


def octets(block: torch.Tensor | np.ndarray) -> bytes:
    """The elements of a tensor or an array, one by one, row by row, little-endian."""
    places = product(*map(range, block.shape))
    if isinstance(block, np.ndarray):
        return b"".join(block[place].astype(block.dtype.newbyteorder("<")).tobytes() for place in places)
    plain = block.detach().resolve_conj().resolve_neg()
    return b"".join(bytes(plain[place].reshape(1).contiguous().view(torch.uint8).tolist()) for place in places)


def plain(value: Any) -> Any:
    """A value of an item in the forms of version 1."""
    if isinstance(value, torch.Tensor):
        return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape), octets(value)]
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.name, list(value.shape), octets(value)]
    if isinstance(value, Handle):
        return ["handle", value.token]
    if isinstance(value, Mapping):
        return ["map", *(part for name in sorted(value) for part in (name, plain(value[name])))]
    return ["list", *map(plain, value)] if isinstance(value, list | tuple) else value


def plain_item(item: Item) -> list[Any]:
    """An item in the form of version 1."""
    spans = int64s(position for span in item.spans for position in (span.first, span.last))
    content = [plain(item.feature), plain(item.embedding), plain(item.fields)]
    return [int(item.modality), Format(item.format).value, spans, *content, item.identity, item.caller_hash]


def message(request: Request) -> bytes:
    """A request in mmproof's format, version 1."""
    return pack(["mmproof", 1, "request", [request.id, int64s(request.input_ids), [*map(plain_item, request.items)]]])


def told(value: Any, path: str) -> list[tuple[str, Any]]:
    """A value, part by part: the path to each, and what is there in a form that can be compared."""
    if isinstance(value, torch.Tensor | np.ndarray):
        name = value.dtype.name if isinstance(value, np.ndarray) else str(value.dtype).removeprefix("torch.")
        return [(f"{path}.dtype", name), (f"{path}.shape", [*value.shape]), (path, octets(value))]
    if isinstance(value, Mapping):
        return [(path, sorted(value)), *(part for name in sorted(value) for part in told(value[name], f"{path}.{name}"))]
    if isinstance(value, list | tuple):
        return [(path, len(value)), *(part for n, one in enumerate(value) for part in told(one, f"{path}[{n}]"))]
    return [(path, value if isinstance(value, Handle) else f"{type(value).__name__} {value!r}")]


def told_request(request: Request) -> list[tuple[str, Any]]:
    """A request, part by part."""
    parts = [*told(request.id, "id"), *told(request.input_ids, "input_ids"), ("items", len(request.items))]
    for n, item in enumerate(request.items):
        for name in ("modality", "format", "spans", "feature", "embedding", "fields", "identity", "caller_hash"):
            parts += told(getattr(item, name), f"items[{n}].{name}")
    return parts
