"""Survey: the heads of a MessagePack message, walked over before anything is made of it.

A reader that believes a length allocates what a stranger names, and one that follows nesting runs out of stack. So the heads
come first: every length is compared with the bytes that are there, values and levels are counted, and numbers and lengths
stand in their shortest form. What passes holds nothing but None, truth values, integers, 64-bit floats, text, bytes and
arrays of these. It costs a moment for each value and nothing for the bytes of payloads.

Source: the MessagePack specification.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one message may hold: bytes, values of any kind, levels of nesting, dimensions of a shape, and items."""

    total_bytes: int = 1 << 30
    values: int = 1 << 18
    depth: int = 24
    dimensions: int = 16
    items: int = 1 << 12


LIMITS = Limits()

NOTHING, NEGATIVE, NUMBER, BLOCK, ARRAY, FLOAT = range(6)
"""What a head says: that is all; a number; that so many bytes follow; that so many values follow."""

WIDE = {
    0xCB: (FLOAT, 8, 0),
    **{0xCC + n: (NUMBER, 1 << n, least) for n, least in enumerate((1 << 7, 1 << 8, 1 << 16, 1 << 32))},
    **{0xD0 + n: (NEGATIVE, 1 << n, least) for n, least in enumerate((-1 << 5, -1 << 7, -1 << 15, -1 << 31))},
    **{0xC4 + n: (BLOCK, 1 << n, least) for n, least in enumerate((0, 1 << 8, 1 << 16))},
    **{0xD9 + n: (BLOCK, 1 << n, least) for n, least in enumerate((1 << 5, 1 << 8, 1 << 16))},
    **{0xDC + n: (ARRAY, 2 << n, least) for n, least in enumerate((1 << 4, 1 << 16))},
}
"""By the first byte of a value, what it is, how many bytes its number has, and the least number (of negative ones, the first
that is too large) that is written so: smaller ones have a shorter form."""
SINGLE = frozenset((*range(0x80), *range(0xE0, 0x100), 0xC0, 0xC2, 0xC3))
"""First bytes that are all of a value: small integers, None, False, True."""


class WireError(ValueError):
    """A message that cannot be read, or a value that cannot be written; `path` says where in it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the message'}: {reason}")
        self.path = path


def require(condition: bool, path: str, reason: str) -> None:
    """Raise WireError unless the condition holds."""
    if not condition:
        raise WireError(path, reason)


def survey(data: bytes, limits: Limits) -> None:
    """Raise WireError unless the bytes are one value of the kinds above, within the limits, in its shortest form."""
    size = len(data)
    require(size <= limits.total_bytes, "", f"it has at most {limits.total_bytes} bytes")
    place, values, left = 0, 1, [1]  # left: how many values are still to come on each level
    while left:
        if not left[-1]:
            left.pop()
            continue
        left[-1] -= 1
        if place >= size:
            raise WireError("", "it is cut short")
        first = data[place]
        if first in SINGLE:
            place += 1
            continue
        place, parts = _head(data, first, place + 1)
        if place + parts > size:
            raise WireError("", "it is cut short, or names a length that is not there")
        if parts:
            values += parts
            left.append(parts)
            if values > limits.values or len(left) > limits.depth:
                raise WireError("", f"it has at most {limits.values} values on {limits.depth} levels")
    require(place == size, "", "something stands behind its end")


def _head(data: bytes, first: int, place: int) -> tuple[int, int]:
    """Where a value ends, or its head if it has parts, and how many parts follow; `place` is behind its first byte."""
    if 0x90 <= first < 0xA0:
        return place, first - 0x90
    if 0xA0 <= first < 0xC0:
        return place + first - 0xA0, 0
    kind, width, least = WIDE.get(first, (NOTHING, 0, 0))
    if kind == NOTHING:
        raise WireError("", "it holds a kind of MessagePack that has no place in it")
    number = int.from_bytes(data[place : place + width], "big", signed=kind == NEGATIVE)
    place += width
    if place > len(data):
        raise WireError("", "it is cut short")
    if number >= least if kind == NEGATIVE else number < least:
        raise WireError("", "a number or a length is longer than it need be")
    if kind == ARRAY:
        return place, number
    return place + number if kind == BLOCK else place, 0
