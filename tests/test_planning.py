"""What the reference promises beyond the requirements: errors that say what would be right; and where the vectors come from."""

from typing import Any

import pytest

from conformance.oracles import planning as oracle
from conformance.protocol import planning as protocol
from conformance.world import families as known
from conformance.world.families import Family
from golden.vectors import load
from reference.items import Size
from reference.planning import FAMILIES, count_audio_tokens, count_image_tokens, count_video_tokens

PICTURES = [vector for vector in load("planning")["vectors"] if "sizes" in vector["given"]]
SQUARE = Size(100, 100)


def test_the_protocol_lists_the_families_of_the_reference() -> None:
    assert tuple(FAMILIES) == protocol.FAMILIES


@pytest.mark.parametrize("vector", PICTURES, ids=lambda vector: vector["name"])
def test_a_sample_of_the_vectors_equals_real_preprocessing(vector: dict[str, Any]) -> None:
    """The vectors come from size formulas of transformers; its preprocessing of real pixels must agree with them."""
    given = vector["given"]
    family = Family(given["family"], given["settings"])
    counts = list(zip(given["sizes"], vector["expected"], strict=True))
    small = [(Size(*size), count) for size, count in counts if 40 < min(size) <= max(size) < 700][:8]
    assert len(small) == 8
    assert [oracle.image_tokens(family, size) for size, _ in small] == [count for _, count in small]


@pytest.mark.parametrize(("height", "width"), [(0, 5), (5, 0), (-1, 5)])
def test_a_size_has_pixels(height: int, width: int) -> None:
    with pytest.raises(ValueError, match=f"not {height} x {width}"):
        Size(height, width)


@pytest.mark.parametrize("value", [1.5, True, "7"])
def test_a_size_is_made_of_integers(value: Any) -> None:
    with pytest.raises(TypeError, match="a width is an integer"):
        Size(1, value)


def test_an_unknown_family_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no family 'qwen9_vl'; image tokens are known for qwen2_vl, qwen2_5_vl, .*gemma3"):
        count_image_tokens("qwen9_vl", {}, SQUARE)
    with pytest.raises(ValueError, match=r"gemma3 plans no video tokens; these do: qwen2_vl, .*internvl"):
        count_video_tokens("gemma3", known.GEMMA3.settings, 2, SQUARE)


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (known.QWEN2_VL.but(max_pixel=1), "qwen2_vl has no setting max_pixel; it has patch_size, merge_size"),
        (Family("pixtral", {"longest_edge": 9}), "pixtral also needs patch_size, spatial_merge_size"),
        (known.QWEN2_VL.but(min_pixels=0), "min_pixels is at least 1, not 0"),
        (known.INTERNVL.but(min_patches=13), "min_patches is at most max_patches, but 13 > 12"),
        (known.LLAVA.but(vision_feature_select_strategy="all"), "is default or full, not 'all'"),
        (known.GEMMA3.but(pan_and_scan_min_ratio_to_activate=0), "to_activate is a number above 0, not 0"),
        (known.LLAVA_ONEVISION.but(vision_aspect_ratio="anyres"), "is anyres_max_ and a number of tiles, not 'anyres'"),
    ],
)
def test_settings_that_make_no_sense_are_named(family: Family, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_image_tokens(family.name, family.settings, SQUARE)


def test_a_setting_is_an_integer() -> None:
    with pytest.raises(TypeError, match=r"patch_size is an integer, not 14.0"):
        count_image_tokens("qwen2_vl", known.QWEN2_VL.but(patch_size=14.0).settings, SQUARE)


def test_media_without_tokens_are_named() -> None:
    with pytest.raises(ValueError, match=r"1 x 201 \(height x width\) is too thin: its longest side is 201 times"):
        count_image_tokens("qwen2_vl", known.QWEN2_VL.settings, Size(1, 201))
    with pytest.raises(ValueError, match="a picture of 1 x 2000 is too small or too thin to get a token"):
        count_image_tokens("pixtral", known.PIXTRAL.settings, Size(1, 2000))
    with pytest.raises(ValueError, match="a recording of 320 samples is too small"):
        count_audio_tokens("qwen2_audio", known.QWEN2_AUDIO.settings, 320, 16_000)
    with pytest.raises(ValueError, match="at least 2 frames, one time step, not 1"):
        count_video_tokens("qwen3_vl", known.QWEN3_VL_VIDEO.settings, 1, SQUARE)
    with pytest.raises(TypeError, match=r"a number of samples is an integer, not 1.5"):
        count_audio_tokens("whisper", known.WHISPER.settings, 1.5, 16_000)  # type: ignore[arg-type]


CAPS = {
    "a cap without tokens": (known.QWEN2_VL_VIDEO.but(cap_pixels_per_frame=True), "needs max_video_tokens of at least 1"),
    "a cap of no token": (known.QWEN3_VL_VIDEO.but(cap_pixels_per_frame=True, max_video_tokens=0), "at least 1, not 0"),
    "a cap of GLM-4V": (known.GLM4V_VIDEO.but(cap_pixels_per_frame=True, max_video_tokens=9), "glm4v has no setting"),
}


@pytest.mark.parametrize(("family", "sentence"), CAPS.values(), ids=CAPS)
def test_a_cap_that_cannot_be_followed_is_refused(family: Family, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        count_video_tokens(family.name, family.settings, 4, Size(100, 100))


def test_a_cap_that_is_off_changes_nothing() -> None:
    family = known.QWEN2_VL_VIDEO.but(cap_pixels_per_frame=False, max_video_tokens=64)
    plain = count_video_tokens(family.name, known.QWEN2_VL_VIDEO.settings, 40, Size(300, 400))
    assert count_video_tokens(family.name, family.settings, 40, Size(300, 400)) == plain
