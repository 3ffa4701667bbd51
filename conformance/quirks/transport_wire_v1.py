"""Ways in which a message of version 1 has been written or believed wrongly."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from conformance.quirk import quirk
from conformance.quirks.transport_wire import changed
from reference.items import Handle, Modality, Request, Span
from reference.transport import wire as right
from reference.transport.survey import Limits, WireError


def repaired(data: bytes, repair: Callable[[Any], Any]) -> Request:
    """The request of a message after a repair of its plain lists, from the innermost on."""

    def deep(value: Any) -> Any:
        return repair([deep(one) for one in value]) if isinstance(value, list) else value

    try:
        return right.decode_message(data)
    except WireError:
        try:
            whole = deep(msgspec.msgpack.decode(data))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            whole = None
        return right.decode_message(data if whole is None else msgspec.msgpack.encode(whole))


@quirk("handles-are-bytes", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-08", "TRANSPORT-18"))
def handles_are_bytes(data: bytes) -> Request:
    """A handle arrives as bytes, and is taken for the medium itself."""

    def token(value: Any) -> Any:
        return [*map(token, value)] if isinstance(value, list) else value.token if isinstance(value, Handle) else value

    return changed(right.decode_message(data), lambda item: replace(item, feature=token(item.feature)))


@quirk("big-endian-ids", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-08", "TRANSPORT-18"))
def big_endian(data: bytes) -> Request:
    """Ids are read from the wrong end."""
    request = right.decode_message(data)
    return replace(request, input_ids=request.input_ids.byteswap())


@quirk("lasts-are-exclusive", replaces="encode_wire_v1", bugs=(), caught_by=("TRANSPORT-08", "TRANSPORT-19"))
def exclusive(request: Request) -> bytes:
    """Spans are written with the position behind them."""
    longer = replace(request, input_ids=np.append(request.input_ids, 0))
    try:
        whole = changed(longer, lambda item: replace(item, spans=tuple(Span(span.first, span.stop) for span in item.spans)))
    except ValueError:
        return right.encode_message(request)
    plain = msgspec.msgpack.decode(right.encode_message(whole))
    plain[3][1] = plain[3][1][:-8]
    return msgspec.msgpack.encode(plain)


@quirk("any-version", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-20",))
def any_version(data: bytes) -> Request:
    """The version of a message is not looked at."""
    return right.decode_message(data[:9] + b"\1" + data[10:])


@quirk("without-limits", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-21", "TRANSPORT-22", "TRANSPORT-26"))
def without_limits(data: bytes) -> Request:
    """A message may hold as much, and be nested as deep, as its sender likes."""
    most = 1 << 60
    return right.decode_message(data, Limits(total_bytes=most, values=most, depth=most, dimensions=most, items=most))


@quirk("sizes-in-32-bits", replaces="decode_wire_v1", bugs=("embeds-sparse-dense-bomb",),
       caught_by=("TRANSPORT-22", "TRANSPORT-25", "TRANSPORT-26"))  # fmt: skip
def narrow_sizes(data: bytes) -> Request:
    """The product of a shape is computed in 32 bits, and a huge one passes for a small one."""

    def fitted(plain: Any) -> Any:
        is_block = plain[:1] == ["tensor"] and len(plain) == 4 and all(type(size) is int for size in plain[2])
        return [*plain[:2], [size % 2**32 for size in plain[2]], plain[3]] if is_block else plain

    return repaired(data, fitted)


@quirk(
    "rows-that-are-missing",
    replaces="decode_wire_v1",
    bugs=("L01",),
    caught_by=("TRANSPORT-22", "TRANSPORT-23", "TRANSPORT-25", "TRANSPORT-26"),
)
def missing_rows(data: bytes) -> Request:
    """A payload that is too short is filled up with zeros, and one that is too long is cut."""

    def fitted(plain: Any) -> Any:
        is_block = plain[:2] == ["tensor", "float32"] and all(type(size) is int and 0 <= size < 99 for size in plain[2])
        return [*plain[:3], plain[3].ljust(400, b"\0")[: 4 * int(np.prod(plain[2]))]] if is_block else plain

    return repaired(data, fitted)


@quirk(
    "passes-over-the-unknown", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-23", "TRANSPORT-25", "TRANSPORT-26")
)
def passes_over(data: bytes) -> Request:
    """Parts that a reader does not know are passed over, and missing ones are nothing."""

    def whole(plain: Any) -> Any:
        return [*plain, None][:8] if len(plain) in (7, 9) and plain[0] in tuple(Modality) else plain

    return repaired(data, whole)


@quirk("the-last-one-wins", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-23", "TRANSPORT-25", "TRANSPORT-26"))
def last_wins(data: bytes) -> Request:
    """Of two fields of one name the last one counts."""

    def once(plain: Any) -> Any:
        if plain[:1] != ["map"] or len(plain) % 2 == 0 or not all(isinstance(name, str) for name in plain[1::2]):
            return plain
        pairs = sorted(dict(zip(plain[1::2], plain[2::2], strict=True)).items())
        return ["map", *(part for pair in pairs for part in pair)]

    return repaired(data, once)


@quirk("spans-are-sorted", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-24", "TRANSPORT-25", "TRANSPORT-26"))
def sorted_spans(data: bytes) -> Request:
    """Spans that are out of order are put into order, and whatever else was wrong with their sender goes on."""

    def ordered(plain: Any) -> Any:
        if len(plain) != 8 or not isinstance(plain[2], bytes):
            return plain
        positions = sorted(np.frombuffer(plain[2][: len(plain[2]) // 16 * 16], dtype="<i8").tolist())
        return [*plain[:2], np.array(positions, dtype="<i8").tobytes(), *plain[3:]]

    return repaired(data, ordered)


@quirk("any-spelling", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-25",))
def any_spelling(data: bytes) -> Request:
    """Numbers and lengths are taken in any form, so that one request has many messages."""
    return repaired(data, lambda plain: plain)


@quirk("errors-without-a-place", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-26",))
def without_place(data: bytes) -> Request:
    """Whatever is wrong with a message, the error says that it is invalid."""
    try:
        return right.decode_message(data)
    except WireError:
        raise ValueError("invalid message") from None


@quirk("errors-that-quote", replaces="decode_wire_v1", bugs=(), caught_by=("TRANSPORT-26", "TRANSPORT-27"))
def quotes(data: bytes) -> Request:
    """The error about a message shows the message, and with it somebody's prompt, to whoever reads the log."""
    try:
        return right.decode_message(data)
    except WireError:
        raise ValueError(f"cannot read {data[:200]!r}") from None
