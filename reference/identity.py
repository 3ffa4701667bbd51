"""Identity: 32 bytes that stand for what an item contains.

The prefix cache, the encoder cache and the deduplication of a batch compare identities and never look at the media
again. Were two different pictures to share one, a user would be answered from another user's picture. So

    identity = BLAKE3(encoding of the item)

where the encoding is injective: the item could be read back from it, but for the payloads (pixels, samples, bytes),
each of which stands in it as its own BLAKE3 digest.

1. Every part is framed, with its length in front: nothing that is appended to one part can pass for another.
2. Every part says what it is: modality, format, names, types, dtypes, shapes, how lists nest. The bytes of a payload
   alone do not tell a picture of 30x100 from one of 100x30.
3. A payload is digested where it lies and is never joined to another. An item of one tensor is thus
   BLAKE3(header || BLAKE3(payload)). A large one takes several threads, which end with the digest: those of a pool that
   outlives it would be missing after a fork, and be waited for.
4. Equal values are equal content wherever and however they are stored: on any device, in any memory layout, in a tensor
   or an array, in either byte order, in a list or a tuple (a wire cannot tell the two apart), in a dict of any order.
5. Values are compared bit by bit and never converted: -0.0 is not 0.0, and a detour through float16 would make the
   bfloat16 numbers 70000 and 80000 one and the same infinity. True, 1 and 1.0 are three values.
6. What has no stable content is refused: a missing leaf, an array of objects (pointers), an object, a name in the place
   of a medium. Metadata of a picture (EXIF) is no content.

`data_hash`, `tensor_hash` and `hash_feature` are something else: the 64-bit hashes of SGLang 0.5.23 on a CPU
(`mm_utils`), bit by bit. They break rule 2, and are here because routers share keys with it. Where SGLang stumbles over
an input (a TypeError out of hashlib, pointers hashed), these say what is wrong.

Disagreements: SGLang hashes payload bytes only; vLLM frames, but pickles what it does not know, tells byte orders apart
and lets a UUID in the EXIF data replace the content. TensorRT-LLM, FastDeploy and vLLM each had a release without shapes.
"""

import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from blake3 import blake3
from numpy.typing import NDArray
from PIL.Image import Image

from reference.items import Format, Item, Modality

_HEX = re.compile(r"[0-9a-fA-F]{1,16}")

_LARGE = 8 << 20
"""Bytes from which on a payload is worth the making of threads."""
_MOST_THREADS = 4
"""More are limited by memory, and missed elsewhere."""


def identify(item: Item) -> bytes:
    """The identity of an item's content: 32 bytes.

    It covers modality, format, feature or embedding, and fields; not spans, caller hash or an identity given already.
    Raises ValueError for an item without content, TypeError for a part that has no stable content; both say where.
    """
    try:
        return blake3(_encode_item(item)).digest()
    except RecursionError:
        raise ValueError("the feature or a field is nested too deep, or contains itself") from None


def combine_identities(identities: Sequence[bytes]) -> bytes:
    """One identity of 32 bytes for a sequence of identities of any width; order and repetition matter.

    Raises TypeError for what is not a sequence of bytes.
    """
    for place, identity in enumerate(identities):
        if not isinstance(identity, bytes):
            raise TypeError(f"identities[{place}] is {_kind(identity)}; identities are bytes")
    return blake3(_frame("mmproof-sequence-v1", *identities)).digest()


def adopt_caller_hashes(items: Sequence[Item], hashes: Mapping[Modality, Sequence[str]]) -> tuple[list[int | None], list[str]]:
    """The 64-bit hashes by which a caller wants items known, and what was wrong with them.

    hashes: for a modality, one string of 1 to 16 hexadecimal digits for each of its items, in item order; a modality
    that is left out has none.
    Returns for each item its hash or None, and one sentence a problem. When the number is wrong for any modality, which
    hash means which item is a guess, and no item of the request gets one; a malformed hash is dropped alone.
    """
    places = {modality: [n for n, item in enumerate(items) if item.modality == modality] for modality in hashes}
    problems = [
        f"{_name(modality)}: {_how_many(given)} for {len(places[modality])} items; all hashes of the request are ignored"
        for modality, given in hashes.items()
        if isinstance(given, str) or len(given) != len(places[modality])
    ]
    adopted: list[int | None] = [None] * len(items)
    if problems:
        return adopted, problems
    for modality, given in hashes.items():
        for place, text in zip(places[modality], given, strict=True):
            if isinstance(text, str) and _HEX.fullmatch(text):
                adopted[place] = int(text, 16)
            else:
                problems.append(f"item {place} ({_name(modality)}): {text!r:.40} is not 1 to 16 hexadecimal digits; ignored")
    return adopted, problems


def data_hash(data: bytes | bytearray | memoryview) -> int:
    """SGLang's hash of bytes: the first 8 bytes of their SHA-256, as an unsigned big-endian number.

    Raises TypeError for anything but bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data is {_kind(data)}; only bytes have a data hash")
    return _first_word(sha256(_flat(data)).digest())


def tensor_hash(tensors: torch.Tensor | Sequence[Any]) -> int:
    """SGLang's hash of a tensor, or of the tensors of nested lists in turn: `data_hash` of their memory, little-endian.

    Blind to dtypes, shapes and the bounds of list elements. Tensors on a GPU are hashed as if they were on the CPU.
    Raises TypeError, saying where, for anything but tensors.
    """
    digest = sha256()
    for tensor in _leaves(tensors, "tensors"):
        digest.update(_tensor_bytes(tensor))
    return _first_word(digest.digest())


def hash_feature(feature: Any) -> int:
    """SGLang's hash of a feature: a tensor, an array (in its own byte order), bytes, or a list that begins with a tensor.

    Raises TypeError for anything else, among it the lists of arrays or numbers over which SGLang stumbles.
    """
    match feature:
        case torch.Tensor():
            return tensor_hash(feature)
        case [torch.Tensor(), *_] if isinstance(feature, list):
            return tensor_hash(feature)
        case np.ndarray():
            _check_array(feature, "feature")
            return _first_word(sha256(_array_bytes(feature)).digest())
        case bytes() | bytearray() | memoryview():
            return data_hash(feature)
    raise TypeError(f"feature is {_kind(feature)}; a hash is for a tensor, an array, bytes or a list of tensors")


def _encode_item(item: Item) -> bytes:
    if item.is_empty:
        raise ValueError(f"this {item.modality.name.lower()} carries no content, so nothing can identify it")
    where, content = ("feature", item.feature) if item.embedding is None else ("embedding", item.embedding)
    header = [_number(item.modality), Format(item.format).value.encode()]
    parts = [_encode(dict(item.fields), "fields", metadata=True), _encode(content, where)]
    return _frame("mmproof-item-v1", *header, *parts)


def _encode(value: Any, where: str, *, metadata: bool = False) -> bytes:
    """The canonical encoding of a value; `metadata` allows what describes a medium but can be none: names, None."""
    match value:
        case torch.Tensor():
            _check_tensor(value, where)
            return _leaf("tensor", str(value.dtype).removeprefix("torch."), value.shape, _tensor_bytes(value))
        case np.ndarray() | np.number() | np.bool_():
            _check_array(array := np.asanyarray(value), where)
            little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
            return _leaf("tensor", array.dtype.name, array.shape, _array_bytes(little_endian))
        case Image():
            return _encode_picture(value, where)
        case bytes() | bytearray() | memoryview():
            flat = _flat(value)
            return _leaf("bytes", "uint8", (len(flat),), flat)
        case bool():
            return _frame("bool", _number(value))
        case int():
            return _frame("int", _number(value))
        case float():
            return _frame("float", struct.pack("<d", value))
        case complex():
            return _frame("complex", struct.pack("<dd", value.real, value.imag))
        case str() if metadata:
            return _frame("str", value.encode("utf-8", "surrogatepass"))
        case None if metadata:
            return _frame("none")
        case list() | tuple():
            return _frame("list", *(_encode(one, f"{where}[{n}]", metadata=metadata) for n, one in enumerate(value)))
        case Mapping():
            pairs = [
                _encode(key, f"a key of {where}", metadata=True) + _encode(one, f"{where}[{key!r}]", metadata=metadata)
                for key, one in value.items()
            ]
            return _frame("dict", *sorted(pairs))
    raise TypeError(f"{where} is {_kind(value)}, which has no stable content to identify it by")


def _encode_picture(picture: Image, where: str) -> bytes:
    pixels = picture.tobytes()  # loads the file, which settles the palette
    palette = _encode(picture.getpalette("RGBA"), f"{where}.palette", metadata=True)
    transparency = _encode(picture.info.get("transparency"), f"{where}.info['transparency']", metadata=True)
    return _frame("picture", palette, transparency, _leaf("pixels", picture.mode, picture.size, pixels))


def _leaf(kind: str, dtype: str, shape: Sequence[int], payload: Any) -> bytes:
    threads = min(_MOST_THREADS, os.cpu_count() or 1) if len(payload) >= _LARGE else 1
    return _frame(kind, dtype.encode(), ",".join(map(str, shape)).encode(), blake3(payload, max_threads=threads).digest())


def _frame(kind: str, *parts: bytes) -> bytes:
    """How many parts, then each with its length in front. It knows its own end: frames can stand in a row."""
    all_parts = (kind.encode(), *parts)
    return b"".join([struct.pack("<Q", len(all_parts)), *(struct.pack("<Q", len(part)) + part for part in all_parts)])


def _number(value: int) -> bytes:
    return f"{int(value):x}".encode()


def _tensor_bytes(tensor: torch.Tensor) -> memoryview:
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    flat = plain.as_strided((plain.numel(),), (1,))  # a tensor of one element is contiguous whatever its strides
    return flat.view(torch.uint8).numpy().data


def _array_bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _flat(data: bytes | bytearray | memoryview) -> bytes | memoryview:
    view = memoryview(data)
    return view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()


def _first_word(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big")


def _leaves(value: Any, where: str) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        _check_tensor(value, where)
        yield value
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value):
            yield from _leaves(one, f"{where}[{place}]")
    else:
        raise TypeError(f"{where} is {_kind(value)}; only tensors and lists of tensors have a tensor hash")


def _check_tensor(tensor: torch.Tensor, where: str) -> None:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"{where} is a sparse, nested, quantized or meta tensor; make it a dense one before it is hashed")


def _check_array(array: NDArray[Any], where: str) -> None:
    if isinstance(array, np.ma.MaskedArray) or not isinstance(getattr(torch, array.dtype.name, None), torch.dtype):
        raise TypeError(f"{where} is {_kind(array)}; only plain arrays of numbers or bools have stable bytes")


def _kind(value: Any) -> str:
    name = "None" if value is None else type(value).__name__
    return f"{name} of {value.dtype}" if isinstance(value, np.ndarray) else name


def _name(modality: Modality) -> str:
    return Modality(modality).name.lower()


def _how_many(given: Sequence[str]) -> str:
    return "one string instead of a list" if isinstance(given, str) else f"{len(given)} hashes"
