"""Ways in which engines have got the locks of the prefix cache wrong."""

from typing import Any

from conformance.quirk import quirk
from reference.items import Request
from reference.prefix_cache import Lock, Namespace, PrefixCache, _add_locks


@quirk("locks-not-looked-at", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-10", "PREFIX_CACHE-25"))
class IgnoresLocks(PrefixCache):
    """Prefixes are evicted whether or not a running request still needs them."""

    def lock(self, request: Request, namespace: Namespace, limit: int) -> Lock:
        return Lock(self._root, self.match(request, namespace, limit))


@quirk("first-unlock-frees", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-10",))
class LocksAreMarks(PrefixCache):
    """A lock is a mark and not a number: the first of two requests to end frees what both need."""

    def unlock(self, lock: Lock) -> None:
        node = lock._node
        while node is not None:
            node.locks, node = 0, node.parent


@quirk(
    "split-forgets-locks",
    replaces="open_prefix_cache",
    bugs=(),
    caught_by=("PREFIX_CACHE-10", "PREFIX_CACHE-11", "PREFIX_CACHE-25"),
)
class LocksOnlyEnds(PrefixCache):
    """A lock holds a prefix up to the end of a node: when the node is cut later, the lock goes with one of its halves."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        node = self._walk(request, namespace, limit)[2]
        for child in node.children.values():
            child.locks = 0
        super().insert(request, namespace, limit)


@quirk("unlocks-what-it-finds", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-11",))
class UnlocksByLookingUp(PrefixCache):
    """Unlocking looks the prompt up again, and frees the longer prefix that was kept meanwhile."""

    def lock(self, request: Request, namespace: Namespace, limit: int) -> Any:
        super().lock(request, namespace, limit)
        return request, namespace, limit

    def unlock(self, lock: Any) -> None:
        _add_locks(self._walk(*lock)[2], -1)


@quirk("never-unlocked", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-10", "PREFIX_CACHE-11"))
class LeaksLocks(PrefixCache):
    """Locks are never taken back: the cache fills up for good."""

    def unlock(self, lock: Lock) -> None:
        """Nothing is freed."""
