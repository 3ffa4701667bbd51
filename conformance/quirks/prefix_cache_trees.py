"""Ways in which engines have got the prefix cache wrong: how they keep and evict."""

from conformance.quirk import quirk
from reference.items import Request
from reference.prefix_cache import Namespace, PrefixCache


@quirk(
    "matches-begun-pages",
    replaces="open_prefix_cache",
    bugs=(),
    caught_by=(
        "PREFIX_CACHE-01",
        "PREFIX_CACHE-02",
        "PREFIX_CACHE-04",
        "PREFIX_CACHE-05",
        "PREFIX_CACHE-06",
        "PREFIX_CACHE-08",
        "PREFIX_CACHE-09",
        "PREFIX_CACHE-10",
        "PREFIX_CACHE-15",
        "PREFIX_CACHE-16",
        "PREFIX_CACHE-25",
    ),
)
class MatchesBegunPages(PrefixCache):
    """A match ends where the requests part, in the middle of a page that is only kept as a whole."""

    def __init__(self, page: int) -> None:
        super().__init__(min(page, 1))


@quirk("limit-not-looked-at", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-05",))
class MatchesWholePrompts(PrefixCache):
    """A prompt that is wholly kept matches wholly: nothing is left to compute, and no token comes of it."""

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        return super().match(request, namespace, len(request.input_ids))


@quirk("limit-rounded-up", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-05",))
class RoundsLimitsUp(PrefixCache):
    """A limit inside a page takes all of the page."""

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        return super().match(request, namespace, -(-limit // self._page) * self._page)


@quirk("limit-not-rounded", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-05",))
class CutsAfterwards(PrefixCache):
    """A match is found in whole pages and then cut to the limit, which may lie inside one."""

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        return min(super().match(request, namespace, len(request.input_ids)), limit)


@quirk("kept-before-computed", replaces="open_prefix_cache", bugs=("H24",), caught_by=("PREFIX_CACHE-06",))
class KeepsAhead(PrefixCache):
    """A prompt is kept as a whole with its first chunk: others match on what was not computed yet."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        super().insert(request, namespace, len(request.input_ids))


@quirk(
    "kept-once",
    replaces="open_prefix_cache",
    bugs=("H24",),
    caught_by=(
        "PREFIX_CACHE-03",
        "PREFIX_CACHE-06",
        "PREFIX_CACHE-08",
        "PREFIX_CACHE-10",
        "PREFIX_CACHE-12",
        "PREFIX_CACHE-15",
        "PREFIX_CACHE-25",
    ),
)
class KeepsFirstChunks(PrefixCache):
    """What is kept of a prompt is what was kept of it first: later chunks are not added."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        if not self.match(request, namespace, limit):
            super().insert(request, namespace, limit)


@quirk(
    "branch-cuts-its-neighbour",
    replaces="open_prefix_cache",
    bugs=(),
    caught_by=(
        "PREFIX_CACHE-03",
        "PREFIX_CACHE-08",
        "PREFIX_CACHE-10",
        "PREFIX_CACHE-12",
        "PREFIX_CACHE-15",
        "PREFIX_CACHE-25",
    ),
)
class LosesTails(PrefixCache):
    """When a prompt parts from one that is kept, the rest of the kept one is lost."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        node = self._walk(request, namespace, limit)[2]
        if node is not self._root:
            self._used_pages -= sum(len(child.labels) for child in node.children.values())
            node.children.clear()
        super().insert(request, namespace, limit)


@quirk("evicted-but-in-use", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-09", "PREFIX_CACHE-12"))
class LeaksCounts(PrefixCache):
    """What is evicted stays in use, in the books."""

    def evict(self, tokens: int) -> int:
        used, freed = self._used_pages, super().evict(tokens)
        self._used_pages = used
        return freed


@quirk(
    "remembers-matches",
    replaces="open_prefix_cache",
    bugs=(),
    caught_by=(
        "PREFIX_CACHE-04",
        "PREFIX_CACHE-06",
        "PREFIX_CACHE-08",
        "PREFIX_CACHE-09",
        "PREFIX_CACHE-13",
        "PREFIX_CACHE-25",
    ),
)
class RemembersMatches(PrefixCache):
    """What was found for a waiting request is remembered, and still believed when the request is run later."""

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        self.found.setdefault(request.id, super().match(request, namespace, limit))
        return self.found[request.id]

    def clear(self) -> None:
        super().clear()
        self.found: dict[str, int] = {}


@quirk("evicted-but-found", replaces="open_prefix_cache", bugs=("H18",), caught_by=("PREFIX_CACHE-13", "PREFIX_CACHE-14"))
class FindsEvicted(PrefixCache):
    """An evicted page stays in the index until the cache is emptied: the memory that is found belongs to another prompt."""

    gone = 0

    def evict(self, tokens: int) -> int:
        free = -(-tokens // self._page)
        if free < self._used_pages - self.gone:
            self.gone += free
            return free * self._page
        return super().evict(tokens)

    def used_tokens(self) -> int:
        return super().used_tokens() - self.gone * self._page


@quirk("eviction-rounded-down", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-12",))
class EvictsTooLittle(PrefixCache):
    """A number of positions is rounded down to pages: who asks for one gets none, and waits for ever."""

    def evict(self, tokens: int) -> int:
        return super().evict(tokens // self._page * self._page)


@quirk("eviction-says-what-it-was-asked", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-12",))
class PromisesToEvict(PrefixCache):
    """An eviction answers with the number that it was asked for, whatever it could free."""

    def evict(self, tokens: int) -> int:
        super().evict(tokens)
        return tokens


@quirk("what-was-cut-is-not-kept-again", replaces="open_prefix_cache", bugs=("H24",), caught_by=("PREFIX_CACHE-25",))
class KeepsNothingTwice(PrefixCache):
    """A prompt that was kept before is not kept again while some of it is there, though its end was evicted."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        known = (request.id, namespace, limit)
        if known not in self.seen or not self.match(request, namespace, limit):
            super().insert(request, namespace, limit)
        self.seen.add(known)

    def clear(self) -> None:
        super().clear()
        self.seen: set[tuple[str, Namespace, int]] = set()


@quirk("newest-goes-first", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-14",))
class EvictsNewest(PrefixCache):
    """What was used last is evicted first."""

    def evict(self, tokens: int) -> int:
        for leaf in self._leaves():
            leaf.last_use = -leaf.last_use
        return super().evict(tokens)


@quirk("first-kept-goes-first", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-14",))
class KeepingAgainIsNoUse(PrefixCache):
    """A prompt that everybody asks for is evicted by the time of its first use."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        ages = {id(leaf): leaf.last_use for leaf in self._leaves()}
        super().insert(request, namespace, limit)
        for leaf in self._leaves():
            leaf.last_use = ages.get(id(leaf), leaf.last_use)


@quirk("every-prompt-counts-in-full", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-12", "PREFIX_CACHE-15"))
class CountsInFull(PrefixCache):
    """What prompts share is counted with each of them."""

    again = 0

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        self.again += self.match(request, namespace, limit)
        super().insert(request, namespace, limit)

    def used_tokens(self) -> int:
        return super().used_tokens() + self.again

    def evict(self, tokens: int) -> int:
        self.again = 0
        return super().evict(tokens)

    def clear(self) -> None:
        super().clear()
        self.again = 0


@quirk(
    "clear-leaves-prefixes",
    replaces="open_prefix_cache",
    bugs=("weights-update-stale-encoder",),
    caught_by=("PREFIX_CACHE-15", "PREFIX_CACHE-16", "PREFIX_CACHE-26"),
)
class NeverCleared(PrefixCache):
    """`clear` is silently not supported: prompts are answered from what old weights made of them."""

    def clear(self) -> None:
        if not hasattr(self, "_root"):
            super().clear()


@quirk(
    "clear-spares-locked-prefixes",
    replaces="open_prefix_cache",
    bugs=("weights-update-stale-encoder",),
    caught_by=("PREFIX_CACHE-26",),
)
class SparesLocked(PrefixCache):
    """`clear` leaves what is locked, which outlives the weights that made it."""

    def clear(self) -> None:
        if hasattr(self, "_root"):
            self.evict(self.used_tokens())
        else:
            super().clear()


@quirk("clear-leaves-the-count", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-15",))
class ClearsHalf(PrefixCache):
    """`clear` empties one of two books: prompts are gone, their positions are still in use."""

    def clear(self) -> None:
        used = getattr(self, "_used_pages", 0)
        super().clear()
        self._used_pages = used


@quirk("any-page", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-17",))
class TakesAnyPage(PrefixCache):
    """A page of no positions is taken for one of one."""

    def __init__(self, page: int) -> None:
        super().__init__(max(page, 1))


@quirk("keeps-a-view", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-18",))
class KeepsViews(PrefixCache):
    """The ids of a prompt without media are kept as they are, and change with the array that they came in."""

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        super().insert(request, namespace, limit)
        nodes = [node for node in self._root.children.values() if not request.items and not node.children]
        for node in nodes:
            node.labels = request.input_ids[: len(node.labels) * self._page].reshape(-1, self._page)
