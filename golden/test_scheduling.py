"""Encoder parts, measured on SGLang."""

from typing import Any

import numpy as np

from conformance.cases import Exact
from conformance.oracles.scheduling import Step
from golden.vectors import vectors
from reference.items import Chunk


def batch(given: list[dict[str, Any]]) -> list[Step]:
    return [
        (np.array(one["input_ids"], dtype=np.int64), Chunk(one["prefix"], len(one["input_ids"])), one["encoder_length"])
        for one in given
    ]


@vectors("SCHEDULING-01")
def test_lengths_of_the_decoder(given: list[dict[str, Any]], expected: list[dict[str, Any]]) -> Exact:
    parts = [(one["encoder_length"], one["is_cached"], Chunk(one["prefix"], one["length"])) for one in expected]
    return Exact(batch(given), parts)


@vectors("SCHEDULING-02")
def test_ids_of_the_decoder(given: list[dict[str, Any]], expected: list[list[int]]) -> Exact:
    return Exact(batch(given), [np.array(ids, dtype=np.int64) for ids in expected])
