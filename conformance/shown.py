"""What an engine was shown, put back as it was.

Cases are shared by rules, and an engine that writes into its arguments would spoil them for the next one: a single
fault would then turn up under many names. So whatever is shown to an engine within a case is kept, and put back in place
when the case is over. Memory layouts stay as they are, for nothing is replaced.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from PIL.Image import Image

PutBack = Callable[[], None]


class Shown:
    """The arguments of one case: arrays, tensors, pictures, lists and dictionaries, however deep in plain data."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}  # by id, and kept alive: an id may be given again
        self._put_back: list[PutBack] = []

    def keep(self, values: Iterable[Any]) -> None:
        """Remember these values as they are now. What is known already was remembered when it was shown first."""
        left = list(values)
        while left:
            value = left.pop()
            if isinstance(value, str | bytes | int | float | None) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if (kept := _kept(value)) is not None:
                self._put_back.append(kept)
            left += _parts(value)

    def put_back(self) -> None:
        """Undo what was changed since, and forget everything."""
        for undo in self._put_back:
            undo()
        self._seen, self._put_back = {}, []


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    return []


def _kept(value: Any) -> PutBack | None:
    """How to make a value again what it is now; None for what cannot be changed, or is none of ours to keep."""
    if isinstance(value, torch.Tensor):
        return _kept_tensor(value)
    if isinstance(value, np.ndarray) and value.flags.writeable and not value.dtype.hasobject:
        return _kept_array(value)
    if isinstance(value, Image) and getattr(value, "_im", None) is not None:
        return _kept_picture(value)
    if isinstance(value, list):
        return _kept_list(value)
    if isinstance(value, dict):
        return _kept_dictionary(value)
    return None


def _kept_tensor(tensor: torch.Tensor) -> PutBack | None:
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        return None
    memory = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    before = memory.clone()

    def undo() -> None:
        if not torch.equal(memory, before):
            memory.copy_(before)

    return undo


def _kept_array(array: np.ndarray) -> PutBack:
    before = array.tobytes()

    def undo() -> None:
        if array.tobytes() != before:
            array[...] = np.frombuffer(before, array.dtype).reshape(array.shape)

    return undo


def _kept_picture(picture: Image) -> PutBack:
    def undo() -> None:
        if (picture.mode, picture.size, picture.tobytes()) != (mode, size, pixels):
            picture.__setstate__(before)

    before = picture.__getstate__()
    mode, size, pixels = picture.mode, picture.size, picture.tobytes()
    return undo


def _kept_list(values: list[Any]) -> PutBack:
    before = list(values)

    def undo() -> None:
        values[:] = before

    return undo


def _kept_dictionary(values: dict[Any, Any]) -> PutBack:
    before = dict(values)

    def undo() -> None:
        values.clear()
        values.update(before)

    return undo
