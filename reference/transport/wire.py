"""Wire: a request as bytes and back.

    message = ["mmproof", version, kind, body]
    request = [id, input_ids, [item, …]]
    item    = [modality, format, spans, feature, embedding, fields, identity, caller_hash]

in the MessagePack of `values`. Ids are int64, little-endian, in one block of bytes; spans are pairs of these, first and last
position, both inclusive.

1. What was read is built with the constructors of `reference.items`, so a request from a wire is as sound as any other.
   What they would refuse is refused here first, with the path to it and without what it contains.
2. A request has one form: equal requests are equal bytes, in any memory layout and any order of fields. Lists and tuples
   are one kind of value, as for `reference.identity`, and lists when they come back.
3. All spans of an item travel. An item with holes (a mask of embeddings in other engines) keeps them.
4. Instead of a tensor, a message may hold a `Handle`: bytes that mean something to the channel that made them.

Sources: SGLang 0.5.23, `io_struct.TokenizedGenerateReqInput`; vLLM 0.33.0, `v1.serial_utils` and `EngineCoreRequest`.
Disagreements: both carry what is theirs alone (sampling, stop words) in the same message; here that is another value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.items import IDENTITY_BYTES, Format, Handle, Item, Modality, Request, Span, make_spans, span_table
from reference.transport.survey import LIMITS, Limits, WireError
from reference.transport.values import from_plain, read, to_plain, write

VERSION = 1
MAGIC = b"\x94\xa7mmproof"
"""How every message begins: an array of 4, the first of them this name."""

_INT64 = np.dtype("<i8")


def encode_message(request: Request, limits: Limits = LIMITS) -> bytes:
    """A request as a message. Raises WireError for a part that is no plain data, and for more than a reader would take."""
    items = [_plain_item(item, f"items[{n}]", limits) for n, item in enumerate(request.items)]
    _check_count(items, limits)
    return _write("request", [to_plain(request.id, "id", limits), _ids(request.input_ids), items], limits)


def decode_message(data: bytes, limits: Limits = LIMITS) -> Request:
    """The request of a message. Raises WireError, which says where, for anything that `encode_message` does not write."""
    body = _read("request", data, limits)
    if not isinstance(body, list) or len(body) != 3 or not isinstance(body[2], list):
        raise WireError("", "a request is an id, ids and items")
    id, ids, items = body
    if not isinstance(id, str):
        raise WireError("id", "an id is text")
    _check_count(items, limits)
    input_ids = _int64(ids, "input_ids")
    made = tuple([_item(one, f"items[{n}]", len(input_ids), limits) for n, one in enumerate(items)])
    try:
        span_table(made, len(input_ids))
    except ValueError:
        raise WireError("items", "spans of two items overlap") from None
    return Request(id=id, input_ids=input_ids, items=made)


def encode_value(value: Any, limits: Limits = LIMITS) -> bytes:
    """Plain data as a message: see `reference.transport.values`. Raises WireError for anything else."""
    return _write("value", to_plain(value, "value", limits), limits)


def decode_value(data: bytes, limits: Limits = LIMITS) -> Any:
    """The value of a message that `encode_value` made. Raises WireError for any other."""
    return from_plain(_read("value", data, limits), "value", limits)


def _write(kind: str, body: Any, limits: Limits) -> bytes:
    return write(["mmproof", VERSION, kind, body], limits)


def _read(kind: str, data: bytes, limits: Limits) -> Any:
    """The body of a message of this kind."""
    if not isinstance(data, bytes):
        raise WireError("", f"it is bytes, not {type(data).__name__}")
    if data[: len(MAGIC)] != MAGIC:
        raise WireError("", "it does not begin as messages do")
    if data[len(MAGIC) : len(MAGIC) + 1] != bytes([VERSION]):
        raise WireError("version", f"this reader knows version {VERSION} only")
    plain = read(data, limits)
    if plain[2] != kind:
        raise WireError("kind", f"it is no {kind}")
    return plain[3]


def _plain_item(item: Item, path: str, limits: Limits) -> list[Any]:
    pairs = np.array([(span.first, span.last) for span in item.spans], dtype=_INT64)
    if not isinstance(item.embedding, Handle) and item.embedding is not None and not hasattr(item.embedding, "shape"):
        raise WireError(f"{path}.embedding", "an embedding is a tensor, or a handle of one")
    return [
        int(item.modality),
        Format(item.format).value,
        pairs.tobytes(),
        to_plain(item.feature, f"{path}.feature", limits),
        to_plain(item.embedding, f"{path}.embedding", limits),
        to_plain(item.fields, f"{path}.fields", limits),
        item.identity,
        item.caller_hash,
    ]


def _item(plain: Any, path: str, length: int, limits: Limits) -> Item:
    """The item of a prompt of this length. Everything is checked with its path before the constructor checks it again."""
    if not isinstance(plain, list) or len(plain) != 8:
        raise WireError(path, "an item has 8 parts")
    modality, format, spans, feature, embedding, fields, identity, caller_hash = plain
    if type(modality) is not int or modality not in tuple(Modality):
        raise WireError(f"{path}.modality", "there is no such modality")
    if format not in [one.value for one in Format]:
        raise WireError(f"{path}.format", "there is no such format")
    if feature is not None and embedding is not None:
        raise WireError(f"{path}.embedding", "an item carries a feature or an embedding, not both")
    if (format == Format.PRECOMPUTED.value) != (embedding is not None):
        raise WireError(f"{path}.format", "it contradicts the content")
    if embedding is not None and not (isinstance(embedding, list) and embedding[:1] in (["tensor"], ["array"], ["handle"])):
        raise WireError(f"{path}.embedding", "an embedding is a tensor, or a handle of one")
    if not isinstance(fields, list) or fields[:1] != ["map"]:
        raise WireError(f"{path}.fields", "fields are a mapping")
    if identity is not None and not (isinstance(identity, bytes) and len(identity) == IDENTITY_BYTES):
        raise WireError(f"{path}.identity", f"an identity has {IDENTITY_BYTES} bytes")
    if caller_hash is not None and not (type(caller_hash) is int and 0 <= caller_hash < 1 << 64):
        raise WireError(f"{path}.caller_hash", "a hash is an unsigned 64-bit number")
    return Item(
        modality=Modality(modality),
        spans=_spans(spans, path, length),
        feature=from_plain(feature, f"{path}.feature", limits),
        embedding=from_plain(embedding, f"{path}.embedding", limits),
        fields=from_plain(fields, f"{path}.fields", limits),
        format=Format(format),
        identity=identity,
        caller_hash=caller_hash,
    )


def _spans(data: Any, path: str, length: int) -> tuple[Span, ...]:
    numbers = _int64(data, f"{path}.spans")
    if len(numbers) % 2:
        raise WireError(f"{path}.spans", "each span has a first and a last position")
    firsts, lasts = numbers[::2], numbers[1::2]
    wrong = (firsts < 0) | (lasts < firsts) | (lasts >= length)
    wrong[1:] |= firsts[1:] <= lasts[:-1]
    if len(places := np.flatnonzero(wrong)):
        raise WireError(f"{path}.spans[{places[0]}]", "spans ascend, are disjoint and lie within the prompt")
    return make_spans(firsts, lasts)


def _ids(input_ids: NDArray[np.int64]) -> bytes:
    return input_ids.astype(_INT64, copy=False).tobytes()


def _int64(data: Any, path: str) -> NDArray[np.int64]:
    if not isinstance(data, bytes) or len(data) % 8:
        raise WireError(path, "it is a block of 64-bit integers")
    return np.frombuffer(data, dtype=_INT64).astype(np.int64)


def _check_count(items: list[Any], limits: Limits) -> None:
    if len(items) > limits.items:
        raise WireError("items", f"a request has at most {limits.items} items")
