"""PREFIX_CACHE: which part of a prompt was computed before."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.prefix_cache import EVERYTHING, NOBODY, ListCache, Script, ask, play, whole
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.suite.prefix_cache_cases import (
    CLEARS,
    CONTENTS,
    DIFFERENCES,
    EVICTIONS,
    HASHES,
    LIMITS,
    LOCKS,
    ORDERS,
    PADDED,
    PRESSURE,
    RELEASES,
    SEQUENCES,
    SHARED,
    TENANTS,
    USAGE,
    Limited,
    Meeting,
    Pressure,
    Tenants,
)
from reference.items import Request

IMAGE_BLIND = ("H07", "H13", "H14", "H15", "H18", "H22", "prefix-image-blind", "lmcache-token-only-key")


def cache_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a cache that has these."""
    return ("open_prefix_cache", *(f"open_prefix_cache.{method}" for method in methods))


def caches(engine: Engine, page: int) -> tuple[Any, ListCache]:
    """The engine's cache and the right one, both empty, in pages of this size or of the only one that the engine has."""
    page = engine.traits.prefix_page or page
    return engine.open_prefix_cache(page), ListCache(page, engine.traits.prefix_items)


def meet(cache: Any, case: Meeting) -> int:
    """How much of the request is matched once the others are kept."""
    for request in case.kept:
        cache.insert(*whole(request))
    return int(cache.match(*whole(case.asked)))


@requirement(
    "PREFIX_CACHE-01",
    needs=cache_with("insert", "match"),
    cases=DIFFERENCES | SHARED,
    bugs=(*IMAGE_BLIND, "H10", "lmcache-16bit-mm-hash", "prefix-key-offset-ambiguity"),
)
def test_no_match_goes_past_a_difference(engine: Engine, case: Meeting) -> None:
    """A match MUST NOT go past the first position at which text, item or row differ, rounded down to whole pages."""
    observed, most = (meet(cache, case) for cache in caches(engine, case.page))
    holds(observed <= most, f"{observed} positions of the request match; only {most} were computed before")


@requirement("PREFIX_CACHE-02", needs=cache_with("insert", "match"), cases=CONTENTS, bugs=("H16",))
def test_the_same_content_matches(engine: Engine, case: Meeting) -> None:
    """A request with the content of one that is kept MUST match on all of its full pages."""
    again = replace(case.asked, id="another")
    observed, expected = (meet(cache, Meeting(case.page, (case.asked,), again)) for cache in caches(engine, case.page))
    equal(observed, expected, "the positions that match")


@requirement(
    "PREFIX_CACHE-03",
    level=SHOULD,
    needs=cache_with("insert", "match"),
    cases=SHARED,
    bugs=("H12", "prefix-offbyone-mm-boundary"),
)
def test_what_is_shared_matches(engine: Engine, case: Meeting) -> None:
    """Whatever pages come before the first difference SHOULD match, and no item behind them count."""
    observed, least = (meet(cache, case) for cache in caches(engine, case.page))
    holds(observed >= least, f"{observed} positions of the request match, though {least} were computed before")


@requirement("PREFIX_CACHE-04", needs=cache_with("insert", "match"), cases=TENANTS, bugs=("cache-salt-isolation",))
def test_namespaces_share_nothing(engine: Engine, case: Tenants) -> None:
    """Requests with another salt or another adapter MUST NOT match, while those with the same ones do."""
    cache, right = caches(engine, 2)
    cache.insert(*whole(case.request, case.first))
    right.insert(*whole(case.request, case.first))
    equal(cache.match(*whole(case.request, case.second)), 0, "the positions that match in the other namespace")
    expected = right.match(*whole(case.request, case.first))
    equal(cache.match(*whole(case.request, case.first)), expected, "the positions that match in the same namespace")


@requirement("PREFIX_CACHE-05", needs=cache_with("insert", "match"), cases=LIMITS, bugs=("H24",))
def test_a_match_keeps_to_its_limit(engine: Engine, case: Limited) -> None:
    """A match MUST NOT go past the limit, rounded down to whole pages: a position is left that yields the next token."""
    cache, right = caches(engine, case.page)
    cache.insert(*whole(case.request))
    right.insert(*whole(case.request))
    expected = right.match(*whole(case.request, limit=case.limit))
    equal(
        cache.match(*whole(case.request, limit=case.limit)), expected, f"the positions among the first {case.limit} that match"
    )


@requirement("PREFIX_CACHE-06", needs=cache_with("insert", "match"), cases=LIMITS, bugs=("H24",))
def test_only_what_was_computed_is_kept(engine: Engine, case: Limited) -> None:
    """Of a request that was computed in part, this part MUST match and no more of it, whatever is computed next."""
    cache, right = caches(engine, case.page)
    steps = [case.limit, *range(case.limit + 1, len(case.request.input_ids) + 1)]
    observed, expected = ([grown(one, case.request, step) for step in steps] for one in (cache, right))
    equal(observed, expected, "the positions that match as more is kept", where="step {}".format)


@requirement(
    "PREFIX_CACHE-07",
    needs=cache_with("insert", "match"),
    cases={
        "picture": ask("AB iii C", i=None),
        "second-picture": ask("A iii B jjj C", j=None),
        "recording": ask("aaaa A", a=None),
    },
    bugs=("prefix-image-blind",),
)
def test_an_item_without_a_name_is_never_matched(engine: Engine, case: Request) -> None:
    """An item without identity and hash MUST be refused or never match, not even with itself: it could be any."""
    cache, (nameless,) = caches(engine, 1)[0], [item for item in case.items if item.identity is None]
    for _ in unless_refused(lambda: cache.insert(*whole(case)), "an item without a name"):
        observed = cache.match(*whole(case))
        holds(observed <= nameless.spans[0].first, f"{observed} positions match, and with them an item without a name")


@requirement("PREFIX_CACHE-08", needs=cache_with("insert", "match"), cases=ORDERS)
def test_the_order_of_insertion_does_not_matter(engine: Engine, case: Script) -> None:
    """Everything that was kept MUST stay matched, whatever is kept or looked for afterwards, in any order."""
    follows(engine, case)


@requirement("PREFIX_CACHE-09", needs=cache_with("insert", "match", "evict", "used_tokens"), cases=EVICTIONS)
def test_what_was_evicted_does_not_match(engine: Engine, case: Script) -> None:
    """What was evicted MUST NOT match any more, and no position MUST be in use when all is evicted."""
    follows(engine, case)


@requirement("PREFIX_CACHE-10", needs=cache_with("insert", "match", "evict", "lock", "unlock"), cases=LOCKS)
def test_a_locked_prefix_survives(engine: Engine, case: Script) -> None:
    """A locked prefix MUST NOT be evicted before every lock on it is taken back, and holds nothing behind it."""
    follows(engine, case)


@requirement("PREFIX_CACHE-11", needs=cache_with("insert", "match", "evict", "lock", "unlock", "used_tokens"), cases=RELEASES)
def test_an_unlocked_prefix_is_free(engine: Engine, case: Script) -> None:
    """A prefix of which every lock was taken back MUST be evicted like any other, whatever was kept since it was locked."""
    follows(engine, case)


@requirement("PREFIX_CACHE-12", needs=cache_with("insert", "match", "evict", "lock", "used_tokens"), cases=PRESSURE)
def test_an_eviction_frees_what_it_says(engine: Engine, case: Pressure) -> None:
    """An eviction MUST free as many positions as it was asked for, or all that are not locked, and say how many."""
    cache, right = caches(engine, case.page)
    under_pressure(cache, case)
    under_pressure(right, case)
    before = cache.used_tokens()
    freed = cache.evict(case.tokens)
    equal(before - cache.used_tokens(), freed, "the positions that are no longer in use")
    least = min(case.tokens, right.evict(EVERYTHING))
    holds(freed >= least, f"{freed} positions were freed, {case.tokens} were asked for and at least {least} could be")


@requirement("PREFIX_CACHE-13", needs=cache_with("insert", "match", "evict", "used_tokens"), cases=PRESSURE)
def test_nothing_matches_that_is_not_in_use(engine: Engine, case: Pressure) -> None:
    """After an eviction a match MUST NOT be longer than what is still in use, nor than it was."""
    cache, _ = caches(engine, case.page)
    under_pressure(cache, case._replace(locked=None))
    before = matches(cache, case.kept)
    cache.evict(case.tokens)
    most = [min(length, cache.used_tokens()) for length in before]
    beyond = [n for n, (a, b) in enumerate(zip(matches(cache, case.kept), most, strict=True)) if a > b]
    equal(beyond, [], "the prompts that match on more than is in use")


@requirement(
    "PREFIX_CACHE-14",
    level=SHOULD,
    needs=cache_with("insert", "match", "evict", "lock", "unlock"),
    cases={
        "kept-first": ("AB iiii CD", "EF jjjj GH"),
        "kept-first-of-three": ("AB iiii CD", "EF jjjj GH", "IJ kkkk LM"),
        "kept-again": ("EF jjjj GH", "AB iiii CD", "EF jjjj GH"),
    },
)
def test_what_was_used_longest_ago_goes_first(engine: Engine, case: Sequence[str]) -> None:
    """What was kept, kept again or locked longest ago SHOULD be evicted first."""
    cache, right = caches(engine, 4)
    requests = tuple(map(ask, case))
    under_pressure(cache, Pressure(4, requests, 0))
    under_pressure(right, Pressure(4, requests, 0))
    oldest, *others = requests[-len(set(case)) :]
    (room,) = matches(right, [oldest])
    cache.evict(room)
    equal(matches(cache, others), matches(right, others), "the positions of the others that match")
    holds(matches(cache, [oldest])[0] < max(room, 1), "what was used longest ago is still there")


@requirement("PREFIX_CACHE-15", level=SHOULD, needs=cache_with("insert", "match", "used_tokens"), cases=USAGE)
def test_what_is_shared_counts_once(engine: Engine, case: Script) -> None:
    """The positions in use SHOULD be those of the full pages that are kept, each counted once."""
    follows(engine, case)


@requirement(
    "PREFIX_CACHE-16",
    needs=cache_with("insert", "match", "lock", "used_tokens", "clear"),
    cases=CLEARS,
    bugs=("weights-update-stale-encoder",),
)
def test_clear_forgets_every_prefix(engine: Engine, case: Script) -> None:
    """After `clear` nothing MUST match and no position be in use, locked or not."""
    follows(engine, case)


@requirement("PREFIX_CACHE-17", level=SHOULD, needs="open_prefix_cache", cases={"zero": 0, "negative": -4})
def test_a_page_that_cannot_be_is_refused(engine: Engine, case: int) -> None:
    """A page of less than one position SHOULD be refused."""
    refuses(lambda: engine.open_prefix_cache(case), f"a page of {case} positions")


@requirement("PREFIX_CACHE-18", needs=cache_with("insert", "match"), cases={"text": ("ABCDEF", 2), "picture": ("AB iii C", 0)})
def test_a_cache_keeps_no_view_of_a_prompt(engine: Engine, case: tuple[str, int]) -> None:
    """A cache MUST NOT change the ids of a request, nor what it has kept follow when its owner changes them later."""
    cache, right = caches(engine, 1)
    drawing, position = case
    request = ask(drawing)
    cache.insert(request, NOBODY, len(request.input_ids))
    right.insert(*whole(ask(drawing)))
    equal(request.input_ids, ask(drawing).input_ids, "the ids of the request")
    request.input_ids[position] = ord("Z")
    equal(matches(cache, [ask(drawing)]), matches(right, [ask(drawing)]), "the positions that match")


@requirement("PREFIX_CACHE-23", profile=SGLANG, needs=cache_with("insert", "match"), cases=PADDED)
def test_a_match_is_one_of_padded_ids(engine: Engine, case: Exact) -> None:
    """A match MUST be the longest common prefix of the padded ids, rounded down to whole pages."""
    observed = meet(engine.open_prefix_cache(case.given.page), case.given)
    equal(observed, case.expected, "the positions that match")


@requirement("PREFIX_CACHE-24", needs=cache_with("insert", "match"), cases=HASHES, bugs=("H10",))
def test_hashes_of_callers_tell_items_apart(engine: Engine, case: Meeting) -> None:
    """Items that callers know by a hash MUST be refused, or match exactly when their hashes are equal in all bits."""
    cache, right = caches(engine, case.page)
    for observed in unless_refused(lambda: meet(cache, case), "an item that its caller knows by a hash"):
        equal(observed, meet(right, case), "the positions that match")


@requirement("PREFIX_CACHE-25", needs=cache_with("insert", "match", "evict", "lock", "unlock"), cases=SEQUENCES)
def test_a_match_is_between_what_is_locked_and_what_was_kept(engine: Engine, case: Script) -> None:
    """In any sequence of operations a match MUST cover what is locked or was kept since the last eviction, and no more
    than was ever kept.

    Which of the other pages an eviction takes is the engine's choice.
    """
    cache, least = caches(engine, case.page)
    most = ListCache(least.page, least.items, evicts="none")
    low, observed, high = (play(one, case.prompts, case.steps) for one in (least, cache, most))
    matched = [n for n, step in enumerate(case.steps) if step.operation == "match"]
    wrong = [case.where(n) for n in matched if not low[n] <= observed[n] <= high[n]]
    equal(wrong, [], "the steps with a match that is too short or too long")


def follows(engine: Engine, case: Script) -> None:
    """Every answer of the engine's cache is the right one."""
    observed, expected = (play(cache, case.prompts, case.steps) for cache in caches(engine, case.page))
    equal(observed, expected, "the answers", where=case.where)


def grown(cache: Any, request: Request, limit: int) -> int:
    """How much of a request matches once its first `limit` positions are kept."""
    cache.insert(*whole(request, limit=limit))
    return int(cache.match(*whole(request)))


def under_pressure(cache: Any, case: Pressure) -> None:
    """Keep the prompts of a case, and lock the one to be locked."""
    for request in case.kept:
        cache.insert(*whole(request))
    for request in case.kept[: 0 if case.locked is None else case.locked + 1][-1:]:
        cache.lock(*whole(request))


def matches(cache: Any, requests: Sequence[Request]) -> list[int]:
    """How much of each request matches."""
    return [cache.match(*whole(request)) for request in requests]
