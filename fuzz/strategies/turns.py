"""Whether the items of a prompt take turns, which is a choice of engines where it is no film and its sound."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from conformance.engine import Traits
from reference.items import Item, Request


def whose_items_may_take_turns(traits: Traits, case: Any) -> bool:
    """Whether an engine with these traits takes all prompts in a case."""
    return traits.interleaved_items == "any" or not any(map(_take_turns, _prompts(case)))


def _prompts(case: Any) -> Iterator[Sequence[Item]]:
    if isinstance(case, Request):
        yield case.items
    elif isinstance(case, tuple) and case and all(isinstance(part, Item) for part in case):
        yield case
    elif isinstance(case, Mapping | list | tuple):
        for part in case.values() if isinstance(case, Mapping) else case:
            yield from _prompts(part)


def _take_turns(items: Sequence[Item]) -> bool:
    first_to_last = sorted((item.spans[0].first, item.spans[-1].last) for item in items)
    return any(one[1] > other[0] for one, other in pairwise(first_to_last))
