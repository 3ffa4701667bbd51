"""Planning, measured on transformers: thousands of sizes of each family."""

from collections.abc import Sequence
from typing import Any

from conformance.suite.planning_checks import Table
from conformance.world.families import Family
from golden.vectors import vectors
from reference.items import Size


def table(given: dict[str, Any], media: Sequence[tuple[Any, ...]], expected: list[int]) -> Table:
    return Table(Family(given["family"], given["settings"]), media, lambda: expected)


def pictures(given: dict[str, Any], expected: list[int]) -> Table:
    """Sizes are a height and a width."""
    return table(given, [(Size(*size),) for size in given["sizes"]], expected)


def videos(given: dict[str, Any], expected: list[int]) -> Table:
    """Videos are a number of frames, a height and a width."""
    return table(given, [(frames, Size(height, width)) for frames, height, width in given["videos"]], expected)


def recordings(given: dict[str, Any], expected: list[int]) -> Table:
    """Recordings are a number of samples and their rate."""
    return table(given, [(samples, rate) for samples, rate in given["recordings"]], expected)


test_pictures_for_qwen2_vl = vectors("PLANNING-01")(pictures)
test_pictures_for_qwen2_5_vl = vectors("PLANNING-02")(pictures)
test_pictures_for_qwen3_vl = vectors("PLANNING-03")(pictures)
test_pictures_for_llava_next = vectors("PLANNING-04")(pictures)
test_pictures_for_llava_onevision = vectors("PLANNING-05")(pictures)
test_pictures_for_internvl = vectors("PLANNING-06")(pictures)
test_pictures_for_idefics3 = vectors("PLANNING-07")(pictures)
test_pictures_for_smolvlm = vectors("PLANNING-08")(pictures)
test_pictures_for_pixtral = vectors("PLANNING-09")(pictures)
test_pictures_for_llava = vectors("PLANNING-10")(pictures)
test_pictures_for_gemma3 = vectors("PLANNING-11")(pictures)
test_pictures_for_deepseek_vl2 = vectors("PLANNING-12")(pictures)
test_pictures_for_glm4v = vectors("PLANNING-33")(pictures)
test_pictures_for_llama4 = vectors("PLANNING-34")(pictures)
test_pictures_for_gemma3_with_pan_and_scan = vectors("PLANNING-35")(pictures)
test_videos_for_qwen2_vl = vectors("PLANNING-19")(videos)
test_videos_for_qwen3_vl = vectors("PLANNING-21")(videos)
test_videos_for_llava_onevision = vectors("PLANNING-22")(videos)
test_recordings_for_qwen2_audio = vectors("PLANNING-28")(recordings)
test_videos_for_glm4v = vectors("PLANNING-36")(videos)
test_videos_for_smolvlm = vectors("PLANNING-37")(videos)
test_videos_for_llava_next_video = vectors("PLANNING-38")(videos)
test_recordings_for_qwen2_5_omni = vectors("PLANNING-39")(recordings)
test_recordings_for_qwen3_omni = vectors("PLANNING-40")(recordings)
