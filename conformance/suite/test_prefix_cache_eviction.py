"""PREFIX_CACHE: what is locked, evicted and cleared."""

from collections.abc import Sequence

from conformance.compare import equal, holds, unless_refused
from conformance.engine import Engine
from conformance.oracles.prefix_cache import EVERYTHING, ListCache, Script, ask, play, whole
from conformance.requirement import SHOULD, requirement
from conformance.suite.prefix_cache_cases import (
    CLEARS,
    EVICTIONS,
    LOCKS,
    PRESSURE,
    RELEASES,
    SEQUENCES,
    USAGE,
    Limited,
    Pressure,
)
from conformance.suite.prefix_cache_checks import cache_with, caches, follows, matches, under_pressure


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


@requirement("PREFIX_CACHE-15", level=SHOULD, needs=cache_with("insert", "match", "used_tokens", "clear"), cases=USAGE)
def test_what_is_shared_counts_once(engine: Engine, case: Script) -> None:
    """The positions in use SHOULD be those of the full pages that are kept, each counted once."""
    follows(engine, case)


@requirement(
    "PREFIX_CACHE-16",
    needs=cache_with("insert", "match", "clear"),
    cases=CLEARS,
    bugs=("weights-update-stale-encoder",),
)
def test_clear_forgets_every_prefix(engine: Engine, case: Script) -> None:
    """After `clear` nothing MUST match."""
    follows(engine, case)


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


@requirement(
    "PREFIX_CACHE-26",
    needs=cache_with("insert", "match", "lock", "clear"),
    cases={"all-of-it": Limited(1, ask("AB iii CD"), 7), "its-beginning": Limited(2, ask("AB iii CD"), 4)},
    bugs=("weights-update-stale-encoder",),
)
def test_clear_spares_no_locked_prefix(engine: Engine, case: Limited) -> None:
    """While a prefix is locked `clear` MUST be refused, or take it like any other: what old weights made is not true."""
    cache, _ = caches(engine, case.page)
    cache.insert(*whole(case.request))
    cache.lock(*whole(case.request, limit=case.limit))
    for _ in unless_refused(cache.clear, "a clear while a prefix is locked"):
        equal(cache.match(*whole(case.request)), 0, "the positions that match after a clear")
