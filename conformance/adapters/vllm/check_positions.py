"""What vLLM 0.33.0 gets wrong about positions.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm.parts import feature, named

CHECKS = Checks()
fails = CHECKS.fails
QWEN2 = "qwen2_vl:Qwen2VLForConditionalGeneration"
QWEN2_5 = "qwen2_5_vl:Qwen2_5_VLForConditionalGeneration"
QWEN3 = "qwen3_vl:Qwen3VLForConditionalGeneration"
GLM = "glm4_1v:Glm4vForConditionalGeneration"
QWEN2_5_OMNI = "qwen2_5_omni_thinker:Qwen2_5OmniThinkerForConditionalGeneration"
PROCESSOR = "qwen2_5_omni_thinker:Qwen2_5OmniThinkerMultiModalProcessor"


def positions(family: str, ids: list[int], *features: Any, **vision: Any) -> tuple[list[list[int]], int]:
    """What a model numbers, with 2 patches each way in a token."""
    owner = named(f"model_executor.models.{family}")
    model = owner.__new__(owner)
    nn.Module.__init__(model)
    model.config = SimpleNamespace(
        vision_config=SimpleNamespace(spatial_merge_size=2, **vision),
        video_token_id=6,
        vision_start_token_id=9,
        vision_end_token_id=10,
        seconds_per_chunk=2,
    )
    triples, delta = model.get_mrope_input_positions(ids, list(features))
    return triples.tolist(), delta


@fails("POSITIONS-08")
def glm_asserts() -> bool:
    """A picture without a grid is an assertion, which `python -O` takes away."""
    return error(lambda: positions(GLM, [5], feature(0, 1))) == "AssertionError"


@fails("POSITIONS-09")
def grid_of_another_picture() -> bool:
    """A picture of two positions with a grid of one: what is left of it is numbered as text."""
    triples, _ = positions(QWEN2, [5, 5], feature(0, 2, image_grid_thw=torch.tensor([1, 2, 2])))
    return triples == [[0, 1]] * 3


@fails("POSITIONS-11")
def frames_by_their_tokens() -> bool:
    """Frames are looked for by the start tokens before them, and are not found without."""
    video = feature(0, 2, modality="video", video_grid_thw=torch.tensor([2, 2, 2]))
    return error(lambda: positions(QWEN3, [6, 6], video)) == "ValueError"


@fails("POSITIONS-12")
def seconds_by_default() -> bool:
    """A video without seconds has one second a frame."""
    video = feature(0, 2, modality="video", video_grid_thw=torch.tensor([2, 2, 2]))
    triples, _ = positions(QWEN2_5, [6, 6], video, tokens_per_second=4)
    return triples[0] == [0, 4]


@fails("POSITIONS-24")
def recordings_by_number() -> bool:
    """The recording in a video is the first of the prompt, wherever it stands; more recordings than videos are refused."""
    owner = named(f"model_executor.models.{QWEN2_5_OMNI}")
    behind = feature(1, 2, "b", "audio", audio_feature_lengths=torch.tensor(24))
    film = feature(1, 2, "c", "video", use_audio_in_video=torch.tensor(True))
    before = feature(0, 1, "a", "audio", audio_feature_lengths=torch.tensor(8))
    return bool(owner._get_audio_for_video_mapping(None, [before, film, behind]) == ({1: 8}, {0}))


@fails("POSITIONS-25")
def start_token_in_a_video() -> bool:
    """The start token of a recording in a video takes the first frame's number, and each row that of the row before it."""
    grid, flag = torch.tensor([1, 2, 4]), torch.tensor(True)
    film = feature(0, 5, "a", "video", video_grid_thw=grid, use_audio_in_video=flag)
    sound = feature(0, 5, "b", "audio", audio_feature_lengths=torch.tensor(4))
    put = named(f"model_executor.models.{PROCESSOR}").omni_get_updates_use_audio_in_video
    config = SimpleNamespace(
        audio_token_index=4, video_token_index=6, audio_start_token_id=11, audio_end_token_id=12, seconds_per_chunk=2,
        vision_config=SimpleNamespace(spatial_merge_size=2),
    )  # fmt: skip
    ids = put(config, 1, grid, 1.0)
    triples, _ = positions(QWEN2_5_OMNI, ids, film, sound)
    return ids == [11, 6, 6, 4, 12] and triples == [[0, 0, 0, 2, 3], [0, 0, 0, 2, 3], [0, 1, 0, 2, 3]]
