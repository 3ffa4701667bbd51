"""Mutations of `prefix_cache`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "the row of an item that stands at a slot is part of a page's key",
        "prefix_cache",
        "item.token_count, first - number * page, row + first - span.first, length)",
        "item.token_count, 0, 0, 0)",
        "PREFIX_CACHE-19",
    ),
    Mutation(
        "a page's key covers the page before it",
        "prefix_cache",
        "parent = sha256(parent + ",
        "parent = sha256(",
        "PREFIX_CACHE-19",
    ),
    Mutation("a node that is cut keeps its locks", "prefix_cache", ", locks=node.locks)", ")", "PREFIX_CACHE-11"),
    Mutation(
        "a namespace has a tree of its own",
        "prefix_cache",
        "    return namespace, padded[",
        "    return None, padded[",
        "PREFIX_CACHE-04",
    ),
]
