"""Ways in which engines have got the key of an item's rows wrong."""

from conformance.quirk import quirk
from reference.encoder_cache import encoder_key

Adapter = tuple[str, str] | None


@quirk(
    "adapter-by-name-alone",
    replaces="encoder_key",
    bugs=("lora-same-name-stale-encoder",),
    caught_by=("ENCODER_CACHE-24",),
)
def by_name_alone(identity: bytes, adapter: Adapter, changes_encoder: bool) -> bytes:
    """An adapter is known by its name: who loads another one under it gets what the first one saw."""
    return encoder_key(identity, adapter and (adapter[0], ""), changes_encoder)


@quirk(
    "rows-of-any-adapter",
    replaces="encoder_key",
    bugs=("lora-same-name-stale-encoder",),
    caught_by=("ENCODER_CACHE-23", "ENCODER_CACHE-24"),
)
def of_any_adapter(identity: bytes, adapter: Adapter, changes_encoder: bool) -> bytes:
    """Rows are known by their picture alone, whichever adapter the encoder ran with."""
    return identity


@quirk("rows-of-any-item", replaces="encoder_key", bugs=(), caught_by=("ENCODER_CACHE-23",))
def of_any_item(identity: bytes, adapter: Adapter, changes_encoder: bool) -> bytes:
    """The adapter takes the item's place in the key."""
    return encoder_key(identity if adapter is None else b"", adapter, changes_encoder)


@quirk("adapter-name-runs-into-version", replaces="encoder_key", bugs=(), caught_by=("ENCODER_CACHE-23",))
def name_runs_into_version(identity: bytes, adapter: Adapter, changes_encoder: bool) -> bytes:
    """Name and version are written one behind the other, with nothing between them."""
    return encoder_key(identity, adapter and ("".join(adapter), ""), changes_encoder)


@quirk("rows-of-each-adapter", replaces="encoder_key", bugs=(), caught_by=("ENCODER_CACHE-25",))
def of_each_adapter(identity: bytes, adapter: Adapter, changes_encoder: bool) -> bytes:
    """Any adapter is part of the key: the encoder runs again for each, though none of them changes it."""
    return encoder_key(identity, adapter, True)
