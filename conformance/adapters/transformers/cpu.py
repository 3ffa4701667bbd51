"""transformers, imported beside a CPU build of torch.

Nothing of it is replaced. torchvision is completed where it does not load (see `conformance.world.torchvision_cpu`).
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch import nn

from conformance.engine import EngineNotLoaded
from conformance.world.torchvision_cpu import complete_torchvision

VERSION = "5.24.0"
"""The version that the list of known failures is about."""

NEEDED = ("soundfile", "soxr", "num2words")
"""What has to be installed beside what mmproof itself needs: transformers reads and resamples recordings with it."""


@cache
def prepare() -> Any:
    """Import transformers, once a process.

    Raises EngineNotLoaded, with what to install, when something is missing.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise EngineNotLoaded(
            f"transformers cannot read recordings, {' and '.join(missing)} are not installed: `pip install {' '.join(NEEDED)}`"
        )
    complete_torchvision()
    loaded = import_module("transformers")
    loaded.logging.set_verbosity_error()
    return loaded


def module(name: str) -> Any:
    """A module of transformers."""
    prepare()
    return import_module(f"transformers.{name}")


def named(name: str) -> Any:
    """What `module:name` is in transformers."""
    where, _, attribute = name.partition(":")
    return getattr(module(where), attribute)


def bare(owner: type, **parts: Any) -> Any:
    """An object of a class of transformers with these parts alone: a processor without a tokenizer, a model without weights."""
    made: Any = object.__new__(owner)
    if issubclass(owner, nn.Module):
        nn.Module.__init__(made)
    for name, part in parts.items():
        setattr(made, name, part)
    return made
