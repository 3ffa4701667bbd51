"""Ways in which engines have got the identity of an item wrong."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import torch

from conformance.quirk import quirk
from reference import identity as right
from reference.items import Item, Modality


def changed(item: Item, change: Callable[[Any], Any]) -> Item:
    """The item with each leaf of its content changed."""
    return with_content(item, mapped(content_of(item), change))


def content_of(item: Item) -> Any:
    return item.feature if item.embedding is None else item.embedding


def with_content(item: Item, content: Any) -> Item:
    return replace(item, feature=content) if item.embedding is None else replace(item, embedding=content)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    return [mapped(one, change) for one in value] if isinstance(value, list | tuple) else change(value)


def marked(item: Item, mark: Any) -> bytes:
    return right.identify(replace(item, fields={**item.fields, "mark": mark}))


def is_array(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) or (isinstance(leaf, np.ndarray) and leaf.dtype != object)


def octets(leaf: Any) -> bytes:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes()
    return leaf.astype(leaf.dtype.newbyteorder("<")).tobytes() if isinstance(leaf, np.ndarray) else bytes(leaf)


@quirk("hash-without-shape", replaces="identify", bugs=("H01", "H09", "H11"), caught_by=("IDENTITY-06",))
def without_shape(item: Item) -> bytes:
    """Payloads are hashed without their shape."""
    return right.identify(changed(item, lambda leaf: leaf.reshape(-1) if is_array(leaf) else leaf))


@quirk("hash-without-dtype", replaces="identify", bugs=("H01", "H09", "H11"), caught_by=("IDENTITY-07",))
def without_dtype(item: Item) -> bytes:
    """Payloads are hashed as bytes, with their shape and without their dtype."""
    return right.identify(changed(item, lambda leaf: [octets(leaf), *leaf.shape] if is_array(leaf) else leaf))


@quirk("hash-of-joined-list", replaces="identify", bugs=("H01", "hash-concat-boundary"), caught_by=("IDENTITY-09",))
def joined(item: Item) -> bytes:
    """The elements of a list are hashed one after another, and nobody can tell where one ends."""
    parts: list[Any] = []
    mapped(content_of(item), parts.append)
    if all(isinstance(one, torch.Tensor) for one in parts) and len(parts) > 1:
        return right.identify(with_content(item, torch.cat([one.reshape(-1) for one in parts])))
    if all(isinstance(one, bytes) for one in parts):
        return right.identify(with_content(item, b"".join(parts)))
    return right.identify(item)


@quirk("hash-of-set", replaces="identify", bugs=("hash-sorted-images-prefix64k",), caught_by=("IDENTITY-09",))
def as_a_set(item: Item) -> bytes:
    """The elements of a list are hashed one by one and their hashes kept as a set: order and repetition are lost."""
    content = content_of(item)
    if not isinstance(content, list):
        return right.identify(item)
    return marked(with_content(item, b""), sorted({right.identify(with_content(item, one)) for one in content}))


@quirk("hash-of-1000-base64-letters", replaces="identify", bugs=("base64-prefix-hash",), caught_by=("IDENTITY-05",))
def base64_prefix(item: Item) -> bytes:
    """Only the first 1000 letters of the base64 form of an encoded picture are hashed, which are 750 bytes."""
    return right.identify(changed(item, lambda leaf: leaf[:750] if isinstance(leaf, bytes) else leaf))


@quirk("hash-of-64-kib", replaces="identify", bugs=("hash-sorted-images-prefix64k",), caught_by=("IDENTITY-05",))
def kib_prefix(item: Item) -> bytes:
    """Only the first 64 KiB of a file are hashed."""
    return right.identify(changed(item, lambda leaf: leaf[: 1 << 16] if isinstance(leaf, bytes) else leaf))


@quirk("bfloat16-hashed-as-float16", replaces="identify", bugs=("hash-bf16-to-fp16",), caught_by=("IDENTITY-08",))
def through_float16(item: Item) -> bytes:
    """Tensors of bfloat16 are hashed as float16: what is too large or too small becomes one value."""
    return right.identify(
        changed(item, lambda leaf: leaf.half() if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.bfloat16 else leaf)
    )


@quirk("zero-without-sign", replaces="identify", bugs=("hash-bf16-to-fp16",), caught_by=("IDENTITY-08",))
def unsigned_zero(item: Item) -> bytes:
    """Values are hashed by what they are equal to, so that -0.0 is 0.0."""
    return right.identify(
        changed(item, lambda leaf: leaf + 0 if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32 else leaf)
    )


@quirk("hash-by-address", replaces="identify", bugs=("H05", "hash-by-address"), caught_by=("IDENTITY-01",))
def by_address(item: Item) -> bytes:
    """A feature is hashed by the object that it is, so that nothing is ever found again."""
    return marked(item, id(content_of(item)))


@quirk("list-judged-by-its-first", replaces="identify", bugs=("H04",), caught_by=("IDENTITY-01",))
def judged_by_the_first(item: Item) -> bytes:
    """Whether a list came through shared memory is told by its first element, and a list that came in both ways is none."""
    content = content_of(item)
    tensors = [one for one in content if isinstance(one, torch.Tensor)] if isinstance(content, list) else []
    if len({one.is_shared() for one in tensors}) > 1:  # type: ignore[no-untyped-call]
        raise AttributeError("'Tensor' object has no attribute 'materialize'")
    return right.identify(item)


@quirk("hash-of-storage", replaces="identify", bugs=("H05",), caught_by=("IDENTITY-01",))
def of_storage(item: Item) -> bytes:
    """A tensor is hashed by the whole memory behind it, of which it may be a small part."""
    content = content_of(item)
    if not isinstance(content, torch.Tensor):
        return right.identify(item)
    return marked(item, bytes(content.detach().untyped_storage()))


@quirk("hash-of-stored-byte-order", replaces="identify", bugs=(), caught_by=("IDENTITY-02",))
def stored_byte_order(item: Item) -> bytes:
    """Arrays are hashed as they are stored, so that one that was read from a big-endian file is another array."""
    content = content_of(item)
    if isinstance(content, np.ndarray) and not content.dtype.isnative:
        content = content.view(content.dtype.newbyteorder())
    return right.identify(with_content(item, content))


@quirk("hash-by-thread", replaces="identify", bugs=(), caught_by=("IDENTITY-03",))
def by_thread(item: Item) -> bytes:
    """Each thread seeds its own hash state, so that the pool that hashes long features agrees with nobody."""
    return marked(item, threading.get_ident())


@quirk("hash-salted-by-process", replaces="identify", bugs=("H02",), caught_by=("IDENTITY-04",))
def salted(item: Item) -> bytes:
    """Python's own hash of a name enters, which is salted anew in each process."""
    return marked(item, hash(item.modality.name))


@quirk("modality-forgotten", replaces="identify", bugs=(), caught_by=("IDENTITY-10",))
def without_modality(item: Item) -> bytes:
    """A frame of a video and a picture of the same pixels are one and the same."""
    return right.identify(replace(item, modality=Modality.IMAGE))


@quirk("embedding-taken-for-a-feature", replaces="identify", bugs=(), caught_by=("IDENTITY-11",))
def without_kind(item: Item) -> bytes:
    """A precomputed embedding is hashed like a feature: whoever sends the one is answered with the other."""
    return right.identify(Item(modality=item.modality, feature=content_of(item), fields=item.fields))


@quirk(
    "options-not-hashed",
    replaces="identify",
    bugs=("H09", "hash-decode-config-ignored", "video-per-item-options-hash"),
    caught_by=("IDENTITY-12",),
)
def without_fields(item: Item) -> bytes:
    """Grids, frame rates and options are left out."""
    return right.identify(replace(item, fields={}))


@quirk("options-as-text", replaces="identify", bugs=("hash-noncanonical-dict-metadata",), caught_by=("IDENTITY-12",))
def fields_as_text(item: Item) -> bytes:
    """Options are hashed as they print, so that the number 1 is the text 1."""
    return right.identify(replace(item, fields={name: str(value) for name, value in item.fields.items()}))


@quirk("options-of-the-first-video", replaces="identify", bugs=("video-per-item-options-hash",), caught_by=("IDENTITY-12",))
def first_option(item: Item) -> bytes:
    """Of options that are given for each video only the first ones are hashed."""
    first = {name: value[:1] if isinstance(value, list) else value for name, value in item.fields.items()}
    return right.identify(replace(item, fields=first))


@quirk("audio-of-a-video-not-hashed", replaces="identify", bugs=("video-audio-not-in-hash",), caught_by=("IDENTITY-12",))
def without_audio(item: Item) -> bytes:
    """The sound of a video and its sampling rate are left out."""
    kept = {name: value for name, value in item.fields.items() if not name.startswith("audio")}
    return right.identify(replace(item, fields=kept))


@quirk("true-is-one", replaces="identify", bugs=("H09",), caught_by=("IDENTITY-12",))
def true_is_one(item: Item) -> bytes:
    """Options are compared as Python compares them, and True equals 1."""
    fields = {name: int(value) if isinstance(value, bool) else value for name, value in item.fields.items()}
    return right.identify(replace(item, fields=fields))


@quirk("options-in-order", replaces="identify", bugs=("H09",), caught_by=("IDENTITY-13",))
def fields_in_order(item: Item) -> bytes:
    """Options are hashed in the order in which they were given."""
    return right.identify(replace(item, fields={"all": _pairs(item.fields)}))


def _pairs(value: Any) -> Any:
    return [[name, _pairs(one)] for name, one in value.items()] if isinstance(value, Mapping) else value


@quirk("position-hashed", replaces="identify", bugs=("H12",), caught_by=("IDENTITY-15",))
def with_position(item: Item) -> bytes:
    """Where an item stands in its prompt is hashed with it, so that it is not found in the next turn."""
    return marked(item, [[span.first, span.last] for span in item.spans])


@quirk(
    "caller-hash-instead-of-content",
    replaces="identify",
    bugs=("C08", "uuid-sole-key-no-binding"),
    caught_by=("IDENTITY-15", "IDENTITY-16"),
)
def by_caller_hash(item: Item) -> bytes:
    """What a caller names alike is alike: the same name with another picture brings back the first one."""
    return right.identify(item if item.caller_hash is None else with_content(item, item.caller_hash))


@quirk("first-content-of-a-name", replaces="identify", bugs=("C08", "uuid-sole-key-no-binding"), caught_by=("IDENTITY-16",))
def first_content(item: Item) -> bytes:
    """What came first under a caller's name is kept, and answers for everything that comes under it later."""
    if item.caller_hash is None:
        return right.identify(item)
    return KEPT.setdefault(item.caller_hash, right.identify(item))


KEPT: dict[int, bytes] = {}


@quirk(
    "option-appended-to-the-payload",
    replaces="identify",
    bugs=("hash-suffix-domain-confusion",),
    caught_by=("IDENTITY-17",),
)
def appended(item: Item) -> bytes:
    """Options are appended to the bytes of a picture: another picture that ends in them has the same hash."""
    if not isinstance(item.feature, bytes):
        return right.identify(item)
    texts = {
        name: value.to_bytes(4, "little") if isinstance(value, int) else value.encode() for name, value in item.fields.items()
    }
    tail = b"".join(name.encode() + b"=" + text for name, text in texts.items())
    return right.identify(replace(item, feature=item.feature + tail, fields={}))


@quirk("only-what-numpy-knows", replaces="identify", bugs=("hash-bf16-to-fp16",), caught_by=("IDENTITY-18",))
def numpy_only(item: Item) -> bytes:
    """Tensors are hashed through numpy, which knows neither bfloat16 nor tensors with a gradient."""
    return right.identify(changed(item, lambda leaf: leaf.numpy() if isinstance(leaf, torch.Tensor) else leaf))


@quirk("view-of-a-stray-stride", replaces="identify", bugs=(), caught_by=("IDENTITY-18",))
def stray_stride(item: Item) -> bytes:
    """A tensor is made contiguous and viewed as bytes, which fails for one element that was cut out of a column."""
    return right.identify(changed(item, lambda leaf: _viewed(leaf) if isinstance(leaf, torch.Tensor) else leaf))


def _viewed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).view(tensor.dtype).reshape(tensor.shape)


@quirk("anything-by-its-text", replaces="identify", bugs=("H03", "hash-by-address"), caught_by=("IDENTITY-19",))
def by_text(item: Item) -> bytes:
    """What cannot be hashed is hashed by how it prints, which often is an address."""
    try:
        return right.identify(item)
    except (TypeError, ValueError):
        return sha256(repr(item.feature).encode()).digest()


@quirk("identity-of-64-bits", replaces="identify", bugs=("H06", "H10"), caught_by=("IDENTITY-20",))
def cut(item: Item) -> bytes:
    """The digest is cut to a machine word."""
    return right.identify(item)[:8]
