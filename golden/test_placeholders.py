"""Placeholders, measured on SGLang."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Exact
from conformance.world.prompts import Pairing, Prompt
from golden.vectors import vectors
from reference.items import Item, Modality, Span


def ids(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def spans(pairs: list[list[int]]) -> tuple[Span, ...]:
    """Inclusive pairs."""
    return tuple(Span(first, last) for first, last in pairs)


@vectors("PLACEHOLDERS-01")
def test_spans_found(given: dict[str, Any], expected: list[list[int]]) -> Exact:
    return Exact((ids(given["input_ids"]), given["token_id"]), spans(expected))


@vectors("PLACEHOLDERS-08")
def test_token_modalities(given: dict[str, Any], expected: list[int]) -> Exact:
    items = tuple(Item(modality=Modality[one["modality"].upper()], spans=spans(one["spans"])) for one in given["items"])
    return Exact((given["length"], items), tuple(expected))


@vectors("PLACEHOLDERS-10")
def test_ids_padded_by_spans(given: dict[str, Any], expected: list[int]) -> Exact:
    items = [Item(modality=Modality.IMAGE, spans=spans(one["spans"]), caller_hash=one["hash"]) for one in given["items"]]
    return Exact(Prompt(ids(given["input_ids"]), tuple(items)), ids(expected))


@vectors("PLACEHOLDERS-16")
def test_ids_padded_by_pairs(given: dict[str, Any], expected: list[int]) -> Exact:
    items = tuple(Item(modality=Modality.IMAGE, caller_hash=value) for value in given["hashes"])
    pairs = tuple((start, end) for start, end in given["pairs"])
    return Exact(Pairing(ids(given["input_ids"]), items, pairs, tuple(given["item_starts"])), ids(expected))
