"""SGLang's downloads, and its decoders of videos and recordings.

A reference to a picture goes through `_load_single_item`, and what would be decoded is the answer. Of a policy SGLang has
these limits: hosts, bytes, redirects and seconds. Schemes, ports, folders and networks it does not know. Videos and recordings
are decoded without limits.
"""

import asyncio
import ipaddress
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import PIL.Image
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu, processors
from conformance.protocol.media import DecodedVideo, FetchPolicy


def fetch(reference: str, policy: FetchPolicy) -> bytes:
    """`_load_single_item`, for a server with the limits of the policy, whose connections go through the policy's doors.

    Its timeouts are whole seconds from the environment; here `download_remote_media` is given the policy's. Files have no
    limit, and some have no end: it may take a gigabyte, and then runs out of memory.
    """
    common = cpu.module("sglang.srt.utils.common")
    download = common.download_remote_media

    def connect(address: tuple[str, int], timeout: Any = None, *_: Any, **__: Any) -> socket.socket:
        """In the place of urllib3's `create_connection`: the first address that takes the connection."""
        host, port = address
        for found in _addresses(host.strip("[]"), policy):
            return policy.dial(found, port, timeout)
        raise OSError("getaddrinfo returns an empty list")

    with (
        _memory(1 << 30),
        patch.object(import_module("urllib3.util.connection"), "create_connection", connect),
        patch.object(common, "Image", _Undecoded),
        patch.object(common, "_mm_http_session", threading.local()),
        patch.object(common, "_allowed_media_domains", common._allowed_media_domains),
        patch.object(common, "_media_url_max_file_size_bytes", policy.max_bytes),
        patch.object(common, "_MAX_MEDIA_URL_REDIRECTS", policy.max_redirects),
        patch.object(common, "download_remote_media", lambda url, timeout: download(url, policy.timeout_s)),
    ):
        common._allowed_media_domains = frozenset(map(common._normalize_media_domain, policy.hosts or ()))
        load = processors.base()._load_single_item
        read: _Undecoded = load(
            reference, cpu.module("sglang.srt.managers.schedule_batch").Modality.IMAGE, discard_alpha_channel=False
        )
    return read.data


def decode_video(data: bytes, rate: float | None, max_frames: int) -> DecodedVideo:
    """`load_video` and `preprocess_video`, whose frames are taken before they are resized; see `processors.sample_frames`."""
    common, qwen = cpu.module("sglang.srt.utils.common"), cpu.module("sglang.srt.multimodal.processors.qwen_vl")
    shown: list[torch.Tensor] = []

    def resize(frames: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        shown.append(frames)
        return frames

    with (
        patch.object(common, "is_cpu", lambda: True),
        patch.object(qwen, "is_cpu", lambda: True),
        patch.object(qwen.torchvision.transforms.functional, "resize", resize),
        common.load_video(data, use_gpu=False) as decoder,
    ):
        config = {"fps": decoder.avg_fps if rate is None else rate, "max_frames": max_frames, "min_frames": 2}
        _, metadata = asyncio.run(qwen.preprocess_video(decoder, video_config=config))
    described = import_module("transformers.video_utils").VideoMetadata(**metadata)
    frames = shown[0].permute(0, 2, 3, 1).numpy()
    return DecodedVideo(
        frames, described.frames_indices.tolist(), described.timestamps, described.fps, described.total_num_frames
    )


def decode_audio(data: bytes, target_rate: int) -> NDArray[np.float32]:
    """`load_audio`, in the type to which feature extractors bring it.

    What it takes to resample depends on the rate in the file, and has no limit: here it may be a gigabyte.
    """
    with _memory(1 << 30):
        samples: NDArray[np.float32] = cpu.module("sglang.srt.utils.common").load_audio(data, target_rate).astype(np.float32)
    return samples


class _Undecoded:
    """In the place of PIL's `Image`: it opens a file, and does not decode it, unless there is nothing in it."""

    Image = PIL.Image.Image

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def open(cls, file: BytesIO) -> Any:
        return cls(file.getvalue()) if file.getvalue() else PIL.Image.open(file)

    def load(self) -> None:
        """There is nothing to decode."""


@contextmanager
def _memory(further_bytes: int) -> Iterator[None]:
    """This process may not take more memory than it has and this much."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + further_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _addresses(host: str, policy: FetchPolicy) -> list[str]:
    """What the system's resolver answers: a written address is one already, in any form that `inet_aton` takes."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        return list(policy.resolve(host))
