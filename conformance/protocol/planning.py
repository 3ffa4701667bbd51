"""The number of tokens of a medium, from its size alone."""

from typing import Protocol


class Planning(Protocol):
    """The number of tokens of a medium, from its size alone."""
