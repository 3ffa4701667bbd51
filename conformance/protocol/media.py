"""From a URL, a data URI, a file or bytes to decoded pixels, frames and samples."""

from typing import Protocol


class Media(Protocol):
    """From a URL, a data URI, a file or bytes to decoded pixels, frames and samples."""
