"""The two common shapes of a case."""

from typing import Any, NamedTuple


class Exact(NamedTuple):
    """An input and the one right answer, from an oracle or measured on a real engine."""

    given: Any
    expected: Any


class Pair(NamedTuple):
    """Two inputs that an engine must tell apart, or must not."""

    first: Any
    second: Any
