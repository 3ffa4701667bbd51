"""What is obviously right about identities."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import torch

from conformance.engine import Engine
from reference.items import Item, Modality

HEXADECIMAL = "0123456789abcdefABCDEF"


def specimens() -> tuple[Item, ...]:
    """A picture, a video and a recording, made afresh."""
    ramp = torch.arange(24.0).reshape(4, 6)
    return (
        Item(modality=Modality.IMAGE, feature=ramp, fields={"image_grid_thw": torch.tensor([[1, 4, 6]])}),
        Item(modality=Modality.VIDEO, feature=[ramp, ramp.T], fields={"fps": 2.0, "sampling": {"first": 0, "by": "time"}}),
        Item(modality=Modality.AUDIO, feature=np.arange(6, dtype=np.int16), fields={"sampling_rate": 16_000}),
    )


def identities(engine: Engine) -> list[bytes]:
    """What the engine makes of the specimens."""
    return [engine.identify(item) for item in specimens()]


def combined(engine: Engine) -> list[bytes]:
    """What it makes of their sequence."""
    return [engine.combine_identities(identities(engine))]


def first_word(data: bytes) -> int:
    """The first 16 hexadecimal digits of a SHA-256, as a number."""
    return int(sha256(data).hexdigest()[:16], 16)


def memory(value: Any) -> bytes:
    """The bytes of tensors, arrays, bytes and lists of them, one after another, as C order writes them."""
    if isinstance(value, list | tuple):
        return b"".join(map(memory, value))
    if isinstance(value, torch.Tensor):
        elements = value.detach().reshape(-1).tolist() if value.dtype != torch.bfloat16 else None
        if elements is None:
            return value.detach().clone(memory_format=torch.contiguous_format).view(torch.int16).numpy().tobytes()
        return np.array(elements, dtype=str(value.dtype).removeprefix("torch.")).tobytes()
    return value.tobytes() if isinstance(value, np.ndarray) else bytes(value)


def adopted(modalities: Sequence[Modality], hashes: Mapping[Modality, Sequence[Any]]) -> tuple[tuple[int | None, ...], bool]:
    """The hash of each item, and whether there is anything to report."""
    for modality, given in hashes.items():
        if len(given) != list(modalities).count(modality):
            return (None,) * len(modalities), True
    waiting = {modality: list(given) for modality, given in hashes.items()}
    texts: list[Any] = [waiting[modality].pop(0) if modality in waiting else None for modality in modalities]
    numbers = tuple(int(text, 16) if is_hash(text) else None for text in texts)
    return numbers, sum(map(len, hashes.values())) > sum(number is not None for number in numbers)


def is_hash(text: Any) -> bool:
    """Whether something is a string of 1 to 16 hexadecimal digits and nothing else."""
    return isinstance(text, str) and 1 <= len(text) <= 16 and all(letter in HEXADECIMAL for letter in text)
