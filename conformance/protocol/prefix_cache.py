"""Which part of a prompt was computed before."""

from typing import Protocol


class PrefixCaches(Protocol):
    """Which part of a prompt was computed before."""
