"""SGLang's processors: which one serves a model, which frames it shows, and what it keeps.

A registry is asked about modules that are there to be found, in a package of their own. Frames are those of a decoder that
knows its numbers and no video.
"""

import asyncio
import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.sglang import cpu
from conformance.protocol.media import Clip
from conformance.protocol.preprocessing import Options
from conformance.protocol.processors import Module
from reference.items import Item

SOURCE = """
from {here} import base, loads

class Processor(base()):
    models = [type(name, (), {{}}) for name in {architectures!r}]
    served = loads[{name!r}]()

    def __init__(self, *arguments):
        pass

    process_mm_data_async = None
"""
"""A module with a processor, which is loaded as it is imported."""

loads: dict[str, Any] = {}


def base() -> Any:
    """`BaseMultimodalProcessor`."""
    return cpu.module("sglang.srt.multimodal.processors.base_processor").BaseMultimodalProcessor


def find_processor(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """`import_processors` of a package with these modules, into a mapping of its own, and `get_mm_processor`."""
    registry = cpu.module("sglang.srt.managers.multimodal_processor")
    package = modules[0].name.partition(".")[0]
    with (
        TemporaryDirectory() as folder,
        patch.object(sys, "path", [folder, *sys.path]),
        patch.dict(sys.modules),
        patch.dict(registry.PROCESSOR_MAPPING, clear=True),
        patch.dict(loads, {module.name: module.load for module in modules}),
    ):
        (Path(folder) / package).mkdir()
        for module in modules:
            source = SOURCE.format(here=__name__, architectures=module.architectures, name=module.name)
            (Path(folder) / f"{module.name.replace('.', '/')}.py").write_text(source)
        invalidate_caches()
        registry.import_processors(package)
        config = SimpleNamespace(architectures=list(architectures))
        return registry.get_mm_processor(config, None, None, "default").served


def preprocessing_key(item: Item, processor: str, options: Options) -> bytes:
    """The key of an artifact. In a request options stand beside their medium, and what belongs to it is one more of them."""
    identity = cpu.module("sglang.srt.multimodal.cache.identity")
    key = identity.build_artifact_key(
        identity.snapshot_media(item.feature).content_digest,
        modality=item.modality.name.lower(),
        processor_fingerprint=processor,
        preprocess_kwargs=identity.media_preprocess_kwargs({"fields": dict(item.fields), **options.get(item.modality, {})}),
    )
    return bytes.fromhex(key.removeprefix("sha256:"))


def sample_frames(clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
    """`preprocess_video`, and the `timestamps` that transformers makes of its metadata.

    It knows whole videos: the clip is one, and its frames get their numbers back. By default it shows four frames or more,
    here two, the smallest number that it has. Without a rate every frame is asked for. It is told that the server is one
    for a CPU, for else it copies frames into memory for a GPU.
    """
    qwen = cpu.module("sglang.srt.multimodal.processors.qwen_vl")

    class Decoder(qwen.VideoDecoderWrapper):  # type: ignore[name-defined,misc]
        avg_fps = clip.fps

        def __init__(self) -> None:
            pass

        def __del__(self) -> None:
            pass

        def __len__(self) -> int:
            return clip.length

        def get_frames_as_tensor(self, indices: list[int]) -> torch.Tensor:
            return torch.zeros(len(indices), 28, 28, 3, dtype=torch.uint8)

    config = {"fps": clip.fps if rate is None else rate, "max_frames": max_frames, "min_frames": 2, "min_pixels": 28 * 28}
    with patch.object(qwen, "is_cpu", lambda: True):
        _, metadata = asyncio.run(qwen.preprocess_video(Decoder(), video_config=config))
    metadata["frames_indices"] = [clip.first + int(frame) for frame in metadata["frames_indices"]]
    described = import_module("transformers.video_utils").VideoMetadata(**metadata)
    return described.frames_indices, described.timestamps
