"""Values: plain data as MessagePack and back, within limits, and nothing else.

    None, True, 1, 1.5, "text", b"bytes"      as MessagePack has them
    list, tuple                               ["list", …]
    mapping from strings                      ["map", name, value, name, value, …], names in ascending order
    torch tensor, numpy array                 ["tensor" or "array", dtype, [size, …], payload]
    Handle                                    ["handle", token]

1. Arrays alone have parts, and say by their first element what they are. There are no maps, so nothing can be named twice
   or by a name that nobody knows; there are no extensions, so nothing is built but what stands above.
2. Each value has one form: numbers and lengths are written as short as they can be, floats in 64 bits. A message is read
   only if writing what was read gives the same message.
3. Lengths are compared with the bytes that are there (`reference.transport.survey`), and shapes with their payloads,
   before anything is allocated.
4. Payloads are rows of little-endian elements, and any bits are a value, but for truth values: these are 0 or 1.
5. An error says where, `items[2].feature.shape`, and repeats nothing of a message: a log is read by others than a prompt.

Sources: the MessagePack specification; msgspec 0.23, which writes the short forms and checks lengths as it reads.
Disagreements: SGLang 0.5.23 pickles what travels between its processes; vLLM 0.33.0 has a MessagePack of its own, with
pickle for what that does not know where this is allowed.
"""

from collections.abc import Iterator, Mapping
from math import isfinite, prod
from typing import Any

import msgspec
import numpy as np
import torch

from reference.items import Handle
from reference.transport.survey import Limits, WireError, require, survey

DTYPES = {
    name: getattr(torch, name)
    for name in (
        "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32",
        "float64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        "complex64", "complex128",
    )
}  # fmt: skip
"""The element types of tensors by their names on the wire."""
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ARRAY_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
        "complex64", "complex128",
    )
}  # fmt: skip
"""Those of arrays."""


def to_plain(value: Any, path: str, limits: Limits, depth: int = 0) -> Any:
    """A value as lists, numbers, text and bytes, the way it is written. Raises WireError for what has no form."""
    if depth > limits.depth:
        raise WireError(path, f"it is nested deeper than {limits.depth} levels, or contains itself")
    match value:
        case None | bool():
            return value
        case int():
            require(-1 << 63 <= value < 1 << 64, path, "an integer has 64 bits")
            return int(value)
        case float():
            require(isfinite(value), path, "a number is finite; tensors may hold others")
            return float(value)
        case str():
            return _text(value, path)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case Handle():
            return ["handle", value.token]
        case torch.Tensor():
            return _plain_tensor(value, path, limits)
        case np.ndarray():
            return _plain_array(value, path, limits)
        case list() | tuple():
            return ["list", *(to_plain(one, f"{path}[{n}]", limits, depth + 1) for n, one in enumerate(value))]
        case Mapping():
            return ["map", *_plain_pairs(value, path, limits, depth)]
    raise WireError(path, f"a {type(value).__name__} is no plain data, and has no form on the wire")


def from_plain(plain: Any, path: str, limits: Limits) -> Any:
    """The value of what was written, lists for sequences. Raises WireError for what `to_plain` does not write."""
    if not isinstance(plain, list):
        require(not isinstance(plain, float) or isfinite(plain), path, "a number is finite; tensors may hold others")
        return plain
    match plain:
        case ["list", *values]:
            return [from_plain(one, f"{path}[{n}]", limits) for n, one in enumerate(values)]
        case ["map", *parts]:
            return _pairs(parts, path, limits)
        case ["handle", bytes() as token]:
            require(len(token) > 0, path, "a token has at least one byte")
            return Handle(token)
        case ["tensor", str() as dtype, list() as shape, bytes() as payload]:
            _check_block(DTYPES.get(dtype), dtype, shape, payload, path, limits)
            flat = torch.frombuffer(bytearray(payload), dtype=DTYPES[dtype]) if payload else torch.empty(0, dtype=DTYPES[dtype])
            return flat.reshape(shape)
        case ["array", str() as dtype, list() as shape, bytes() as payload]:
            _check_block(ARRAY_DTYPES.get(dtype), dtype, shape, payload, path, limits)
            return np.frombuffer(payload, dtype=ARRAY_DTYPES[dtype]).astype(dtype).reshape(shape)
    raise WireError(path, "no kind of value looks like this")


def write(plain: Any, limits: Limits) -> bytes:
    """Plain lists as a message. Raises WireError when it would be beyond the limits of a reader."""
    data = msgspec.msgpack.encode(plain)
    survey(data, limits)
    return data


def read(data: bytes, limits: Limits) -> Any:
    """The plain lists of a message. Raises WireError for what is no message, or not in the one form that it has."""
    survey(data, limits)
    try:
        return msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise WireError("", "its text is not UTF-8") from None


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise WireError(path, "half a surrogate pair is no text") from None
    return str(value)


def _plain_pairs(value: Mapping[Any, Any], path: str, limits: Limits, depth: int) -> Iterator[Any]:
    require(all(isinstance(name, str) for name in value), path, "the names of a mapping are text")
    for n, name in enumerate(sorted(value)):
        yield _text(name, f"{path}[{n}]")
        yield to_plain(value[name], f"{path}[{n}]", limits, depth + 1)


def _pairs(parts: list[Any], path: str, limits: Limits) -> dict[str, Any]:
    require(len(parts) % 2 == 0, path, "each name has a value")
    made: dict[str, Any] = {}
    last = None
    for n in range(len(parts) // 2):
        name = parts[2 * n]
        require(isinstance(name, str), f"{path}[{n}]", "a name is text")
        require(last is None or last < name, f"{path}[{n}]", "names ascend, and none comes twice")
        made[name], last = from_plain(parts[2 * n + 1], f"{path}[{n}]", limits), name
    return made


def _plain_tensor(tensor: torch.Tensor, path: str, limits: Limits) -> list[Any]:
    is_plain = tensor.layout == torch.strided and tensor.device.type != "meta" and not tensor.is_quantized
    require(is_plain and not tensor.is_nested, path, "a tensor is dense and has its values in memory")
    require(tensor.dtype in NAMES, f"{path}.dtype", "no tensor of this dtype travels")
    _check_shape(list(tensor.shape), tensor.dtype.itemsize, path, limits)
    flat = tensor.detach().resolve_conj().resolve_neg().cpu().reshape(-1).contiguous()
    payload = flat.view(torch.uint8).numpy().data if flat.numel() else b""
    return ["tensor", NAMES[tensor.dtype], list(tensor.shape), payload]


def _plain_array(array: np.ndarray, path: str, limits: Limits) -> list[Any]:
    name = array.dtype.newbyteorder("=").name
    is_plain = name in ARRAY_DTYPES and not isinstance(array, np.ma.MaskedArray)
    require(is_plain, f"{path}.dtype", "no array of this dtype travels, and none with a mask")
    _check_shape(list(array.shape), array.dtype.itemsize, path, limits)
    return ["array", name, list(array.shape), np.asarray(array).astype(ARRAY_DTYPES[name], copy=False).tobytes()]


def _check_shape(shape: list[Any], width: int, path: str, limits: Limits) -> None:
    where = f"{path}.shape"
    require(len(shape) <= limits.dimensions, where, f"a shape has at most {limits.dimensions} dimensions")
    require(all(type(size) is int and size >= 0 for size in shape), where, "sizes are integers of at least 0")
    require(prod(size or 1 for size in shape) * width <= limits.total_bytes, where, "it is larger than a message may be")


def _check_block(known: Any, dtype: str, shape: list[Any], payload: bytes, path: str, limits: Limits) -> None:
    require(known is not None, f"{path}.dtype", "there is no such dtype")
    _check_shape(shape, known.itemsize, path, limits)
    require(prod(shape) * known.itemsize == len(payload), f"{path}.shape", "it does not agree with the bytes that are there")
    if dtype == "bool":
        require(not payload.translate(None, b"\0\1"), path, "a truth value is 0 or 1")
