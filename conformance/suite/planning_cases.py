"""Media at which the counts of engines have differed from those of the model owner's processor."""

from conformance.oracles import planning as oracle
from conformance.suite.planning_checks import Refused, Table, against
from conformance.world import families as known
from conformance.world.families import Family
from reference.items import Size


def pictures(family: Family, *sizes: tuple[int, int]) -> Table:
    """Pictures of a family, (height, width) each."""
    return against(oracle.image_tokens, family, *[(Size(*size),) for size in sizes])


def grids(family: Family, *sizes: tuple[int, int]) -> Table:
    """Grids of pictures, (height, width) each."""
    return against(oracle.image_grid, family, *[(Size(*size),) for size in sizes])


def recordings(family: Family, *lengths: int, rate: int = 16_000) -> Table:
    """Recordings, in samples."""
    return against(oracle.audio_tokens, family, *[(length, rate) for length in lengths])


SMALL_QWEN2 = known.QWEN2_VL.but(max_pixels=256 * 28 * 28)
TINY_QWEN2 = known.QWEN2_VL.but(max_pixels=20 * 28 * 28)
FEW_TILES = known.LLAVA_NEXT.but(image_grid_pinpoints=[[336, 672], [672, 336]])
TWO_TILES = known.LLAVA_ONEVISION.but(vision_aspect_ratio="anyres_max_2")
SMALL_SMOLVLM = known.SMOLVLM.but(longest_edge=700, max_image_size=256)

QWEN = {
    "qwen2-common": pictures(known.QWEN2_VL, (480, 640), (224, 224), (337, 511), (1256, 950)),
    "qwen2-ties": pictures(known.QWEN2_VL, (70, 70), (98, 126), (126, 98), (210, 42), (42, 210)),
    "qwen2-tiny": pictures(known.QWEN2_VL, (1, 1), (23, 3), (29, 29), (2, 2), (26, 28), (27, 332), (305, 30)),
    "qwen2-thin": pictures(known.QWEN2_VL, (1000, 10), (10, 1000), (1, 200), (200, 1), (5, 900)),
    "qwen2-on-the-edge-of-a-float": pictures(known.QWEN2_VL, (19, 19), (38, 38), (19, 76), (76, 19)),
    "qwen2-too-large": pictures(SMALL_QWEN2, (1000, 1000), (328, 738), (471, 471), (369, 656), (575, 368)),
    "qwen2-hardly-any-pixels": pictures(TINY_QWEN2, (639, 31), (31, 639), (343, 28), (500, 500)),
    "qwen2-5-common": pictures(known.QWEN2_5_VL, (480, 640), (70, 70), (1000, 10)),
    "qwen3-common": pictures(known.QWEN3_VL, (480, 640), (80, 1000), (112, 720), (720, 112), (29, 29)),
    "qwen3-on-the-edge-of-a-float": pictures(known.QWEN3_VL, (7, 343), (60, 735), (35, 315), (630, 70)),
    "other-patches": pictures(known.QWEN2_VL.but(patch_size=8, merge_size=3), (100, 100), (60, 84), (13, 500)),
}
ANYRES = {
    "llava-next-common": pictures(known.LLAVA_NEXT, (480, 640), (640, 480), (336, 336), (336, 672), (1256, 950)),
    "llava-next-of-337-pixels": pictures(known.LLAVA_NEXT, (337, 337), (337, 1008), (337, 672), (673, 337)),
    "llava-next-portrait-and-landscape": pictures(known.LLAVA_NEXT, (161, 184), (184, 161), (950, 1256), (200, 100)),
    "llava-next-on-the-edge-of-a-float": pictures(known.LLAVA_NEXT, (88, 55), (110, 352), (748, 352), (924, 352)),
    "llava-next-thin": pictures(known.LLAVA_NEXT, (1, 100), (3, 700), (20, 900), (900, 20)),
    "llava-next-two-canvases": pictures(FEW_TILES, (100, 100), (640, 480), (300, 900)),
    "llava-next-with-the-class-token": pictures(known.LLAVA_NEXT.but(vision_feature_select_strategy="full"), (300, 200)),
    "llava-onevision-common": pictures(known.LLAVA_ONEVISION, (480, 640), (384, 384), (385, 385), (768, 300)),
    "llava-onevision-portrait-and-landscape": pictures(known.LLAVA_ONEVISION, (161, 184), (184, 161), (300, 900)),
    "llava-onevision-on-the-edge-of-a-float": pictures(known.LLAVA_ONEVISION, (1107, 820)),
    "llava-onevision-interpolated": pictures(TWO_TILES, (700, 650), (800, 384)),
}
TILES = {
    "internvl-around-one-tile": pictures(known.INTERNVL, (447, 447), (448, 448), (449, 449), (449, 447), (100, 100)),
    "internvl-more-than-half-of-a-larger-canvas": pictures(known.INTERNVL, (633, 633), (634, 634), (635, 635), (900, 600)),
    "internvl-thin": pictures(known.INTERNVL, (400, 800), (800, 400), (200, 1000), (1000, 200), (1, 600)),
    "internvl-at-least-two": pictures(known.INTERNVL.but(min_patches=2, max_patches=6), (100, 100), (300, 400), (900, 700)),
    "internvl-at-most-one": pictures(known.INTERNVL.but(max_patches=1), (100, 900), (900, 900)),
    "idefics3-common": pictures(known.IDEFICS3, (480, 640), (364, 364), (30, 20), (100, 1000), (1456, 1)),
    "idefics3-whole": pictures(known.IDEFICS3.but(do_image_splitting=False), (480, 640), (30, 20)),
    "smolvlm-common": pictures(known.SMOLVLM, (480, 640), (640, 481)),
    "smolvlm-not-a-multiple": pictures(SMALL_SMOLVLM, (480, 640), (100, 70), (640, 160), (511, 700), (700, 257)),
    "smolvlm-of-one-tile": pictures(known.SMOLVLM.but(longest_edge=256), (200, 300), (900, 10)),
    "deepseek-vl2-common": pictures(known.DEEPSEEK_VL2, (480, 640), (384, 384), (1152, 1152), (500, 500), (385, 385)),
    "deepseek-vl2-thin": pictures(known.DEEPSEEK_VL2, (384, 3456), (3000, 200), (100, 900), (640, 480)),
}
STRIDES = {
    "pixtral-common": pictures(known.PIXTRAL, (480, 640), (16, 16), (17, 16), (1, 1), (29, 29)),
    "pixtral-scaled-down": pictures(known.PIXTRAL, (1025, 1024), (900, 1300), (1300, 33)),
    "mistral3-stride-of-28": pictures(known.MISTRAL3, (29, 29), (28, 28), (300, 57), (56, 55)),
}
FIXED = {
    "llava": pictures(known.LLAVA, (336, 336), (29, 29), (300, 500)),
    "llava-with-the-class-token": pictures(known.LLAVA.but(vision_feature_select_strategy="full"), (200, 336)),
    "llava-no-class-token": pictures(
        known.LLAVA.but(num_additional_image_tokens=0, vision_feature_select_strategy="full"), (336, 200)
    ),
    "llava-small-square": pictures(known.LLAVA.but(image_size=224), (50, 80)),
    "gemma3": pictures(known.GEMMA3, (896, 896), (1, 50), (30, 40)),
}
OVERRIDDEN = {
    "qwen2-max-pixels": (pictures(SMALL_QWEN2, (1000, 1000)), pictures(known.QWEN2_VL, (1000, 1000))),
    "qwen2-min-pixels": (pictures(known.QWEN2_VL.but(min_pixels=200_704), (100, 100)), pictures(known.QWEN2_VL, (100, 100))),
    "llava-next-canvases": (pictures(FEW_TILES, (640, 640)), pictures(known.LLAVA_NEXT, (640, 640))),
    "internvl-max-patches": (pictures(known.INTERNVL.but(max_patches=2), (700, 700)), pictures(known.INTERNVL, (700, 700))),
    "pixtral-longest-edge": (pictures(known.PIXTRAL.but(longest_edge=64), (300, 200)), pictures(known.PIXTRAL, (300, 200))),
}
WITHOUT_TOKENS = {
    "qwen2-one-row": Refused(known.QWEN2_VL, (Size(1, 201),)),
    "qwen2-one-column": Refused(known.QWEN2_VL, (Size(201, 1),)),
    "qwen2-slightly-too-thin": Refused(known.QWEN2_VL, (Size(2001, 10),)),
    "qwen3-one-row": Refused(known.QWEN3_VL, (Size(1, 10_000),)),
    "pixtral-scaled-to-nothing": Refused(known.PIXTRAL, (Size(1, 2000),)),
    "mistral3-scaled-to-nothing": Refused(known.MISTRAL3, (Size(4000, 2),)),
}
GRIDS = {
    "qwen2-common": grids(known.QWEN2_VL, (480, 640), (640, 480), (224, 224), (70, 98), (29, 29)),
    "qwen2-thin": grids(known.QWEN2_VL, (1000, 10), (10, 1000), (23, 3)),
    "qwen2-too-large": grids(SMALL_QWEN2, (1000, 900), (471, 471), (328, 738)),
    "qwen3-common": grids(known.QWEN3_VL, (480, 640), (80, 1000), (720, 112)),
    "merged-by-three": grids(known.QWEN2_VL.but(patch_size=8, merge_size=3), (100, 150)),
}
