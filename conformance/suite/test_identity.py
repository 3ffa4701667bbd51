"""IDENTITY: what stands for the content of an item."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.cases import Exact, Pair
from conformance.compare import differ, equal, holds, refuses, same
from conformance.elsewhere import in_a_fresh_process
from conformance.engine import Engine
from conformance.oracles import identity as oracle
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.suite import identity_cases as content
from conformance.suite import identity_hash_cases as hashes
from conformance.suite.identity_hash_cases import Hashes
from reference.items import Item


@requirement("IDENTITY-01", needs="identify", cases=content.SAME_CONTENT, bugs=("H04", "H05", "hash-by-address"))
def test_equal_content_has_equal_identity(engine: Engine, case: Pair) -> None:
    """Equal content MUST have equal identities, wherever it lies in memory and however it is laid out there."""
    same(engine.identify(case.first), engine.identify(case.second), "the identities of equal content")


@requirement("IDENTITY-02", needs="identify", cases=content.BYTE_ORDERS, level=SHOULD)
def test_byte_order_is_no_content(engine: Engine, case: Pair) -> None:
    """Arrays of equal values SHOULD have equal identities when one is stored big-endian."""
    same(engine.identify(case.first), engine.identify(case.second), "the identities of equal arrays")


@requirement("IDENTITY-03", needs="identify", cases={"picture": content.SPECIMEN, "list": content.LIST_SPECIMEN})
def test_threads_agree(engine: Engine, case: Item) -> None:
    """The identity of an item MUST NOT depend on the thread that computes it, or on what other threads do meanwhile."""
    expected = engine.identify(case)
    with ThreadPoolExecutor(4) as pool:
        observed = list(pool.map(engine.identify, [case] * 16))
    equal(observed, [expected] * 16, "the identities from 4 threads", where="call {}".format)


@requirement("IDENTITY-04", needs="identify", cases={"three-items": oracle.identities}, bugs=("H02",))
def test_processes_agree(engine: Engine, case: Any) -> None:
    """The identity of an item MUST be the same in every process."""
    equal(in_a_fresh_process(engine, case), case(engine), "the identities in a fresh process", where="item {}".format)


@requirement(
    "IDENTITY-05",
    needs="identify",
    cases=content.BYTES,
    bugs=("base64-prefix-hash", "hash-sorted-images-prefix64k"),
)
def test_every_byte_counts(engine: Engine, case: Pair) -> None:
    """Payloads that differ in any byte MUST have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of different payloads")


@requirement("IDENTITY-06", needs="identify", cases=content.SHAPES, bugs=("H01", "H09", "H11"))
def test_shape_is_part_of_identity(engine: Engine, case: Pair) -> None:
    """Payloads of equal bytes and different shapes MUST have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of different shapes")


@requirement("IDENTITY-07", needs="identify", cases=content.DTYPES, bugs=("H01", "H09", "H11"))
def test_dtype_is_part_of_identity(engine: Engine, case: Pair) -> None:
    """Payloads of equal bytes and shapes and different dtypes MUST have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of different dtypes")


@requirement("IDENTITY-08", needs="identify", cases=content.VALUES, bugs=("hash-bf16-to-fp16",))
def test_every_bit_of_a_value_counts(engine: Engine, case: Pair) -> None:
    """Values that differ in any bit MUST have different identities: a detour through another dtype may merge them."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of different values")


@requirement(
    "IDENTITY-09",
    needs="identify",
    cases=content.FRAMING,
    bugs=("H01", "hash-concat-boundary", "hash-sorted-images-prefix64k"),
)
def test_framing_is_part_of_identity(engine: Engine, case: Pair) -> None:
    """Lists that hold the same bytes, divided, nested, ordered or repeated otherwise, MUST have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of different lists")


@requirement("IDENTITY-10", needs="identify", cases=content.MODALITIES)
def test_modality_is_part_of_identity(engine: Engine, case: Pair) -> None:
    """Items of different modalities MUST have different identities, whatever they contain."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of two modalities")


@requirement("IDENTITY-11", needs="identify", level=SHOULD, cases=content.KINDS)
def test_the_kind_of_content_is_part_of_identity(engine: Engine, case: Pair) -> None:
    """Raw media, processed features and precomputed embeddings of equal bytes SHOULD have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of two kinds of content")


@requirement(
    "IDENTITY-12",
    needs="identify",
    cases=content.FIELDS,
    bugs=(
        "H09",
        "G06",
        "hash-decode-config-ignored",
        "hash-noncanonical-dict-metadata",
        "video-audio-not-in-hash",
        "video-per-item-options-hash",
    ),
)
def test_fields_are_part_of_identity(engine: Engine, case: Pair) -> None:
    """Items with different fields (grids, frame rates, options, further media) MUST have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of items with different fields")


@requirement("IDENTITY-13", needs="identify", cases=content.FIELD_ORDERS, bugs=("H09",))
def test_the_order_of_fields_is_no_content(engine: Engine, case: Pair) -> None:
    """The identity of an item MUST NOT depend on the order in which its fields were set."""
    same(engine.identify(case.first), engine.identify(case.second), "the identities of items with equal fields")


@requirement(
    "IDENTITY-14",
    needs="identify",
    cases=content.PICTURES,
    bugs=("H09", "vllm-image-hash-tobytes", "palette-only-difference"),
)
def test_a_picture_is_more_than_its_bytes(engine: Engine, case: Pair) -> None:
    """Pictures that differ in size, mode, palette or transparency MUST have different identities."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of two pictures")


@requirement("IDENTITY-15", needs="identify", cases=content.NO_CONTENT)
def test_labels_are_no_content(engine: Engine, case: Pair) -> None:
    """An identity MUST NOT depend on an item's position, on names that it was given, or on a picture's metadata."""
    same(engine.identify(case.first), engine.identify(case.second), "the identities of equal content")


@requirement("IDENTITY-16", needs="identify", cases=content.SAME_LABEL, bugs=("C08", "hash-exif-imageid-trust"))
def test_a_label_does_not_replace_the_content(engine: Engine, case: Pair) -> None:
    """Different content MUST have different identities, also under the same name."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of different content")


@requirement("IDENTITY-17", needs="identify", cases=content.DOMAINS, bugs=("hash-suffix-domain-confusion",))
def test_a_payload_cannot_pass_for_a_field(engine: Engine, case: Pair) -> None:
    """A payload with a field appended to its bytes MUST have another identity than the payload beside the field."""
    differ(engine.identify(case.first), engine.identify(case.second), "the identities of a payload and a forgery")


@requirement("IDENTITY-18", needs="identify", cases=content.ANYTHING, bugs=("H03", "hash-bf16-to-fp16"))
def test_all_content_has_an_identity(engine: Engine, case: Item) -> None:
    """Everything with content MUST have an identity: each dtype, layout and shape, lists, bytes and pictures."""
    holds(len(engine.identify(case)) > 0, "the identity is empty")


@requirement("IDENTITY-19", needs="identify", cases=content.REFUSED, bugs=("H03",))
def test_what_has_no_content_has_no_identity(engine: Engine, case: Item) -> None:
    """An item with a part that has no stable content (missing, an object, a function) MUST be refused."""
    refuses(lambda: engine.identify(case), "an item without stable content")


@requirement("IDENTITY-20", needs="identify", cases={"picture": content.SPECIMEN}, level=SHOULD, bugs=("H06", "H10"))
def test_an_identity_is_wide(engine: Engine, case: Item) -> None:
    """An identity SHOULD have 128 bits or more, so that nobody finds two items that share one."""
    bits = 8 * len(engine.identify(case))
    holds(bits >= 128, f"an identity has {bits} bits; about 2**{bits // 2} pictures are enough to find two that share one")


@requirement("IDENTITY-21", needs=("identify", "combine_identities"), cases=hashes.SEQUENCES, bugs=("H02",))
def test_different_sequences_have_different_identities(engine: Engine, case: Pair) -> None:
    """Sequences of identities that differ in order, repetition or any member MUST have different identities."""
    width = len(engine.identify(content.SPECIMEN))
    first, second = ([(n % 256**width).to_bytes(width, "big") for n in numbers] for numbers in case)
    differ(engine.combine_identities(first), engine.combine_identities(second), "the identities of two sequences")


@requirement("IDENTITY-22", needs=("identify", "combine_identities"), cases={"three-items": oracle.combined}, bugs=("H02",))
def test_processes_agree_on_sequences(engine: Engine, case: Any) -> None:
    """The identity of a sequence MUST be the same in every process."""
    equal(in_a_fresh_process(engine, case), case(engine), "the identity of a sequence in a fresh process")


@requirement("IDENTITY-23", needs="adopt_caller_hashes", cases=hashes.ADOPTED, bugs=("C01", "C02"))
def test_a_caller_hash_is_adopted_exactly(engine: Engine, case: Hashes) -> None:
    """A well-formed hash from a caller MUST become its item's hash, digit by digit; an engine that trusts none adopts none."""
    adopted, _ = engine.adopt_caller_hashes(case.items, case.hashes)
    equal(adopted, hashes.trusted(engine, case), "the adopted hashes", where="item {}".format)


@requirement("IDENTITY-24", needs="adopt_caller_hashes", cases=hashes.BY_MODALITY)
def test_a_caller_hash_stays_in_its_modality(engine: Engine, case: Hashes) -> None:
    """A caller's hash MUST NOT go to an item of another modality, nor to another item of its own.

    An engine may adopt none when the caller names the items of some modalities only.
    """
    adopted, _ = engine.adopt_caller_hashes(case.items, case.hashes)
    own = [None if one is None else hash for one, hash in zip(adopted, hashes.trusted(engine, case), strict=False)]
    equal(adopted, own, "the adopted hashes", where="item {}".format)


@requirement("IDENTITY-25", needs="adopt_caller_hashes", cases=hashes.WRONG_NUMBER, bugs=("C02", "C03"))
def test_a_wrong_number_of_caller_hashes_drops_them_all(engine: Engine, case: Hashes) -> None:
    """When a caller gives a wrong number of hashes, all of the request's hashes MUST be dropped, and the caller be told."""
    adopted, problems = engine.adopt_caller_hashes(case.items, case.hashes)
    equal(adopted, case.expected, "the adopted hashes", where="item {}".format)
    holds(len(problems) > 0, "the wrong number of hashes is not reported")


@requirement("IDENTITY-26", needs="adopt_caller_hashes", cases=hashes.MALFORMED, bugs=("C01", "C02"))
def test_a_malformed_caller_hash_is_dropped_alone(engine: Engine, case: Hashes) -> None:
    """A caller's hash that is not 1 to 16 hexadecimal digits MUST be dropped alone, and the caller be told."""
    adopted, problems = engine.adopt_caller_hashes(case.items, case.hashes)
    equal(adopted, hashes.trusted(engine, case), "the adopted hashes", where="item {}".format)
    holds(len(problems) > 0, "the malformed hash is not reported")


@requirement("IDENTITY-27", needs="data_hash", cases=hashes.DATA, profile=SGLANG)
def test_the_hash_of_bytes_has_the_exact_value(engine: Engine, case: Exact) -> None:
    """The hash of bytes MUST equal SGLang's, so that routers and engines agree on keys."""
    equal(engine.data_hash(case.given), case.expected, "the hash of bytes")


@requirement("IDENTITY-28", needs="tensor_hash", cases=hashes.TENSORS, profile=SGLANG)
def test_the_hash_of_tensors_has_the_exact_value(engine: Engine, case: Exact) -> None:
    """The hash of a tensor, or of the tensors of nested lists, MUST equal SGLang's on a CPU."""
    equal(engine.tensor_hash(case.given), case.expected, "the hash of tensors")


@requirement("IDENTITY-29", needs="hash_feature", cases=hashes.FEATURES, profile=SGLANG)
def test_the_hash_of_a_feature_has_the_exact_value(engine: Engine, case: Exact) -> None:
    """The hash of a tensor, an array, bytes or a list of tensors MUST equal SGLang's on a CPU."""
    equal(engine.hash_feature(case.given), case.expected, "the hash of a feature")


@requirement("IDENTITY-30", needs="hash_feature", cases=hashes.NO_FEATURES, profile=SGLANG, bugs=("H03",))
def test_what_is_no_feature_is_refused(engine: Engine, case: Any) -> None:
    """What is not a tensor, an array, bytes or a list of tensors MUST be refused."""
    refuses(lambda: engine.hash_feature(case), "what is no feature")
