"""Text and media through a model's processor: ids, and items with spans, grids and rows."""

from typing import Protocol


class Processors(Protocol):
    """Text and media through a model's processor: ids, and items with spans, grids and rows."""
