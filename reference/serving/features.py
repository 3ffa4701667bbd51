"""Features: tensors of requests between processes, through a channel of `transport`.

A request travels by post, and its large tensors beside it, in shared memory: in their place the message has a `Handle` with
the channel's packet. What is small, or finds no room there, stays in the message.
"""

from contextlib import suppress
from dataclasses import replace

import torch

from reference.items import Handle, Item, Request
from reference.transport.channel import Channel, NoRoom
from reference.transport.reader import Reader

INLINE_BELOW_BYTES = 1 << 14


class Sender:
    """Whoever makes requests, for one reader."""

    def __init__(self) -> None:
        self._channel = Channel(["shared_memory"])

    def invitation(self) -> bytes:
        """What the reader needs."""
        return self._channel.invitation()

    def pack(self, request: Request) -> Request:
        """The request with handles in the place of large tensors."""
        return replace(request, items=tuple(map(self._packed, request.items)))

    def close(self) -> None:
        """Remove the memory; what was received stays."""
        self._channel.close()

    def _packed(self, item: Item) -> Item:
        if not isinstance(item.feature, torch.Tensor) or item.feature.nbytes < INLINE_BELOW_BYTES:
            return item
        with suppress(NoRoom):
            return replace(item, feature=Handle(self._channel.send([item.feature])[0]))
        return item


def unpack(request: Request, reader: Reader | None) -> Request:
    """The request with its tensors. Raises ValueError where a packet is not, or no longer, good."""
    return replace(request, items=tuple(_unpacked(item, reader) for item in request.items))


def _unpacked(item: Item, reader: Reader | None) -> Item:
    if not isinstance(item.feature, Handle):
        return item
    if reader is None:
        raise ValueError("a tensor lies in a channel that this process was not invited to")
    return replace(item, feature=reader.receive(item.feature.token)[0])
