"""The vLLM adapter, where vLLM is not installed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from conformance import known_failures
from conformance.adapters.vllm import check, cpu, drafts, processors
from conformance.adapters.vllm import engine as adapter
from conformance.adapters.vllm import items as translate
from conformance.adapters.vllm.engine import VllmEngine
from conformance.engine import METHODS, EngineNotLoaded
from reference.items import Item, Modality, Span


def test_vllm_is_imported_when_an_engine_is_made_and_not_before() -> None:
    assert adapter.VllmEngine is VllmEngine
    assert "vllm" not in sys.modules


def test_a_missing_vllm_is_one_sentence_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "find_spec", lambda name: None)
    with pytest.raises(EngineNotLoaded, match=r"vllm.* not installed.*`pip install --no-deps vllm==0\.33\.0 msgspec .*`"):
        cpu.prepare.__wrapped__()


def test_the_engine_has_no_method_that_the_protocol_does_not_know() -> None:
    assert [name for name in vars(VllmEngine) if not name.startswith("_") and name not in (*METHODS, "name", "traits")] == []


def test_every_known_failure_is_seen_without_the_suite_too() -> None:
    path = known_failures.shipped("vllm")
    assert path is not None
    seen = {id for requirements, _ in check.CHECKS for id in requirements.split(", ")}
    assert seen == set(known_failures.read(path, cpu.VERSION))


def picture(*spans: tuple[int, int]) -> Item:
    return Item(modality=Modality.IMAGE, spans=tuple(Span(*span) for span in spans))


FAKE = SimpleNamespace(
    inputs=SimpleNamespace(PlaceholderRange=lambda offset, length, is_embed=None: (offset, length, is_embed))
)


def test_one_span_is_a_range_without_a_mask() -> None:
    assert translate.placeholder(FAKE, picture((3, 5)).spans) == (3, 3, None)


def test_several_spans_are_one_range_with_a_mask() -> None:
    offset, length, mask = translate.placeholder(FAKE, picture((3, 4), (6, 6)).spans)
    assert (offset, length, mask.tolist()) == (3, 4, [True, True, False, True])


def test_items_that_interleave_share_a_range_and_others_do_not() -> None:
    frames, sound, behind = picture((0, 1), (4, 5)), picture((2, 3), (6, 7)), picture((8, 8))
    assert translate._ranges([behind, sound, frames]) == {frames: Span(0, 7), sound: Span(0, 7), behind: Span(8, 8)}


def test_a_hash_of_the_caller_is_trusted_and_no_hash_is_refused() -> None:
    assert translate.identifier(Item(modality=Modality.IMAGE, identity=bytes(32), caller_hash=255)) == "00000000000000ff"
    with pytest.raises(ValueError, match="this one has none"):
        translate.identifier(Item(modality=Modality.IMAGE))


def placed(modality: Modality, feature: object = None, **fields: object) -> Item:
    return Item(modality=modality, feature=feature, fields=fields)


PROCESSOR = SimpleNamespace(
    image_token="<image>", video_token=None, tokenizer=SimpleNamespace(encode=lambda text, add_special_tokens: [*text.encode()])
)


def test_text_goes_in_as_text_and_ids_make_a_prompt_of_ids() -> None:
    picture = placed(Modality.IMAGE)
    assert processors._written(PROCESSOR, ["a ", picture]) == {"prompt": "a <image>"}
    ids = np.array([300], dtype=np.int64)
    assert processors._written(PROCESSOR, ["a", ids, picture]) == {"prompt_token_ids": [97, 300, *b"<image>"]}
    assert processors._written(PROCESSOR, []) == {"prompt": ""}


def test_a_medium_that_a_processor_has_no_token_for_has_no_text() -> None:
    assert [processors._placeholder(PROCESSOR, placed(modality)) for modality in Modality] == ["<image>", "", ""]


def test_the_frames_of_a_video_say_that_they_are_sampled() -> None:
    frames = np.zeros((3, 2, 2, 3), dtype=np.uint8)
    given, about = processors._medium(placed(Modality.VIDEO, frames, fps=2.0))
    assert given is frames
    assert about == {
        "fps": 2.0, "total_num_frames": 3, "frames_indices": [0, 1, 2], "duration": 1.5, "do_sample_frames": False,
    }  # fmt: skip
    assert processors._medium(placed(Modality.AUDIO, [0.5], sampling_rate=8)) == ([0.5], 8)


def test_positions_of_drafts_go_on_from_the_first_axis_until_the_model_ends() -> None:
    moved = torch.zeros(2, dtype=torch.int64)
    drafts._moved(positions_1d=torch.tensor([3, 7]), max_model_len=8, out_clamped_positions=moved)
    assert moved.tolist() == [4, 0]
