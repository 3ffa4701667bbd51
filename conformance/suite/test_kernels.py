"""KERNELS: the operations that engines move onto a GPU, each by itself."""

import torch

from conformance.cases import Exact, Pair
from conformance.compare import differ, equal, refuses, same
from conformance.engine import Engine
from conformance.oracles import kernels as oracle
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.suite import kernels_cases as cases
from conformance.suite.kernels_cases import FAR, LAYOUTS, Ids, flipped, pattern, swapped
from reference.items import Chunk

LENGTHS = (0, 1, 3, 4, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 5000, 31751)


@requirement(
    "KERNELS-01",
    needs="word_hash",
    profile=SGLANG,
    cases={f"bytes-{n}": cases.hashed(pattern(n)) for n in (0, 1, 2, 3, 4, 5, 7, 1023, 1025, 4099)},
    bugs=("H19",),
)
def test_the_word_hash_has_the_exact_value(engine: Engine, case: Exact) -> None:
    """The word hash MUST equal that of SGLang's kernel for bytes of any number."""
    equal(engine.word_hash(case.given), case.expected, "the word hash")


@requirement(
    "KERNELS-02",
    needs="word_hash",
    cases={
        "two-words": swapped(pattern(64).view(torch.int32), 3, 9, 1),
        "two-blocks": swapped(pattern(4096), 0, 1024, 1024),
        "two-tiles": swapped(torch.arange(3 * 8192, dtype=torch.int32), 0, 8192, 8192),
        "what-one-loses-the-next-gets": Pair(torch.tensor([5, 9, 2, 2]), torch.tensor([6, 8, 2, 2])),
        "reversed": Pair(pattern(64).view(torch.int32), pattern(64).view(torch.int32).flip(0)),
    },
    bugs=("H19",),
)
def test_the_order_of_words_counts(engine: Engine, case: Pair) -> None:
    """Contents MUST have different word hashes when the same words stand in them in another order."""
    differ(engine.word_hash(case.first), engine.word_hash(case.second), "the word hashes of two orders")


@requirement(
    "KERNELS-03",
    needs="word_hash",
    cases={f"byte-{place}-of-{n}": flipped(n, place) for n, place in ((1, 0), (3, 2), (5, 4), (1023, 1022), (4097, 4096))},
)
def test_the_last_bytes_count(engine: Engine, case: Pair) -> None:
    """Contents that differ in any byte MUST have different word hashes, also in bytes that fill no word."""
    differ(engine.word_hash(case.first), engine.word_hash(case.second), "the word hashes of two contents")


@requirement("KERNELS-04", needs="word_hash", cases=LAYOUTS)
def test_the_word_hash_is_blind_to_layout(engine: Engine, case: torch.Tensor) -> None:
    """Equal values MUST have one word hash, however they lie in memory and wherever they begin."""
    copy = case.clone(memory_format=torch.contiguous_format)
    same(engine.word_hash(case), engine.word_hash(copy), "the word hashes of equal values")


@requirement(
    "KERNELS-05",
    needs="word_hash",
    level=SHOULD,
    cases={"words": pattern(64), "with-a-tail": pattern(67), "nothing": pattern(0)},
    bugs=("H20", "hash-kernel-wrong-device"),
)
def test_the_word_hash_is_computed_where_the_tensor_lies(engine: Engine, case: torch.Tensor) -> None:
    """The word hash SHOULD be computed on the device of its tensor, whatever device is the default one."""
    expected = engine.word_hash(case)
    with cases.elsewhere():
        same(engine.word_hash(case), expected, "the word hashes under two default devices")


@requirement("KERNELS-06", needs="word_hash", cases={"no-memory": cases.NOWHERE}, bugs=("H20",))
def test_a_tensor_without_memory_has_no_word_hash(engine: Engine, case: torch.Tensor) -> None:
    """A tensor whose memory the kernel cannot read MUST be refused, and MUST NOT be hashed as what lies elsewhere."""
    refuses(lambda: engine.word_hash(case), "a tensor without memory")


@requirement("KERNELS-07", needs="content_digest", cases={f"bytes-{n}": cases.digested(pattern(n)) for n in LENGTHS})
def test_the_digest_is_that_of_blake3(engine: Engine, case: Exact) -> None:
    """The content digest MUST be the BLAKE3 digest of a tensor's bytes, for any number of them."""
    equal(engine.content_digest(case.given), case.expected, "the digest")


@requirement(
    "KERNELS-08",
    needs="content_digest",
    cases={
        **{name: cases.digested(tensor) for name, tensor in LAYOUTS.items()},
        **{name: cases.digested(cases.numbers(5, 3, dtype)) for name, dtype in cases.DTYPES.items()},
    },
)
def test_the_digest_is_that_of_the_values(engine: Engine, case: Exact) -> None:
    """The content digest MUST be that of the elements in their order, of any dtype and layout, wherever they begin."""
    equal(engine.content_digest(case.given), case.expected, "the digest")


@requirement(
    "KERNELS-09",
    needs="content_digest",
    level=SHOULD,
    cases={"one-chunk": pattern(64), "two-chunks": pattern(1025), "nothing": pattern(0)},
    bugs=("H20", "hash-kernel-wrong-device"),
)
def test_the_digest_is_computed_where_the_tensor_lies(engine: Engine, case: torch.Tensor) -> None:
    """The content digest SHOULD be computed on the device of its tensor, whatever device is the default one."""
    expected = engine.content_digest(case)
    with cases.elsewhere():
        same(engine.content_digest(case), expected, "the digests under two default devices")


@requirement("KERNELS-23", needs="content_digest", cases={"no-memory": cases.NOWHERE}, bugs=("H20",))
def test_a_tensor_without_memory_has_no_digest(engine: Engine, case: torch.Tensor) -> None:
    """A tensor whose memory the kernel cannot read MUST be refused, and MUST NOT be digested as what lies elsewhere."""
    refuses(lambda: engine.content_digest(case), "a tensor without memory")


@requirement(
    "KERNELS-10",
    needs="placeholder_mask",
    cases={
        "none": cases.text_with([], 5),
        "all": cases.text_with(range(5), 5),
        "first-and-last": cases.text_with([0, 6], 7),
        "no-ids": cases.ids([], [FAR]),
        "no-sentinels": cases.ids([1, 2], []),
        "several": cases.ids([5, FAR, 7, FAR + 2, FAR + 1, -3, 0], [-3, 5, FAR, FAR + 2]),
        "beyond-the-largest": cases.ids([9, 10, 11], [9, 10]),
        "many-sentinels": cases.ids([0, 3, 4, 599, 600, 601, 900], range(0, 601, 3)),
        "extremes": cases.ids([-(2**63), 2**63 - 1, 0, -1], [-(2**63), -1, 2**63 - 1]),
        "edges-of-a-block": cases.text_with([127, 128, 255, 256, 511, 512, 1023, 1024, 1025], 1026),
        "narrow-ids": cases.ids([1, 2**31 - 1, -(2**31), 5], [-(2**31), 5], torch.int32),
    },
)
def test_the_mask_is_true_at_sentinels(engine: Engine, case: Ids) -> None:
    """The mask MUST be True where an id is one of the sentinels, and False everywhere else."""
    equal(engine.placeholder_mask(*case), oracle.mask(*case), "the mask")


@requirement(
    "KERNELS-11",
    needs="placeholder_mask",
    cases={
        "text-like-a-narrowed-sentinel": cases.ids([5, 2**32 + 5, 6], [2**32 + 5]),
        "narrow-ids": cases.ids([5, 0, -1, -7], [2**32 - 1, 2**32 + 5, FAR], torch.int32),
        "sentinels-that-differ-above": cases.ids([2**40 + 5, 2**41 + 5], [2**40 + 5]),
        "negative-ids": cases.ids([-1, 2**32 - 1, 2**62 - 1], [2**32 - 1, 2**62 - 1]),
    },
)
def test_ids_are_compared_in_64_bits(engine: Engine, case: Ids) -> None:
    """Ids and sentinels MUST be compared in 64 bits, also where ids come in 32."""
    equal(engine.placeholder_mask(*case), oracle.mask(*case), "the mask")


@requirement(
    "KERNELS-24",
    needs="placeholder_mask",
    level=SHOULD,
    cases={"some": cases.ids([1, FAR, 2], [FAR]), "no-sentinels": cases.ids([1, 2], []), "no-ids": cases.ids([], [FAR])},
    bugs=("H20",),
)
def test_the_mask_is_made_where_the_ids_lie(engine: Engine, case: Ids) -> None:
    """The mask SHOULD be computed on the device of the ids, whatever device is the default one."""
    with cases.elsewhere():
        observed = engine.placeholder_mask(*case)
    equal(observed, oracle.mask(*case), "the mask")


@requirement(
    "KERNELS-21",
    needs="span_mask",
    cases={
        "none": cases.Covered((), Chunk(3, 4)),
        **{name: cases.Covered(one.spans, one.chunk) for name, one in cases.MERGES.items() if name not in cases.DTYPES},
        "edges-of-a-block": cases.Covered(cases.merge([(127, 128), (1023, 1024)], Chunk(0, 0)).spans, Chunk(0, 1030)),
        "far-away": cases.Covered(cases.merge([(2**40, 2**40 + 3)], Chunk(0, 0)).spans, Chunk(2**40 + 2, 5)),
    },
)
def test_the_mask_of_a_chunk_is_true_in_spans(engine: Engine, case: cases.Covered) -> None:
    """The mask of a chunk MUST be True at the positions of its spans, both ends included, and False everywhere else."""
    equal(engine.span_mask(*case), oracle.covered(*case), "the mask")
