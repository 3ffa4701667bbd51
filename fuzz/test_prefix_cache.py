"""Search for requests and sequences of operations that break a rule about the prefix cache."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles.prefix_cache import Script, ask
from conformance.suite.prefix_cache_cases import Limited, Meeting, Pressure, Tenants
from fuzz.search import searches
from fuzz.strategies.prefixes import families, limited, meetings, pages, pressures, scripts, tenants
from reference.items import Request


def alone() -> SearchStrategy[Meeting]:
    """One request and nothing else; shrinks to an empty one."""
    return st.builds(lambda page, family: Meeting(page, (), family[0]), pages(), families(1))


@searches("PREFIX_CACHE-01", examples=200)
def test_no_meeting_goes_past_a_difference() -> SearchStrategy[Meeting]:
    return meetings()


@searches("PREFIX_CACHE-02")
def test_any_content_matches_itself() -> SearchStrategy[Meeting]:
    return alone()


@searches("PREFIX_CACHE-03", examples=200)
def test_any_shared_beginning_matches() -> SearchStrategy[Meeting]:
    return meetings()


@searches("PREFIX_CACHE-04")
def test_any_namespaces_share_nothing() -> SearchStrategy[Tenants]:
    return tenants()


@searches("PREFIX_CACHE-05")
def test_any_limit_is_kept_to() -> SearchStrategy[Limited]:
    return limited()


@searches("PREFIX_CACHE-06")
def test_any_part_is_kept_alone() -> SearchStrategy[Limited]:
    return limited()


@searches("PREFIX_CACHE-07")
def test_no_item_without_a_name_matches() -> SearchStrategy[Request]:
    before, after = (st.lists(st.sampled_from(("A", "B", "jj", "aa")), max_size=3).map(" ".join) for _ in range(2))
    return st.builds(lambda a, b: ask(f"{a} iii {b}", i=None), before, after)


@searches("PREFIX_CACHE-08", examples=200)
def test_any_order_of_insertion() -> SearchStrategy[Script]:
    return scripts(("insert", "match"))


@searches("PREFIX_CACHE-09")
def test_nothing_that_was_evicted_matches() -> SearchStrategy[Script]:
    return scripts(("insert", "insert", "match", "match", "evict", "used"))


@searches("PREFIX_CACHE-10")
def test_any_locks_hold() -> SearchStrategy[Script]:
    return scripts(("insert", "insert", "match", "lock", "evict"))


@searches("PREFIX_CACHE-11", examples=200)
def test_any_locks_are_released() -> SearchStrategy[Script]:
    return scripts(("insert", "insert", "match", "lock", "unlock", "unlock", "evict", "used"))


@searches("PREFIX_CACHE-12")
def test_any_eviction_frees_what_it_says() -> SearchStrategy[Pressure]:
    return pressures()


@searches("PREFIX_CACHE-13")
def test_nothing_matches_that_went() -> SearchStrategy[Pressure]:
    return pressures()


@searches("PREFIX_CACHE-15")
def test_anything_shared_counts_once() -> SearchStrategy[Script]:
    return scripts(("insert", "match", "used"))


@searches("PREFIX_CACHE-16")
def test_clear_at_any_time_forgets_everything() -> SearchStrategy[Script]:
    return scripts(("insert", "insert", "match", "match", "clear"))


@searches("PREFIX_CACHE-19", examples=200)
def test_any_keys_tell_pages_apart() -> SearchStrategy[Meeting]:
    return meetings()


@searches("PREFIX_CACHE-20")
def test_any_content_has_its_keys() -> SearchStrategy[Meeting]:
    return alone()


@searches("PREFIX_CACHE-21")
def test_keys_tell_any_namespaces_apart() -> SearchStrategy[Tenants]:
    return tenants()


@searches("PREFIX_CACHE-22")
def test_any_shared_pages_have_the_same_keys() -> SearchStrategy[Meeting]:
    return meetings()


@searches("PREFIX_CACHE-25", examples=200)
def test_any_sequence_of_operations() -> SearchStrategy[Script]:
    return scripts(("insert", "insert", "match", "match", "lock", "unlock", "evict some", "evict", "used"))
