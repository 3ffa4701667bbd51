"""The number of tokens of a medium, from its size alone."""

from collections.abc import Mapping
from typing import Any, Protocol

from conformance import returns as answer
from conformance.returns import WrongAnswer, returns
from reference.items import Size

FAMILIES = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_next", "llava_onevision", "deepseek_vl2", "internvl", "idefics3",
    "smolvlm", "pixtral", "gemma3", "whisper", "qwen2_audio", "glm4v", "llama4", "llava_next_video", "qwen2_5_omni",
    "qwen3_omni_moe",
)  # fmt: skip
"""The families of models that the suite knows, by their `model_type`."""


def grid(value: Any) -> tuple[int, int, int]:
    """Three ints: the patches in time, height and width."""
    sides = answer.integers(value)
    if len(sides) != 3:
        raise WrongAnswer("three ints: the patches in time, height and width")
    return sides[0], sides[1], sides[2]


class Planning(Protocol):
    """The number of tokens of a medium, from its size alone.

    What is counted are the positions that the encoder fills: the placeholder ids that the model's processor puts into
    the prompt, and so the rows of the embedding. Learned newlines and separators are among them. Markers around a
    picture, breaks after its rows and labels of its tiles are ids of their own, and are not counted.

    family: one of `FAMILIES`. An engine says in the trait `planned_families` which of them it plans; a rule about another
        does not apply to it.
    settings: what the checkpoint states, and what a request overrides. All settings of the family are given:
        qwen2_vl, qwen2_5_vl, qwen3_vl: patch_size, merge_size, temporal_patch_size; min_pixels and max_pixels, which
            bound the area of a picture or of a frame, but of a video of qwen3_vl the pixels of all frames together. A request
            for a video may have cap_pixels_per_frame (true), and then max_video_tokens, too
        llava: image_size (the side of the square), patch_size, num_additional_image_tokens,
            vision_feature_select_strategy ("default" or "full")
        llava_next: the same, image_size being the side of a tile; image_grid_pinpoints ([height, width] each)
        llava_onevision: image_size, image_grid_pinpoints, num_image_tokens, vision_aspect_ratio ("anyres_max_9"),
            vision_feature_select_strategy; the picture is the only one of its prompt, unless a request has
            pictures_in_prompt, which who cannot tell refuses
        deepseek_vl2: image_size, patch_size, downsample_ratio, candidate_resolutions ([height, width] each); the prompt
            has at most two pictures
        internvl: image_size, min_patches, max_patches, image_seq_length
        idefics3, smolvlm: longest_edge, max_image_size (the side of a tile), image_seq_len, do_image_splitting
        pixtral: longest_edge, patch_size, spatial_merge_size
        gemma3: image_seq_length; do_pan_and_scan, pan_and_scan_min_crop_size, pan_and_scan_max_num_crops and
            pan_and_scan_min_ratio_to_activate (a float)
        llama4: image_size (the side of a tile), patch_size, downsample_ratio (how many patches become a token: 4 for a
            pixel_shuffle_ratio of 0.5), max_patches (of tiles), resize_to_max_canvas
        glm4v (GLM-4.1V to GLM-4.6V): those of qwen3_vl; min_pixels and max_pixels bound the pixels of all frames, of which
            a picture has temporal_patch_size
        llava_next_video: image_size (the side of a frame), patch_size; its pictures are counted as llava_next
        whisper, qwen2_audio, qwen2_5_omni: sampling_rate, hop_length, chunk_length (in seconds)
        qwen3_omni_moe: sampling_rate, hop_length, n_window; there is no window. Pictures and videos of the two Omni models
            are counted as qwen2_vl, with their settings

    Every method raises ValueError for an unknown family, and for a medium that would get no token.
    """

    @returns(answer.integer)
    def count_image_tokens(self, family: str, settings: Mapping[str, Any], size: Size) -> int:
        """How many positions a picture of this size fills.

        Raises ValueError for a picture whose longest side is more than 200 times its shortest (families of Qwen and
        GLM-4V).
        """

    @returns(answer.integer)
    def count_video_tokens(self, family: str, settings: Mapping[str, Any], frames: int, size: Size) -> int:
        """How many positions a video of so many sampled frames fills.

        For qwen2_vl, qwen2_5_vl, qwen3_vl, glm4v, llava_onevision, llava_next_video, internvl and smolvlm. Times that are
        written between frames are text. `cap_pixels_per_frame` of Qwen is off unless it is given; who cannot cap refuses it.

        Raises ValueError for less than one frame.
        """

    @returns(answer.integer)
    def count_audio_tokens(self, family: str, settings: Mapping[str, Any], samples: int, rate: int) -> int:
        """How many positions a recording of so many samples, `rate` a second, fills: whisper, qwen2_audio, qwen2_5_omni
        and qwen3_omni_moe. It is the only recording of its prompt.

        It is resampled to the settings' sampling_rate first, to ceil(samples * sampling_rate / rate) samples, and cut
        to chunk_length. Raises ValueError for less than one sample.
        """

    @returns(grid)
    def image_grid(self, family: str, settings: Mapping[str, Any], size: Size) -> tuple[int, int, int]:
        """How many patches of patch_size a picture has in time (1), height and width: families of Qwen, GLM-4V."""

    @returns(grid)
    def video_grid(self, family: str, settings: Mapping[str, Any], frames: int, size: Size) -> tuple[int, int, int]:
        """How many patches a video has in time (steps of temporal_patch_size frames, the last one filled up), height
        and width, for the families of Qwen and GLM-4V.
        """
