"""SGLang's features in shared memory: `ShmPointerMMData`, from the tokenizer to a scheduler.

A request is wrapped with `_wrap_tensor_or_list` just before it is sent, once for each copy of it; what travels is a pointer, in
SGLang's own MessagePack. The scheduler opens the pointers as it decodes, and takes the data over with `materialize`. Each
tensor has a segment of its own, bounded by the host's memory alone, and there is nothing to open or to close.

Requests that share a prompt (parallel sampling) get items of their own before these are wrapped, so that a pointer is in one
request and in no other. Several ranks open a pointer before a barrier that none of them passes until all have; here there is
one reader.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.cpu import Sglang
from conformance.protocol.transport import Device

TRAITS: Mapping[str, Any] = {
    "transports": ("shared_memory", "inline"),
    "channel_readers": 1,
    "bounded_channels": False,
    "wrapped_copies": 1,
    "signed_packets": False,
}
"""What is a choice of SGLang's."""


class Scheduler:
    """Where a request arrives."""

    def __init__(self, utils: Any, codec: "Codec") -> None:
        self._utils, self._codec = utils, codec

    def receive(self, packet: bytes) -> list[Any]:
        """What `unwrap_shm_features` makes of each value."""
        pointer = self._utils.ShmPointerMMData
        return [one.materialize() if isinstance(one, pointer) else one for one in self._codec.decode(packet)]

    def discard(self, packet: bytes) -> None:
        """`discard_shm_features` of a request that is not served."""
        self._utils._discard_tensor_or_list(self._codec.decode(packet))

    def close(self) -> None:
        """There is nothing to close."""


class Tokenizer:
    """Where a request is sent from."""

    def __init__(self, sglang: Sglang) -> None:
        self._utils, self._codec, self._counts = sglang.utils, Codec(), Counter[str]()

    def join(self, reader: int, device: Device | None) -> Scheduler:
        """The one scheduler."""
        return Scheduler(self._utils, self._codec)

    def send(self, values: Sequence[Any], copies: int) -> list[bytes]:
        """`wrap_shm_features` of one request after the other."""
        plain = [self._codec.decode(value)[0] if isinstance(value, bytes) else value for value in values]
        lists = [self._utils._wrap_tensor_or_list(plain) for _ in range(copies)]
        for one in lists[:1]:
            pointers = sum(isinstance(value, self._utils.ShmPointerMMData) for value in one)
            self._counts["shared_memory"] += pointers
            self._counts["inline"] += sum(value is not None for value in one) - pointers
        return [self._codec.encode(one) for one in lists]

    def discard(self, packet: bytes) -> None:
        """`discard_shm_features` of a request that was aborted."""
        self._utils._discard_tensor_or_list(self._codec.decode(packet))

    def counts(self) -> Mapping[str, int]:
        """How many became pointers."""
        return dict(self._counts)

    def close(self) -> None:
        """There is nothing to close."""


class Codec:
    """SGLang's MessagePack."""

    def __init__(self) -> None:
        hooks = cpu.module("sglang.srt.utils.msgpack_utils")
        msgpack = cpu.module("msgspec.msgpack")
        self.encode = msgpack.Encoder(enc_hook=hooks.enc_hook).encode
        self._decoder = msgpack.Decoder(list[Any], dec_hook=hooks.dec_hook, ext_hook=hooks.ext_hook)

    def decode(self, packet: bytes) -> list[Any]:
        """The list that was sent."""
        decoded: list[Any] = self._decoder.decode(packet)
        return decoded


def open_channel(sglang: Sglang, transports: Sequence[str], readers: int, capacity_bytes: int) -> Tokenizer:
    """A tokenizer and its scheduler. `cleanup_stale_shm` is no part of a start: nothing but SGLang's own CI calls it."""
    return Tokenizer(sglang)
