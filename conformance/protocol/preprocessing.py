"""Preprocessing of media: asynchronous, bounded, cancellable and cached."""

from typing import Protocol


class Preprocessing(Protocol):
    """Preprocessing of media: asynchronous, bounded, cancellable and cached."""
