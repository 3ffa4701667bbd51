"""Positions, measured on SGLang."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Exact
from conformance.suite.positions_audio_cases import Sections
from conformance.suite.positions_cases import Extension
from conformance.world.mrope import OMNI_TOKENS, TOKENS, Script
from golden.vectors import vectors
from reference.items import Item, Modality, MropeLayout, Span


def table(values: list[list[int]]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def item(one: dict[str, Any]) -> Item:
    fields: dict[str, Any] = {f"{one['modality']}_grid_thw": tuple(one["grid"])}
    if "seconds" in one:
        fields["second_per_grid_ts"] = one["seconds"]
    spans = tuple(Span(first, last) for first, last in one["spans"])
    return Item(modality=Modality[one["modality"].upper()], spans=spans, fields=fields)


def omni(given: dict[str, Any]) -> Script:
    layout = MropeLayout(family=given["family"], tokens_per_second=given["tokens_per_second"], token_ids=OMNI_TOKENS)
    items = []
    for one in given["items"]:
        fields = {name: tuple(value) if isinstance(value, list) else value for name, value in one["fields"].items()}
        spans = tuple(Span(first, last) for first, last in one["spans"])
        items.append(Item(modality=Modality[one["modality"].upper()], spans=spans, fields=fields))
    return Script(np.array(given["input_ids"], dtype=np.int64), tuple(items), layout)


@vectors("POSITIONS-23")
def test_positions_of_recordings(given: dict[str, Any], expected: dict[str, Any]) -> Exact:
    return Exact(omni(given), table(expected["positions"]))


@vectors("POSITIONS-24")
def test_positions_of_videos_with_recordings(given: dict[str, Any], expected: dict[str, Any]) -> Exact:
    return Exact(omni(given), table(expected["positions"]))


@vectors("POSITIONS-27")
def test_axes_of_frequencies(given: dict[str, Any], expected: list[int]) -> Exact:
    return Exact(Sections(tuple(given["sections"]), given["interleaved"]), np.array(expected, dtype=np.int64))


@vectors("POSITIONS-07")
def test_positions_of_a_prompt(given: dict[str, Any], expected: dict[str, Any]) -> Exact:
    layout = MropeLayout(
        family=given["family"],
        tokens_per_second=given["tokens_per_second"],
        frames_apart=given["family"] == "qwen3_vl",
        token_ids=TOKENS,
    )
    script = Script(np.array(given["input_ids"], dtype=np.int64), tuple(map(item, given["items"])), layout)
    return Exact(script, table(expected["positions"]))


@vectors("POSITIONS-16")
def test_positions_of_a_reply(given: dict[str, Any], expected: list[list[int]]) -> Exact:
    return Exact(Extension(table(given["positions"]), given["length"]), table(expected))
