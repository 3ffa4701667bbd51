"""The ids that stand for media in a prompt."""

from collections.abc import Sequence
from typing import Protocol

from conformance import returns as answer
from conformance.returns import returns


class Sentinels(Protocol):
    """The ids that stand for media in a prompt."""

    @returns(answer.integers)
    def sentinels(self, identity: bytes) -> Sequence[int]:
        """The ids that stand for an item with this 32-byte identity, in the order in which a span cycles through them."""

    @returns(answer.integers)
    def sentinels_from_hash(self, value: int) -> Sequence[int]:
        """The ids that stand for an item known by an unsigned 64-bit hash. Raises ValueError for any other number."""

    @returns(answer.nothing)
    def check_vocabulary(self, size: int) -> None:
        """Raise ValueError when a vocabulary of `size` ids, 0 to size - 1, could contain a sentinel."""
