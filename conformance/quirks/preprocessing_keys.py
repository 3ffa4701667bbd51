"""Ways in which engines have got the key of preprocessing wrong."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from conformance.protocol.preprocessing import Options
from conformance.quirk import quirk
from reference.items import Item
from reference.preprocessing.background import preprocessing_key


@quirk("preprocessed-bytes-alone", replaces="preprocessing_key", bugs=("H11",), caught_by=("PREPROCESSING-01",))
def bytes_alone(item: Item, processor: str, options: Options) -> bytes:
    """The content is the bytes of the pixels, without their shape."""
    flat = np.asarray(item.feature).reshape(-1) if isinstance(item.feature, np.ndarray) else item.feature
    return preprocessing_key(replace(item, feature=flat), processor, options)


@quirk(
    "preprocessed-without-its-sound",
    replaces="preprocessing_key",
    bugs=("video-audio-not-in-hash",),
    caught_by=("PREPROCESSING-01",),
)
def without_fields(item: Item, processor: str, options: Options) -> bytes:
    """What comes with a medium, the sound of a video, is left out of the key."""
    return preprocessing_key(replace(item, fields={}), processor, options)


@quirk("preprocessed-by-whichever", replaces="preprocessing_key", bugs=(), caught_by=("PREPROCESSING-02",))
def without_processor(item: Item, processor: str, options: Options) -> bytes:
    """The key is without the processor: after a change of models the old one's results are served."""
    return preprocessing_key(item, "", options)


@quirk(
    "preprocessed-without-options",
    replaces="preprocessing_key",
    bugs=("hash-decode-config-ignored", "mm-kwargs-ignored", "video-per-item-options-hash"),
    caught_by=("PREPROCESSING-03",),
)
def without_options(item: Item, processor: str, options: Options) -> bytes:
    """The key is without options: whoever asks for a small picture is handed the large one of somebody else."""
    return preprocessing_key(item, processor, {})


@quirk(
    "preprocessed-with-flat-options",
    replaces="preprocessing_key",
    bugs=("hash-noncanonical-dict-metadata",),
    caught_by=("PREPROCESSING-03",),
)
def flat_options_only(item: Item, processor: str, options: Options) -> bytes:
    """Options that are mappings themselves are left out of the key."""
    mine = options.get(item.modality, {})
    flat = {name: value for name, value in mine.items() if not isinstance(value, Mapping)}
    return preprocessing_key(item, processor, {item.modality: flat})


@quirk(
    "preprocessed-parts-joined",
    replaces="preprocessing_key",
    bugs=("hash-suffix-domain-confusion", "hash-noncanonical-dict-metadata"),
    caught_by=("PREPROCESSING-04",),
)
def joined(item: Item, processor: str, options: Options) -> bytes:
    """The parts of the key are joined without their lengths: a file that ends in an option passes for one with it."""
    shape = [*np.shape(item.feature), getattr(item.feature, "dtype", ""), int(item.modality), *map(str, item.fields.values())]
    mine = sorted(options.get(item.modality, {}).items())
    parts = [_octets(item.feature), *(_octets(name) + _octets(value) for name, value in mine), _octets(shape)]
    return sha256(b"".join([processor.encode()[::-1], *parts])).digest()


@quirk(
    "preprocessed-with-all-options",
    replaces="preprocessing_key",
    bugs=("hash-kwargs-cross-modality",),
    caught_by=("PREPROCESSING-05",),
)
def with_all_options(item: Item, processor: str, options: Options) -> bytes:
    """Options of all modalities are in every key: pictures are made again when a video is sampled otherwise."""
    everything = {f"{modality.name} {name}": value for modality in options for name, value in options[modality].items()}
    return preprocessing_key(item, processor, {item.modality: everything})


@quirk("preprocessed-in-this-order", replaces="preprocessing_key", bugs=(), caught_by=("PREPROCESSING-06",))
def in_order(item: Item, processor: str, options: Options) -> bytes:
    """The order in which options are written is in the key."""
    mine = options.get(item.modality, {})
    return preprocessing_key(item, processor, {item.modality: {"": [[name, value] for name, value in mine.items()]}})


@quirk(
    "preprocessed-by-address", replaces="preprocessing_key", bugs=("hash-by-address", "H05"), caught_by=("PREPROCESSING-06",)
)
def by_address(item: Item, processor: str, options: Options) -> bytes:
    """The place of the pixels in memory is in the key: nothing is ever found again."""
    return preprocessing_key(replace(item, fields={**item.fields, "address": id(item.feature)}), processor, options)


def _octets(value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case int():
            return value.to_bytes(4, "little")
        case np.ndarray():
            return np.ascontiguousarray(value).tobytes()
        case list():
            return b"".join(map(_octets, value))
        case Mapping():
            return b"".join(_octets(name) + _octets(one) for name, one in sorted(value.items()))
    return str(value).encode()
