"""What the reference promises about its prefix cache beyond the requirements, and that other sound designs meet these."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.engine import Profile, Traits
from conformance.oracles.prefix_cache import NOBODY, ListCache, Script, ask, play, whole
from conformance.suite import requirements
from conformance.trial import Verdict
from fuzz.search import SEARCH
from fuzz.strategies.prefixes import scripts
from reference.items import Request
from reference.prefix_cache import Namespace, PrefixCache, block_pages, padded_pages

RULES = [id for id, one in requirements.items() if one.stage == "prefix_cache" and one.profile is Profile.CORE]


class Blocks(ReferenceEngine):
    """Pages known by hashes, as vLLM has them."""

    traits = Traits()

    @staticmethod
    def open_prefix_cache(page: int) -> Any:
        return PrefixCache(page, block_pages)


class OnePageSize(ReferenceEngine):
    """An engine that has pages of 3 positions and no others."""

    traits = Traits(prefix_page=3)

    @staticmethod
    def open_prefix_cache(page: int) -> Any:
        if page not in (1, 3):
            raise ValueError(f"pages have 3 positions, not {page}")
        return PrefixCache(3)


class WholeItems(ReferenceEngine):
    """An engine whose matches never end inside an item."""

    traits = Traits(prefix_items="whole")

    class Cache(PrefixCache):
        def match(self, request: Request, namespace: Namespace, limit: int) -> int:
            matched, spans = super().match(request, namespace, limit), [item.spans for item in request.items]
            while cut := [s[0].first for s in spans if s[0].first < matched <= s[-1].last]:
                matched = min(cut) // self._page * self._page
            return matched

    open_prefix_cache = staticmethod(Cache)


class MatchingIsNoUse(ReferenceEngine):
    """An engine for which matching is no use."""

    class Cache(PrefixCache):
        def match(self, request: Request, namespace: Namespace, limit: int) -> int:
            ages = {id(leaf): leaf.last_use for leaf in self._leaves()}
            matched = super().match(request, namespace, limit)
            for leaf in self._leaves():
                leaf.last_use = ages.get(id(leaf), leaf.last_use)
            return matched

    open_prefix_cache = staticmethod(Cache)


@pytest.mark.parametrize(
    "engine", [Blocks(), OnePageSize(), WholeItems(), MatchingIsNoUse()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("id", RULES)
def test_a_sound_design_meets_the_requirement(id: str, engine: ReferenceEngine) -> None:
    one = requirements[id]
    outcomes = {name: trial.run(one, case, engine) for name, case in one.cases.items()}
    assert {name: outcome.message for name, outcome in outcomes.items() if outcome.verdict is not Verdict.PASS} == {}


@pytest.mark.parametrize("labelling", [padded_pages, block_pages])
def test_both_forms_give_the_oracle_its_answers(labelling: Any) -> None:
    @SEARCH
    @given(case=scripts(("insert", "insert", "match", "match", "lock", "unlock", "evict", "used")))
    def search(case: Script) -> None:
        observed = play(PrefixCache(case.page, labelling), case.prompts, case.steps)
        assert observed == play(ListCache(case.page), case.prompts, case.steps)

    search()


def test_a_prompt_of_many_branches_needs_no_recursion() -> None:
    cache, longest = PrefixCache(1), ask("A" * 1100)
    for limit in range(1, 1100):
        cache.insert(*whole(longest, limit=limit))
    cache.unlock(cache.lock(*whole(longest)))
    assert cache.match(*whole(longest)) == cache.used_tokens() == cache.evict(5000) == 1099


def test_no_more_goes_than_was_asked_for() -> None:
    cache = PrefixCache(2)
    cache.insert(*whole(ask("AB iiii CD")))
    assert cache.evict(3) == 4
    assert cache.match(*whole(ask("AB iiii CD"))) == 4


def test_the_beginning_that_two_prompts_share_goes_last() -> None:
    cache = PrefixCache(1)
    cache.insert(*whole(ask("AB CD")))
    cache.insert(*whole(ask("AB EF")))
    cache.evict(3)
    assert [cache.match(*whole(ask(drawing))) for drawing in ("AB CD", "AB EF")] == [2, 3]


def test_none_and_the_empty_text_are_two_namespaces() -> None:
    for labelling in (padded_pages, block_pages):
        cache = PrefixCache(1, labelling)
        cache.insert(*whole(ask("AB")))
        assert cache.match(*whole(ask("AB"), NOBODY._replace(salt=""))) == 0


def test_a_lookup_leaves_nothing_behind() -> None:
    cache = PrefixCache(1)
    for number in range(100):
        cache.match(*whole(ask("AB"), NOBODY._replace(salt=str(number))))
    assert not cache._root.children


def test_a_lock_is_taken_back_once() -> None:
    cache = PrefixCache(1)
    cache.insert(*whole(ask("AB")))
    lock = cache.lock(*whole(ask("ABC")))
    assert lock.length == 2
    cache.unlock(lock)
    with pytest.raises(ValueError, match="2 positions was taken back already"):
        cache.unlock(lock)


def test_a_lock_from_before_a_clear_frees_nothing() -> None:
    cache = PrefixCache(1)
    cache.insert(*whole(ask("AB")))
    lock = cache.lock(*whole(ask("AB")))
    cache.clear()
    cache.insert(*whole(ask("AB")))
    kept = cache.lock(*whole(ask("AB")))
    cache.unlock(lock)
    assert cache.evict(9) == 0
    cache.unlock(kept)
    assert cache.evict(9) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrefixCache(0), "at least 1 position, not 0"),
        (lambda: PrefixCache(1).match(*whole(ask("A"), limit=-1)), "at least 0 positions, not -1"),
        (lambda: PrefixCache(1).evict(-1), "at least 0 positions can be evicted, not -1"),
        (lambda: PrefixCache(1).insert(*whole(ask("iii", i=None))), "this image has no identity"),
        (lambda: PrefixCache(1, block_pages).insert(*whole(ask("iii", i=None))), "this image has no identity"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_million_positions_are_compared_in_runs() -> None:
    length = 1_000_000
    first = Request(id="long", input_ids=np.arange(length, dtype=np.int64) % 1000)
    second = replace(first, input_ids=np.concatenate([first.input_ids[: length // 2], first.input_ids[: length // 2 - 1]]))
    cache = PrefixCache(16)
    cache.insert(first, NOBODY, length)
    cache.insert(second, NOBODY, length)
    assert cache.match(second, NOBODY, length) == (length - 1) // 16 * 16
