"""vLLM's loaders: pictures, the frames of videos by number, recordings."""

from io import BytesIO
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from conformance.adapters.vllm import cpu
from conformance.adapters.vllm.cpu import Vllm
from conformance.protocol.media import Clip, Colour, DecodedVideo, VideoLimits


def decode_image(data: bytes, background: Colour, max_pixels: int) -> NDArray[np.uint8]:
    """`ImageMediaIO.load_bytes` within that limit, and `sanitize_message`, as the server answers.

    The limit, VLLM_MAX_IMAGE_PIXELS, is 178,956,970 by default.
    """
    loader = cpu.module("vllm.multimodal.media.image").ImageMediaIO(rgba_background_color=background)
    answer: Any = cpu.module("vllm.entrypoints.serve.exception_handling.utils").sanitize_message
    with patch.object(cpu.module("vllm.envs"), "VLLM_MAX_IMAGE_PIXELS", max_pixels, create=True):
        try:
            return np.array(loader.load_bytes(data).media)
        except ValueError as error:
            raise ValueError(answer(str(error))) from None


def sample_frames(vllm: Vllm, clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
    """`compute_frames_index_to_sample` of `VideoBackend`, and `_calculate_timestamps` of Qwen3-VL, a frame at a time.

    vLLM knows whole videos: the clip is one, and its frames get their numbers back.
    """
    decoders = cpu.module("vllm.multimodal.video_decoders")
    duration = clip.length / clip.fps if clip.fps > 0 else 0
    source = decoders.VideoSourceMetadata(clip.length, clip.fps, duration)
    target = decoders.VideoTargetMetadata(num_frames=max_frames, fps=-1 if rate is None else rate, max_duration=300)
    backend: Any = cpu.module("vllm.multimodal.video").VideoBackend
    indices = [clip.first + frame for frame in backend.compute_frames_index_to_sample(source, target)]
    info: Any = vllm.qwen3_vl.Qwen3VLProcessingInfo
    return indices, info._calculate_timestamps(None, indices, clip.fps, 1)


def decode_video(vllm: Vllm, data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
    """`VideoMediaIO.load_bytes`, through OpenCV, and the times of Qwen3-VL. Of the limits it has that of a frame's pixels."""
    pictures = cpu.module("vllm.multimodal.media.image").ImageMediaIO()
    chosen = {"num_frames": max_frames, "fps": -1 if rate is None else rate}
    loader = cpu.module("vllm.multimodal.media.video").VideoMediaIO(pictures, **chosen)
    with patch.object(cpu.module("vllm.envs"), "VLLM_MAX_IMAGE_PIXELS", limits.max_pixels, create=True):
        frames, metadata = loader.load_bytes(data).media
    indices, fps = metadata["frames_indices"], metadata["fps"]
    times = vllm.qwen3_vl.Qwen3VLProcessingInfo._calculate_timestamps(None, indices, fps, 1)
    return DecodedVideo(frames, indices, times, fps, metadata["total_num_frames"])


def decode_audio(vllm: Vllm, data: bytes, target_rate: int, max_duration_s: float) -> NDArray[np.float32]:
    """`load_audio` and the `MultiModalDataParser` of a model of this rate and one channel."""
    audio = cpu.module("vllm.multimodal.media.audio")
    recording = audio.load_audio(BytesIO(data), sr=None, max_duration_s=max_duration_s, backend="pyav")
    parser = vllm.parse.MultiModalDataParser(target_sr=target_rate, target_channels=1, audio_resample_method="pyav")
    samples: NDArray[np.float32] = parser.parse_mm_data({"audio": [recording]})["audio"].get(0)
    return samples
