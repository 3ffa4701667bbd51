"""Values as plain JSON, and back.

Numbers (integers of any size), text, truth values, None, lists, and mappings from text stand for themselves. Everything
else is a mapping with a key `$` that names its kind, as in `{"$": "bytes", "base64": "aGk="}`; `docs/worker.md` lists
them. Arrays and tensors keep their layout: what differs between layouts must be seen on the other side, too. What is no
value (a function, an encoder, whatever an engine opens) stays where it is, and the other side gets a reference.
"""

import asyncio
import base64
import builtins
import concurrent.futures
import ctypes
import importlib
import math
from array import array
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from conformance.remote.links import borrow

VOCABULARY = ("reference.items", "conformance.protocol", "conformance.engine", "conformance.profile", "conformance.world")
"""Where the classes are that both sides know: frozen data, made anew from its fields."""

ERRORS = {
    error.__name__: error
    for error in (*vars(builtins).values(), asyncio.CancelledError, concurrent.futures.CancelledError)
    if isinstance(error, type) and issubclass(error, BaseException)
}
"""The errors that both sides know by name. concurrent.futures' CancelledError stands for asyncio's, too."""

Refer = Callable[[Any], dict[str, Any]]
Resolve = Callable[[dict[str, Any]], Any]


class NotPlain(TypeError):
    """A line does not hold what it should."""


def to_plain(value: Any, refer: Refer) -> Any:
    """A value as JSON can hold it. refer: how to write what is no value."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$": "float", "text": repr(value)}
    for kind, write in WRITERS.items():
        if type(value) is kind:
            return write(value, refer)
    if type(value).__module__.startswith(VOCABULARY) and not isinstance(value, Mapping):
        return _known(value, refer)
    if isinstance(value, torch.Tensor):
        return _tensor(value, refer)
    if isinstance(value, Image.Image):
        return _picture(value, refer)
    if isinstance(value, BaseException):
        return _error(value, refer)
    if isinstance(value, np.generic):
        return {"$": "scalar", "of": _array(np.array(value), refer)}
    if isinstance(value, Path):
        return {"$": "path", "text": str(value)}
    if isinstance(value, Mapping):
        return _mapping(value, refer)
    if isinstance(value, KeysView | ItemsView | ValuesView):
        return to_plain(tuple(value), refer)
    return refer(value)


def from_plain(plain: Any, resolve: Resolve) -> Any:
    """The value of what `to_plain` wrote. Raises NotPlain."""
    if isinstance(plain, list):
        return [from_plain(one, resolve) for one in plain]
    if not isinstance(plain, dict):
        return plain
    if "$" not in plain:
        return {name: from_plain(one, resolve) for name, one in plain.items()}
    read: Callable[[dict[str, Any], Resolve], Any] = READERS.get(plain["$"], lambda plain, resolve: resolve(plain))
    try:
        return read(plain, resolve)
    except KeyError as missing:
        raise NotPlain(f"a value of kind {plain['$']!r} has {missing}, which this one lacks") from missing


def _mapping(value: Mapping[Any, Any], refer: Refer) -> dict[str, Any]:
    if all(isinstance(key, str) for key in value) and "$" not in value and type(value) is dict:
        return {key: to_plain(one, refer) for key, one in value.items()}
    pairs = [[to_plain(key, refer), to_plain(one, refer)] for key, one in value.items()]
    return {"$": "map", "pairs": pairs}


def _sequence(kind: str) -> Callable[[Any, Refer], Any]:
    return lambda value, refer: {"$": kind, "values": [to_plain(one, refer) for one in value]}


def _octets(kind: str) -> Callable[[Any, Refer], Any]:
    return lambda value, refer: {"$": kind, "base64": _base64(value)}


def _base64(data: Any) -> str:
    return base64.b64encode(data).decode("ascii")


def _array(value: np.ndarray, refer: Refer) -> dict[str, Any]:
    """With strides in bytes, and the place of the first element in what is sent: all memory between first and last."""
    if value.dtype.hasobject:
        return refer(value)
    low, high = np.lib.array_utils.byte_bounds(value)
    data = ctypes.string_at(low, high - low) if value.size else b""
    kind = value.dtype.str if value.dtype.names is None else [list(one) for one in value.dtype.descr]
    return {
        "$": "array", "dtype": kind, "shape": list(value.shape), "strides": list(value.strides),
        "first": value.ctypes.data - low if value.size else 0, "writeable": value.flags.writeable, "base64": _base64(data),
    }  # fmt: skip


def _read_array(plain: dict[str, Any], resolve: Resolve) -> np.ndarray:
    kind = plain["dtype"]
    dtype = np.dtype(kind) if isinstance(kind, str) else np.dtype([tuple(one) for one in kind])
    shape = tuple(plain["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = plain.get("strides")
    value: np.ndarray = np.ndarray(
        shape, dtype, bytearray(base64.b64decode(plain["base64"])), plain.get("first", 0), tuple(strides) if strides else None
    )
    value.flags.writeable = plain.get("writeable", True)
    return value


def _tensor(value: torch.Tensor, refer: Refer) -> dict[str, Any]:
    """With strides in elements. Conjugate and negative views are resolved, and nothing is left of a graph."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout not in (torch.strided, torch.sparse_coo):
        return refer(value)
    if value.layout is torch.sparse_coo:
        parts = [value._indices(), value._values()]
        return {"$": "sparse", "shape": list(value.shape), "parts": [_tensor(one, refer) for one in parts]}
    made = {
        "$": "tensor", "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape),
        "strides": list(value.stride()), "grad": value.requires_grad,
    }  # fmt: skip
    if value.device.type == "meta":
        return {**made, "device": "meta"}
    plain = value.detach().resolve_conj().resolve_neg().cpu()
    span = 1 + sum((size - 1) * step for size, step in zip(plain.shape, plain.stride(), strict=True)) if plain.numel() else 0
    memory = plain.as_strided((span,), (1,)).contiguous()
    return {**made, "strides": list(plain.stride()), "base64": _base64(memory.view(torch.uint8).numpy())}


def _read_tensor(plain: dict[str, Any], resolve: Resolve) -> torch.Tensor:
    dtype = getattr(torch, plain["dtype"], None)
    if not isinstance(dtype, torch.dtype):
        raise NotPlain(f"torch has no dtype {plain['dtype']!r}")
    shape = plain["shape"]
    if plain.get("device") == "meta":
        return torch.empty(shape, dtype=dtype, device="meta")
    data = base64.b64decode(plain["base64"])
    memory = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype) if data else torch.empty(0, dtype=dtype)
    value = memory.as_strided(shape, plain["strides"]) if plain.get("strides") and data else memory.reshape(shape)
    return value.requires_grad_(plain.get("grad", False))


def _read_sparse(plain: dict[str, Any], resolve: Resolve) -> torch.Tensor:
    indices, values = (from_plain(one, resolve) for one in plain["parts"])
    return torch.sparse_coo_tensor(indices, values, plain["shape"], check_invariants=False)


def _picture(value: Image.Image, refer: Refer) -> dict[str, Any]:
    kept = {name: one for name, one in value.info.items() if isinstance(one, int | float | str | bytes | tuple)}
    palette = value.getpalette("RGBA" if "transparency" in value.info else "RGB") if value.mode in ("P", "PA") else None
    return {
        "$": "picture", "mode": value.mode, "size": list(value.size), "base64": _base64(value.tobytes()),
        "palette": palette, "info": to_plain(kept, refer),
    }  # fmt: skip


def _read_picture(plain: dict[str, Any], resolve: Resolve) -> Image.Image:
    value = Image.frombytes(plain["mode"], tuple(plain["size"]), base64.b64decode(plain["base64"]))
    value.info = from_plain(plain.get("info", {}), resolve)
    if plain.get("palette"):
        value.putpalette(plain["palette"], "RGBA" if "transparency" in value.info else "RGB")
    return value


def _error(value: BaseException, refer: Refer) -> dict[str, Any]:
    """With a reference, so that an error that comes home is the one that left."""
    bases = [one.__name__ for one in type(value).__mro__ if ERRORS.get(one.__name__) is one or one is asyncio.CancelledError]
    told = {"name": type(value).__name__, "bases": bases, "text": _words(value)}
    return {"$": "error", **told, "reference": refer(getattr(value, "there", value))}


def _read_error(plain: dict[str, Any], resolve: Resolve) -> BaseException:
    """An error of this name, of the first class among its bases that is known here, with the same text."""
    there = resolve(plain["reference"]) if "reference" in plain else None
    if isinstance(there, BaseException):
        return there
    base = next((ERRORS[one] for one in plain.get("bases", ()) if one in ERRORS), Exception)
    kind: Any = type(plain["name"], (base,), {"__str__": lambda error: str(error.args[0]), "__module__": base.__module__})
    made = kind.__new__(kind)  # some classes want more than a text
    made.args, made.there = (plain.get("text", ""),), there
    return made  # type: ignore[no-any-return]


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "an error whose text cannot be had"


def _known(value: Any, refer: Refer) -> Any:
    """Data of a class that both sides know; anything else in these modules is an instrument, and stays where it is."""
    kind = type(value)
    name = {"$": "data", "class": f"{kind.__module__}:{kind.__qualname__}"}
    if isinstance(value, Enum):
        return {**name, "value": to_plain(value.value, refer)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {**name, "fields": {one: to_plain(getattr(value, one), refer) for one in value._fields}}
    if kind.__name__ == "Checkpoint":
        return {**name, "made_by": "tiny_qwen2_vl"}
    if is_dataclass(value) and kind.__dataclass_params__.frozen:
        return {**name, "fields": {one.name: to_plain(getattr(value, one.name), refer) for one in fields(value) if one.init}}
    return _error(value, refer) if isinstance(value, BaseException) else refer(value)


def _read_known(plain: dict[str, Any], resolve: Resolve) -> Any:
    module, _, name = str(plain["class"]).partition(":")
    if not module.startswith(VOCABULARY):
        raise NotPlain(f"{plain['class']} is none of the classes that both sides know")
    kind = getattr(importlib.import_module(module), name)
    if "made_by" in plain:
        return getattr(importlib.import_module(module), plain["made_by"])()
    if "value" in plain:
        return kind(from_plain(plain["value"], resolve))
    return kind(**{one: from_plain(part, resolve) for one, part in plain["fields"].items()})


WRITERS: dict[type, Callable[[Any, Refer], Any]] = {
    list: lambda value, refer: [to_plain(one, refer) for one in value],
    tuple: _sequence("tuple"),
    set: _sequence("set"),
    frozenset: _sequence("frozenset"),
    dict: _mapping,
    range: lambda value, refer: {"$": "range", "bounds": [value.start, value.stop, value.step]},
    bytes: _octets("bytes"),
    bytearray: _octets("bytearray"),
    np.ndarray: _array,
    array: lambda value, refer: {"$": "integers", "typecode": value.typecode, "base64": _base64(value.tobytes())},
}

READERS: dict[str, Callable[[dict[str, Any], Resolve], Any]] = {
    "tuple": lambda plain, resolve: tuple(from_plain(plain["values"], resolve)),
    "set": lambda plain, resolve: set(from_plain(plain["values"], resolve)),
    "frozenset": lambda plain, resolve: frozenset(from_plain(plain["values"], resolve)),
    "range": lambda plain, resolve: range(*plain["bounds"]),
    "map": lambda plain, resolve: {from_plain(k, resolve): from_plain(v, resolve) for k, v in plain["pairs"]},
    "float": lambda plain, resolve: float(plain["text"]),
    "bytes": lambda plain, resolve: base64.b64decode(plain["base64"]),
    "bytearray": lambda plain, resolve: bytearray(base64.b64decode(plain["base64"])),
    "integers": lambda plain, resolve: array(plain["typecode"], base64.b64decode(plain["base64"])),
    "array": _read_array,
    "scalar": lambda plain, resolve: _read_array(plain["of"], resolve)[()],
    "tensor": _read_tensor,
    "sparse": _read_sparse,
    "picture": _read_picture,
    "socket": lambda plain, resolve: borrow(plain["port"]),
    "path": lambda plain, resolve: Path(plain["text"]),
    "data": _read_known,
    "error": _read_error,
}
