"""The wire: messages of a room as bytes.

    4 bytes, big-endian: the length of the header | the header, JSON | the bytes of all tensors, one after the other

Tensors travel as they lie in memory, and the header says how to read them. Everything is checked on the way in: a message
that is not of this form is an error, and no code runs that came with it.
"""

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import torch

from reference.items import Item, Modality, Request, Span

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int64,
        torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip


class BadMessage(ValueError):
    """Bytes that are no message."""


def pack(header: Mapping[str, Any], tensors: Sequence[torch.Tensor] = ()) -> bytes:
    """A header of plain data, and tensors of any shape, as bytes. Raises TypeError for what has no place in a header."""
    forms, bodies = [], []
    for tensor in tensors:
        bodies.append(tensor_bytes(tensor))
        forms.append([str(tensor.dtype).removeprefix("torch."), list(tensor.shape)])
        if forms[-1][0] not in DTYPES:
            raise TypeError(f"a tensor of {tensor.dtype} does not travel; those of {', '.join(DTYPES)} do")
    text = json.dumps({**header, "tensors": forms}).encode()
    return b"".join([len(text).to_bytes(4, "big"), text, *bodies])


def unpack(message: Any) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """The header and the tensors of a message, in memory of their own. Raises BadMessage for bytes that are none."""
    if not isinstance(message, bytes | bytearray | memoryview) or len(message) < 4:
        raise BadMessage("a message is at least 4 bytes")
    view = memoryview(message).cast("B")
    start = 4 + int.from_bytes(view[:4], "big")
    try:
        header = json.loads(bytes(view[4:start]))
        forms = [(DTYPES[name], [_size(size) for size in shape]) for name, shape in header.pop("tensors")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadMessage(f"the header cannot be read: {error}") from error
    tensors = []
    for dtype, shape in forms:
        stop = start + prod(shape) * dtype.itemsize
        if stop > len(view):
            raise BadMessage(f"a tensor of {shape} ends behind the message")
        tensors.append(tensor_from(view[start:stop], dtype, shape))
        start = stop
    if start != len(view):
        raise BadMessage(f"{len(view) - start} bytes lie behind the last tensor")
    return header, tensors


def pack_prompt(request: Request) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """Ids and items of a request as plain data, and the tensors among them. Content stays where it is."""
    tensors = [torch.from_numpy(request.input_ids.copy())]
    items = [
        {
            "modality": int(item.modality),
            "spans": [[span.first, span.last] for span in item.spans],
            "identity": None if item.identity is None else item.identity.hex(),
            "fields": _flat(dict(item.fields), tensors),
        }
        for item in request.items
    ]
    return {"request": request.id, "items": items}, tensors


def unpack_prompt(header: Mapping[str, Any], tensors: Sequence[torch.Tensor]) -> Request:
    """The request that was packed. Raises BadMessage for data that are none."""
    try:
        items = [
            Item(
                modality=Modality(one["modality"]),
                spans=tuple(Span(*span) for span in one["spans"]),
                identity=None if one["identity"] is None else bytes.fromhex(one["identity"]),
                fields=_raised(one["fields"], tensors),
            )
            for one in header["items"]
        ]
        return Request(id=header["request"], input_ids=tensors[0].numpy(), items=tuple(items))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise BadMessage(f"these are not the ids and items of a request: {error}") from error


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor in their order, as they lie in memory."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def tensor_from(data: Any, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """The tensor whose elements these bytes are, in memory of its own."""
    if prod(shape) == 0:
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(tuple(shape))


def _flat(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Plain data for a header. Tensors and arrays go into the list, and leave their number."""
    match value:
        case torch.Tensor():
            tensors.append(value)
            return {"tensor": len(tensors) - 1}
        case np.ndarray():
            tensors.append(torch.from_numpy(value.copy()))
            return {"array": len(tensors) - 1}
        case np.generic():
            return _flat(value.item(), tensors)
        case tuple():
            return {"tuple": [_flat(one, tensors) for one in value]}
        case list():
            return [_flat(one, tensors) for one in value]
        case Mapping():
            return {"mapping": [[_flat(key, tensors), _flat(one, tensors)] for key, one in value.items()]}
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"{type(value).__name__} does not travel: fields are numbers, texts, tensors, arrays, and lists of these")


def _raised(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    match value:
        case {"tensor": number}:
            return tensors[number]
        case {"array": number}:
            return tensors[number].numpy()
        case {"tuple": list(parts)}:
            return tuple(_raised(one, tensors) for one in parts)
        case {"mapping": list(pairs)}:
            return {_raised(key, tensors): _raised(one, tensors) for key, one in pairs}
        case list():
            return [_raised(one, tensors) for one in value]
    return value


def _size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"a size is at least 0, not {value!r}")
    return value
