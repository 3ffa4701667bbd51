"""Which positions are computed in which step."""

from typing import Protocol


class Scheduling(Protocol):
    """Which positions are computed in which step."""
