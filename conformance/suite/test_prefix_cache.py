"""PREFIX_CACHE: which part of a prompt was computed before."""

from dataclasses import replace

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.prefix_cache import NOBODY, Script, ask, whole
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.suite.prefix_cache_cases import (
    CONTENTS,
    DIFFERENCES,
    HASHES,
    LIMITS,
    ORDERS,
    PADDED,
    SHARED,
    TENANTS,
    Limited,
    Meeting,
    Tenants,
)
from conformance.suite.prefix_cache_checks import cache_with, caches, follows, grown, matches, meet
from reference.items import Request

IMAGE_BLIND = ("H07", "H13", "H14", "H15", "H18", "H22", "prefix-image-blind", "lmcache-token-only-key")


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
