"""Cases of the rules about channels: what is sent, and what happens to packets and processes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from conformance.oracles.transport_lives import life

PAGES = 4096
"""How many elements make a tensor that no engine takes for a small one."""


def bits(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """A tensor of a dtype whose bytes are all bytes there are: every NaN with every payload, subnormals, both zeros."""
    count = int(np.prod(shape)) * dtype.itemsize
    octets = (torch.arange(count) * 167 + torch.arange(count) // 256 * 13).to(torch.uint8)
    octets = octets % 2 if dtype is torch.bool else octets
    return octets.view(dtype).reshape(shape)


def numbers(seed: int, size_bytes: int = 4 * PAGES) -> torch.Tensor:
    """A tensor of bytes that no other seed gives."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, size_bytes, dtype=np.uint8))


DTYPES = {
    "floats": [bits(dtype, PAGES) for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)],
    "narrow-floats": [
        bits(dtype, 2, PAGES)
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
    ],
    "integers": [bits(dtype, PAGES) for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)],
    "wide-unsigned": [bits(dtype, PAGES) for dtype in (torch.uint16, torch.uint32, torch.uint64)],
    "booleans": [bits(torch.bool, 3, PAGES)],
    "complex": [bits(torch.complex64, PAGES), bits(torch.complex128, PAGES)],
    "small": [bits(dtype, 3) for dtype in (torch.bfloat16, torch.float8_e5m2, torch.bool, torch.uint64, torch.complex64)],
    "arrays": [np.arange(PAGES, dtype=kind) for kind in ("<f8", "<f4", "<f2", "<i8", "<u8", "<u2", "|u1", "<c8")],
    "arrays-in-another-order": [np.arange(PAGES, dtype=">f4"), np.arange(PAGES, dtype=">i8")],
}

LAYOUTS = {
    "transposed": [bits(torch.float32, 64, 96).t()],
    "every-third": [bits(torch.int16, 3 * PAGES)[::3]],
    "columns": [bits(torch.bfloat16, 96, 128)[:, 3:99]],
    "one-value-many-times": [torch.tensor([1.5]).expand(PAGES)],
    "channels-last": [bits(torch.float32, 2, 3, 32, 32).to(memory_format=torch.channels_last)],
    "offset": [bits(torch.uint8, 3 * PAGES)[1 : 2 * PAGES]],
    "conjugated": [bits(torch.complex64, PAGES).to(torch.complex64).conj()],
    "no-dimension": [torch.tensor(7.0), torch.tensor(True), np.array(3, dtype=np.int16)],
    "empty": [torch.empty(0), torch.empty(0, 1176, dtype=torch.bfloat16), np.empty((3, 0), np.int64)],
    "array-backwards": [np.arange(PAGES, dtype=np.int32)[::-1]],
    "array-by-columns": [np.asfortranarray(np.arange(PAGES, dtype=np.float32).reshape(64, 64))],
    "needs-a-gradient": [torch.ones(PAGES, requires_grad=True)],
    "read-only-array": [np.frombuffer(bytes(range(256)) * 32, dtype=np.uint8)],
}

LISTS: dict[str, list[Any]] = {
    "none-first": [None, numbers(1), None],
    "none-alone": [None],
    "nothing": [],
    "tensors-and-arrays": [numbers(1), numbers(2).numpy(), numbers(3)],
    "large-and-small": [numbers(1), torch.tensor([[1, 2, 2]]), numbers(2), np.array([[1, 4, 6]])],
    "empty-between": [numbers(1), torch.empty(0, 4), None, numbers(2)],
    "many": [numbers(n, 5000 + n) for n in range(40)],
    "twice-the-same": [numbers(1)] * 2,
}


class Wrapped(NamedTuple):
    """What is sent by itself and then as parts of a list, by their places there; the others are sent as they are."""

    values: list[Any]
    places: tuple[int, ...]
    copies: int = 1


WRAPPED = {
    "the-first": Wrapped([numbers(1), numbers(2)], (0,)),
    "the-last": Wrapped([numbers(1), None, numbers(2)], (2,)),
    "all": Wrapped([numbers(1), numbers(2).numpy()], (0, 1)),
    "a-small-one": Wrapped([numbers(1), torch.tensor([1, 2, 2])], (1,)),
    "in-two-copies": Wrapped([numbers(1), numbers(2)], (1,), copies=2),
}

IDENTITIES = {
    "one-tensor": [numbers(1)],
    "all-in-one-way": [numbers(1), numbers(2)],
    "large-and-small": [numbers(1), torch.tensor([[1, 2, 2]])],
    "arrays": [numbers(1).numpy(), numbers(2).numpy()],
    "one-feature-of-two-pictures": [bits(torch.bfloat16, 64, 128)],
}

REWRITES: dict[str, tuple[Callable[[], list[Any]], Callable[[list[Any]], Any]]] = {
    "a-tensor": (lambda: [numbers(1)], lambda values: values[0].zero_()),
    "an-array": (lambda: [numbers(1).numpy().copy()], lambda values: values[0].fill(0)),
    "a-view": (lambda: [numbers(1)[:5000]], lambda values: values[0].zero_()),
    "a-small-one": (lambda: [torch.ones(3)], lambda values: values[0].zero_()),
    "the-list": (lambda: [numbers(1), None, numbers(2)], lambda values: values.reverse()),
}


class Damage(NamedTuple):
    """How a packet is spoilt."""

    spoil: Callable[[bytes], bytes]


def flipped(sixteenths: int) -> Damage:
    """One bit flipped so far into the packet."""

    def spoil(packet: bytes) -> bytes:
        spoilt = bytearray(packet)
        spoilt[min(len(packet) * sixteenths // 16, len(packet) - 1)] ^= 1 << sixteenths % 8
        return bytes(spoilt)

    return Damage(spoil)


FLIPS = {f"{n}-sixteenths": flipped(n) for n in range(17)}

DAMAGES = {
    "nothing-but-a-byte": Damage(lambda packet: b"\0"),
    "half": Damage(lambda packet: packet[: len(packet) // 2]),
    "all-but-the-last-byte": Damage(lambda packet: packet[:-1]),
    "all-but-the-first-byte": Damage(lambda packet: packet[1:]),
    "a-byte-more": Damage(lambda packet: packet + b"\0"),
    "twice": Damage(lambda packet: packet * 2),
    "zeros": Damage(lambda packet: bytes(len(packet))),
    "other-bytes": Damage(lambda packet: bytes(byte ^ 0x5A for byte in packet)),
    "text": Damage(lambda packet: b"a picture of a cat"),
    "a-long-nothing": Damage(lambda packet: bytes(1 << 16)),
}

LIVES = {
    "one": life(1, "send a", "receive 0 0", "drop 0 0"),
    "received-and-kept": life(1, "send a", "receive 0 0", "send b", "receive 0 1", "drop 0 0"),
    "two-readers": life(2, "send a", "receive 0 0", "drop 0 0", "receive 1 0", "drop 1 0"),
    "one-reader-does-without": life(2, "send a", "receive 0 0", "skip 1 0", "drop 0 0"),
    "nobody-reads-it": life(2, "send a", "skip 0 0", "skip 1 0"),
    "two-copies": life(1, "send a 2", "receive 0 0", "drop 0 0", "receive 0 1", "drop 0 1"),
    "a-copy-that-nobody-reads": life(1, "send a 3", "receive 0 1", "drop 0 1", "skip 0 0", "recall 2"),
    "recalled": life(2, "send a", "recall 0", "receive 0 0", "send b", "receive 0 1", "receive 1 1"),
    "recalled-while-one-has-it": life(2, "send a", "receive 0 0", "recall 0", "receive 1 0", "drop 0 0"),
    "recalled-twice": life(1, "send a", "recall 0", "recall 0", "send b", "receive 0 1"),
    "recalled-too-late": life(1, "send a", "receive 0 0", "drop 0 0", "recall 0", "send b", "receive 0 1"),
    "a-reader-leaves": life(2, "send a", "receive 0 0", "leave 1", "drop 0 0"),
    "a-reader-leaves-with-what-it-has": life(1, "send a", "receive 0 0", "leave 0", "send b", "drop 0 0"),
    "a-reader-leaves-and-keeps-what-it-has": life(1, "send a", "receive 0 0", "leave 0", "send b", "send c"),
    "a-reader-comes-back": life(1, "send a", "leave 0", "join 0", "receive 0 0", "send b", "receive 0 1"),
    "a-list": life(1, "send abc", "send de", "receive 0 1", "receive 0 0", "drop 0 0", "drop 0 1"),
    "out-of-order": life(2, "send a", "send b", "send c", "receive 0 2", "receive 0 0", "receive 1 1", "drop 0 2", "skip 1 2"),
}  # fmt: skip
