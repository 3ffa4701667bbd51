"""Efficient video sampling: which tokens of a video are kept."""

from typing import Protocol


class Pruning(Protocol):
    """Efficient video sampling: which tokens of a video are kept."""
