"""ENCODER_CACHE: embeddings of media items, kept within a budget of bytes."""

from typing import Any

import torch

from conformance.compare import differ, equal, holds, refuses, same
from conformance.engine import Engine
from conformance.oracles.encoder_cache import HIDDEN, ROW_BYTES, ListCache, Script, embedding, key, play, script, usage
from conformance.requirement import SHOULD, requirement
from conformance.suite.encoder_cache_cases import CONTENTS, CROWDED, EVICTIONS, MISMATCHES, PRESSURE, RELEASE, Mismatch


def cache_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a cache that has these."""
    return ("open_encoder_cache", *(f"open_encoder_cache.{method}" for method in methods))


@requirement("ENCODER_CACHE-01", needs=cache_with("put", "get"), cases=CONTENTS)
def test_a_hit_is_what_was_put(engine: Engine, case: torch.Tensor) -> None:
    """A hit MUST be the embedding that was put, bit for bit, of the same shape and dtype."""
    cache = engine.open_encoder_cache(1 << 20)
    cache.put(key("a"), case)
    hit = cache.get(key("a"), len(case))
    equal(hit, case, "the hit", where="row {}".format)


@requirement(
    "ENCODER_CACHE-02",
    needs=cache_with("put", "get"),
    cases=MISMATCHES,
    bugs=("E01", "enc-cache-hit-count-mismatch", "emb-cache-length-check-on-hit"),
)
def test_another_number_of_rows_is_no_hit(engine: Engine, case: Mismatch) -> None:
    """An entry with another number of rows than asked for MUST NOT be a hit."""
    cache = engine.open_encoder_cache(1 << 20)
    cache.put(key("a"), embedding(case.kept, 1))
    hit = cache.get(key("a"), case.wanted)
    holds(hit is None, f"{case.wanted} rows were asked for, and an entry of {case.kept} rows was a hit")


@requirement(
    "ENCODER_CACHE-03",
    level=SHOULD,
    needs=cache_with("put", "get"),
    cases=MISMATCHES,
    bugs=("E01", "emb-cache-length-check-on-hit"),
)
def test_an_entry_of_another_length_is_dropped(engine: Engine, case: Mismatch) -> None:
    """An unpinned entry that was asked for with another number of rows SHOULD be dropped: its key does not tell it apart."""
    cache = engine.open_encoder_cache(1 << 20)
    cache.put(key("a"), embedding(case.kept, 1))
    cache.get(key("a"), case.wanted)
    holds(cache.get(key("a"), case.kept) is None, f"the entry of {case.kept} rows is still there")


@requirement("ENCODER_CACHE-04", needs=cache_with("put", "get"), cases=EVICTIONS, bugs=("E05",))
def test_the_least_recently_used_entry_goes_first(engine: Engine, case: Script) -> None:
    """An entry MUST stay until room is needed, and then MUST be evicted in the order of last use, oldest first."""
    follows(engine, case)


@requirement("ENCODER_CACHE-05", needs=cache_with("put", "get", "used_bytes"), cases=EVICTIONS, bugs=("E04",))
def test_the_budget_is_never_exceeded(engine: Engine, case: Script) -> None:
    """The bytes in use MUST NOT exceed the capacity, nor be negative, after any operation."""
    budget = case.capacity * ROW_BYTES
    observed = usage(engine.open_encoder_cache(budget), case.steps)
    beyond = [case.where(n) for n, used in enumerate(observed) if not 0 <= used <= budget]
    equal(beyond, [], f"the steps after which the bytes in use are not in 0 to {budget}")


@requirement(
    "ENCODER_CACHE-06", needs=cache_with("put", "get", "used_bytes"), cases=EVICTIONS, bugs=("enc-cache-dup-in-one-step",)
)
def test_every_entry_is_counted_once(engine: Engine, case: Script) -> None:
    """The bytes in use MUST be the sum over the entries, each key counted once, after every operation."""
    budget = case.capacity * ROW_BYTES
    observed = usage(engine.open_encoder_cache(budget), case.steps)
    expected = usage(ListCache(budget), case.steps)
    equal(observed, expected, "the bytes in use", where=case.where)


@requirement(
    "ENCODER_CACHE-07",
    needs=cache_with("put", "get"),
    cases={
        "by-one-row": script(3, "put a 1", "put b 2", "put c 4", "get a 1", "get b 2", "get c 4"),
        "by-far": script(2, "put a 1", "put b 1", "put c 100", "get a 1", "get b 1", "get c 100"),
    },
    bugs=("E04",),
)
def test_what_can_never_fit_evicts_nothing(engine: Engine, case: Script) -> None:
    """An embedding that is larger than the capacity MUST be refused with False, and MUST NOT evict another entry."""
    follows(engine, case)


@requirement(
    "ENCODER_CACHE-08",
    needs=cache_with("put", "get"),
    cases={
        "same-length": script(9, "put a 2", "renew a 2", "get a 2"),
        "longer": script(9, "put a 2", "renew a 3", "get a 3"),
        "shorter": script(9, "put a 3", "renew a 2", "get a 2"),
        "longer-beside-another": script(4, "put a 2", "put b 2", "renew a 3", "get b 2", "get a 3"),
        "shorter-makes-room": script(4, "put a 3", "renew a 1", "put b 3", "get a 1", "get b 3"),
    },
    bugs=("C08",),
    level=SHOULD,
)
def test_a_fresh_value_replaces_the_old_one(engine: Engine, case: Script) -> None:
    """After two puts of different content under one key a hit SHOULD be what was put last.

    Where keys are identities that tell all content apart this cannot come up; where a caller may choose them it does.
    """
    follows(engine, case)


@requirement(
    "ENCODER_CACHE-09",
    needs=cache_with("put", "get"),
    cases={"larger-than-all": script(3, "put a 2", "renew a 4", "get a 2")},
    bugs=("C08",),
    level=SHOULD,
)
def test_a_refused_value_leaves_no_stale_one(engine: Engine, case: Script) -> None:
    """When a fresh value cannot be kept, the old one SHOULD be gone: a miss costs time, a stale hit the answer."""
    follows(engine, case)


@requirement("ENCODER_CACHE-10", needs=cache_with("put", "get", "used_bytes"), cases={"first": 0, "middle": 4, "last": 8})
def test_a_view_does_not_keep_its_batch(engine: Engine, case: int) -> None:
    """Rows cut from a batch MUST be kept as their own bytes, not as a view that keeps the batch alive.

    Whether they are is seen by writing to the batch afterwards.
    """
    cache, batch = engine.open_encoder_cache(1 << 20), torch.arange(10.0 * HIDDEN).reshape(10, HIDDEN)
    expected = batch[case : case + 2].clone()
    cache.put(key("a"), batch[case : case + 2])
    batch.fill_(-1)
    equal(cache.get(key("a"), 2), expected, "the hit", where="row {}".format)
    equal(cache.used_bytes(), 2 * ROW_BYTES, "the bytes in use for 2 rows of a batch of 10")


@requirement(
    "ENCODER_CACHE-11",
    needs=cache_with("put", "get", "used_bytes"),
    cases={"the-first-one-goes": "a", "the-second-one-goes": "b"},
)
def test_a_shared_storage_is_never_undercounted(engine: Engine, case: str) -> None:
    """While one of two entries that share a storage is kept, the bytes in use MUST cover that storage."""
    cache, shared = engine.open_encoder_cache(1 << 20), embedding(3, 1)
    kept = [cache.put(key("a"), shared), cache.put(key("b"), shared)]
    cache.get(key(case), 99)
    holds(kept != [True, True] or cache.used_bytes() >= 3 * ROW_BYTES, f"{cache.used_bytes()} bytes are said to be in use")


@requirement(
    "ENCODER_CACHE-12",
    needs=cache_with("put", "get", "used_bytes", "clear"),
    cases={
        "one": script(4, "put a 2", "clear", "get a 2"),
        "several": script(4, "put a 1", "put b 2", "get a 1", "clear", "get a 1", "get b 2"),
        "used-again": script(4, "put a 4", "clear", "put b 4", "get b 4"),
    },
    bugs=("weights-update-stale-encoder",),
)
def test_clear_forgets_everything(engine: Engine, case: Script) -> None:
    """After `clear` there MUST NOT be a hit, and no byte MUST be in use."""
    follows(engine, case)
    observed = usage(engine.open_encoder_cache(case.capacity * ROW_BYTES), case.steps)
    expected = usage(ListCache(case.capacity * ROW_BYTES), case.steps)
    equal(observed, expected, "the bytes in use", where=case.where)


@requirement(
    "ENCODER_CACHE-13",
    needs=cache_with("get", "clear", "generation", "put_if_current"),
    cases={"cleared-once": 1, "cleared-twice": 2},
    bugs=("weights-update-stale-encoder",),
)
def test_work_from_before_a_clear_is_not_kept(engine: Engine, case: int) -> None:
    """What was computed for an earlier generation MUST NOT be kept: it may be the work of weights that are gone."""
    cache = engine.open_encoder_cache(1 << 20)
    begun = cache.generation()
    for _ in range(case):
        cache.clear()
    differ(begun, cache.generation(), "the generations before and after a clear")
    same(cache.put_if_current(key("a"), embedding(2, 1), begun), False, "the answer to work of an earlier generation and False")
    holds(cache.get(key("a"), 2) is None, "the work of an earlier generation is a hit")


@requirement(
    "ENCODER_CACHE-14",
    needs=cache_with("put", "get", "clear", "generation", "put_if_current"),
    cases={"never-cleared": 0, "cleared-once": 1},
)
def test_work_of_this_generation_is_kept(engine: Engine, case: int) -> None:
    """What was computed since the last clear MUST be kept, whatever else was put meanwhile."""
    cache = engine.open_encoder_cache(1 << 20)
    for _ in range(case):
        cache.clear()
    begun = cache.generation()
    cache.put(key("b"), embedding(1, 2))
    same(cache.put_if_current(key("a"), embedding(2, 1), begun), True, "the answer to work of this generation and True")
    equal(cache.get(key("a"), 2), embedding(2, 1), "the hit", where="row {}".format)


@requirement(
    "ENCODER_CACHE-15",
    needs=cache_with("put", "get", "pin", "unpin"),
    cases=PRESSURE,
    bugs=("E04", "enc-cache-dup-item-in-request"),
)
def test_a_pinned_entry_survives_pressure(engine: Engine, case: Script) -> None:
    """A pinned entry MUST NOT be evicted, however long ago it was used."""
    follows(engine, case)


@requirement(
    "ENCODER_CACHE-16",
    needs=cache_with("put", "get", "pin", "unpin"),
    cases=RELEASE,
    bugs=("enc-cache-dup-item-in-request", "enc-cache-waiting-leak"),
)
def test_an_entry_is_free_when_every_pin_is_back(engine: Engine, case: Script) -> None:
    """An entry MUST be evicted like any other once it was unpinned as often as it was pinned, and not before."""
    follows(engine, case)


@requirement("ENCODER_CACHE-17", needs=cache_with("put", "get", "pin", "unpin"), cases=CROWDED, bugs=("E04",))
def test_what_pins_leave_no_room_for_is_refused(engine: Engine, case: Script) -> None:
    """What does not fit beside the pinned entries MUST be refused with False, and MUST NOT evict another entry."""
    follows(engine, case)


@requirement(
    "ENCODER_CACHE-18",
    needs=cache_with("put", "get", "pin", "unpin"),
    cases={
        "longer": script(4, "put a 2", "pin a", "get a 3", "get a 2"),
        "shorter": script(4, "put a 2", "pin a", "get a 1", "get a 2"),
    },
    bugs=("enc-cache-hit-count-mismatch",),
)
def test_a_pinned_entry_of_another_length_stays(engine: Engine, case: Script) -> None:
    """A pinned entry MUST NOT be a hit for another number of rows, and MUST stay for the request that pinned it."""
    follows(engine, case)


@requirement(
    "ENCODER_CACHE-19",
    needs=cache_with("put", "get", "clear", "pin", "unpin"),
    cases={"pinned": script(4, "put a 2", "pin a", "clear", "get a 2", "put b 4", "get b 4")},
    bugs=("weights-update-stale-encoder",),
)
def test_clear_takes_pinned_entries(engine: Engine, case: Script) -> None:
    """`clear` MUST take pinned entries and their pins too: what they hold is no longer true."""
    follows(engine, case)


@requirement(
    "ENCODER_CACHE-20",
    needs=cache_with("put", "pin", "unpin"),
    cases={"pin-of-nothing": ("pin", "b"), "unpin-of-nothing": ("unpin", "b"), "unpin-of-the-unpinned": ("unpin", "a")},
    bugs=("encdec-slots-inflate",),
)
def test_a_pin_needs_an_entry(engine: Engine, case: tuple[str, str]) -> None:
    """Pinning what is not there, and unpinning what is not pinned, MUST be refused."""
    operation, name = case
    cache = engine.open_encoder_cache(1 << 20)
    cache.put(key("a"), embedding(2, 1))
    refuses(lambda: getattr(cache, operation)(key(name)), f"{operation} of an entry that is not there or not pinned")


@requirement(
    "ENCODER_CACHE-21",
    level=SHOULD,
    needs=cache_with("put"),
    cases={"one-dimension": torch.zeros(4), "no-tensor": [[0.0, 1.0]]},
)
def test_only_rows_are_kept(engine: Engine, case: Any) -> None:
    """An embedding that is no tensor, or one without rows, SHOULD be refused: its rows cannot be counted."""
    cache = engine.open_encoder_cache(1 << 20)
    refuses(lambda: cache.put(key("a"), case), "an embedding that is no tensor [token_count, hidden]")


@requirement("ENCODER_CACHE-22", level=SHOULD, needs="open_encoder_cache", cases={"negative": -1, "not-a-number": float("nan")})
def test_a_capacity_that_cannot_be_is_refused(engine: Engine, case: Any) -> None:
    """A capacity that is negative or not a number SHOULD be refused: it is a mistake of whoever set it."""
    refuses(lambda: engine.open_encoder_cache(case), f"a capacity of {case} bytes")


def follows(engine: Engine, case: Script) -> None:
    """Every answer of the engine's cache is that of the list."""
    budget = case.capacity * ROW_BYTES
    observed = play(engine.open_encoder_cache(budget), case.steps)
    expected = play(ListCache(budget), case.steps)
    equal(observed, expected, "the answers", where=case.where)
