"""Ways in which engines have got sentinels wrong."""

from conformance.quirk import quirk
from reference import sentinels as right


@quirk("sentinel-inside-the-vocabulary", replaces="sentinels", bugs=("P03",), caught_by=("SENTINELS-01", "SENTINELS-06"))
def without_shift(identity: bytes) -> tuple[int, ...]:
    """The content hash is cut to the vocabulary's range, so that it equals some text token."""
    return tuple(value % 150_000 for value in right.sentinels(identity))


@quirk("one-varying-sentinel", replaces="sentinels", bugs=("H10",), caught_by=("SENTINELS-02", "SENTINELS-06"))
def only_the_first_varies(identity: bytes) -> tuple[int, ...]:
    """Only the first value depends on the content; a match that stops later sees no difference."""
    first, *_ = right.sentinels(identity)
    return (first, 1_000_001, 1_000_002, 1_000_003)


@quirk("sentinels-little-endian", replaces="sentinels", bugs=(), caught_by=("SENTINELS-06",))
def little_endian(identity: bytes) -> tuple[int, ...]:
    """The words of the digest are read from the wrong end: all is well until a router computes the same key."""
    return right.sentinels(identity[::-1])


@quirk("identity-of-any-length", replaces="sentinels", bugs=(), caught_by=("SENTINELS-08",))
def pads_or_cuts(identity: bytes) -> tuple[int, ...]:
    """An identity is padded with zeros or cut to 32 bytes instead of refused."""
    return right.sentinels(identity[:32].ljust(32, b"\0"))


@quirk(
    "sentinel-of-30-bits",
    replaces="sentinels_from_hash",
    bugs=("C01", "H06"),
    caught_by=("SENTINELS-03", "SENTINELS-04", "SENTINELS-07"),
)
def low_30_bits(value: int) -> tuple[int, ...]:
    """One value carries the low 30 bits of the hash: ids that end in zeros all become the same sentinel."""
    return (right.SHIFT + value % (1 << 30),)


@quirk("hash-cut-to-64-bits", replaces="sentinels_from_hash", bugs=("C02",), caught_by=("SENTINELS-04",))
def masked(value: int) -> tuple[int, ...]:
    """A wider hash silently loses its upper bits."""
    return right.sentinels_from_hash(value & (1 << 64) - 1)


@quirk("vocabulary-unchecked", replaces="check_vocabulary", bugs=("P03",), caught_by=("SENTINELS-05",))
def takes_any(size: int) -> None:
    """No vocabulary is too large: its largest ids and some sentinels are the same."""


@quirk("vocabulary-off-by-one", replaces="check_vocabulary", bugs=("P03",), caught_by=("SENTINELS-09",))
def refuses_equality(size: int) -> None:
    """The largest vocabulary that fits is refused."""
    right.check_vocabulary(size + 1)
