"""Prefix cache: which part of a prompt was computed before.

Keys and values of a position depend on everything before it, so what can be used again is a prefix. The cache is a tree of
prompts cut into pages; a page is one *label*, and what two prompts share is the path of labels that they share. There
are two ways to label a page, and half of the field uses each:

* `padded_pages`: the page's ids themselves, padded with sentinels, which carry the content of the media (SGLang).
* `block_keys`: a hash over the page before it, its ids and the media in it; the ids keep their placeholders (vLLM).

Both give the same answer: the longest prefix of which every position has the same text id, or the same row of the same
item, cut down to whole pages. What it takes:

1. Every item that reaches into a page counts, not the first or the last one, and with the row that stands at each place.
   Where an item stands is no part of its sentinels: that follows from the ids before it.
2. A page hash covers the page before it. Labels then need no path, and can be keys in a store that knows no tree.
3. A namespace (a cache salt, an adapter) has a tree of its own, or begins the chain of hashes. It is a tuple of
   texts, compared as it is: None is not "", and ("ab", "c") is not ("a", "bc").
4. Leaves are evicted from their end, the one used longest ago first, for a prefix is of no use without its beginning.
   Using is inserting, matching and locking. A lock holds all of a path, and is taken back by what was given for it.
5. Comparing is done by runs: the first label that differs is found in one vectorised step for each node of the tree.

An identity is taken to have one token count: it covers the grid. Were it reused for another one, by a caller's hash,
sentinels would share the rows that both have, and block keys would not.

Source: SGLang 0.5.23, `RadixCache`; vLLM, `hash_block_tokens` and `generate_block_hash_extra_keys`.
Disagreements: SGLang evicts whole nodes, here a node loses no more than is needed. vLLM writes the offset of an item from
the page's beginning in place of slot and row, which cannot tell text that looks like a placeholder between two runs of one
item. Both take "" for no salt.
"""

import heapq
import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reference.items import Item, Request
from reference.placeholders import pad_spans

Namespace: TypeAlias = tuple[str | None, ...]
Labels: TypeAlias = NDArray[np.int64]
"""One row a page, int64 [pages, width]; equal rows are equal pages."""
Labelling: TypeAlias = Callable[[Request, Namespace, int], tuple[Hashable, Labels]]
"""A request, a namespace and a page size -> which tree, and the labels of the full pages."""


def padded_pages(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
    """The tree of the namespace, and the padded ids of each full page, int64 [n // page, page].

    Raises ValueError for an item without identity and caller hash.
    """
    padded = pad_spans(request.input_ids, request.items)
    return namespace, padded[: len(padded) // page * page].reshape(-1, page)


def block_pages(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
    """The one tree of all namespaces, and the hash of each full page, int64 [n // page, 4]. Errors as in `block_keys`."""
    keys = b"".join(block_keys(request, namespace, page))
    return None, np.frombuffer(keys, dtype=np.int64).reshape(-1, 4)


def block_keys(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """For each full page 32 bytes that stand for everything up to its end: namespace, ids and media.

    Raises ValueError for an item without identity and caller hash, and unless page >= 1.
    """
    _check_page(page)
    pieces = _pieces(request, page)
    keys, parent = [], _root_key(namespace)
    for number in range(len(request.input_ids) // page):
        ids = request.input_ids[number * page : (number + 1) * page]
        media = pieces.get(number, b"")
        parent = sha256(parent + len(media).to_bytes(8, "little") + media + ids.tobytes()).digest()
        keys.append(parent)
    return keys


def _pieces(request: Request, page: int) -> dict[int, bytes]:
    """For each page with media: what lies where, by position. A piece of an item is its key, token count, the slot in
    the page at which the piece begins, the row that stands there, and its length."""
    parts: dict[int, list[tuple[int, bytes]]] = {}
    for item in request.items:
        known, row = _item_key(item), 0
        for span in item.spans:
            for number in range(span.first // page, span.last // page + 1):
                first = max(span.first, number * page)
                length = min(span.stop, (number + 1) * page) - first
                piece = known + struct.pack("<4q", item.token_count, first - number * page, row + first - span.first, length)
                parts.setdefault(number, []).append((first, piece))
            row += len(span)
    return {number: b"".join(piece for _, piece in sorted(found)) for number, found in parts.items()}


def _item_key(item: Item) -> bytes:
    """33 bytes that stand for an item: by the caller's hash where there is one, else by content."""
    if item.caller_hash is not None:
        return b"h" + item.caller_hash.to_bytes(32, "big")
    if item.identity is None:
        raise ValueError(f"this {item.modality.name.lower()} has no identity yet: it cannot be told from another")
    return b"i" + item.identity


def _root_key(namespace: Namespace) -> bytes:
    """What the first page hashes in place of a page before it: the namespace, every part with its length."""
    texts = [None if part is None else part.encode("utf-8", "surrogatepass") for part in namespace]
    return sha256(b"".join(b"-" if text is None else b"+%d:" % len(text) + text for text in texts)).digest()


@dataclass(slots=True, eq=False)
class _Node:
    """A run of pages behind its parent's. children: by tree and first label; only the root has some of several trees."""

    tree: Hashable
    labels: Labels
    parent: "_Node | None" = None
    children: dict[tuple[Hashable, bytes], "_Node"] = field(default_factory=dict)
    last_use: int = 0
    locks: int = 0

    def key(self) -> tuple[Hashable, bytes]:
        """Under which its parent knows it."""
        return self.tree, self.labels[0].tobytes()


class Lock:
    """A locked prefix of `length` positions; `PrefixCache.unlock` takes it back."""

    __slots__ = ("_node", "length")

    def __init__(self, node: _Node, length: int) -> None:
        self._node: _Node | None = node
        self.length = length


class PrefixCache:
    """Prompts that were computed, in pages of `page` positions. Not for several threads at once.

    Raises ValueError unless page >= 1, TypeError when it is no integer.
    """

    def __init__(self, page: int, labelling: Labelling = padded_pages) -> None:
        self._page = _check_page(page)
        self._labelling = labelling
        self._clock = count(1)
        self.clear()

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        """Keep the full pages among the first `limit` positions: those that were computed.

        Raises ValueError for a negative limit, and for an item without identity and caller hash.
        """
        tree, labels, node, done = self._walk(request, namespace, limit)
        if done < len(labels):
            fresh = _Node(tree, labels[done:].copy(), node, last_use=node.last_use)
            node.children[fresh.key()] = fresh
            self._used_pages += len(fresh.labels)

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        """How many of the first `limit` positions were computed before: full pages, from the first on.

        A request that is to be computed needs at least one position of its own: its limit is its length - 1.
        Raises ValueError as `insert` does.
        """
        return self._walk(request, namespace, limit)[3] * self._page

    def lock(self, request: Request, namespace: Namespace, limit: int) -> Lock:
        """Protect what `match` finds from eviction, until the lock is taken back. Raises ValueError as `insert` does."""
        _, _, node, done = self._walk(request, namespace, limit)
        _add_locks(node, 1)
        return Lock(node, done * self._page)

    def unlock(self, lock: Lock) -> None:
        """Take a lock back; after a `clear` there is nothing left to free. Raises ValueError when it was taken back."""
        if lock._node is None:
            raise ValueError(f"this lock of {lock.length} positions was taken back already")
        _add_locks(lock._node, -1)
        lock._node = None

    def evict(self, tokens: int) -> int:
        """Forget at least `tokens` positions, or all that are not locked; returns how many.

        Whole pages go, and no more than needed: from the ends of unlocked leaves, the one used longest ago first.
        Raises ValueError for a negative number.
        """
        if tokens < 0:
            raise ValueError(f"at least 0 positions can be evicted, not {tokens}")
        wanted = min(-(-tokens // self._page), self._used_pages)
        before, ties = self._used_pages, count()
        heap = [(leaf.last_use, next(ties), leaf) for leaf in self._leaves() if _is_free(leaf)]
        heapq.heapify(heap)
        while heap and before - self._used_pages < wanted:
            leaf = heapq.heappop(heap)[2]
            parent = self._shorten(leaf, wanted - (before - self._used_pages))
            if parent is not None and _is_free(parent):
                heapq.heappush(heap, (parent.last_use, next(ties), parent))
        return (before - self._used_pages) * self._page

    def used_tokens(self) -> int:
        """How many positions are kept; what several prompts share counts once."""
        return self._used_pages * self._page

    def clear(self) -> None:
        """Forget everything, locked or not: for when it is no longer true."""
        self._root = _Node(None, np.empty((0, 1), dtype=np.int64))
        self._used_pages = 0

    def _walk(self, request: Request, namespace: Namespace, limit: int) -> tuple[Hashable, Labels, _Node, int]:
        """The request's tree and labels, the node at which their match ends, and how many match. The path becomes young."""
        if limit < 0:
            raise ValueError(f"a limit is at least 0 positions, not {limit}")
        tree, labels = self._labelling(request, namespace, self._page)
        labels = labels[: limit // self._page]
        node, done = self._root, 0
        node.last_use = now = next(self._clock)
        while done < len(labels) and (child := node.children.get((tree, labels[done].tobytes()))):
            shared = _shared(child.labels, labels[done:])
            node = child if shared == len(child.labels) else _split(child, shared)
            node.last_use = now
            done += shared
        return tree, labels, node, done

    def _leaves(self) -> list[_Node]:
        found, left = [], [self._root]
        while left:
            node = left.pop()
            left += node.children.values()
            if not node.children:
                found.append(node)
        return found

    def _shorten(self, leaf: _Node, pages: int) -> _Node | None:
        """Take up to so many pages from the end of a leaf; its parent, where that becomes a leaf."""
        kept = max(len(leaf.labels) - pages, 0)
        self._used_pages -= len(leaf.labels) - kept
        if kept or leaf.parent is None:
            leaf.labels = leaf.labels[:kept].copy()
            return None
        del leaf.parent.children[leaf.key()]
        return None if leaf.parent.children else leaf.parent


def _split(node: _Node, pages: int) -> _Node:
    """Cut a node in two; the new upper part is returned. Whoever holds the node holds what it held before."""
    upper = _Node(node.tree, node.labels[:pages].copy(), node.parent, last_use=node.last_use, locks=node.locks)
    if node.parent is not None:
        node.parent.children[upper.key()] = upper
    node.labels, node.parent = node.labels[pages:].copy(), upper
    upper.children[node.key()] = node
    return upper


def _shared(first: Labels, second: Labels) -> int:
    """How many labels two runs have in common, from the first on."""
    common = min(len(first), len(second))
    differs = (first[:common] != second[:common]).ravel()
    return int(differs.argmax()) // first.shape[1] if differs.any() else common


def _add_locks(node: _Node | None, number: int) -> None:
    while node is not None:
        node.locks += number
        node = node.parent


def _is_free(node: _Node) -> bool:
    """Whether a leaf may be evicted: a root is no prompt, and a lock holds its path."""
    return node.parent is not None and not node.locks


def _check_page(page: int) -> int:
    if index(page) < 1:
        raise ValueError(f"a page has at least 1 position, not {page}")
    return index(page)
