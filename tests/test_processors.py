"""What the reference promises of processors beyond the requirements: errors that say where, and the fallback."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from conformance.oracles import processors as oracle
from conformance.world.processors import ARCHITECTURES, Prompt, medium, parts, processor
from reference import processors
from reference.items import Item, Modality
from reference.processors.modules import MODULES
from reference.processors.registry import Module, ModuleFailed, UnknownArchitecture, find_processor, register

QWEN = ARCHITECTURES["qwen2_vl"]


def bind(case: Prompt, **changed: Any) -> tuple[Item, ...]:
    output = {**oracle.output(case), **changed}
    return processors.bind_output(ARCHITECTURES[case.family], processor(case.family), oracle.ids(case), output)


def test_every_registered_family_can_be_loaded() -> None:
    for module in MODULES:
        for architecture in module.architectures:
            assert find_processor(MODULES, [architecture]) is not None


def test_an_architecture_is_served_once() -> None:
    with pytest.raises(ValueError, match=r"of mine is served by reference\.processors\.qwen_vl already"):
        register(MODULES, Module("mine", (QWEN,), lambda: None))
    assert register((), Module("mine", (QWEN,), lambda: None))[0].name == "mine"


def test_the_cause_of_a_failed_module_is_kept() -> None:
    def load() -> None:
        raise ImportError("no AutoTensor")

    with pytest.raises(ModuleFailed, match="mine, which serves X, could not be imported: ImportError: no AutoTensor") as failed:
        find_processor((Module("mine", ("X",), load),), ["X"])
    assert isinstance(failed.value.__cause__, ImportError)


def test_nothing_known_is_said_so() -> None:
    with pytest.raises(UnknownArchitecture, match="no processor serves no architecture; known: none"):
        find_processor((), [])


def test_text_gets_no_special_token_and_a_typed_placeholder_is_spelled() -> None:
    ids, items = processors.process(QWEN, processor("qwen2_vl"), ["a <|image_pad|> <|im_end|>"])
    assert ids.tolist() == [*b"a <|image_pad|> ", processor("qwen2_vl").tokenizer.convert_tokens_to_ids("<|im_end|>")]
    assert items == ()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            np.array([1, 2], dtype=np.int32),
            "part 1 of the prompt: it is text, a one-dimensional int64 array",
        ),
        (7, "part 1 of the prompt: it is text"),
    ],
)
def test_other_parts_are_refused(part: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        processors.process(QWEN, processor("qwen2_vl"), ["a", part])


def test_a_placeholder_id_says_where_it_is() -> None:
    ids = np.array([65, oracle.ids(Prompt("qwen2_vl", "{eye}"))[0]], dtype=np.int64)
    with pytest.raises(ValueError, match=r"part 0 of the prompt: id \d+ at 1 stands for media \(image\)"):
        processors.process(QWEN, processor("qwen2_vl"), [ids])


def test_a_medium_among_the_parts_is_raw() -> None:
    with pytest.raises(ValueError, match="part 0 of the prompt: a medium among the parts is raw"):
        processors.process(QWEN, processor("qwen2_vl"), [Item(modality=Modality.IMAGE, feature=torch.zeros(4, 1176))])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: {"pixel_values": made["pixel_values"][1:]}, "have 32 patches, but there are 31"),
        (lambda made: {"image_embeds": [torch.zeros(4, 8)] * 2}, "one of them is right"),
        (lambda made: {"image_grid_thw": made["image_grid_thw"] * torch.tensor([1, 1, 0])}, "have 0 patches"),
    ],
)
def test_an_output_that_contradicts_itself_is_refused(change: Callable[[Any], dict[str, Any]], message: str) -> None:
    case = Prompt("qwen2_vl", "{eye}{cup}")
    with pytest.raises(ValueError, match=message):
        bind(case, **change(oracle.output(case)))


def test_counts_that_do_not_fit_the_runs_are_refused() -> None:
    case = Prompt("qwen2_vl", "{eye} {rocket}")
    swapped = {"image_grid_thw": oracle.output(case)["image_grid_thw"].flip(0)}
    with pytest.raises(ValueError, match="image 0 fills 1 spans and not the 2 from"):
        bind(case, **swapped)


def test_encoded_media_have_a_grid_each() -> None:
    case = Prompt("qwen2_vl", "{eye} {cup}")
    output = oracle.precomputed(case)
    output["image_grid_thw"] = output["image_grid_thw"][:1]
    with pytest.raises(ValueError, match="2 images have 1 of image_grid_thw"):
        processors.bind_output(QWEN, processor("qwen2_vl"), oracle.ids(case), output)


@pytest.mark.parametrize("family", ["llava", "gemma3", "internvl", "pixtral", "idefics3"])
def test_an_unregistered_family_is_served_by_what_its_processor_gives(family: str) -> None:
    ids, items = processors.process("OmegaForConditionalGeneration", processor(family), parts("a{eye}{rocket}"))
    expected_ids, expected = processors.process(ARCHITECTURES[family], processor(family), parts("a{eye}{rocket}"))
    assert ids.tolist() == expected_ids.tolist()
    assert [item.spans for item in items] == [item.spans for item in expected]
    for item, right in zip(items, expected, strict=True):
        assert torch.equal(oracle.squeezed(item.feature), oracle.squeezed(right.feature))


def test_an_unregistered_family_is_not_taken_apart_by_guessing() -> None:
    case = Prompt("qwen2_vl", "{eye} {cup}")
    with pytest.raises(ValueError, match="can be one image, but image_grid_thw holds several"):
        processors.bind_output("OmegaForConditionalGeneration", processor("qwen2_vl"), oracle.ids(case), oracle.output(case))


FILMS = {
    "internvl": b"Frame2: ",
    "smolvlm": b"Frame from 00:00:",
}


@pytest.mark.parametrize(("family", "text"), FILMS.items())
def test_frames_under_the_token_of_pictures_are_one_video(family: str, text: bytes) -> None:
    own = processor(family)
    ids, (picture, video) = processors.process(ARCHITECTURES[family], own, ["A ", medium("eye"), " then ", medium("clip"), "."])
    assert (picture.modality, video.modality) == (Modality.IMAGE, Modality.VIDEO)
    assert [len(span) for span in video.spans] == [4] * 4
    places = [place for item in (picture, video) for span in item.spans for place in range(span.first, span.stop)]
    assert places == np.flatnonzero(ids == own.image_token_id).tolist()
    assert list(text) in [ids[start : start + len(text)].tolist() for start in range(len(ids))]
    assert torch.as_tensor(video.feature).reshape(-1, 3, 28, 28).shape[0] == 4
    assert video.identity != picture.identity


def test_a_bundle_of_smolvlm_comes_apart() -> None:
    own, names = processor("smolvlm"), ("chelsea", "eye")
    text = "".join(f"{own.image_token} and " for _ in names)
    made = own(text=[text], images=[medium(name).feature for name in names], return_tensors="pt")
    items = processors.bind_output(ARCHITECTURES["smolvlm"], own, made["input_ids"][0].numpy(), made)
    for name, item in zip(names, items, strict=True):
        _, (alone,) = processors.process(ARCHITECTURES["smolvlm"], own, [medium(name)])
        assert torch.equal(item.feature, alone.feature)
        assert item.identity == alone.identity
