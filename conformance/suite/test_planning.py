"""PLANNING: how many tokens a medium has, from its size alone."""

from conformance.compare import refuses
from conformance.engine import Engine
from conformance.requirement import SHOULD, requirement
from conformance.suite import planning_cases as cases
from conformance.suite.planning_checks import Refused, Table, counts_are, is_refused
from conformance.world import families as known
from conformance.world.families import Family
from reference.items import Size

TYPOS = {
    "unknown": known.QWEN2_VL.but(max_pixel=256 * 28 * 28),
    "of-another-family": known.INTERNVL.but(max_pixels=256 * 28 * 28),
    "missing": Family("pixtral", {"longest_edge": 1024, "patch_size": 16}),
    "below-one": known.QWEN2_VL.but(min_pixels=0),
}


@requirement("PLANNING-01", needs="count_image_tokens", cases=cases.QWEN, bugs=("smart-resize-zero-dim", "W01", "W03"))
def test_pictures_of_any_resolution_have_as_many_tokens_as_the_processor_makes(engine: Engine, case: Table) -> None:
    """The tokens of a picture for Qwen2-VL and its successors MUST be as many as the model owner's processor makes.

    That is so for every size: no side becomes 0, ties are rounded to even, and sides are rounded before the area is
    compared with its limits. The expected counts come from transformers' processor, run on a blank picture.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-02", needs="count_image_tokens", cases=cases.ANYRES, bugs=("llava-unpad-rounding", "W01"))
def test_pictures_on_a_canvas_lose_their_padding_as_in_the_processor(engine: Engine, case: Table) -> None:
    """The tokens of a picture for LLaVA-NeXT and LLaVA-OneVision MUST be as many as the model owner's processor makes.

    The canvas is chosen, unpadded and interpolated as there: products such as k - 1e-12 count as k.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement(
    "PLANNING-03",
    needs="count_image_tokens",
    cases=cases.TILES,
    bugs=("internvl-small-image-tiles", "llamacpp-aspect-tiles-segv", "tgi-slot-alloc-mismatch", "W01"),
)
def test_tiles_are_as_many_as_the_processor_cuts(engine: Engine, case: Table) -> None:
    """The tokens of a picture in tiles MUST be as many as the model owner's processor makes, its thumbnail included.

    This is for InternVL, Idefics3, SmolVLM and DeepSeek-VL2. A picture of one tile has no thumbnail but with
    DeepSeek-VL2, which is not in transformers: its counts follow its paper (arXiv 2412.10302), a single source.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-04", needs="count_image_tokens", cases=cases.STRIDES, bugs=("W01",))
def test_patches_are_merged_before_they_are_counted(engine: Engine, case: Table) -> None:
    """A picture for Pixtral and Mistral Small 3 MUST have one token for each square of its stride that it touches.

    The stride is the side of the patches that become one token: a picture of 29 x 29 pixels has 4 tokens at a stride
    of 28. Breaks after rows and the end are not counted.
    """
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-05", needs="count_image_tokens", cases=cases.FIXED, bugs=("W01",))
def test_a_fixed_number_of_tokens_does_not_depend_on_the_size(engine: Engine, case: Table) -> None:
    """A picture for LLaVA-1.5 and Gemma 3 MUST have the fixed number of tokens that the settings give, at every size."""
    counts_are(engine, "count_image_tokens", case, "the tokens")


@requirement("PLANNING-06", needs="count_image_tokens", cases=cases.OVERRIDDEN, bugs=("mm-kwargs-ignored",))
def test_each_count_follows_its_own_settings(engine: Engine, case: tuple[Table, Table]) -> None:
    """A count MUST follow the settings given with it, whatever settings came before.

    The same size is counted with overridden settings, with the checkpoint's own, and with the overridden ones again.
    """
    overridden, own = case
    for table, which in ((overridden, "overridden"), (own, "the checkpoint's own"), (overridden, "overridden")):
        counts_are(engine, "count_image_tokens", table, f"the tokens with {which} settings")


@requirement("PLANNING-07", needs="count_image_tokens", cases=cases.WITHOUT_TOKENS, bugs=("W03",))
def test_a_picture_without_tokens_is_refused(engine: Engine, case: Refused) -> None:
    """A picture that would get no token, or that is too thin for the model's processor, MUST be refused.

    With Qwen that is one whose longest side is more than 200 times its shortest.
    """
    is_refused(engine, "count_image_tokens", case)


@requirement("PLANNING-08", needs="count_image_tokens", cases={"misspelt": "qwen2vl", "future": "qwen9_vl", "empty": ""})
def test_an_unknown_family_is_refused(engine: Engine, case: str) -> None:
    """A family that the engine does not know MUST be refused and not be counted like another one."""
    refuses(lambda: engine.count_image_tokens(case, known.QWEN2_VL.settings, Size(224, 224)), f"the family {case!r}")


@requirement("PLANNING-09", needs="count_image_tokens", cases=TYPOS, bugs=("mm-kwargs-ignored",), level=SHOULD)
def test_settings_that_make_no_sense_are_refused(engine: Engine, case: Family) -> None:
    """A setting that the family does not have, lacks or cannot have SHOULD be refused: whoever gave it meant something."""
    refuses(lambda: engine.count_image_tokens(case.name, case.settings, Size(500, 500)), f"{case.name} with these settings")


@requirement("PLANNING-10", needs="image_grid", cases=cases.GRIDS, bugs=("smart-resize-zero-dim",))
def test_the_grid_of_a_picture_is_that_of_the_processor(engine: Engine, case: Table) -> None:
    """The grid of a picture MUST be that of the model owner's processor: patches in time, height and width, unmerged."""
    counts_are(engine, "image_grid", case, "the grids")
