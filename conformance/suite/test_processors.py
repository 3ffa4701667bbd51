"""PROCESSORS: text and media through the model owner's processor, to ids and items.

The processors are transformers' own, with small settings and a tokenizer of bytes. Prompts name their media in braces, see
`conformance.world.processors`.
"""

from typing import Any

import numpy as np

from conformance.compare import equal, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import processors as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite.processors_cases import (
    MODULES,
    PICTURE_FAMILIES,
    RAW,
    TEXTS,
    TYPED,
    VIDEO_FAMILIES,
    Known,
    Sought,
    Typed,
    bare,
    each,
    emptied,
    family_of,
    known,
    refusal,
    shown_as,
    typed_id,
    typed_ids,
    typed_parts,
)  # fmt: skip
from conformance.world.processors import (
    ARCHITECTURES,
    MARKERS,
    RATE,
    SETTINGS,
    Prompt,
    id_parts,
    marked,
    medium,
    names,
    parts,
    processor,
    spelled,
)  # fmt: skip
from reference.items import Size


def ask(engine: Engine, case: Prompt) -> Any:
    return engine.process(ARCHITECTURES[case.family], processor(case.family), parts(case.text))


def bind(engine: Engine, case: Prompt, output: Any = None) -> Any:
    given = oracle.output(case) if output is None else output
    return engine.bind_output(ARCHITECTURES[case.family], processor(case.family), oracle.ids(case), given)


@requirement(
    "PROCESSORS-01",
    needs="process",
    cases={name: known(oracle.ids, case) for name, case in RAW.items()},
    bugs=("O07", "O08", "preexpanded-double-expansion"),
    family=family_of,
)
def test_a_prompt_is_expanded_as_its_owner_would(engine: Engine, case: Known) -> None:
    """The ids of a prompt MUST be those of the model owner's processor: text, markers, and each medium's placeholders.

    Videos whose frames are written as pictures may be filled with the token of videos, see the trait `frame_placeholders`.
    """
    equal(ask(engine, case.prompt)[0], shown_as(engine, case.prompt, case.expected()), "the ids")


@requirement(
    "PROCESSORS-02",
    needs="process",
    cases={name: known(oracle.spans, case) for name, case in RAW.items()},
    bugs=("O05", "target-not-at-start"),
    family=family_of,
)
def test_each_medium_stands_where_its_part_stands(engine: Engine, case: Known) -> None:
    """The spans of each medium MUST be the positions of its own placeholders: no marker, and none of a neighbour's."""
    equal(oracle.where(ask(engine, case.prompt)[1]), case.expected(), "the spans", where="item {}".format)


@requirement("PROCESSORS-03", needs="process", cases=RAW, bugs=("REG3", "XL1"), family=family_of)
def test_each_medium_has_the_rows_that_it_has_alone(engine: Engine, case: Prompt) -> None:
    """The rows of each medium MUST be, bit for bit, those that the owner's processor gives for it alone."""
    _, items = ask(engine, case)
    equal(len(items), len(names(case.text)), "the number of items")
    for name, item in zip(names(case.text), items, strict=True):
        equal(oracle.squeezed(item.feature), oracle.rows(case.family, name), f"the rows of {name}", where="row {}".format)


@requirement("PROCESSORS-04", needs="process", cases=RAW, bugs=("O07",), family=family_of)
def test_ids_go_in_and_come_out(engine: Engine, case: Prompt) -> None:
    """A prompt whose text is given as ids MUST come out as the same prompt given as text does, and every id of it survive."""
    ids, items = engine.process(ARCHITECTURES[case.family], processor(case.family), id_parts(case))
    equal(ids, shown_as(engine, case, oracle.ids(case)), "the ids")
    equal(oracle.where(items), oracle.spans(case), "the spans", where="item {}".format)


BYTES = {
    "invalid-utf8": ("qwen2_vl", [255, 254, 65, 192]),
    "half-a-character": ("llava", [0xE2, 0x82]),
    "composed-and-not": ("gemma3", [*"e\u0301 é".encode()]),
    "spaces": ("idefics3", [32, 32, 10, 32]),
    "other-special-tokens": ("qwen3_vl", [256, 257, 65]),
}


@requirement("PROCESSORS-05", needs="process", cases=BYTES, bugs=("O07",), family=family_of)
def test_ids_that_no_text_gives_survive(engine: Engine, case: tuple[str, list[int]]) -> None:
    """Ids that are given MUST come out as they are, whatever they would be as text: they are not decoded on the way."""
    family, given = case
    own = oracle.alone(family, "eye")["input_ids"][0].numpy()
    start, end = (spelled(family, token) for token in MARKERS.get(family, ("", "")))
    before, behind = np.array([*given, *start], dtype=np.int64), np.array([*end, *given], dtype=np.int64)
    ids, _ = engine.process(ARCHITECTURES[family], processor(family), [before, medium("eye"), behind])
    equal(ids, np.concatenate([before, own, behind]), "the ids")


@requirement(
    "PROCESSORS-06",
    needs="process",
    cases=TYPED,
    bugs=("O01", "O02", "O03", "text-literal-placeholder-steals-binding"),
    family=family_of,
)
def test_a_typed_placeholder_takes_no_medium(engine: Engine, case: Typed) -> None:
    """The text of a placeholder that a user typed MUST be refused or be read as text; it MUST NOT stand for a medium.

    Read as text, its ids are those of its characters, and the media keep their own places.
    """
    family = case.prompt.family
    for ids, items in unless_refused(
        lambda: engine.process(ARCHITECTURES[family], processor(family), typed_parts(case)), repr(typed_parts(case)[0])
    ):
        equal(ids, typed_ids(case), "the ids")
        equal(len(items), len(names(case.prompt.text)), "the number of items")


@requirement(
    "PROCESSORS-07",
    needs="process",
    cases=each(tuple(ARCHITECTURES), "a"),
    bugs=("text-literal-placeholder-steals-binding",),
    family=family_of,
)
def test_a_typed_placeholder_id_takes_no_medium(engine: Engine, case: Prompt) -> None:
    """The id of a placeholder among ids that were given MUST be refused, or be kept as text without becoming an item."""
    given, expected = typed_id(case.family)
    for _, items in unless_refused(
        lambda: engine.process(ARCHITECTURES[case.family], processor(case.family), given), "a placeholder's id"
    ):
        equal(oracle.where(items), expected, "the spans", where="item {}".format)


@requirement(
    "PROCESSORS-08", needs=("process", "bind_output"), cases=TEXTS, bugs=("empty-images-list", "REG3"), family=family_of
)
def test_a_prompt_without_media_is_text(engine: Engine, case: Prompt) -> None:
    """A prompt without media MUST be its text and have no items, and so must what a processor returned for it."""
    ids, items = ask(engine, case)
    equal(ids, oracle.ids(case), "the ids")
    equal(len(items), 0, "the number of items")
    equal(len(bind(engine, case, {})), 0, "the number of items bound")


PLANNED = {
    **each(PICTURE_FAMILIES, "{rocket}"),
    **each(PICTURE_FAMILIES, "{eye}", "-small"),
    **each(PICTURE_FAMILIES, "{chelsea}", "-wide"),
}


@requirement(
    "PROCESSORS-17",
    needs=("process", "count_image_tokens"),
    cases=PLANNED,
    bugs=("mm-kwargs-ignored", "tgi-slot-alloc-mismatch"),
    family=family_of,
)
def test_a_picture_has_the_tokens_that_were_planned(engine: Engine, case: Prompt) -> None:
    """A picture MUST fill as many positions as were counted from its size and the checkpoint's settings."""
    width, height = medium(names(case.text)[0]).feature.size
    planned = engine.count_image_tokens(case.family, SETTINGS[case.family], Size(height, width))
    equal([item.token_count for item in ask(engine, case)[1]], [planned], "the tokens of the picture")


@requirement(
    "PROCESSORS-18",
    needs=("process", "count_audio_tokens"),
    cases={"long": marked("qwen2_audio", "{tone}"), "short": marked("qwen2_audio", "{beep}")},
    bugs=("audio-count-before-resample",),
    family=family_of,
)
def test_a_recording_has_the_tokens_that_were_planned(engine: Engine, case: Prompt) -> None:
    """A recording MUST fill as many positions as were counted from its samples and the checkpoint's settings."""
    samples = len(medium(names(case.text)[0]).feature)
    planned = engine.count_audio_tokens("qwen2_audio", SETTINGS["qwen2_audio"], samples, RATE)
    observed = [item.token_count for item in ask(engine, case)[1]]
    equal(observed, [planned], "the tokens of the recording")


EMPTY = {
    **each(VIDEO_FAMILIES, "{clip}", "-video"),
    "qwen2-audio": marked("qwen2_audio", "{tone}"),
}


@requirement("PROCESSORS-19", needs="process", cases=EMPTY, bugs=("W03", "video-zero-frames-short"), family=family_of)
def test_a_medium_without_content_is_refused(engine: Engine, case: Prompt) -> None:
    """A video without frames and a recording without samples MUST be refused: they would have no token."""
    given = emptied(case)
    refuses(lambda: len(engine.process(ARCHITECTURES[case.family], processor(case.family), given)[1]), "an empty medium")


UNFIT = {
    **each(tuple(family for family in ARCHITECTURES if family not in VIDEO_FAMILIES), "{clip}", "-video"),
    **each(PICTURE_FAMILIES, "{tone}", "-audio"),
    "qwen2-audio-picture": marked("qwen2_audio", "{eye}"),
}


@requirement("PROCESSORS-20", needs="process", cases=UNFIT, bugs=("REG3",), family=family_of)
def test_a_medium_that_a_model_does_not_take_is_refused(engine: Engine, case: Prompt) -> None:
    """A medium of a kind that the model does not take MUST be refused; it MUST NOT be left out."""
    refuses(lambda: len(ask(engine, case)[1]), f"{case.text} for {case.family}")


@requirement("PROCESSORS-21", needs="process", cases=each(PICTURE_FAMILIES, "{eye}"), bugs=("REG2", "REG3"), family=family_of)
def test_a_tokenizer_is_no_processor(engine: Engine, case: Prompt) -> None:
    """A medium for which there is but a tokenizer in place of the processor MUST be refused: the model would see text."""
    given = parts(case.text)
    refuses(lambda: len(engine.process(ARCHITECTURES[case.family], bare(case), given)[1]), "a picture for a tokenizer")


FOUND = {
    "first": Sought(("AlphaForCausalLM",), "first"),
    "second-name-of-a-module": Sought(("AlphaMoeForCausalLM",), "first"),
    "behind-a-broken-module": Sought(("GammaForConditionalGeneration",), "last"),
    "second-choice": Sought(("OmegaModel", "GammaForConditionalGeneration"), "last"),
    "first-choice-of-two": Sought(("GammaForConditionalGeneration", "AlphaForCausalLM"), "last"),
}


@requirement("PROCESSORS-22", needs="find_processor", cases=FOUND, bugs=("REG1",))
def test_an_architecture_finds_its_own_processor(engine: Engine, case: Sought) -> None:
    """An architecture MUST be served by its own module, whatever other modules cannot be imported."""
    equal(engine.find_processor(MODULES, case.architectures), case.expected, "what serves it")


UNKNOWN = {"unknown": ("OmegaModel",), "similar": ("AlphaForCausalLMs",), "several": ("OmegaModel", "PsiModel")}


@requirement("PROCESSORS-23", needs="find_processor", cases=UNKNOWN, bugs=("REG1",))
def test_an_unknown_architecture_is_refused_with_the_known_ones(engine: Engine, case: tuple[str, ...]) -> None:
    """An architecture that no module serves MUST be refused with an error that names it and lists the known ones."""
    said = refusal(engine, case)
    wanted = {*case, "AlphaForCausalLM", "AlphaMoeForCausalLM", "GammaForConditionalGeneration"}
    equal(sorted(one for one in wanted if one not in said), [], "what the error does not name")


@requirement(
    "PROCESSORS-24", needs="find_processor", cases={"broken": ("BetaForConditionalGeneration",)}, bugs=("REG1",), level=SHOULD
)
def test_a_module_that_failed_says_why(engine: Engine, case: tuple[str, ...]) -> None:
    """An architecture whose module cannot be imported SHOULD be refused with an error that names the module and the cause."""
    said = refusal(engine, case)
    equal([one for one in ("models.broken", "AutoTensor") if one not in said], [], "what the error does not name")


@requirement(
    "PROCESSORS-25",
    needs="process",
    cases=each(PICTURE_FAMILIES, "A {eye}."),
    bugs=("REG3", "spec-token-index-attr"),
    family=family_of,
)
def test_an_unregistered_architecture_is_served_or_refused(engine: Engine, case: Prompt) -> None:
    """A medium for an architecture that nobody registered MUST be refused, or be served by what its processor gives."""
    for ids, items in unless_refused(
        lambda: engine.process("OmegaForConditionalGeneration", processor(case.family), parts(case.text)), case.family
    ):
        equal(ids, oracle.ids(case), "the ids")
        equal(oracle.where(items), oracle.spans(case), "the spans", where="item {}".format)
