"""The SGLang adapter, where SGLang is not installed."""

import sys

import pytest

from conformance import known_failures
from conformance.adapters.sglang import check, cpu
from conformance.adapters.sglang import engine as adapter
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.engine import SglangEngine
from conformance.engine import METHODS, EngineNotLoaded
from reference.items import Chunk, Item, Modality, Span


def test_sglang_is_imported_when_an_engine_is_made_and_not_before() -> None:
    assert adapter.SglangEngine is SglangEngine
    assert "sglang" not in sys.modules


def test_a_missing_sglang_is_one_sentence_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "find_spec", lambda name: None)
    with pytest.raises(
        EngineNotLoaded,
        match=r"sglang.* not installed.*`pip install --no-deps sglang==0\.5\.23 msgspec triton decord2 soundfile torchaudio`",
    ):
        cpu.prepare.__wrapped__()


def test_the_engine_has_no_method_that_the_protocol_does_not_know() -> None:
    assert [name for name in vars(SglangEngine) if not name.startswith("_") and name not in (*METHODS, "name", "traits")] == []


def test_every_known_failure_is_seen_without_the_suite_too() -> None:
    path = known_failures.shipped("sglang")
    assert path is not None
    seen = {id for requirements, _ in check.CHECKS for id in requirements.split(", ")}
    assert seen == set(known_failures.read(path, cpu.VERSION))


def test_positions_of_media_are_those_of_the_chunk() -> None:
    items = [
        Item(modality=Modality.VIDEO, spans=(Span(4, 5), Span(7, 7))),
        Item(modality=Modality.IMAGE, spans=(Span(1, 2),)),
    ]
    assert translate.offsets(items[0].spans) == [(4, 5), (7, 7)]
    assert list(translate.media(items, Chunk(2, 4)).items()) == [
        (2, Modality.IMAGE),
        (4, Modality.VIDEO),
        (5, Modality.VIDEO),
    ]
