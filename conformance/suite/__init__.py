"""The rules, one module a stage. Importing this package declares them all."""

from importlib import import_module
from pkgutil import iter_modules

from conformance.requirement import requirements

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["requirements"]
