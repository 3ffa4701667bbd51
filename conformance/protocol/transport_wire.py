"""Requests as bytes: what travels between the processes of an engine, and mmproof's own format for it."""

from typing import Any, Protocol

from conformance import returns as answer
from conformance.returns import WrongAnswer, returns
from reference.items import Request


def request(value: Any) -> Request:
    """A `Request`."""
    if not isinstance(value, Request):
        raise WrongAnswer("a Request")
    return value


class TransportWire(Protocol):
    """Requests as bytes.

    A request on the wire is plain data: None, truth values, integers of 64 bits (signed or unsigned), finite floats, text,
    bytes, lists and tuples of these, mappings from text to these, dense tensors and arrays of numbers, and handles. What else
    an item may hold, such as a picture of PIL, is refused.

    Lists and tuples are one kind of value, and so are tensors and arrays of the same dtype, shape and bits: either may come
    back. Everything else comes back as the type that it was.
    """

    @returns(answer.octets)
    def encode_message(self, request: Request) -> bytes:
        """A request in the engine's own format, as one block of bytes.

        The bytes can be kept, copied, and read any number of times, here and in another process. The request stays what it
        was. Raises an error that was meant for what is no plain data.
        """

    @returns(request)
    def decode_message(self, data: bytes) -> Request:
        """The request of a message of `encode_message`: the same in every part, in memory of its own.

        Raises an error that was meant for anything else.
        """

    @returns(answer.octets)
    def encode_wire_v1(self, request: Request) -> bytes:
        """A request in mmproof's format, version 1, which is MessagePack:

            message = ["mmproof", 1, "request", [id, input_ids, [item, ...]]]
            item = [modality, format, spans, feature, embedding, fields, identity, caller_hash]

        id is text. input_ids is bytes: the ids, int64 little-endian, one after another. modality is the number, format the
        value, of the enumerations in `reference.items`. spans is bytes: first and last position of each, both inclusive,
        int64 little-endian. feature, embedding, identity (32 bytes) and caller_hash (an unsigned integer) may be nil. fields
        is a map, embedding a tensor, an array or a handle, in these forms of values:

            nil, booleans, integers, floats, text, bytes    as they are
            lists and tuples                                ["list", value, ...]
            mappings                                        ["map", name, value, name, value, ...], names ascending
            tensors                                         ["tensor", dtype, [size, ...], payload]
            arrays                                          ["array", dtype, [size, ...], payload]
            handles                                         ["handle", token]

        dtype is the name in torch or numpy ("bfloat16"); payload is bytes: the elements, row by row, little-endian, truth
        values as 0 or 1. Everything is in its shortest form, and floats in 64 bits; there are no maps or extensions of
        MessagePack. Equal requests are equal bytes.
        """

    @returns(request)
    def decode_wire_v1(self, data: bytes) -> Request:
        """The request of a message in mmproof's format, version 1, in memory of its own; sequences come as lists.

        Raises an error that was meant for anything that `encode_wire_v1` does not write. That costs time and memory in
        proportion to the bytes that are there, whatever lengths they name. At least 1024 items, 100,000 values, 24 levels of
        MessagePack and 16 dimensions are taken; 1,000,000 values, 1000 levels and 100 dimensions are refused. The error names
        the part at fault: `id`, `input_ids`, `items[2].spans[0]` (the third item's first span), `items[2].feature[1].shape`,
        `items[2].feature.dtype`, `items[2].fields[0]` (by the order of names). It repeats nothing that the message contains.
        """
