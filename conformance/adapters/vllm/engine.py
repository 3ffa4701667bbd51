"""vLLM 0.33.0: its own functions, on a CPU, under the engine protocol.

Every method calls vLLM's function and translates types, nothing more: an answer is never repaired, an argument never
protected, an error never softened. What vLLM has no function for is left out, and its design leaves out much: an
identity never enters the ids, so there are no sentinels and no padding; a wrong number of rows is an error and nothing is
fitted; its encoder cache counts embeddings and keeps no tensors.

An item is known by its hash, here by what `identify` answers. Its spans are one `PlaceholderRange`, with a mask where
text stands between them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.vllm import (
    caches,
    cpu,
    drafts,
    fetching,
    kernels,
    media,
    parallel,
    planning,
    processors,
    prompts,
    requests,
    scheduling,
    steps,
    transport,
)
from conformance.adapters.vllm import items as translate
from conformance.engine import Profile, Traits
from conformance.protocol.encoding import Encoder
from conformance.protocol.media import Clip, Colour, DecodedVideo, FetchPolicy, VideoLimits
from conformance.protocol.prefix_cache import Namespace
from conformance.protocol.preprocessing import Options
from conformance.protocol.processors import Module
from conformance.protocol.scheduling import Budget
from reference.items import Chunk, Item, Modality, MropeLayout, Request, Size, Span


class VllmEngine(parallel.Parallel):
    """vLLM's multimodal input pipeline. Making one imports vLLM, which takes some ten seconds.

    Raises EngineNotLoaded, with what to install, when it is missing.
    """

    name = "vllm"
    traits = Traits(
        surplus_rows="reject",
        caller_hashes="trust",
        length_conflicts="fail",
        interleaved_items="films",
        planned_families=planning.FAMILIES,
        processed_families=processors.FAMILIES,
        frame_placeholders="video",
        knobs=scheduling.KNOBS,
        prefix_items="cut",
        routing_policies=parallel.POLICIES,
        report_order="kept",
        transports=("shared_memory", "inline"),
        caller_chooses=(),
        profile=Profile.CORE,
    )

    def __init__(self) -> None:
        self._vllm = cpu.prepare()
        self.version = self._vllm.version
        self._deepstack: dict[tuple[int, int, torch.dtype], Any] = {}

    # media

    def decode_image(self, data: bytes, background: Colour, max_pixels: int) -> NDArray[np.uint8]:
        """`ImageMediaIO.load_bytes`."""
        return media.decode_image(data, background, max_pixels)

    def fetch_media(self, reference: str, policy: FetchPolicy) -> bytes:
        """`MediaConnector.load_from_url`."""
        return fetching.fetch_media(reference, policy)

    def sample_frames(self, clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
        """`VideoBackend`, and the times that Qwen3-VL makes of its numbers."""
        return media.sample_frames(self._vllm, clip, rate, max_frames)

    def decode_video(self, data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
        """`VideoMediaIO`, through OpenCV."""
        return media.decode_video(self._vllm, data, rate, max_frames, limits)

    def decode_audio(self, data: bytes, target_rate: int, max_duration_s: float) -> NDArray[np.float32]:
        """`load_audio` through PyAV, and the data parser, which resamples through PyAV."""
        return media.decode_audio(self._vllm, data, target_rate, max_duration_s)

    # planning

    def count_image_tokens(self, family: str, settings: Mapping[str, Any], size: Size) -> int:
        """`get_num_image_tokens` of the family's `ProcessingInfo`."""
        return planning.image_tokens(family, settings, size)

    def count_video_tokens(self, family: str, settings: Mapping[str, Any], frames: int, size: Size) -> int:
        """`get_num_video_tokens` of the family's `ProcessingInfo`."""
        return planning.video_tokens(family, settings, frames, size)

    def image_grid(self, family: str, settings: Mapping[str, Any], size: Size) -> tuple[int, int, int]:
        """`_get_vision_info`."""
        return planning.grid(family, settings, None, size)

    def video_grid(self, family: str, settings: Mapping[str, Any], frames: int, size: Size) -> tuple[int, int, int]:
        """`_get_vision_info`, for a video."""
        return planning.grid(family, settings, frames, size)

    # identity

    def identify(self, item: Item) -> bytes:
        """`ProcessorInputs.get_mm_hashes` with its default, BLAKE3.

        Fields are options of the request. A picture goes through the data parser first, which makes RGB of it.
        """
        return translate.hashed(self._vllm, item, "model", item.fields)

    # placeholders

    def find_spans(self, input_ids: NDArray[np.int64], token_id: int) -> Sequence[tuple[int, int]]:
        """`PromptUpdateDetails.select_token_id`, and `extract_embeds_range` of the mask that it makes of a prompt."""
        processor = cpu.module("vllm.multimodal.processing.processor")
        details = processor.PromptUpdateDetails.select_token_id(input_ids.tolist(), token_id)
        whole = self._vllm.inputs.PlaceholderRange(0, len(input_ids), is_embed=details.is_embed(details.full))
        return list(whole.extract_embeds_range())

    # processors

    def find_processor(self, modules: Sequence[Module], architectures: Sequence[str]) -> Any:
        """`ModelRegistry`, by which models register their processors."""
        return processors.find_processor(modules, architectures)

    def process(
        self, architecture: str, processor: Any, parts: Sequence[processors.Part]
    ) -> tuple[NDArray[np.int64], Sequence[Item]]:
        """`BaseRenderer.process_for_engine`, which calls the `BaseMultiModalProcessor` of the model."""
        return processors.process(architecture, processor, parts)

    # preprocessing

    def preprocessing_key(self, item: Item, processor: str, options: Options) -> bytes:
        """`ProcessorInputs.get_mm_hashes`, under which the processor cache keeps an item; the processor names the model."""
        scoped = {translate.OPTIONS_OF[modality]: dict(named) for modality, named in options.items()}
        return translate.hashed(self._vllm, item, processor, {**item.fields, **scoped})

    def open_mirror(self, capacity_bytes: int) -> caches.Mirror:
        """`processor_cache_from_config` and `engine_receiver_cache_from_config`, of the type that is the default, "lru"."""
        return caches.Mirror(self._vllm, capacity_bytes)

    # positions

    def positions(self, input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[torch.Tensor, int]:
        """`get_mrope_input_positions` of the model of this family."""
        return prompts.positions(self._vllm, input_ids, items, layout)

    def extend_positions(self, triples: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """`MRotaryEmbedding.get_next_input_positions_tensor`."""
        return prompts.extended(self._vllm, triples, length)

    def rotary_axes(self, sections: tuple[int, int, int], interleaved: bool) -> torch.Tensor:
        """`MRotaryEmbedding.forward_native`."""
        return prompts.rotary_axes(sections, interleaved)

    # prefix_cache

    def page_keys(self, request: Request, namespace: Namespace, page: int) -> Sequence[bytes]:
        """The block hashes of a `Request`."""
        return list(prompts.request(self._vllm, request.id, request, namespace, page).block_hashes)

    def open_prefix_cache(self, page: int) -> prompts.PrefixCache:
        """`KVCacheManager`."""
        return prompts.PrefixCache(self._vllm, page)

    # scheduling

    def plan_chunks(self, length: int, items: Sequence[Item], budget: Budget, prefix: int) -> Sequence[Chunk]:
        """`Scheduler.schedule`, step by step."""
        return [step[0] for step in scheduling.plan(self._vllm, [(length, items)], budget, prefix)]

    def plan_steps(self, requests: Sequence[tuple[int, Sequence[Item]]], budget: Budget) -> Sequence[Mapping[int, Chunk]]:
        """`Scheduler.schedule`, step by step."""
        return scheduling.plan(self._vllm, requests, budget)

    # encoder_cache

    def encoder_key(self, identity: bytes, adapter: tuple[str, str] | None, changes_encoder: bool) -> bytes:
        """`InputProcessor._get_mm_identifier`."""
        return caches.identifier(identity.hex(), adapter and adapter[0], changes_encoder).encode()

    # encoding

    def count_in_chunk(self, spans: Sequence[Span], chunk: Chunk) -> int:
        """The mask of `EncoderRunner.gather_mm_embeddings`."""
        item = Item(modality=Modality.IMAGE, spans=tuple(spans))
        _, mask = steps.gathered(self._vllm, [item], [torch.zeros(item.token_count, 1)], chunk)
        return int(mask.sum())

    def slice_chunk(self, embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """`EncoderRunner.gather_mm_embeddings`."""
        return steps.slice_chunk(self._vllm, embedding, spans, chunk)

    def encode(
        self, batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder], cache: None
    ) -> Sequence[torch.Tensor | Exception]:
        """The scheduler's `_try_schedule_encoder_inputs`, then `EncoderRunner` and `_merge_multimodal_embeddings`."""
        return steps.encode(self._vllm, batch, encoders)

    # pruning

    def retained_count(self, tokens_per_frame: int, frames: int, rate: float) -> int:
        """`compute_retained_tokens_count`, at a rate that `MultiModalConfig` takes."""
        cpu.module("vllm.config.multimodal").MultiModalConfig(video_pruning_rate=rate)
        evs = cpu.module("vllm.multimodal.video_prune.evs")
        return int(evs.compute_retained_tokens_count(tokens_per_frame, frames, rate))

    def retention_mask(self, embeddings: torch.Tensor, grid: tuple[int, int, int], rate: float) -> torch.Tensor:
        """`compute_retention_mask`."""
        evs = cpu.module("vllm.multimodal.video_prune.evs")
        mask: torch.Tensor = evs.compute_retention_mask(embeddings, grid, 1, rate)
        return mask

    # merging

    def merge(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> torch.Tensor:
        """`SupportsMultiModal.embed_input_ids`; ids outside the vocabulary are refused by `BaseRenderer.validate_token_ids`."""
        return steps.merge(self._vllm, steps.model(self._vllm, table), input_ids, items, rows, chunk)

    def merge_deepstack(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`embed_input_ids` of Qwen3-VL, whose buffers live as long as the engine."""
        levels = max(rows.shape[1] // table.shape[1] - 1, 0)
        kind = (levels, table.shape[1], table.dtype)
        if kind not in self._deepstack:
            self._deepstack[kind] = steps.deepstack_model(self._vllm, levels, table)
        model = self._deepstack[kind]
        model.language_model = steps.Words(table)
        merged = steps.merge(self._vllm, model, input_ids, items, rows, chunk)
        return merged, steps.deepstack(model, chunk.length)

    # speculation

    def draft_embeddings(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
        next_id: int,
    ) -> torch.Tensor:
        """The first pass of `SpecDecodeBaseProposer` with a draft model that takes rows: Llama 4's EAGLE, Qwen3.5's MTP."""
        return steps.draft_embeddings(self._vllm, input_ids, items, rows, table, chunk, next_id)

    def draft_positions(self, positions: NDArray[np.int64], chunk: Chunk, steps: int) -> NDArray[np.int64]:
        """`SpecDecodeBaseProposer`, pass by pass."""
        return drafts.draft_positions(positions, chunk, steps)

    def propose_ngram(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], shortest: int, longest: int, count: int
    ) -> Sequence[int]:
        """`NgramProposer.propose`, which knows ids alone."""
        return steps.propose_ngram(input_ids, shortest, longest, count)

    # lifecycle

    def open_lifecycle(
        self, encoders: Mapping[Modality, Encoder], table: torch.Tensor, cache_bytes: int
    ) -> requests.LiveRequests:
        """The scheduler, and the encoder cache and runner of a worker."""
        return requests.LiveRequests(self._vllm, encoders, table, cache_bytes)

    # transport

    def open_channel(self, transports: Sequence[str], readers: int, capacity_bytes: int) -> transport.Frontend:
        """`SingleWriterShmObjectStorage`, and `MsgpackEncoder` beside it."""
        return transport.open_channel(transports, readers, capacity_bytes)

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
        """`MRotaryEmbedding.forward_native`."""
        return kernels.apply_mrope(query, key, positions, table, sections, interleaved, neighbours)

    def scatter_rows(self, destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """`_merge_multimodal_embeddings`."""
        return kernels.scatter_rows(destination, mask, rows)

    def span_mask(self, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """`EncoderRunner.gather_mm_embeddings`, of which this is the mask."""
        return kernels.span_mask(self._vllm, spans, chunk)
