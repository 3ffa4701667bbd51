"""Packets: what is handed to a reader, and how it is known to be real.

    magic 4 | channel 16 | length of the header 4, big-endian | header | bytes of what travels inline | digest 32

1. The header is JSON: for each entry of the list null, or what it is (`tensors.Form`) and where its bytes are. The last
   32 bytes are a BLAKE3 of everything before them, under a key that only this channel's sender and readers know.
   Whatever is not exactly what this sender wrote is no packet: cut off, a bit flipped, made up, another channel's.
2. A packet says which *slot* and which *generation* of it holds the bytes. A generation is given out once in the life of
   a channel, so that a packet of the past never leads to what lies in its place today.

Nothing is ever unpickled.

Known disagreements: SGLang 0.5.23 pickles pointers that anyone on the host can make; vLLM 0.33.0 signs its handles with
an HMAC whose key lies in the segment.
"""

import hmac
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from blake3 import blake3

from reference.transport.tensors import Form

MAGIC = b"mmT1"
CHANNEL_BYTES, KEY_BYTES, DIGEST_BYTES = 16, 32, 32
HEAD = struct.Struct(f">4s{CHANNEL_BYTES}sI")

Kind: TypeAlias = Literal["inline", "shared_memory", "cuda_ipc"]


class ForgedPacket(ValueError):
    """These bytes are not a packet that the sender of this channel made."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor or array of a packet, and where its bytes are.

    kind: how it travels. first: its first byte, behind the header or in the pool. slot, generation: who vouches for it
    (0: nobody has to, it is inline).
    """

    form: Form
    kind: Kind
    first: int
    slot: int = 0
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Packet:
    """What was in a packet: its entries, and the bytes of those that are inline."""

    entries: tuple[Entry | None, ...]
    body: memoryview


def pack(entries: Sequence[Entry | None], parts: Sequence[Any], *, channel: bytes, key: bytes) -> bytes:
    """The packet of these entries; `parts` are buffers whose bytes, one after the other, are what is inline."""
    header = json.dumps([entry and _plain(entry) for entry in entries], separators=(",", ":")).encode()
    content = b"".join([HEAD.pack(MAGIC, channel, len(header)), header, *parts])
    return content + blake3(content, key=key).digest()


def unpack(packet: bytes, *, channel: bytes, key: bytes) -> Packet:
    """What is in a packet. Raises ForgedPacket for anything that the sender of this channel did not make."""
    if not isinstance(packet, bytes | bytearray | memoryview):
        raise TypeError(f"a packet is bytes, not {type(packet).__name__}")
    whole = memoryview(packet).cast("B").toreadonly()
    if len(whole) < HEAD.size + DIGEST_BYTES or whole[: len(MAGIC)] != MAGIC:
        raise ForgedPacket(f"{len(whole)} bytes that do not begin as a packet does")
    content, digest = whole[:-DIGEST_BYTES], whole[-DIGEST_BYTES:]
    _, of, length = HEAD.unpack_from(content)
    if of != channel:
        raise ForgedPacket(f"a packet of the channel {of.hex()[:8]}, and this one is {channel.hex()[:8]}")
    if not hmac.compare_digest(blake3(content, key=key).digest(), digest):
        raise ForgedPacket(f"a packet of {len(whole)} bytes whose digest is not right: it was made up, cut off or damaged")
    header = json.loads(bytes(content[HEAD.size : HEAD.size + length]))
    return Packet(tuple(plain and _entry(plain) for plain in header), content[HEAD.size + length :])


def _plain(entry: Entry) -> list[Any]:
    return [*entry.form, entry.kind, entry.first, entry.slot, entry.generation]


def _entry(plain: list[Any]) -> Entry:
    is_array, dtype, shape, kind, first, slot, generation = plain
    return Entry(Form(is_array, dtype, tuple(shape)), kind, first, slot, generation)
