"""PLANNING: how many tokens a medium has, from its size alone."""

from conformance.compare import refuses
from conformance.engine import Engine
from conformance.requirement import SHOULD, requirement
from conformance.suite import planning_cases as cases
from conformance.suite.planning_checks import Refused, Table, counts_are, is_refused
from conformance.world import families as known
from conformance.world.families import Family
from reference.items import Size


@requirement(
    "PLANNING-01", needs="count_image_tokens.qwen2_vl", cases=cases.QWEN2, bugs=("smart-resize-zero-dim", "W01", "W03")
)
def test_pictures_for_qwen2_vl(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Qwen2-VL MUST be as many as the model owner's processor makes, at every size.

    No side becomes 0, ties are rounded to even, and sides are rounded before the area is compared with its limits.
    The expected counts come from transformers' processor, run on a blank picture; so they do for the other families.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-02", needs="count_image_tokens.qwen2_5_vl", cases=cases.QWEN2_5, bugs=("smart-resize-zero-dim", "W01"))
def test_pictures_for_qwen2_5_vl(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Qwen2.5-VL MUST be as many as the model owner's processor makes, at every size."""
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-03", needs="count_image_tokens.qwen3_vl", cases=cases.QWEN3, bugs=("smart-resize-zero-dim", "W01"))
def test_pictures_for_qwen3_vl(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Qwen3-VL MUST be as many as the model owner's processor makes, at every size."""
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-04", needs="count_image_tokens.llava_next", cases=cases.LLAVA_NEXT, bugs=("llava-unpad-rounding", "W01"))
def test_pictures_for_llava_next(engine: Engine, case: Table) -> None:
    """The tokens of a picture for LLaVA-NeXT MUST be as many as the model owner's processor makes, at every size.

    The canvas is chosen and unpadded as there: products such as k - 1e-12 count as k.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement(
    "PLANNING-05", needs="count_image_tokens.llava_onevision", cases=cases.LLAVA_ONEVISION, bugs=("llava-unpad-rounding", "W01")
)
def test_pictures_for_llava_onevision(engine: Engine, case: Table) -> None:
    """The tokens of a picture for LLaVA-OneVision MUST be as many as the model owner's processor makes, at every size.

    The canvas is chosen, unpadded and interpolated as there. The picture is the only one of its prompt.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement(
    "PLANNING-06",
    needs="count_image_tokens.internvl",
    cases=cases.INTERNVL,
    bugs=("internvl-small-image-tiles", "llamacpp-aspect-tiles-segv", "W01"),
)
def test_pictures_for_internvl(engine: Engine, case: Table) -> None:
    """The tokens of a picture for InternVL MUST be as many as the model owner's processor makes, at every size.

    A small picture is not spread over many tiles, and a single tile has no thumbnail.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-07", needs="count_image_tokens.idefics3", cases=cases.IDEFICS3, bugs=("tgi-slot-alloc-mismatch", "W01"))
def test_pictures_for_idefics3(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Idefics3 MUST be as many as the model owner's processor makes, at every size.

    A picture is scaled to its longest edge before it is cut.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-08", needs="count_image_tokens.smolvlm", cases=cases.SMOLVLM, bugs=("tgi-slot-alloc-mismatch", "W01"))
def test_pictures_for_smolvlm(engine: Engine, case: Table) -> None:
    """The tokens of a picture for SmolVLM MUST be as many as the model owner's processor makes, at every size.

    Where the longest edge is no multiple of a tile, the size formula of transformers 5.24 differs from its own processor,
    which is right: it is what the model sees.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-09", needs="count_image_tokens.pixtral", cases=cases.PIXTRAL, bugs=("W01",))
def test_pictures_for_pixtral(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Pixtral MUST be as many as the model owner's processor makes, at every size.

    There is one for each square of the stride, the side of the patches that become one token: for Mistral Small 3, whose
    stride is 28, a picture of 29 x 29 pixels has 4. Breaks after rows and the end are not counted.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-10", needs="count_image_tokens.llava", cases=cases.LLAVA, bugs=("W01",))
def test_pictures_for_llava(engine: Engine, case: Table) -> None:
    """The tokens of a picture for LLaVA-1.5 MUST be as many as the model owner's processor makes, at every size."""
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-11", needs="count_image_tokens.gemma3", cases=cases.GEMMA3, bugs=("W01",))
def test_pictures_for_gemma3(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Gemma 3 MUST be as many as the model owner's processor makes, at every size.

    Without pan and scan it is one number for all sizes.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-12", needs="count_image_tokens.deepseek_vl2", cases=cases.DEEPSEEK_VL2, bugs=("W01",))
def test_pictures_for_deepseek_vl2(engine: Engine, case: Table) -> None:
    """The tokens of a picture for DeepSeek-VL2 MUST be as many as its paper says, at every size.

    The model is not in transformers. Its counts have a single source, arXiv 2412.10302: the whole and the canvas, a
    newline after each row of both, and a separator between them.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-13", needs="count_image_tokens.qwen2_vl", cases=cases.OVERRIDDEN, bugs=("mm-kwargs-ignored",))
def test_each_count_follows_its_own_settings(engine: Engine, case: tuple[Table, Table]) -> None:
    """A count MUST follow the settings given with it, whatever settings came before.

    The same size is counted with overridden settings, with the checkpoint's own, and with the overridden ones again.
    """
    overridden, own = case
    for table, which in ((overridden, "overridden"), (own, "the checkpoint's own"), (overridden, "overridden")):
        counts_are(engine, "count_image_tokens", table, f"the tokens with {which} settings")


@requirement("PLANNING-14", needs="count_image_tokens.qwen2_vl", cases=cases.TOO_THIN, bugs=("W03",))
def test_a_picture_that_is_too_thin_is_refused(engine: Engine, case: Refused) -> None:
    """A picture whose longest side is more than 200 times its shortest MUST be refused for Qwen2-VL, as its processor does."""
    is_refused(engine, "count_image_tokens", case)


@requirement("PLANNING-15", needs="count_image_tokens.pixtral", cases=cases.SCALED_TO_NOTHING, bugs=("W03",))
def test_a_picture_without_tokens_is_refused(engine: Engine, case: Refused) -> None:
    """A picture that is scaled until nothing is left of a side MUST be refused: the model would answer about nothing."""
    is_refused(engine, "count_image_tokens", case)


@requirement("PLANNING-16", needs="count_image_tokens", cases={"misspelt": "qwen2vl", "future": "qwen9_vl", "empty": ""})
def test_an_unknown_family_is_refused(engine: Engine, case: str) -> None:
    """A family that the engine does not know MUST be refused and not be counted like another one."""
    refuses(lambda: engine.count_image_tokens(case, known.QWEN2_VL.settings, Size(224, 224)), f"the family {case!r}")


@requirement("PLANNING-17", needs="count_image_tokens.qwen2_vl", cases=cases.TYPOS, bugs=("mm-kwargs-ignored",), level=SHOULD)
def test_settings_that_make_no_sense_are_refused(engine: Engine, case: Family) -> None:
    """A setting that the family does not have, lacks or cannot have SHOULD be refused: whoever gave it meant something."""
    refuses(lambda: engine.count_image_tokens(case.name, case.settings, Size(500, 500)), f"{case.name} with these settings")


@requirement("PLANNING-18", needs="image_grid.qwen2_vl", cases=cases.GRIDS, bugs=("smart-resize-zero-dim",))
def test_the_grid_of_a_picture_is_that_of_the_processor(engine: Engine, case: Table) -> None:
    """The grid of a picture MUST be that of the model owner's processor: patches in time, height and width, unmerged."""
    counts_are(engine, "image_grid", case, "the grids")


@requirement("PLANNING-33", needs="count_image_tokens.glm4v", cases=cases.GLM4V, bugs=("smart-resize-zero-dim", "W01"))
def test_pictures_for_glm4v(engine: Engine, case: Table) -> None:
    """The tokens of a picture for GLM-4V MUST be as many as the model owner's processor makes, at every size.

    It is resized as a whole time step, so its limits are for the pixels of two frames.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-34", needs="count_image_tokens.llama4", cases=cases.LLAMA4, bugs=("W01",))
def test_pictures_for_llama4(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Llama 4 MUST be as many as the model owner's processor makes, at every size.

    Of the canvases that the picture fits on, the one that enlarges it least is taken. A single tile has no thumbnail.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-35", needs="count_image_tokens.gemma3", cases=cases.CROPPED, bugs=("mm-kwargs-ignored", "W01"))
def test_pictures_for_gemma3_with_pan_and_scan(engine: Engine, case: Table) -> None:
    """With pan and scan, the tokens of a picture for Gemma 3 MUST be those of the whole and of each of its crops."""
    counts_are(engine, "count_image_tokens", case, "the tokens")
