"""transformers' own loaders. They have no limits and no policy; what they are given as text is base64."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from conformance.adapters.transformers.cpu import named, prepare
from conformance.protocol.media import Clip, DecodedVideo


def decode_image(data: bytes, max_pixels: int) -> NDArray[np.uint8]:
    """`load_image`. The limit of pixels is Pillow's, which warns of up to twice as many."""
    with patch.object(PIL.Image, "MAX_IMAGE_PIXELS", max_pixels):
        return np.asarray(named("image_utils:load_image")(b64encode(data).decode()))


def sample_frames(clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
    """`sample_frames` of a video processor, and the `timestamps` of the metadata.

    It knows whole videos: the clip is one, and its frames get their numbers back.
    """
    metadata = named("video_utils:VideoMetadata")(total_num_frames=clip.length, fps=clip.fps)
    shown = _sampler(rate, max_frames)(metadata=metadata)
    metadata.frames_indices = [clip.first + frame for frame in shown.tolist()]
    return metadata.frames_indices, metadata.timestamps


def decode_video(data: bytes, rate: float | None, max_frames: int) -> DecodedVideo:
    """`load_video` of a file, through PyAV, with that sampling."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "video"
        path.write_bytes(data)
        frames, metadata = named("video_utils:load_video")(str(path), sample_indices_fn=_sampler(rate, max_frames))
    indices = metadata.frames_indices.tolist()
    return DecodedVideo(frames, indices, metadata.timestamps, metadata.fps, metadata.total_num_frames)


def decode_audio(data: bytes, target_rate: int) -> NDArray[np.float32]:
    """`load_audio`, through soundfile and soxr."""
    recording: NDArray[np.float32] = named("audio_utils:load_audio")(
        b64encode(data).decode(), sampling_rate=target_rate, backend="soundfile"
    )
    return recording


def _sampler(rate: float | None, max_frames: int) -> Callable[..., Any]:
    """By rate the `sample_frames` of Qwen2-VL, which knows a largest number; else the one that processors inherit."""
    if rate is not None:
        return partial(prepare().Qwen2VLVideoProcessor().sample_frames, fps=rate, max_frames=max_frames)
    inherited = named("video_utils:default_sample_indices_fn")
    return lambda metadata: inherited(metadata, num_frames=min(max_frames, metadata.total_num_frames))
