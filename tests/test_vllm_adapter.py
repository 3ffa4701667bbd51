"""The vLLM adapter, where vLLM is not installed."""

import sys
from types import SimpleNamespace

import pytest

from conformance import known_failures
from conformance.adapters import check_vllm, vllm_cpu
from conformance.adapters import vllm as adapter
from conformance.adapters import vllm_items as translate
from conformance.adapters.vllm import VllmEngine
from conformance.engine import METHODS, EngineNotLoaded
from reference.items import Item, Modality, Span


def test_vllm_is_imported_when_an_engine_is_made_and_not_before() -> None:
    assert adapter.VllmEngine is VllmEngine
    assert "vllm" not in sys.modules


def test_a_missing_vllm_is_one_sentence_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_cpu, "find_spec", lambda name: None)
    with pytest.raises(EngineNotLoaded, match=r"vllm.* not installed.*`pip install --no-deps vllm==0\.33\.0 msgspec .*`"):
        vllm_cpu.prepare.__wrapped__()


def test_the_engine_has_no_method_that_the_protocol_does_not_know() -> None:
    assert [name for name in vars(VllmEngine) if not name.startswith("_") and name not in (*METHODS, "name", "traits")] == []


def test_every_known_failure_is_seen_without_the_suite_too() -> None:
    path = known_failures.shipped("vllm")
    assert path is not None
    seen = {id for requirements, _ in check_vllm.CHECKS for id in requirements.split(", ")}
    assert seen == set(known_failures.read(path, vllm_cpu.VERSION))


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
