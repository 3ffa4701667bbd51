"""PREFIX_CACHE: the keys under which a store outside the engine keeps pages."""

from dataclasses import replace

from conformance.compare import equal, holds, same
from conformance.engine import Engine
from conformance.oracles.prefix_cache import NOBODY, common, copied, semantics
from conformance.requirement import SHOULD, requirement
from conformance.suite.prefix_cache_cases import CONTENTS, DIFFERENCES, SHARED, TENANTS, Meeting, Tenants


@requirement(
    "PREFIX_CACHE-19",
    needs="page_keys",
    cases=DIFFERENCES | SHARED,
    bugs=("H10", "H15", "lmcache-16bit-mm-hash", "lmcache-token-only-key", "prefix-hash-predictable-collision"),
)
def test_keys_tell_pages_apart(engine: Engine, case: Meeting) -> None:
    """Two pages MUST NOT have the same key when text, item or row differ anywhere up to their ends."""
    page = engine.traits.prefix_page or case.page
    first, second = (engine.page_keys(copied(request), NOBODY, page) for request in (case.kept[-1], case.asked))
    shared = common(semantics(case.kept[-1]), semantics(case.asked)) // page
    clashes = [n for n, key in enumerate(second) if key in [other for m, other in enumerate(first) if m != n or m >= shared]]
    equal(clashes, [], "the pages whose keys are those of other pages")


@requirement("PREFIX_CACHE-20", needs="page_keys", cases=CONTENTS, bugs=("H16", "H17"))
def test_the_same_content_has_the_same_keys(engine: Engine, case: Meeting) -> None:
    """The same content MUST have the same keys, one for each full page, and no two of a request alike."""
    page = engine.traits.prefix_page or case.page
    again = replace(case.asked, id="another")
    first, second = (engine.page_keys(copied(request), NOBODY, page) for request in (case.asked, again))
    same(first, second, "the keys of a request and of another with its content")
    equal(len(set(first)), len(case.asked.input_ids) // page, "the number of different keys")


@requirement(
    "PREFIX_CACHE-21",
    needs="page_keys",
    cases=TENANTS,
    bugs=("cache-salt-isolation", "prefix-hash-predictable-collision", "uuid-cross-tenant"),
)
def test_keys_tell_namespaces_apart(engine: Engine, case: Tenants) -> None:
    """Pages of another salt or another adapter MUST NOT have the same key."""
    page = engine.traits.prefix_page or 2
    first, second = (engine.page_keys(copied(case.request), namespace, page) for namespace in (case.first, case.second))
    holds(not set(first) & set(second), f"{len(set(first) & set(second))} of {len(first)} keys are the same")


@requirement(
    "PREFIX_CACHE-22", level=SHOULD, needs="page_keys", cases=SHARED, bugs=("H12", "H17", "prefix-offbyone-mm-boundary")
)
def test_shared_pages_have_the_same_keys(engine: Engine, case: Meeting) -> None:
    """Pages that are the same up to their ends SHOULD have the same key, whatever media come behind them."""
    page = engine.traits.prefix_page or case.page
    shared = common(semantics(case.kept[0]), semantics(case.asked)) // page
    first, second = (engine.page_keys(copied(request), NOBODY, page) for request in (case.kept[0], case.asked))
    equal(second[:shared], first[:shared], "the keys of the shared pages", where="page {}".format)
