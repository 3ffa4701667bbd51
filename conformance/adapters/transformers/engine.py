"""transformers 5.24.0: its own functions, on a CPU, under the engine protocol.

Every method calls transformers' function and translates types, nothing more: an answer is never repaired, an argument
never protected, an error never softened. transformers is a library and not a server: it knows media by their ids in the
prompt, has no identity of a medium, no cache of prefixes or embeddings and no scheduler, and what it has no function for is
left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from conformance.adapters.transformers import cpu, kernels, media, models, planning, prompts
from conformance.adapters.transformers.prefill import prefill
from conformance.engine import Profile, Traits
from conformance.protocol.media import Clip, Colour, DecodedVideo, VideoLimits
from conformance.protocol.pipeline import Prefill
from conformance.world.checkpoint import Checkpoint
from reference.items import Chunk, Item, MropeLayout, Size


class TransformersEngine:
    """transformers' multimodal input. Making one imports transformers, which takes some five seconds.

    Raises EngineNotLoaded, with what to install, when something is missing.
    """

    name = "transformers"
    traits = Traits(
        surplus_rows="reject",
        planned_families=planning.FAMILIES,
        processed_families=prompts.FAMILIES,
        bound_families=(),
        backgrounds="engine",
        frame_multiple=2,
        rotations=kernels.ROTATIONS,
        profile=Profile.CORE,
    )

    def __init__(self) -> None:
        self.version = str(cpu.prepare().__version__)

    # media

    def decode_image(self, data: bytes, background: Colour, max_pixels: int) -> NDArray[np.uint8]:
        """`load_image`, which chooses the background by itself."""
        return media.decode_image(data, max_pixels)

    def sample_frames(self, clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
        """`sample_frames` of a video processor."""
        return media.sample_frames(clip, rate, max_frames)

    def decode_video(self, data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
        """`load_video`, which has no limits."""
        return media.decode_video(data, rate, max_frames)

    def decode_audio(self, data: bytes, target_rate: int, max_duration_s: float) -> NDArray[np.float32]:
        """`load_audio`, which has no limit."""
        return media.decode_audio(data, target_rate)

    # planning

    def count_image_tokens(self, family: str, settings: Mapping[str, Any], size: Size) -> int:
        """`_get_num_multimodal_tokens` of the family's processor."""
        return planning.image_tokens(family, settings, size)

    def count_video_tokens(self, family: str, settings: Mapping[str, Any], frames: int, size: Size) -> int:
        """`_get_num_multimodal_tokens` of the family's processor."""
        return planning.video_tokens(family, settings, frames, size)

    def count_audio_tokens(self, family: str, settings: Mapping[str, Any], samples: int, rate: int) -> int:
        """The feature extractor, and what the processor writes."""
        return planning.audio_tokens(family, settings, samples, rate)

    def image_grid(self, family: str, settings: Mapping[str, Any], size: Size) -> tuple[int, ...]:
        """The image processor, on a blank picture."""
        return planning.image_grid(family, settings, size)

    def video_grid(self, family: str, settings: Mapping[str, Any], frames: int, size: Size) -> tuple[int, ...]:
        """The video processor, on blank frames."""
        return planning.video_grid(family, settings, frames, size)

    # processors

    def process(
        self, architecture: str, processor: Any, parts: Sequence[str | NDArray[np.int64] | Item]
    ) -> tuple[NDArray[np.int64], list[Item]]:
        """The processor itself, whatever the architecture."""
        return prompts.process(processor, parts)

    # positions

    def positions(self, input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[torch.Tensor, int]:
        """`get_rope_index` of the family's model."""
        return models.positions(input_ids, items, layout)

    def extend_positions(self, triples: NDArray[np.int64], length: int) -> torch.Tensor:
        """`compute_3d_position_ids`."""
        return models.extended(triples, length)

    def rotary_axes(self, sections: tuple[int, int, int], interleaved: bool) -> torch.Tensor:
        """The rotary embedding of Qwen3-VL, or of Qwen2-VL."""
        return models.rotary_axes(sections, interleaved)

    # merging

    def merge(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> torch.Tensor:
        """`forward` of a model with pictures, videos and sound."""
        return models.merged(input_ids, items, rows, table, chunk).embeddings

    def merge_deepstack(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same, and `_deepstack_process` of its language model."""
        first, *levels = torch.split(rows, table.shape[1], dim=1)
        recorder = models.merged(input_ids, items, first, table, chunk, levels)
        return recorder.embeddings, recorder.deepstack(len(levels))

    # speculation

    def propose_ngram(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], shortest: int, longest: int, count: int
    ) -> list[int]:
        """`PromptLookupCandidateGenerator`, which has no shortest match and is given no media."""
        return prompts.propose_ngram(input_ids, longest, count)

    # kernels

    def apply_mrope(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        positions: torch.Tensor,
        table: torch.Tensor,
        sections: tuple[int, int, int],
        interleaved: bool,
        neighbours: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`apply_rotary_pos_emb`, of a model for each form."""
        return kernels.apply_mrope(query, key, positions, table, sections, interleaved, neighbours)

    # pipeline

    def prefill(self, checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
        """The processor, `get_image_features` for each picture, and `generate` with its `prefill_chunk_size`."""
        return prefill(checkpoint, prompt, images, chunk_length)
