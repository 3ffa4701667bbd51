"""The transformers adapter, without a run of the suite."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from conformance import known_failures
from conformance.adapters import check_transformers, transformers_cpu
from conformance.adapters import transformers_models as models
from conformance.adapters import transformers_planning as planning
from conformance.adapters.transformers_engine import TransformersEngine
from conformance.engine import METHODS, EngineNotLoaded
from conformance.protocol.planning import FAMILIES
from conformance.protocol.positions import FAMILIES as NUMBERED
from reference.items import Chunk, Item, Modality, Span


def test_what_is_missing_is_one_sentence_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_cpu, "find_spec", lambda name: None)
    with pytest.raises(EngineNotLoaded, match=r"not installed: `pip install soundfile soxr num2words`"):
        transformers_cpu.prepare.__wrapped__()


def test_the_engine_has_no_method_that_the_protocol_does_not_know() -> None:
    owned = [name for name in vars(TransformersEngine) if not name.startswith("_")]
    assert [name for name in owned if name not in (*METHODS, "name", "traits")] == []


def test_every_known_failure_is_seen_without_the_suite_too() -> None:
    path = known_failures.shipped("transformers")
    assert path is not None
    seen = {id for requirements, _ in check_transformers.CHECKS for id in requirements.split(", ")}
    assert seen == set(known_failures.read(path, transformers_cpu.VERSION))


def test_its_families_are_known_to_the_suite() -> None:
    assert set(planning.FAMILIES) < set(FAMILIES)
    assert set(models.NUMBERED) == set(NUMBERED)


def test_a_bare_object_has_its_parts_and_no_others() -> None:
    made = transformers_cpu.bare(nn.Linear, config=SimpleNamespace(width=2))
    assert made.config.width == 2
    assert list(made.parameters()) == []


def test_media_of_a_chunk_are_those_inside_it() -> None:
    item = Item(modality=Modality.VIDEO, spans=(Span(1, 2), Span(4, 5)))
    assert models._media([item], Chunk(2, 3)) == [(2, Modality.VIDEO), (4, Modality.VIDEO)]
    assert models._media([item], Chunk(1, 0)) == []


def test_fields_are_collected_in_one_tensor_or_none() -> None:
    items = [Item(modality=Modality.IMAGE, fields={"image_grid_thw": (1, 2, height)}) for height in (2, 4)]
    assert torch.equal(models._collected(items, "image_grid_thw"), torch.tensor([[1, 2, 2], [1, 2, 4]]))
    assert models._collected(items, "video_grid_thw") is None


def test_a_recording_as_a_file_keeps_its_length() -> None:
    assert len(planning._file(np.zeros(3, dtype=np.float32), 8)) == 4 * -(-(44 + 2 * 3) // 3)
