"""Where the media of a prompt stand, and their padding with sentinels."""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.returns import returns
from reference.items import Item, Span


class Placeholders(Protocol):
    """Where the media of a prompt stand, and their padding with sentinels."""

    @returns(answer.spans)
    def find_spans(self, input_ids: NDArray[np.int64], token_id: int) -> Sequence[Span]:
        """The maximal runs of `token_id` in `input_ids` int64 [n], by position."""

    @returns(answer.int64_array)
    def pad_spans(self, input_ids: NDArray[np.int64], items: Sequence[Item]) -> NDArray[np.int64]:
        """A new int64 array [n]: each span filled with its item's sentinels from the first one on, the rest as it was.

        Items have an `identity` or a `caller_hash`. Raises ValueError when spans overlap or end outside the prompt.
        """

    @returns(answer.int64_array)
    def pad_pairs(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        pairs: Sequence[tuple[int, int]],
        item_starts: Collection[int],
    ) -> NDArray[np.int64]:
        """A new int64 array [n]: what lies strictly between a start and an end token filled with an item's sentinels.

        pairs: (start id, end id), all ids different.
        item_starts: the start ids that begin a new item; a pair with another start is a further slice of the item
        before it. The k-th item start in the prompt belongs to items[k]; spans of items are not looked at.
        Each slice is filled from the first sentinel on. Raises ValueError for tokens that do not pair up, cross or
        nest, for a slice before any item start, and unless there are as many item starts as items.
        """

    @returns(answer.integers)
    def token_modalities(self, length: int, items: Sequence[Item]) -> Sequence[int]:
        """For each of `length` positions the number of the modality whose span it lies in, 0 at text.

        Raises ValueError when spans overlap or end outside the prompt.
        """
