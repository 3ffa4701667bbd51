"""Which part of a prompt was computed before."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from conformance import returns as answer
from conformance.returns import Opens, WrongAnswer, returns
from reference.items import Request


class Namespace(NamedTuple):
    """Who may share a prefix: only requests with the same salt and the same adapter. None is none."""

    salt: str | None = None
    adapter: str | None = None


def keys(value: Any) -> tuple[bytes | str | int, ...]:
    """A sequence of keys: bytes, texts or ints."""
    if not isinstance(value, Sequence) or not all(isinstance(key, bytes | str | int) for key in value):
        raise WrongAnswer("a sequence of keys, each bytes, text or an int")
    return tuple(value)


class PrefixCache(Protocol):
    """What `open_prefix_cache` returns: prompts that were computed, in pages of a fixed number of positions.

    Requests carry placeholder ids where their items stand; an engine pads or keys them by its own design. Each item has
    an identity or a caller's hash, which stands for one content with one token count and one placeholder id. Two
    positions are the same when both are text with the same id, or the same row of items with the same identity.

    `limit` leaves positions out: only the first `limit` of a request count. Only full pages do.
    """

    @returns(answer.nothing)
    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        """Keep the first `limit` positions of the request: those that were computed. It is no error to keep them twice."""

    @returns(answer.integer)
    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        """How many positions of the request, from the first on and at most `limit`, were computed before.

        The longest prefix that it shares with anything kept in the namespace, rounded down to whole pages, and where the
        trait `prefix_items` is "whole", to the beginning of an item that it would cut.
        """

    @returns(answer.anything)
    def lock(self, request: Request, namespace: Namespace, limit: int) -> Any:
        """Protect what `match` would find from eviction; returns what `unlock` takes. Locks of one prefix add up."""

    @returns(answer.nothing)
    def unlock(self, lock: Any) -> None:
        """Take a lock back, once."""

    @returns(answer.integer)
    def evict(self, tokens: int) -> int:
        """Forget at least `tokens` positions that are not locked, or all of these if there are fewer; returns how many.

        What was used longest ago goes first. Using is inserting and locking; whether matching is, too, is free.
        """

    @returns(answer.integer)
    def used_tokens(self) -> int:
        """How many positions are kept."""

    @returns(answer.nothing)
    def clear(self) -> None:
        """Forget everything: it is no longer true (new weights). While something is locked this may be refused; where it
        is not, what is locked goes too, and its locks are void."""


class PrefixCaches(Protocol):
    """Which part of a prompt was computed before."""

    @returns(keys)
    def page_keys(self, request: Request, namespace: Namespace, page: int) -> Sequence[bytes | str | int]:
        """For each full page of `page` positions, by position, the key under which a store outside the engine keeps it.

        Two pages have the same key exactly when everything up to their ends is the same, in the same namespace.
        """

    @returns(Opens(PrefixCache, specimen=(1,)))
    def open_prefix_cache(self, page: int) -> PrefixCache:
        """An empty cache of prefixes in pages of `page` positions; an engine with one page size only takes that.

        Raises ValueError or TypeError for a page that is no number of positions, or less than 1.
        """
