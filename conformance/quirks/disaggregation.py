"""Ways in which engines have sent media to the wrong encoder, or to none, and lost what was encoded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance.protocol.disaggregation import Instance
from conformance.quirk import quirk
from reference.disaggregation.assignment import NoEncoder, Part, assign_parts
from reference.items import Item

Load = Callable[[bytes], torch.Tensor | None]
Encode = Callable[[Sequence[Item]], Sequence[torch.Tensor]]
Options = Sequence[Mapping[str, Any]]


@quirk("empty-tower-answers", replaces="place_encoding", bugs=("G11",), caught_by=("DISAGGREGATION-07",))
def encodes_with_an_empty_tower(items: Sequence[Item], instance: Instance) -> str:
    """Without an encoder in reach media are encoded by the instance itself, which has not loaded one."""
    return _place(items, instance) or "local"


@quirk("refusal-without-a-reason", replaces="place_encoding", bugs=("G11",), caught_by=("DISAGGREGATION-07",))
def refuses_without_a_reason(items: Sequence[Item], instance: Instance) -> str:
    """Media that nobody may encode are refused with an error that does not say what is missing."""
    place = _place(items, instance)
    if place is None:
        raise ValueError("internal server error")
    return place


@quirk(
    "first-item-speaks-for-all", replaces="place_encoding", bugs=("G05",), caught_by=("DISAGGREGATION-06", "DISAGGREGATION-07")
)
def the_first_item_speaks_for_all(items: Sequence[Item], instance: Instance) -> str:
    """Whether a request needs an encoder is decided by its first item."""
    return _refusing(items[:1], instance)


@quirk("fallback-without-leave", replaces="place_encoding", bugs=("G11",), caught_by=("DISAGGREGATION-07",))
def falls_back_without_leave(items: Sequence[Item], instance: Instance) -> str:
    """An instance with a tower encodes by itself when it can reach no encoder, whether its router allows it or not."""
    return _refusing(items, instance._replace(may_fall_back=True))


@quirk("few-media-are-local", replaces="place_encoding", bugs=("G11",), caught_by=("DISAGGREGATION-06", "DISAGGREGATION-07"))
def few_media_are_local(items: Sequence[Item], instance: Instance) -> str:
    """A request with few media is encoded by the instance itself, whether it has a tower or not."""
    return _refusing(items, instance._replace(has_tower=instance.has_tower or instance.local_up_to > 0))


@quirk("no-fallback", replaces="place_encoding", bugs=(), caught_by=("DISAGGREGATION-06",))
def never_falls_back(items: Sequence[Item], instance: Instance) -> str:
    """A request is refused when no encoder can be reached, though the router allows the instance to encode by itself."""
    return _refusing(items, instance._replace(may_fall_back=False))


def _place(items: Sequence[Item], instance: Instance) -> str | None:
    count = sum(item.embedding is None for item in items)
    if count == 0:
        return "nobody"
    if instance.has_tower and (count <= instance.local_up_to or (instance.encoders < 1 and instance.may_fall_back)):
        return "local"
    return "encoders" if instance.encoders else None


def _refusing(items: Sequence[Item], instance: Instance) -> str:
    place = _place(items, instance)
    if place is None:
        raise NoEncoder("an encoder is missing")
    return place


@quirk(
    "precomputed-items-encoded", replaces="assign_parts", bugs=("G05",), caught_by=("DISAGGREGATION-01", "DISAGGREGATION-04")
)
def precomputed_items_are_encoded(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """An item that has an embedding is sent to an encoder, too."""
    raw = [Item(modality=item.modality, spans=item.spans, identity=item.identity) for item in items]
    return assign_parts(raw, options, encoders)


@quirk(
    "remainder-lost",
    replaces="assign_parts",
    bugs=(),
    caught_by=("DISAGGREGATION-01", "DISAGGREGATION-03", "DISAGGREGATION-04"),
)
def the_remainder_is_lost(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """Each encoder gets the same number of items of a modality, and what is left goes to nobody."""
    return [part for part in assign_parts(items, options, encoders) if len(part.items) > 1 or encoders == 1]


@quirk("mixed-parts", replaces="assign_parts", bugs=(), caught_by=("DISAGGREGATION-02",))
def one_part_for_each_encoder(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """All that an encoder has to do for a request is one part, whatever its modalities are."""
    mine: dict[int, list[Part]] = {}
    for part in assign_parts(items, options, encoders):
        mine.setdefault(part.encoder, []).append(part)
    return [
        Part(encoder, tuple(n for part in parts for n in part.items), tuple(one for part in parts for one in part.options))
        for encoder, parts in mine.items()
    ]


@quirk("encoders-counted-from-one", replaces="assign_parts", bugs=(), caught_by=("DISAGGREGATION-02", "DISAGGREGATION-03"))
def encoders_count_from_one(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """The last encoder has a number that no encoder has."""
    return [part._replace(encoder=part.encoder + 1) for part in assign_parts(items, options, encoders)]


@quirk("first-encoder-does-all", replaces="assign_parts", bugs=("G02",), caught_by=("DISAGGREGATION-03",))
def each_modality_begins_with_the_first_encoder(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """Each modality begins with the first encoder again, which gets one item of each."""
    parts: list[Part] = []
    for modality in dict.fromkeys(item.modality for item in items):
        numbers = [n for n, item in enumerate(items) if item.modality is modality]
        mine = assign_parts([items[n] for n in numbers], [options[n] for n in numbers], encoders)
        parts += [part._replace(items=tuple(numbers[n] for n in part.items)) for part in mine]
    return parts or assign_parts(items, options, encoders)


@quirk("options-dropped", replaces="assign_parts", bugs=("G06",), caught_by=("DISAGGREGATION-04",))
def options_are_dropped(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """The options of a request do not reach the encoder, which makes another number of rows than there are positions."""
    parts = assign_parts(items, options, encoders)
    return [part._replace(options=tuple({} for _ in part.items)) for part in parts]


@quirk("one-item-sets-the-options-of-its-part", replaces="assign_parts", bugs=("G06",), caught_by=("DISAGGREGATION-04",))
def options_of_the_first_item(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """All items of a part are encoded with the options of its first one."""
    parts = assign_parts(items, options, encoders)
    return [part._replace(options=(part.options[0],) * len(part.items)) for part in parts]


@quirk("nobody-encodes", replaces="assign_parts", bugs=("G11",), caught_by=("DISAGGREGATION-05",))
def nobody_has_to_encode(items: Sequence[Item], options: Options, encoders: int) -> list[Part]:
    """Without encoders there are no parts, and the request goes on as if it had no media."""
    return assign_parts(items, options, encoders) if encoders > 0 else []


@quirk("one-failure-empties-the-cache", replaces="encode_part", bugs=("G13",), caught_by=("DISAGGREGATION-08",))
def one_failure_counts_for_all(items: Sequence[Item], load: Load, encode: Encode) -> torch.Tensor:
    """If one item of a part cannot be loaded, all are encoded again."""
    found = [_loaded(load, item) for item in items]
    if all(rows is not None for rows in found):
        return torch.cat([rows for rows in found if rows is not None])
    return torch.cat(list(encode(items)))


@quirk("loading-fails-the-part", replaces="encode_part", bugs=("G13",), caught_by=("DISAGGREGATION-08",))
def an_item_that_cannot_be_loaded_fails_the_part(items: Sequence[Item], load: Load, encode: Encode) -> torch.Tensor:
    """An entry of the shared cache that cannot be read fails the whole part."""
    found = [load(item.identity or b"") for item in items]
    return torch.cat([encode([item])[0] if rows is None else rows for item, rows in zip(items, found, strict=True)])


@quirk("encoded-rows-come-last", replaces="encode_part", bugs=("G13",), caught_by=("DISAGGREGATION-08",))
def what_was_encoded_comes_last(items: Sequence[Item], load: Load, encode: Encode) -> torch.Tensor:
    """The rows that were found come first, and those that were encoded behind them."""
    found = [_loaded(load, item) for item in items]
    missing = [item for item, rows in zip(items, found, strict=True) if rows is None]
    made = list(encode(missing)) if missing else []
    return torch.cat([rows for rows in found if rows is not None] + made)


@quirk("short-entry-taken", replaces="encode_part", bugs=("G13",), caught_by=("DISAGGREGATION-08",))
def a_short_entry_is_taken(items: Sequence[Item], load: Load, encode: Encode) -> torch.Tensor:
    """An entry of the shared cache is taken whatever its number of rows is."""
    found = [_tried(load, item) for item in items]
    missing = [item for item, rows in zip(items, found, strict=True) if rows is None]
    made = iter(encode(missing) if missing else [])
    return torch.cat([next(made) if rows is None else rows for rows in found])


def _tried(load: Load, item: Item) -> torch.Tensor | None:
    try:
        return load(item.identity or b"")
    except OSError:
        return None


def _loaded(load: Load, item: Item) -> torch.Tensor | None:
    rows = _tried(load, item)
    return rows if rows is not None and len(rows) == item.token_count else None
