"""Known ways to be wrong, one module a stage. Importing this package registers them all."""

from importlib import import_module
from pkgutil import iter_modules

from conformance.quirk import quirks

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["quirks"]
