"""Speculative decoding as far as it touches media: what a draft model is fed, and what it may propose."""

from typing import Protocol


class Speculation(Protocol):
    """Speculative decoding as far as it touches media: what a draft model is fed, and what it may propose."""
