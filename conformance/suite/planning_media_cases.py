"""Videos and recordings at which the counts of engines have differed from those of the model owner's processor."""

from conformance.oracles import planning as oracle
from conformance.suite.planning_checks import Refused, Table, against
from conformance.world import families as known
from conformance.world.families import Family
from reference.items import Size


def videos(family: Family, *media: tuple[int, int, int]) -> Table:
    """Videos of a family, (frames, height, width) each."""
    return against(oracle.video_tokens, family, *[(frames, Size(height, width)) for frames, height, width in media])


def video_grids(family: Family, *media: tuple[int, int, int]) -> Table:
    """Grids of videos, (frames, height, width) each."""
    return against(oracle.video_grid, family, *[(frames, Size(height, width)) for frames, height, width in media])


def measured(family: Family, *counted: tuple[int, int, int, tuple[int, int, int]]) -> tuple[Table, Table]:
    """Videos, (frames, height, width, grid) each, as tables of tokens and of grids, measured on transformers 5.24."""
    media = [(frames, Size(height, width)) for frames, height, width, _ in counted]
    merged = family.settings["merge_size"] ** 2
    tokens = [time * height * width // merged for *_, (time, height, width) in counted]
    return Table(family, media, lambda: tokens), Table(family, media, lambda: [grid for *_, grid in counted])


def recordings(family: Family, *lengths: int, rate: int = 16_000) -> Table:
    """Recordings, in samples."""
    return against(oracle.audio_tokens, family, *[(length, rate) for length in lengths])


THREE_FRAMES = known.QWEN2_VL_VIDEO.but(temporal_patch_size=3)
FOUR_FRAMES = known.QWEN2_VL_VIDEO.but(temporal_patch_size=4)
SMALL_QWEN3 = known.QWEN3_VL_VIDEO.but(max_pixels=4 * 256 * 256)
LONG_WINDOW = known.QWEN2_AUDIO.but(chunk_length=1_200)

QWEN2_VIDEOS = {
    "even-and-odd": videos(known.QWEN2_VL_VIDEO, (1, 29, 29), (4, 240, 320), (5, 240, 320), (3, 1000, 200)),
    "too-large": videos(known.QWEN2_VL_VIDEO, (7, 1000, 900), (2, 471, 2000)),
    "three-frames-a-step": videos(THREE_FRAMES, (1, 50, 50), (5, 240, 320), (6, 240, 320), (7, 240, 320)),
    "four-frames-a-step": videos(FOUR_FRAMES, (17, 240, 320), (3, 100, 100), (18, 100, 100)),
}
QWEN2_5_VIDEOS = {
    "even-and-odd": videos(known.QWEN2_5_VL_VIDEO, (2, 100, 100), (9, 300, 200)),
    "three-frames-a-step": videos(known.QWEN2_5_VL_VIDEO.but(temporal_patch_size=3), (5, 240, 320), (7, 100, 100)),
}


def capped(family: Family, *media: tuple[int, int, int]) -> Table:
    """Videos of a family of Qwen whose pixels are capped, (frames, height, width) each."""
    return against(oracle.capped_tokens, family, *[(frames, Size(height, width)) for frames, height, width in media])


CAPPED = {"cap_pixels_per_frame": True, "max_video_tokens": 64}
SMALL_LIMITS = {"min_pixels": 4 * 28 * 28, "max_pixels": 64 * 28 * 28}
CAPPED_QWEN2 = {
    "few-frames": capped(known.QWEN2_VL_VIDEO.but(**CAPPED, **SMALL_LIMITS), (1, 200, 300), (2, 200, 300), (3, 300, 200)),
    "many-frames": capped(known.QWEN2_VL_VIDEO.but(**CAPPED, **SMALL_LIMITS), (8, 200, 300), (9, 200, 300), (25, 300, 200)),
    "not-below-the-least": capped(known.QWEN2_VL_VIDEO.but(**CAPPED, **SMALL_LIMITS), (40, 300, 300), (41, 60, 90)),
    "three-frames-a-step": capped(
        known.QWEN2_VL_VIDEO.but(**CAPPED, **SMALL_LIMITS, temporal_patch_size=3), (7, 200, 300), (12, 300, 200)
    ),
}
CAPPED_QWEN3 = {
    "few-frames": capped(SMALL_QWEN3.but(**CAPPED), (2, 300, 400), (3, 400, 300), (4, 300, 400)),
    "many-frames": capped(SMALL_QWEN3.but(**CAPPED), (8, 300, 400), (15, 300, 400), (30, 200, 200)),
    "a-frame-of-few-tokens": capped(SMALL_QWEN3.but(cap_pixels_per_frame=True, max_video_tokens=9), (2, 300, 400), (5, 90, 90)),
    "not-below-the-least": capped(
        SMALL_QWEN3.but(cap_pixels_per_frame=True, max_video_tokens=9, min_pixels=100_000), (2, 300, 400), (5, 200, 100)
    ),
}


def among(count: int, *sizes: tuple[int, int], **overrides: object) -> Table:
    """Pictures for LLaVA-OneVision, (height, width) each, in prompts of so many."""
    family = known.LLAVA_ONEVISION.but(pictures_in_prompt=count, **overrides)
    return against(oracle.image_tokens, family, *[(Size(*size),) for size in sizes])


SEVERAL = {
    "two": among(2, (480, 640), (384, 384), (1, 90)),
    "five": among(5, (300, 900), (385, 385)),
    "without-the-class-token": among(2, (480, 640), vision_feature_select_strategy="default"),
    "small-tiles": among(3, (480, 640), num_image_tokens=576),
    "one": among(1, (480, 640), (385, 385)),
}
ONEVISION_VIDEOS = {
    "odd-side": videos(known.LLAVA_ONEVISION, (1, 384, 384), (8, 480, 640)),
    "even-side": videos(known.LLAVA_ONEVISION.but(num_image_tokens=576), (3, 240, 320)),
}
INTERNVL_VIDEOS = {"any-size": videos(known.INTERNVL, (1, 448, 448), (6, 900, 900))}
VIDEO_GRIDS = {
    "even-and-odd": video_grids(known.QWEN2_VL_VIDEO, (1, 29, 29), (4, 240, 320), (5, 320, 240)),
    "three-frames-a-step": video_grids(THREE_FRAMES, (5, 240, 320), (6, 320, 240), (7, 240, 320)),
    "four-frames-a-step": video_grids(FOUR_FRAMES, (17, 240, 320), (3, 100, 150), (18, 150, 100)),
}
BUDGETED = {
    "common": measured(
        known.QWEN3_VL_VIDEO,
        (4, 240, 320, (2, 16, 20)),
        (3, 300, 200, (2, 18, 12)),
        (2, 5, 300, (1, 2, 120)),
        (3, 20, 20, (2, 2, 2)),
        (5, 31, 900, (3, 2, 58)),
    ),
    "beyond-the-budget": measured(
        SMALL_QWEN3,
        (6, 250, 250, (3, 12, 12)),
        (9, 200, 300, (5, 8, 12)),
        (13, 181, 97, (7, 12, 6)),
        (30, 100, 170, (15, 4, 6)),
    ),
    "odd-frames-round-to-even": measured(
        SMALL_QWEN3,
        (5, 224, 224, (3, 14, 14)),
        (5, 256, 256, (3, 16, 16)),
        (5, 320, 320, (3, 14, 14)),
        (3, 700, 500, (2, 20, 14)),
    ),
    "four-frames-a-step": measured(
        SMALL_QWEN3.but(temporal_patch_size=4),
        (4, 200, 300, (1, 12, 18)),
        (6, 220, 240, (2, 12, 12)),
        (13, 100, 100, (4, 6, 6)),
    ),
    "too-few-pixels": measured(
        known.QWEN3_VL_VIDEO.but(min_pixels=512 * 512),
        (2, 60, 90, (1, 20, 28)),
        (7, 40, 300, (4, 6, 34)),
        (3, 32, 32, (2, 20, 20)),
    ),
}
BUDGETED_TOKENS = {name: tokens for name, (tokens, _) in BUDGETED.items()}
BUDGETED_GRIDS = {name: grids for name, (_, grids) in BUDGETED.items()}
NO_FRAMES = {
    "none": Refused(known.QWEN2_VL_VIDEO, (0, Size(100, 100))),
    "fewer-than-none": Refused(known.QWEN2_VL_VIDEO, (-2, Size(100, 100))),
    "too-thin": Refused(known.QWEN2_VL_VIDEO, (2, Size(1, 201))),
}
NO_FRAMES_OF_QWEN3 = {
    "none": Refused(known.QWEN3_VL_VIDEO, (0, Size(100, 100))),
    "too-thin": Refused(known.QWEN3_VL_VIDEO, (2, Size(32, 6_500))),
}
SMALL_GLM4V = known.GLM4V_VIDEO.but(max_pixels=4 * 100 * 28 * 28)
GLM4V_VIDEOS = {
    "even-and-odd": videos(known.GLM4V_VIDEO, (2, 56, 84), (5, 100, 130), (3, 100, 20), (7, 29, 29)),
    "beyond-the-budget": videos(SMALL_GLM4V, (9, 200, 300), (6, 250, 250), (13, 181, 97)),
    "odd-frames-round-to-even": videos(SMALL_GLM4V, (5, 224, 224), (5, 252, 280), (3, 300, 200)),
    "four-frames-a-step": videos(SMALL_GLM4V.but(temporal_patch_size=4), (4, 100, 150), (6, 220, 240)),
}
SMOLVLM_VIDEOS = {"any-size": videos(known.SMOLVLM, (1, 512, 512), (9, 480, 2_000), (64, 100, 100))}
NEXT_VIDEOS = {
    "even-side": videos(known.LLAVA_NEXT_VIDEO, (1, 336, 336), (8, 480, 640)),
    "odd-side": videos(known.LLAVA_NEXT_VIDEO.but(image_size=210), (3, 100, 100)),
}
RECORDINGS = {
    "shortest": recordings(known.QWEN2_AUDIO, 321, 480, 640, 641, 960, 961, 1_281),
    "seconds": recordings(known.QWEN2_AUDIO, 16_000, 15_999, 16_001, 16_160, 16_161, 44_100),
    "up-to-the-window": recordings(known.QWEN2_AUDIO, 479_999, 480_000, 480_001, 5_000_000),
    "beyond-32-bit-floats": recordings(LONG_WINDOW, 16_777_216, 16_777_601, 18_000_321),
}
OMNI_2_5 = {
    "shortest": recordings(known.QWEN2_5_OMNI, 321, 640, 641, 16_001),
    "beyond-half-a-minute": recordings(known.QWEN2_5_OMNI, 480_000, 480_001, 480_641, 2_000_000),
    "up-to-the-window": recordings(known.QWEN2_5_OMNI, 4_799_999, 4_800_000, 4_800_001, 9_000_000),
}
OMNI_3 = {
    "begun-hops": recordings(known.QWEN3_OMNI, 479, 480, 1_439, 1_440, 2_719, 2_720, 15_999),
    "around-a-chunk": recordings(known.QWEN3_OMNI, 16_000, 16_159, 16_160, 31_999, 32_000, 32_161),
    "other-chunks": recordings(known.QWEN3_OMNI.but(n_window=20), 16_000, 40_000),
    "beyond-half-a-minute": recordings(known.QWEN3_OMNI, 481_000),
    "from-44100": recordings(known.QWEN3_OMNI, 44_100, 44_542, rate=44_100),
}
WHISPER = {
    "any-length": recordings(known.WHISPER, 1, 16_000, 480_000, 480_001),
    "of-ten-seconds": recordings(known.WHISPER.but(chunk_length=10), 16_000, 480_000),
}
RESAMPLED = {
    "from-44100": recordings(known.QWEN2_AUDIO, 44_100, 22_050, 441_000, rate=44_100),
    "from-48000": recordings(known.QWEN2_AUDIO, 48_000, 96_000, 2_000_000, rate=48_000),
    "from-8000": recordings(known.QWEN2_AUDIO, 8_000, 1_000, 240_001, rate=8_000),
    "to-24000": recordings(known.QWEN2_AUDIO.but(sampling_rate=24_000, hop_length=240), 16_000, 100_000),
}
SHORT = {
    "one-sample": Refused(known.QWEN2_AUDIO, (1, 16_000)),
    "one-hop": Refused(known.QWEN2_AUDIO, (160, 16_000)),
    "two-hops": Refused(known.QWEN2_AUDIO, (320, 16_000)),
    "two-hops-at-another-rate": Refused(known.QWEN2_AUDIO, (640, 32_000)),
}
NO_SAMPLES = {
    "none": Refused(known.QWEN2_AUDIO, (0, 16_000)),
    "fewer-than-none": Refused(known.QWEN2_AUDIO, (-16_000, 16_000)),
}
