"""SENTINELS: the ids that stand for media in a prompt."""

from conformance.cases import Exact, Pair
from conformance.compare import differ, equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles import sentinels as oracle
from conformance.requirement import SGLANG, SHOULD, requirement

IDENTITIES = {
    "zeros": bytes(32),
    "ones": b"\xff" * 32,
    "counting": bytes(range(32)),
    "differs-in-the-last-bit": bytes(31) + b"\x01",
}
NEIGHBOURS = {
    "first-bit": Pair(bytes(32), b"\x80" + bytes(31)),
    "last-bit": Pair(bytes(32), bytes(31) + b"\x01"),
    "swapped-halves": Pair(bytes(range(32)), bytes(range(16, 32)) + bytes(range(16))),
}
HASHES = {"zero": 0, "one": 1, "wider-than-32-bits": 2**32, "wider-than-63-bits": 2**63, "largest": 2**64 - 1}
NEIGHBOURING_HASHES = {
    "last-bit": Pair(0, 1),
    "beyond-30-bits": Pair(5, 5 + 2**30),
    "beyond-32-bits": Pair(5, 5 + 2**32),
    "mersenne": Pair(5, 5 + 2**61 - 1),
    "zero-padded-on-the-right": Pair(0xAAAA << 48, 0xBBBB << 48),
}


@requirement("SENTINELS-01", needs="sentinels", cases=IDENTITIES, bugs=("P03",))
def test_sentinels_lie_outside_every_vocabulary(engine: Engine, case: bytes) -> None:
    """A sentinel MUST be a signed 64-bit id that is larger than every id of the engine's largest vocabulary."""
    observed = engine.sentinels(case)
    inside = [value for value in observed if not engine.traits.largest_vocabulary <= value < 2**63]
    holds(not inside and len(observed) > 0, f"{len(inside)} of {len(observed)} sentinels may be text: {inside}")


@requirement("SENTINELS-02", needs="sentinels", cases=NEIGHBOURS, bugs=("H06", "H10"))
def test_each_sentinel_alone_tells_two_items_apart(engine: Engine, case: Pair) -> None:
    """Two items with different identities MUST NOT share a sentinel at any place of their cycle.

    A prefix match may stop after any position, so the cycle as a whole is not enough.
    """
    for place, (one, other) in enumerate(zip(*map(engine.sentinels, case), strict=False)):
        differ(one, other, f"the sentinels at place {place} of two items")


@requirement("SENTINELS-03", needs="sentinels_from_hash", cases=NEIGHBOURING_HASHES, bugs=("C01", "H10"))
def test_every_bit_of_a_hash_counts(engine: Engine, case: Pair) -> None:
    """Two items that are known by different 64-bit hashes MUST NOT share a sentinel at any place of their cycle."""
    for place, (one, other) in enumerate(zip(*map(engine.sentinels_from_hash, case), strict=False)):
        differ(one, other, f"the sentinels at place {place} of two hashes")


@requirement(
    "SENTINELS-04",
    needs="sentinels_from_hash",
    cases={"negative": -1, "beyond-64-bits": 2**64, "digest": int("ab" * 32, 16)},
    bugs=("C01", "C02"),
    level=SHOULD,
)
def test_a_hash_that_does_not_fit_is_refused(engine: Engine, case: int) -> None:
    """A hash outside the unsigned 64-bit range SHOULD be refused: cut to 64 bits it would name another item as well."""
    refuses(lambda: engine.sentinels_from_hash(case), f"the hash {case:#x}")


@requirement("SENTINELS-05", needs="check_vocabulary", cases={"by-one": 1, "by-far": 2**31}, bugs=("P03",))
def test_a_vocabulary_that_reaches_the_sentinels_is_refused(engine: Engine, case: int) -> None:
    """An engine MUST refuse at start a vocabulary of more than `largest_vocabulary` ids."""
    size = engine.traits.largest_vocabulary + case
    refuses(lambda: engine.check_vocabulary(size), f"a vocabulary of {size} ids")


@requirement("SENTINELS-09", needs="check_vocabulary", cases={"empty": 0, "usual": 151_936, "just-fits": None})
def test_a_vocabulary_below_the_sentinels_is_taken(engine: Engine, case: int | None) -> None:
    """An engine MUST take a vocabulary of up to `largest_vocabulary` ids, the largest one included."""
    engine.check_vocabulary(engine.traits.largest_vocabulary if case is None else case)


@requirement(
    "SENTINELS-06",
    needs="sentinels",
    profile=SGLANG,
    cases={name: Exact(identity, oracle.expected(identity)) for name, identity in IDENTITIES.items()},
)
def test_sentinels_have_the_exact_values(engine: Engine, case: Exact) -> None:
    """The sentinels of an identity MUST equal SGLang's, so that routers and engines agree on cache keys."""
    equal(engine.sentinels(case.given), case.expected, "the sentinels", where="place {}".format)


@requirement(
    "SENTINELS-07",
    needs="sentinels_from_hash",
    profile=SGLANG,
    cases={name: Exact(value, oracle.expected(value.to_bytes(8, "big"))) for name, value in HASHES.items()},
)
def test_sentinels_of_a_hash_have_the_exact_values(engine: Engine, case: Exact) -> None:
    """The sentinels of a 64-bit hash MUST equal SGLang's, so that routers and engines agree on cache keys."""
    equal(engine.sentinels_from_hash(case.given), case.expected, "the sentinels", where="place {}".format)


@requirement("SENTINELS-08", needs="sentinels", cases={"empty": b"", "short": bytes(31), "long": bytes(33)})
def test_an_identity_of_another_length_is_refused(engine: Engine, case: bytes) -> None:
    """An identity that has not 32 bytes MUST be refused."""
    refuses(lambda: engine.sentinels(case), f"an identity of {len(case)} bytes")
