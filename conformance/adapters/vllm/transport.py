"""vLLM's object store in shared memory: `SingleWriterShmObjectStorage`, from the front end to the workers.

A value is put under a key, and what travels is where it lies, with a signature. What cannot be put is sent as it is, in vLLM's
own MessagePack. For a further request with the same value the store is asked with `get_cached`. A place is free when every
worker has read it as often as it was handed out.

A worker cannot do without what was handed out, and takes it to give it back; the front end cannot take anything back.
"""

import json
import multiprocessing
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from os import getpid
from typing import Any

import numpy as np
import torch

from conformance.adapters.vllm import cpu
from conformance.protocol.transport import Device

TRAITS: Mapping[str, Any] = {"transports": ("shared_memory", "inline")}
"""What is a choice of vLLM's."""

numbers = count()
"""vLLM's name for the one buffer of a server ends in a random number; a process of the suite has several."""


class Worker:
    """A reader."""

    def __init__(self, handle: Any) -> None:
        store = cpu.module("vllm.distributed.device_communicators.shm_object_storage")
        self._storage, self._codec = store.SingleWriterShmObjectStorage.create_from_handle(handle), Codec()

    def receive(self, packet: bytes) -> list[Any]:
        """`ShmObjectStoreReceiverCache.get_and_update_item` of each value."""
        header, inline = self._codec.unpacked(packet)
        return [self._value(one, inline) for one in header]

    def discard(self, packet: bytes) -> None:
        """A worker takes what it was handed, and drops it."""
        self.receive(packet)

    def close(self) -> None:
        """`close` of the store."""
        self._storage.close()

    def _value(self, one: Any, inline: list[Any]) -> Any:
        if one is None:
            return None
        key, address, number, signature = one
        return inline[number] if key is None else self._storage.get(address, number, signature, key)


class Frontend:
    """The writer."""

    def __init__(self, transports: Sequence[str], readers: int, capacity_bytes: int) -> None:
        store = cpu.module("vllm.distributed.device_communicators.shm_object_storage")
        name = f"VLLM_OBJECT_STORAGE_SHM_BUFFER_{getpid()}_{next(numbers)}"
        ring = store.SingleWriterShmRingBuffer(data_buffer_size=capacity_bytes, name=name, create=True)
        self._storage = store.SingleWriterShmObjectStorage(
            max_object_size=capacity_bytes, n_readers=readers, ring_buffer=ring, serde_class=store.MsgpackSerde
        )
        self._lock = multiprocessing.get_context("fork").Lock()
        self._transports, self._codec, self._keys, self._counts = transports, Codec(), count(), Counter[str]()

    def join(self, reader: int, device: Device | None) -> Worker:
        """A store for the handle of this one."""
        handle = self._storage.handle()
        handle.reader_lock = self._lock
        return Worker(handle)

    def send(self, values: Sequence[Any], copies: int) -> list[bytes]:
        """`ShmObjectStoreSenderCache.get_and_update_item` of each value, and again for each copy."""
        header: list[Any] = []
        inline: list[Any] = []
        for value in values:
            if isinstance(value, bytes):  # an address, or what was sent as it is
                [one], content = self._codec.unpacked(value)
            else:
                one, content = self._placed(value)
            header.append([None, 0, len(inline), []] if content else one)
            inline += content
        for _ in range(copies - 1):
            for key in (one[0] for one in header if one and one[0]):
                self._storage.get_cached(key)
        return [self._codec.packed(header, inline)] * copies

    def counts(self) -> Mapping[str, int]:
        """How many were put."""
        return dict(self._counts)

    def close(self) -> None:
        """`close` of the store."""
        self._storage.close()

    def _placed(self, value: Any) -> tuple[Any, list[Any]]:
        """Where a value lies, or the value as it is."""
        put = None if value is None else self._put(value)
        if value is not None:
            self._counts["inline" if put is None else "shared_memory"] += 1
        return put, [] if value is None or put else [value]

    def _put(self, value: Any) -> list[Any] | None:
        key = str(next(self._keys))
        try:
            address, number = self._storage.put(key, value)
        except (ValueError, MemoryError):
            if "inline" not in self._transports:
                raise
            return None
        return [key, address, number, self._storage.get_signature(key)]


class Codec:
    """vLLM's MessagePack, whose frames are put into one."""

    def __init__(self) -> None:
        serial = cpu.module("vllm.v1.serial_utils")
        self._encoder, self._decoders = serial.MsgpackEncoder(), serial.MsgpackDecoder

    def packed(self, header: list[Any], inline: list[Any]) -> bytes:
        """One packet: a single frame as it is, or several, with their lengths."""
        if not inline:
            return bytes(self._encoder.encode(header)[0])
        kinds = ["array" if isinstance(value, np.ndarray) else "tensor" for value in inline]
        frames = [[bytes(frame) for frame in self._encoder.encode(value)] for value in inline]
        sizes = [[len(frame) for frame in value] for value in frames]
        head = json.dumps([header, kinds, sizes]).encode()
        return b"".join([len(head).to_bytes(4, "big"), head, *(frame for value in frames for frame in value)])

    def unpacked(self, packet: bytes) -> tuple[list[Any], list[Any]]:
        """What is in a packet."""
        if packet[:1] != b"\0":
            return self._decoders().decode(packet), []
        length = int.from_bytes(packet[:4], "big")
        header, kinds, sizes = json.loads(packet[4 : 4 + length])
        place, inline = 4 + length, []
        for kind, lengths in zip(kinds, sizes, strict=True):
            frames = []
            for size in lengths:
                frames.append(packet[place : place + size])
                place += size
            decoder = self._decoders(np.ndarray if kind == "array" else torch.Tensor, share_mem=False)
            inline.append(decoder.decode(frames))
        return header, inline


def open_channel(transports: Sequence[str], readers: int, capacity_bytes: int) -> Frontend:
    """A front end and its workers."""
    return Frontend(transports, readers, capacity_bytes)
