"""Pruning, measured on SGLang."""

from typing import Any

import numpy as np
import torch

from conformance.cases import Exact
from conformance.oracles.pruning import Count
from conformance.world.videos import Pruned, Video, positions
from golden.vectors import vectors
from reference.items import Item, Modality, Span


@vectors("PRUNING-01")
def test_retained_counts(given: list[Any], expected: int) -> Count:
    tokens_per_frame, frames, rate = given
    return Count((tokens_per_frame, frames, rate), (expected,))


@vectors("PRUNING-08")
def test_retention_masks(given: dict[str, Any], expected: list[bool]) -> Exact:
    frames, height, width = given["grid"]
    video = Video(torch.tensor(given["embeddings"]), (frames, height, width), given["rate"])
    return Exact(video, np.array(expected, dtype=np.bool_))


@vectors("PRUNING-09")
def test_pruned_prompts(given: dict[str, Any], expected: list[int]) -> Exact:
    items = (Item(modality=Modality.VIDEO, spans=tuple(Span(first, last) for first, last in given["spans"])),)
    ids = np.array(given["input_ids"], dtype=np.int64)
    case = Pruned(ids, items, (np.array(given["mask"], dtype=np.bool_),), positions(len(ids), items))
    return Exact(case, np.array(expected, dtype=np.int64))
