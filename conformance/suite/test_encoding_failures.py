"""ENCODING: what goes wrong with one item, and whom it concerns; what the cache remembers of a batch."""

from contextlib import suppress

import torch

from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles import encoding as oracle
from conformance.oracles.encoding import Batch
from conformance.requirement import SHOULD, requirement
from conformance.suite.encoding_cases import (
    BATCHES,
    FAULTS,
    FAULTY,
    FOLLOWED,
    MIXED,
    REPEATED,
    SPARSE,
    WRONG_READY,
    WRONG_SPARSE,
    Again,
    Fault,
)  # fmt: skip
from conformance.suite.encoding_checks import fails, serves, serves_in_conflict, serves_or_fails
from conformance.witness import EngineRaised
from conformance.world.doubles import HIDDEN, CountingEncoder, Encoders, Finish, identity, image, request, whole
from reference.items import Chunk, Modality

CACHE = ("open_encoder_cache", "encode")

ROW_BYTES = HIDDEN * 4
ROOMY = 1 << 20


def broken(rows: list[torch.Tensor]) -> None:
    """An encoder that cannot go on."""
    raise RuntimeError("the encoder is out of order")


@requirement("ENCODING-17", needs="encode", cases=WRONG_READY, bugs=("L11", "precomputed-hidden-size"))
def test_a_wrong_precomputed_embedding_fails_its_request_alone(engine: Engine, case: Batch) -> None:
    """A precomputed embedding that is not [token_count, hidden] MUST fail its request, and no other request."""
    observed = engine.encode(case, Encoders(), None)
    fails(observed, case, only={"bad"})
    serves(observed, case, only={"before", "after"})


@requirement("ENCODING-28", needs="encode", cases=SPARSE, bugs=("embeds-negative-sparse",), level=SHOULD)
def test_a_sparse_embedding_is_what_it_stands_for(engine: Engine, case: Batch) -> None:
    """A precomputed embedding that is sparse SHOULD fail its request alone, or be used as the rows that it stands for.

    A value that comes in several parts is their sum. An engine may refuse such embeddings at its door; here it is asked
    whether its step relies on that.
    """
    observed = engine.encode(case, Encoders(), None)
    serves_or_fails(observed, case)
    serves(observed, case, only={"before", "after"})


@requirement(
    "ENCODING-29", needs="encode", cases=WRONG_SPARSE, bugs=("embeds-negative-sparse", "embeds-sparse-dense-bomb"), level=SHOULD
)
def test_a_sparse_embedding_states_nothing_but_what_it_has(engine: Engine, case: Batch) -> None:
    """A sparse embedding with an index outside its shape, or of a shape beyond all memory, SHOULD fail its request alone."""
    observed = engine.encode(case, Encoders(), None)
    fails(observed, case, only={"bad"})
    serves(observed, case, only={"before", "after"})


@requirement("ENCODING-18", needs="encode", cases=FAULTS, bugs=("L01", "L02", "L03", "L11"))
def test_wrong_rows_from_the_encoder_fail_only_requests_that_need_them(engine: Engine, case: Fault) -> None:
    """Rows that are not those of the item MUST fail every request that needs it, and MUST NOT touch any other.

    Where it is unknown which item of a call is at fault, requests that need another item of it may fail too; none is
    given wrong rows.
    """
    encoders = Encoders()
    encoders[Modality.IMAGE].finish = case.finish
    observed = engine.encode(FAULTY, encoders, None)
    fails(observed, FAULTY, only=case.failing)
    serves(observed, FAULTY, only=case.served)
    serves_or_fails(observed, FAULTY)


@requirement("ENCODING-19", needs="encode", cases={"raises": broken, "missing": None}, bugs=("L01", "G11"))
def test_a_broken_encoder_fails_only_its_modality(engine: Engine, case: Finish | None) -> None:
    """Where the encoder of a modality raises, or there is none, the requests that need it MUST fail, and no others."""
    images = {} if case is None else {Modality.IMAGE: CountingEncoder(case)}
    encoders = {Modality.VIDEO: CountingEncoder(), **images}
    observed = engine.encode(FAULTY, encoders, None)
    fails(observed, FAULTY, only={"bad", "good", "mixed"})
    serves(observed, FAULTY, only={"video"})


@requirement("ENCODING-20", needs=CACHE, cases=FAULTS, bugs=("L11",))
def test_nothing_of_a_failed_item_is_cached(engine: Engine, case: Fault) -> None:
    """Wrong rows MUST NOT enter the cache: once the encoder is well again, the item MUST be encoded anew."""
    cache, ill, well = engine.open_encoder_cache(ROOMY), Encoders(), Encoders()
    ill[Modality.IMAGE].finish = case.finish
    with suppress(EngineRaised):  # that the batch may not fail as a whole is another requirement
        engine.encode(FAULTY, ill, cache)
    serves(engine.encode(FAULTY, well, cache), FAULTY)
    holds("image 1 of 5 rows" in well.seen, "the item that failed was not encoded anew")


@requirement("ENCODING-21", needs=CACHE, cases=REPEATED, bugs=("Z03", "E04", "omni-cached-prompt-executor"))
def test_what_is_cached_is_not_encoded_again(engine: Engine, case: Again) -> None:
    """An item whose rows are cached MUST NOT be encoded again, and MUST be served as if it had been."""
    cache, first, second = engine.open_encoder_cache(ROOMY), Encoders(), Encoders()
    serves(engine.encode(case.first, first, cache), case.first)
    serves(engine.encode(case.second, second, cache), case.second)
    expected = [item for item in oracle.needed(case.second) if item not in first.seen]
    equal(sorted(second.seen), sorted(expected), "the items that were encoded in the second batch")


@requirement(
    "ENCODING-22",
    needs=(*CACHE, "open_encoder_cache.put"),
    cases={"one-short": 4, "one-long": 6, "far-off": 256},
    bugs=("E01", "enc-cache-hit-count-mismatch", "emb-cache-length-check-on-hit"),
)
def test_a_cached_embedding_of_another_length_is_not_used(engine: Engine, case: int) -> None:
    """Cached rows that are not as many as the item has tokens MUST NOT be used, and MUST NOT touch another request.

    The item is encoded, or its request fails where `Traits.length_conflicts` says so.
    """
    cache = engine.open_encoder_cache(ROOMY)
    cache.put(identity(Modality.IMAGE, 1), torch.zeros(case, HIDDEN))
    batch = [whole(request("hit", 8, image(1, (1, 5)))), whole(request("other", 8, image(2, (1, 5))))]
    observed = engine.encode(batch, Encoders(), cache)
    serves_in_conflict(observed, batch, engine)
    serves(observed, batch, only={"other"})


@requirement(
    "ENCODING-23",
    needs=CACHE,
    cases={"no-room": 0, "less-than-an-item": 3, "one-item": 4, "one-of-two-items": 7},
    bugs=("E04", "E05"),
)
def test_a_small_cache_does_not_change_the_rows(engine: Engine, case: int) -> None:
    """A cache with less room than a batch needs MUST NOT change what a request gets, in this batch or the next."""
    cache = engine.open_encoder_cache(case * ROW_BYTES)
    for batch in (BATCHES["each-prompt-its-picture"], [whole(MIXED), whole(FOLLOWED)]):
        serves(engine.encode(batch, Encoders(), cache), batch)
        serves(engine.encode(batch, Encoders(), cache), batch)


@requirement(
    "ENCODING-24",
    needs=(*CACHE, "open_encoder_cache.clear", "open_encoder_cache.generation", "open_encoder_cache.put_if_current"),
    cases={"a-picture": [whole(request("one", 8, image(1, (1, 5))))], "several-pictures": [(FOLLOWED, Chunk(0, 12))]},
    bugs=("weights-update-stale-encoder",),
)
def test_rows_from_before_a_clear_are_not_cached(engine: Engine, case: Batch) -> None:
    """When the cache is cleared while an encoder runs, the batch MUST be served, and its rows MUST NOT be cached."""
    cache, later = engine.open_encoder_cache(ROOMY), Encoders()

    def clear_and_finish(rows: list[torch.Tensor]) -> list[torch.Tensor]:
        cache.clear()
        return rows

    serves(engine.encode(case, Encoders(clear_and_finish), cache), case)
    serves(engine.encode(case, later, cache), case)
    equal(sorted(later.seen), sorted(oracle.needed(case)), "the items that were encoded after the clear")
