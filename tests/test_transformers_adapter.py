"""The transformers adapter, without a run of the suite."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from conformance import known_failures
from conformance.adapters.transformers import check, cpu, models, planning, prompts
from conformance.adapters.transformers.engine import TransformersEngine
from conformance.engine import METHODS, EngineNotLoaded
from conformance.protocol.planning import FAMILIES
from conformance.protocol.positions import FAMILIES as NUMBERED
from reference.items import Chunk, Item, Modality, Span


def test_what_is_missing_is_one_sentence_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "find_spec", lambda name: None)
    with pytest.raises(EngineNotLoaded, match=r"not installed: `pip install soundfile soxr num2words`"):
        cpu.prepare.__wrapped__()


def test_the_engine_has_no_method_that_the_protocol_does_not_know() -> None:
    owned = [name for name in vars(TransformersEngine) if not name.startswith("_")]
    assert [name for name in owned if name not in (*METHODS, "name", "traits")] == []


def test_every_known_failure_is_seen_without_the_suite_too() -> None:
    path = known_failures.shipped("transformers")
    assert path is not None
    seen = {id for requirements, _ in check.CHECKS for id in requirements.split(", ")}
    assert seen == set(known_failures.read(path, cpu.VERSION))


def test_its_families_are_known_to_the_suite() -> None:
    assert set(planning.FAMILIES) < set(FAMILIES)
    assert set(models.NUMBERED) == set(NUMBERED)


def test_a_bare_object_has_its_parts_and_no_others() -> None:
    made = cpu.bare(nn.Linear, config=SimpleNamespace(width=2))
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


def test_a_processor_is_made_once_for_what_a_checkpoint_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "NEEDED", ())  # no recording is read
    stated, other = (repr({"image_seq_length": length}) for length in (4, 9))
    assert planning._of_images("gemma3", stated) is planning._of_images("gemma3", stated)
    assert planning._of_images("gemma3", other).image_seq_length == 9


def test_a_medium_stands_at_its_first_kind_of_token_alone() -> None:
    processor = SimpleNamespace(image_token_ids=[7, 8], video_token_ids=[None], audio_token_ids=[None])
    ids = np.array([7, 8, 7, 7, 9, 7, 7], dtype=np.int64)
    made = {"offset_mapping": [[(place, place + 1) for place in range(7)]]}
    assert prompts._spans(processor, made, ids, {"new_span": (1, 6)}) == (Span(2, 3), Span(5, 5))
    assert prompts._spans(processor, made, ids, {"new_span": (1, 2)}) == ()


def test_a_medium_that_a_processor_has_no_token_for_has_no_text() -> None:
    processor = SimpleNamespace(image_token="<image>", video_token=None)
    kinds = [prompts._placeholder(processor, Item(modality=modality)) for modality in Modality]
    assert dict(zip(Modality, kinds, strict=True)) == {kind: "<image>" * (kind is Modality.IMAGE) for kind in Modality}


def test_tiles_and_padding_are_cut_off() -> None:
    tiled = type("InternVLProcessor", (), {})()
    rows = {"pixel_values": [np.full(2, number) for number in range(5)]}
    assert prompts._feature(tiled, rows, Modality.IMAGE, 1, slice(3, 5)).tolist() == [[3, 3], [4, 4]]
    padded = type("PixtralProcessor", (), {})()
    made = {"pixel_values": [torch.ones(3, 4, 4)], "image_sizes": [(2, 3)]}
    assert prompts._feature(padded, made, Modality.IMAGE, 0, slice(0, 1)).shape == (3, 2, 3)
