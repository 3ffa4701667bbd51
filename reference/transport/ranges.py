"""Ranges: which bytes of a pool are free.

The smallest free range that is large enough is cut, and of several the first: pages that were used before are used
again, which costs no page faults. What is given back grows together with its neighbours at once.
"""

from bisect import bisect_left


class FreeRanges:
    """The free bytes of a pool of `size_bytes`, in ranges whose bounds are multiples of `unit_bytes`."""

    def __init__(self, size_bytes: int, *, unit_bytes: int) -> None:
        self._unit = unit_bytes
        self._free = [(0, size_bytes // unit_bytes * unit_bytes)] if size_bytes >= unit_bytes else []  # by position

    def rounded(self, size_bytes: int) -> int:
        """How many bytes are taken for so many."""
        return -(-size_bytes // self._unit) * self._unit

    def take(self, size_bytes: int) -> int | None:
        """The first byte of a range of at least so many bytes, which is free no longer; None when there is none."""
        need = self.rounded(size_bytes)
        fitting = [(stop - first, first, stop) for first, stop in self._free if stop - first >= need]
        if not fitting:
            return None
        _, first, stop = min(fitting)
        place = self._free.index((first, stop))
        self._free[place : place + 1] = [(first + need, stop)] if first + need < stop else []
        return first

    def give_back(self, first: int, size_bytes: int) -> None:
        """Make a range free that was taken with this size."""
        stop = first + self.rounded(size_bytes)
        place = bisect_left(self._free, (first, stop))
        if place < len(self._free) and self._free[place][0] == stop:
            stop = self._free.pop(place)[1]
        if place and self._free[place - 1][1] == first:
            place -= 1
            first = self._free.pop(place)[0]
        self._free.insert(place, (first, stop))
