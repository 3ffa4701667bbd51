"""The life of a request: turns of a session, offloading, abort, retraction and release."""

from typing import Protocol


class Lifecycle(Protocol):
    """The life of a request: turns of a session, offloading, abort, retraction and release."""
