"""What became of arguments: who writes into a copy of them has written into them."""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from conformance.remote.plain import to_plain


def fingerprint(arguments: Sequence[Any]) -> str:
    """What arguments are, in a form that differs once somebody has written into them."""
    return json.dumps([to_plain(one, lambda other: {"$": "mine", "object": id(other)}) for one in arguments])


def write_back(value: Any, changed: Any) -> Any:
    """Make a value what it has become, in place. Returns it, or what has become of it where it cannot be changed itself."""
    if isinstance(value, torch.Tensor) and isinstance(changed, torch.Tensor):
        with torch.no_grad():
            value.resize_(changed.shape).copy_(changed)
    elif isinstance(value, np.ndarray) and isinstance(changed, np.ndarray) and value.shape == changed.shape:
        if value.tobytes() != changed.tobytes():
            value[...] = changed
    elif isinstance(value, Image.Image) and isinstance(changed, Image.Image):
        if (value.mode, value.size, value.tobytes()) != (changed.mode, changed.size, changed.tobytes()):
            value.__setstate__(changed.__getstate__())
    elif isinstance(value, list) and isinstance(changed, list):
        kept = [write_back(*pair) for pair in zip(value, changed, strict=False)]
        value[:] = [*kept, *changed[len(kept) :]]
    elif isinstance(value, dict) and isinstance(changed, dict):
        become = {key: write_back(value[key], one) if key in value else one for key, one in changed.items()}
        value.clear()
        value.update(become)
    elif isinstance(value, bytearray) and isinstance(changed, bytearray):
        value[:] = changed
    elif isinstance(value, tuple) or is_dataclass(value):
        for one, other in zip(_members(value), _members(changed), strict=False):
            write_back(one, other)
    else:
        return changed
    return value


def _members(value: Any) -> list[Any]:
    return [getattr(value, one.name) for one in fields(value)] if is_dataclass(value) else list(value)
