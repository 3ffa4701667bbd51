"""ENCODER_CACHE: which requests share the rows of an item."""

from typing import NamedTuple

from conformance.cases import Pair
from conformance.compare import differ, same
from conformance.engine import Engine
from conformance.oracles.encoder_cache import key
from conformance.requirement import SHOULD, requirement


class Keyed(NamedTuple):
    """An item, the adapter of its request, and whether it changes the encoder."""

    identity: bytes
    adapter: tuple[str, str] | None
    changes_encoder: bool


def of(name: str, adapter: tuple[str, str] | None = None, changes_encoder: bool = True) -> Keyed:
    """The item with this name."""
    return Keyed(key(name), adapter, changes_encoder)


def keys_of(engine: Engine, case: Pair) -> tuple[bytes, bytes]:
    """The keys of both."""
    return engine.encoder_key(*case.first), engine.encoder_key(*case.second)


@requirement(
    "ENCODER_CACHE-23",
    needs="encoder_key",
    cases={
        "none-and-one": Pair(of("a"), of("a", ("cats", "1"))),
        "one-and-another": Pair(of("a", ("cats", "1")), of("a", ("dogs", "1"))),
        "bounds-of-a-name": Pair(of("a", ("cats", "1")), of("a", ("cat", "s1"))),
        "no-name": Pair(of("a", ("", "cats")), of("a", ("cats", ""))),
        "two-items-with-one": Pair(of("a", ("cats", "1")), of("b", ("cats", "1"))),
        "two-items-with-none": Pair(of("a"), of("b")),
    },
)
def test_an_adapter_that_changes_the_encoder_is_part_of_the_key(engine: Engine, case: Pair) -> None:
    """Rows of two items, or of two adapters that change the encoder, or with one and without, MUST have different keys."""
    differ(*keys_of(engine, case), "the keys of other rows")


@requirement(
    "ENCODER_CACHE-24",
    needs="encoder_key",
    cases={
        "reloaded": Pair(of("a", ("cats", "/adapters/1")), of("a", ("cats", "/adapters/2"))),
        "first-without-a-version": Pair(of("a", ("cats", "")), of("a", ("cats", "2"))),
    },
    bugs=("lora-same-name-stale-encoder",),
)
def test_an_adapter_that_was_loaded_again_has_other_keys(engine: Engine, case: Pair) -> None:
    """Rows that were made with other weights MUST have another key, though an adapter of the same name was loaded."""
    differ(*keys_of(engine, case), "the keys of an adapter's weights and those loaded after them")


@requirement(
    "ENCODER_CACHE-25",
    level=SHOULD,
    needs="encoder_key",
    cases={
        "one-and-another": Pair(of("a", ("cats", "1"), False), of("a", ("dogs", "2"), False)),
        "none-and-one": Pair(of("a", None, False), of("a", ("cats", "1"), False)),
    },
)
def test_an_adapter_of_the_language_model_shares_rows(engine: Engine, case: Pair) -> None:
    """Rows SHOULD be shared by requests whose adapters leave the encoder as it is: it would be run for each of them."""
    same(*keys_of(engine, case), "the keys of equal rows")
