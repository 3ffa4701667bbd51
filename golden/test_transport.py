"""Messages in mmproof's format, version 1, as another library of MessagePack writes them."""

from typing import Any

import numpy as np
import torch

from conformance.cases import Exact
from golden.vectors import vectors
from reference.items import Handle, Item, Request, Span


def value(given: Any) -> Any:
    """A value of an item: tensors, arrays, bytes, handles and mappings are objects with one key."""
    match given:
        case {"tensor": {"dtype": dtype, "shape": shape, "data": data}}:
            octets = torch.tensor(list(bytes.fromhex(data)), dtype=torch.uint8)
            return octets.view(getattr(torch, dtype)).reshape(shape)
        case {"array": {"dtype": dtype, "shape": shape, "data": data}}:
            return np.frombuffer(bytes.fromhex(data), dtype=dtype).reshape(shape)
        case {"bytes": data}:
            return bytes.fromhex(data)
        case {"handle": token}:
            return Handle(bytes.fromhex(token))
        case {"map": parts}:
            return {name: value(part) for name, part in parts.items()}
        case list():
            return [value(part) for part in given]
    return given


def item(given: dict[str, Any]) -> Item:
    """An item."""
    identity = given.get("identity")
    return Item(
        modality=given["modality"],
        spans=tuple(Span(*span) for span in given.get("spans", [])),
        feature=value(given.get("feature")),
        embedding=value(given.get("embedding")),
        fields=value({"map": given.get("fields", {})}),
        format=given.get("format"),
        identity=bytes.fromhex(identity) if identity else None,
        caller_hash=given.get("caller_hash"),
    )


def exact(given: dict[str, Any], expected: str) -> Exact:
    """A request and its message."""
    ids = np.array(given["input_ids"], dtype=np.int64)
    return Exact(Request(id=given["id"], input_ids=ids, items=tuple(map(item, given["items"]))), bytes.fromhex(expected))


@vectors("TRANSPORT-18")
def test_messages_that_are_read(given: dict[str, Any], expected: str) -> Exact:
    return exact(given, expected)


@vectors("TRANSPORT-19")
def test_messages_that_are_written(given: dict[str, Any], expected: str) -> Exact:
    return exact(given, expected)
