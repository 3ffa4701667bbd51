"""Positions, measured on SGLang."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Exact
from conformance.suite.positions_cases import Extension
from conformance.world.mrope import TOKENS, Script
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
