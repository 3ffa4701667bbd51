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
def qwen(draw: st.DrawFn) -> Family:
    """Qwen with patches of 4 to 16 pixels and limits of up to 160,000 pixels; shrinks to small ones."""
    fewest = draw(st.integers(1, 40_000))
    return Family(
        draw(st.sampled_from(("qwen2_vl", "qwen2_5_vl", "qwen3_vl"))),
        {
            "patch_size": draw(st.sampled_from((4, 8, 14, 16))),
            "merge_size": draw(st.integers(1, 3)),
            "temporal_patch_size": draw(st.integers(1, 4)),
            "min_pixels": fewest,
            "max_pixels": draw(st.integers(fewest, 160_000)),
        },
    )


@st.composite
def on_a_canvas(draw: st.DrawFn) -> Family:
    """LLaVA-NeXT or LLaVA-OneVision with 1 to 6 canvases of up to 4 x 4 tiles; shrinks to one tile."""
    side = st.integers(1, 4)
    tile = draw(st.sampled_from((28, 56, 84)))
    shapes = draw(st.lists(st.tuples(side, side), min_size=1, max_size=6, unique=True))
    common = {"image_size": tile, "image_grid_pinpoints": [[rows * tile, columns * tile] for rows, columns in shapes]}
    common["vision_feature_select_strategy"] = draw(STRATEGIES)
    if draw(st.booleans()):
        return Family("llava_next", {**common, "patch_size": 14, "num_additional_image_tokens": draw(st.integers(0, 1))})
    most = draw(st.integers(1, 9))
    return Family(
        "llava_onevision", {**common, "num_image_tokens": (tile // 14) ** 2, "vision_aspect_ratio": f"anyres_max_{most}"}
    )


@st.composite
def in_tiles(draw: st.DrawFn) -> Family:
    """InternVL, Idefics3, SmolVLM or DeepSeek-VL2 with small tiles; shrinks to few tiles of InternVL."""
    tile, tokens = draw(st.sampled_from((16, 28, 42))), draw(st.integers(1, 9))
    fewest = draw(st.integers(1, 4))
    longest, split = draw(st.integers(8, 200)), draw(st.booleans())
    idefics3 = {"longest_edge": longest, "max_image_size": tile, "image_seq_len": tokens, "do_image_splitting": split}
    canvases = [[side * tile for side in shape] for shape in draw(st.lists(st.tuples(*[st.integers(1, 4)] * 2), min_size=1))]
    return draw(
        st.sampled_from(
            (
                known.INTERNVL.but(
                    image_size=tile, min_patches=fewest, max_patches=fewest + draw(st.integers(0, 9)), image_seq_length=tokens
                ),
                Family("idefics3", idefics3),
                Family("smolvlm", idefics3),
                known.DEEPSEEK_VL2.but(image_size=tile, candidate_resolutions=canvases),
            )
        )
    )


def in_patches() -> SearchStrategy[Family]:
    """Pixtral with a stride of 4 to 48 pixels; shrinks to the smallest."""
    return st.builds(
        lambda longest, patch, merge: known.PIXTRAL.but(longest_edge=longest, patch_size=patch, spatial_merge_size=merge),
        st.integers(64, 300),
        st.sampled_from((4, 14, 16)),
        st.integers(1, 3),
    )


def of_a_fixed_number() -> SearchStrategy[Family]:
    """LLaVA-1.5 with any class token, or Gemma 3; shrinks to a small square."""
    llava = st.builds(
        lambda side, extra, strategy: known.LLAVA.but(
            image_size=side, num_additional_image_tokens=extra, vision_feature_select_strategy=strategy
        ),
        st.integers(28, 100),
        st.integers(0, 1),
        STRATEGIES,
    )
    return llava | st.integers(1, 300).map(lambda length: known.GEMMA3.but(image_seq_length=length))


def pictures(families: SearchStrategy[Family], thinnest: int = 200) -> SearchStrategy[Table]:
    """A family and a picture; shrinks to a picture of one pixel."""
    return st.builds(lambda family, size: against(oracle.image_tokens, family, (size,)), families, sizes(thinnest))


def thin() -> SearchStrategy[Refused]:
    """A picture for Qwen that is more than 200 times as long as it is short; shrinks to 1 x 201."""

    def made(family: Family, short: int, beyond: int, turned: bool) -> Refused:
        sides = (short, 200 * short + beyond)
        return Refused(family, (Size(*(sides[::-1] if turned else sides)),))

    return st.builds(made, qwen(), st.integers(1, 20), st.integers(1, 500), st.booleans())
