"""Sizes of media and settings of families, small enough that the model owner's processor is quick."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import planning as oracle
from conformance.suite.planning_checks import Refused, Table, against
from conformance.world import families as known
from conformance.world.families import Family
from reference.items import Size

SIDES = st.integers(1, 400)
STRATEGIES = st.sampled_from(("default", "full"))


def sizes(thinnest: int = 200) -> SearchStrategy[Size]:
    """Sides of 1 to 400 pixels, the longest at most `thinnest` times the shortest; shrinks to one pixel."""
    return st.builds(Size, SIDES, SIDES).filter(
        lambda size: max(size.height, size.width) <= thinnest * min(size.height, size.width)
    )


@st.composite
def qwen(draw: st.DrawFn, name: str) -> Family:
    """A family of Qwen with patches of 4 to 16 pixels and limits of up to 160,000 pixels; shrinks to small ones."""
    fewest = draw(st.integers(1, 40_000))
    return Family(
        name,
        {
            "patch_size": draw(st.sampled_from((4, 8, 14, 16))),
            "merge_size": draw(st.integers(1, 3)),
            "temporal_patch_size": draw(st.integers(1, 4)),
            "min_pixels": fewest,
            "max_pixels": draw(st.integers(fewest, 160_000)),
        },
    )


def canvases(tile: int) -> SearchStrategy[list[list[int]]]:
    """1 to 6 canvases of up to 4 x 4 tiles, a height and a width each; shrinks to one tile."""
    side = st.integers(1, 4).map(lambda tiles: tiles * tile)
    return st.lists(st.tuples(side, side), min_size=1, max_size=6, unique=True).map(
        lambda pairs: [list(pair) for pair in pairs]
    )


@st.composite
def llava_next(draw: st.DrawFn) -> Family:
    """LLaVA-NeXT with tiles of 28 to 84 pixels; shrinks to small ones."""
    tile = draw(st.sampled_from((28, 56, 84)))
    return known.LLAVA_NEXT.but(
        image_size=tile,
        image_grid_pinpoints=draw(canvases(tile)),
        num_additional_image_tokens=draw(st.integers(0, 1)),
        vision_feature_select_strategy=draw(STRATEGIES),
    )


@st.composite
def llava_onevision(draw: st.DrawFn) -> Family:
    """LLaVA-OneVision with tiles of 28 to 84 pixels, interpolated to those of 1 to 9 tiles; shrinks to small ones."""
    tile = draw(st.sampled_from((28, 56, 84)))
    return known.LLAVA_ONEVISION.but(
        image_size=tile,
        image_grid_pinpoints=draw(canvases(tile)),
        num_image_tokens=(tile // 14) ** 2,
        vision_aspect_ratio=f"anyres_max_{draw(st.integers(1, 9))}",
        vision_feature_select_strategy=draw(STRATEGIES),
    )


@st.composite
def internvl(draw: st.DrawFn) -> Family:
    """InternVL with tiles of 16 to 42 pixels, 1 to 13 of them; shrinks to one."""
    fewest = draw(st.integers(1, 4))
    most = fewest + draw(st.integers(0, 9))
    return known.INTERNVL.but(image_size=draw(st.sampled_from((16, 28, 42))), min_patches=fewest, max_patches=most)


@st.composite
def idefics3(draw: st.DrawFn, name: str) -> Family:
    """Idefics3 or SmolVLM, scaled to 8 to 200 pixels in tiles of 16 to 42; shrinks to small ones."""
    return Family(
        name,
        {
            "longest_edge": draw(st.integers(8, 200)),
            "max_image_size": draw(st.sampled_from((16, 28, 42))),
            "image_seq_len": draw(st.integers(1, 9)),
            "do_image_splitting": draw(st.booleans()),
        },
    )


@st.composite
def deepseek_vl2(draw: st.DrawFn) -> Family:
    """DeepSeek-VL2 with tiles of 28 to 84 pixels; shrinks to small ones."""
    tile = draw(st.sampled_from((28, 56, 84)))
    return known.DEEPSEEK_VL2.but(image_size=tile, candidate_resolutions=draw(canvases(tile)))


def pixtral() -> SearchStrategy[Family]:
    """Pixtral with a stride of 4 to 48 pixels; shrinks to the smallest."""
    return st.builds(
        lambda longest, patch, merge: known.PIXTRAL.but(longest_edge=longest, patch_size=patch, spatial_merge_size=merge),
        st.integers(64, 300),
        st.sampled_from((4, 14, 16)),
        st.integers(1, 3),
    )


def llava() -> SearchStrategy[Family]:
    """LLaVA-1.5 with a square of 28 to 100 pixels and any class token; shrinks to a small square."""
    return st.builds(
        lambda side, extra, strategy: known.LLAVA.but(
            image_size=side, num_additional_image_tokens=extra, vision_feature_select_strategy=strategy
        ),
        st.integers(28, 100),
        st.integers(0, 1),
        STRATEGIES,
    )


def gemma3() -> SearchStrategy[Family]:
    """Gemma 3 with 1 to 300 tokens a picture; shrinks to 1."""
    return st.integers(1, 300).map(lambda length: known.GEMMA3.but(image_seq_length=length))


def pan_and_scan() -> SearchStrategy[Family]:
    """Gemma 3 with crops of at least 1 to 100 pixels, at most 1 to 9 of them; shrinks to small crops."""
    return st.builds(
        lambda least, most, ratio: known.GEMMA3.but(
            do_pan_and_scan=True,
            pan_and_scan_min_crop_size=least,
            pan_and_scan_max_num_crops=most,
            pan_and_scan_min_ratio_to_activate=ratio,
        ),
        st.integers(1, 100),
        st.integers(1, 9),
        st.sampled_from((1.0, 1.2, 1.5, 3.0)),
    )


def llama4() -> SearchStrategy[Family]:
    """Llama 4 with 1 to 16 tiles of 14 to 42 pixels; shrinks to one tile."""
    return st.builds(
        lambda side, most, largest: known.LLAMA4.but(image_size=side, max_patches=most, resize_to_max_canvas=largest),
        st.sampled_from((28, 42, 56)),
        st.integers(1, 16),
        st.booleans(),
    )


def pictures(families: SearchStrategy[Family], thinnest: int = 200) -> SearchStrategy[Table]:
    """A family and a picture; shrinks to a picture of one pixel."""
    return st.builds(lambda family, size: against(oracle.image_tokens, family, (size,)), families, sizes(thinnest))


def thin() -> SearchStrategy[Refused]:
    """A picture for Qwen2-VL that is more than 200 times as long as it is short; shrinks to 1 x 201."""

    def made(family: Family, short: int, beyond: int, turned: bool) -> Refused:
        sides = (short, 200 * short + beyond)
        return Refused(family, (Size(*(sides[::-1] if turned else sides)),))

    return st.builds(made, qwen("qwen2_vl"), st.integers(1, 20), st.integers(1, 500), st.booleans())
