"""The prefix cache, measured on SGLang."""

from typing import Any

import numpy as np

from conformance.cases import Exact
from conformance.suite.prefix_cache_cases import Meeting
from golden.vectors import vectors
from reference.items import Item, Modality, Request, Span


@vectors("PREFIX_CACHE-23")
def test_matches_of_padded_ids(given: dict[str, Any], expected: int) -> Exact:
    return Exact(Meeting(given["page"], (_request("kept", given["kept"]),), _request("asked", given["asked"])), expected)


def _request(id: str, given: dict[str, Any]) -> Request:
    items = [
        Item(modality=Modality.IMAGE, spans=tuple(Span(*pair) for pair in one["spans"]), caller_hash=one["hash"])
        for one in given["items"]
    ]
    return Request(id=id, input_ids=np.array(given["input_ids"], dtype=np.int64), items=tuple(items))
