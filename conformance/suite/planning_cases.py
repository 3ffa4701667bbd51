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


SMALL_QWEN2 = known.QWEN2_VL.but(max_pixels=256 * 28 * 28)
TINY_QWEN2 = known.QWEN2_VL.but(max_pixels=20 * 28 * 28)
FEW_TILES = known.LLAVA_NEXT.but(image_grid_pinpoints=[[336, 672], [672, 336]])
NO_CLASS_TOKEN = known.LLAVA.but(num_additional_image_tokens=0, vision_feature_select_strategy="full")
TWO_TILES = known.LLAVA_ONEVISION.but(vision_aspect_ratio="anyres_max_2")
SMALL_SMOLVLM = known.SMOLVLM.but(longest_edge=700, max_image_size=256)

QWEN2 = {
    "common": pictures(known.QWEN2_VL, (480, 640), (224, 224), (337, 511), (1256, 950)),
    "ties": pictures(known.QWEN2_VL, (70, 70), (98, 126), (126, 98), (210, 42), (42, 210)),
    "tiny": pictures(known.QWEN2_VL, (1, 1), (23, 3), (29, 29), (2, 2), (26, 28), (27, 332), (305, 30)),
    "thin": pictures(known.QWEN2_VL, (1000, 10), (10, 1000), (1, 200), (200, 1), (5, 900)),
    "on-the-edge-of-a-float": pictures(known.QWEN2_VL, (19, 19), (38, 38), (19, 76), (76, 19)),
    "too-large": pictures(SMALL_QWEN2, (1000, 1000), (328, 738), (471, 471), (369, 656), (575, 368)),
    "hardly-any-pixels": pictures(TINY_QWEN2, (639, 31), (31, 639), (343, 28), (500, 500)),
    "other-patches": pictures(known.QWEN2_VL.but(patch_size=8, merge_size=3), (100, 100), (60, 84), (13, 500)),
}
QWEN2_5 = {
    "common": pictures(known.QWEN2_5_VL, (480, 640), (70, 70), (29, 29)),
    "thin": pictures(known.QWEN2_5_VL, (1000, 10), (10, 1000)),
    "too-large": pictures(known.QWEN2_5_VL.but(max_pixels=100 * 28 * 28), (500, 400), (343, 28), (20, 2900)),
}
QWEN3 = {
    "common": pictures(known.QWEN3_VL, (480, 640), (1000, 800), (29, 29)),
    "ties": pictures(known.QWEN3_VL, (80, 1008), (112, 720), (720, 112)),
    "thin": pictures(known.QWEN3_VL, (5000, 30), (12, 2000)),
    "on-the-edge-of-a-float": pictures(known.QWEN3_VL, (7, 343), (60, 735), (35, 315), (630, 70)),
    "too-large": pictures(known.QWEN3_VL.but(min_pixels=1, max_pixels=90_000), (500, 400), (900, 16)),
}
LLAVA_NEXT = {
    "common": pictures(known.LLAVA_NEXT, (480, 640), (640, 480), (336, 336), (336, 672), (1256, 950)),
    "of-337-pixels": pictures(known.LLAVA_NEXT, (337, 337), (337, 1008), (337, 672), (673, 337)),
    "portrait-and-landscape": pictures(known.LLAVA_NEXT, (161, 184), (184, 161), (950, 1256), (200, 100)),
    "on-the-edge-of-a-float": pictures(known.LLAVA_NEXT, (88, 55), (110, 352), (748, 352), (924, 352)),
    "thin": pictures(known.LLAVA_NEXT, (1, 100), (3, 700), (20, 900), (900, 20)),
    "two-canvases": pictures(FEW_TILES, (100, 100), (640, 480), (300, 900)),
    "with-the-class-token": pictures(known.LLAVA_NEXT.but(vision_feature_select_strategy="full"), (300, 200)),
}
LLAVA_ONEVISION = {
    "common": pictures(known.LLAVA_ONEVISION, (480, 640), (384, 384), (385, 385), (768, 300)),
    "portrait-and-landscape": pictures(known.LLAVA_ONEVISION, (161, 184), (184, 161), (300, 900)),
    "on-the-edge-of-a-float": pictures(known.LLAVA_ONEVISION, (1107, 820)),
    "interpolated": pictures(TWO_TILES, (700, 650), (800, 384)),
}
INTERNVL = {
    "around-one-tile": pictures(known.INTERNVL, (447, 447), (448, 448), (449, 449), (449, 447), (100, 100)),
    "more-than-half-of-a-larger-canvas": pictures(known.INTERNVL, (633, 633), (634, 634), (635, 635), (900, 600)),
    "tall-and-wide": pictures(known.INTERNVL, (400, 800), (800, 400), (200, 1000), (1000, 200), (1, 600)),
    "at-most-six": pictures(known.INTERNVL.but(max_patches=6), (1000, 1400), (900, 700)),
    "at-most-one": pictures(known.INTERNVL.but(max_patches=1), (100, 900), (900, 900)),
    "at-least-two": pictures(known.INTERNVL.but(min_patches=2), (100, 100), (300, 400)),
}
IDEFICS3 = {
    "common": pictures(known.IDEFICS3, (480, 640), (364, 364), (30, 20), (100, 1000), (1456, 1)),
    "whole": pictures(known.IDEFICS3.but(do_image_splitting=False), (480, 640), (30, 20)),
    "not-a-multiple": pictures(known.IDEFICS3.but(longest_edge=700, max_image_size=256), (480, 640), (100, 70), (700, 257)),
    "small-tiles": pictures(known.IDEFICS3.but(longest_edge=400, max_image_size=100), (100, 400), (80, 900)),
}
SMOLVLM = {
    "common": pictures(known.SMOLVLM, (480, 640), (640, 481)),
    "not-a-multiple": pictures(SMALL_SMOLVLM, (480, 640), (100, 70), (640, 160), (511, 700), (700, 257)),
    "of-one-tile": pictures(known.SMOLVLM.but(longest_edge=256), (200, 300), (900, 10)),
}
DEEPSEEK_VL2 = {
    "common": pictures(known.DEEPSEEK_VL2, (480, 640), (384, 384), (1152, 1152), (500, 500), (385, 385)),
    "thin": pictures(known.DEEPSEEK_VL2, (384, 3456), (3000, 200), (100, 900), (640, 480)),
    "two-canvases": pictures(known.DEEPSEEK_VL2.but(candidate_resolutions=[[384, 384], [384, 1152]]), (900, 900), (100, 800)),
}
PIXTRAL = {
    "common": pictures(known.PIXTRAL, (480, 640), (16, 16), (17, 16), (1, 1), (29, 29)),
    "scaled-down": pictures(known.PIXTRAL, (1025, 1024), (900, 1300), (1300, 33)),
    "stride-of-28": pictures(known.MISTRAL3, (29, 29), (28, 28), (300, 57), (56, 55)),
}
LLAVA = {
    "square": pictures(known.LLAVA, (336, 336), (29, 29), (300, 500)),
    "with-the-class-token": pictures(known.LLAVA.but(vision_feature_select_strategy="full"), (200, 336)),
    "without-class-token": pictures(NO_CLASS_TOKEN, (336, 200)),
    "small-square": pictures(known.LLAVA.but(image_size=224), (50, 80)),
}
GEMMA3 = {
    "any-size": pictures(known.GEMMA3, (896, 896), (1, 50), (30, 40)),
    "other-length": pictures(known.GEMMA3.but(image_seq_length=64), (500, 500)),
}
PAN_AND_SCAN = known.GEMMA3.but(do_pan_and_scan=True)
SMALL_CROPS = PAN_AND_SCAN.but(pan_and_scan_min_crop_size=40, pan_and_scan_max_num_crops=7)
CROPPED = {
    "small": pictures(PAN_AND_SCAN, (256, 256), (300, 511), (511, 300), (255, 900), (307, 256)),
    "long-enough": pictures(PAN_AND_SCAN, (500, 599), (500, 600), (600, 500), (512, 600)),
    "half-way": pictures(SMALL_CROPS, (100, 250), (250, 100), (100, 350), (100, 249), (300, 80)),
    "at-most-four": pictures(PAN_AND_SCAN, (256, 2_000), (2_000, 256)),
    "as-many-as-fit": pictures(SMALL_CROPS, (40, 300), (300, 41), (45, 119), (39, 300), (79, 60)),
    "off": pictures(known.GEMMA3, (256, 2_000)),
}
SMALL_GLM4V = known.GLM4V.but(max_pixels=40 * 28 * 28)
GLM4V = {
    "common": pictures(known.GLM4V, (480, 640), (224, 224), (337, 511)),
    "small": pictures(known.GLM4V, (1, 1), (29, 29), (23, 3), (70, 70), (100, 60), (13, 300)),
    "too-large": pictures(SMALL_GLM4V, (600, 500), (160, 100), (140, 126), (300, 40), (125, 125)),
    "three-frames-a-step": pictures(SMALL_GLM4V.but(temporal_patch_size=3), (300, 200), (98, 126), (20, 30)),
}
SMALL_LLAMA4 = known.LLAMA4.but(image_size=28)
LLAMA4 = {
    "common": pictures(known.LLAMA4, (480, 640), (336, 336), (337, 337), (300, 1_000)),
    "around-one-tile": pictures(SMALL_LLAMA4, (28, 28), (29, 28), (28, 29), (1, 1), (27, 56), (56, 27)),
    "beyond-all-canvases": pictures(SMALL_LLAMA4, (200, 200), (100, 190), (10, 900), (460, 29)),
    "at-most-five": pictures(SMALL_LLAMA4.but(max_patches=5), (60, 80), (100, 30), (30, 141), (20, 20)),
    "largest-canvas": pictures(SMALL_LLAMA4.but(resize_to_max_canvas=True), (28, 28), (10, 40), (57, 28)),
}
OVERRIDDEN = {
    "max-pixels": (pictures(SMALL_QWEN2, (1000, 1000)), pictures(known.QWEN2_VL, (1000, 1000))),
    "min-pixels": (pictures(known.QWEN2_VL.but(min_pixels=200_704), (100, 100)), pictures(known.QWEN2_VL, (100, 100))),
    "patches": (pictures(known.QWEN2_VL.but(patch_size=16), (600, 500)), pictures(known.QWEN2_VL, (600, 500))),
}
TOO_THIN = {
    "one-row": Refused(known.QWEN2_VL, (Size(1, 201),)),
    "one-column": Refused(known.QWEN2_VL, (Size(201, 1),)),
    "slightly": Refused(known.QWEN2_VL, (Size(2001, 10),)),
    "far": Refused(known.QWEN2_VL, (Size(1, 10_000),)),
}
SCALED_TO_NOTHING = {
    "one-row": Refused(known.PIXTRAL, (Size(1, 2000),)),
    "two-columns": Refused(known.MISTRAL3, (Size(4000, 2),)),
}
TYPOS = {
    "unknown": known.QWEN2_VL.but(max_pixel=256 * 28 * 28),
    "of-another-family": known.QWEN2_VL.but(max_patches=6),
    "missing": Family("qwen2_vl", {"patch_size": 14, "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 3136}),
    "below-one": known.QWEN2_VL.but(min_pixels=0),
}
GRIDS = {
    "common": grids(known.QWEN2_VL, (480, 640), (640, 480), (224, 224), (70, 98), (29, 29)),
    "thin": grids(known.QWEN2_VL, (1000, 10), (10, 1000), (23, 3)),
    "too-large": grids(SMALL_QWEN2, (1000, 900), (471, 471), (328, 738)),
    "merged-by-three": grids(known.QWEN2_VL.but(patch_size=8, merge_size=3), (100, 150)),
}
