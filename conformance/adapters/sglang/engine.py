"""SGLang 0.5.23: its own functions, on a CPU, under the engine protocol.

Every method calls SGLang's function and translates types, nothing more: an answer is never repaired, an argument never
protected, an error never softened. What SGLang has no function for is left out; what is a piece of a larger function is
asked there (see `sglang_steps`).

Which path: prompts are padded by `pad_mm_tokens`, as the models of the Qwen-VL, GLM-V, Kimi-VL and Gemma families are.
An item is known by its 64-bit `hash` to the embedding cache, and by all of a 32-byte identity to the prefix cache.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from conformance.adapters.sglang import (
    cpu,
    disaggregation,
    drafts,
    kernels,
    media,
    parallel,
    planning,
    positions,
    prefixes,
    preprocessing,
    processing,
    processors,
    pruning,
    requests,
    sessions,
    steps,
    transport,
)
from conformance.adapters.sglang import items as translate
from conformance.engine import Profile, Traits
from conformance.protocol.encoding import Encoder
from conformance.protocol.media import Clip, Colour, DecodedVideo, FetchPolicy, VideoLimits
from conformance.protocol.pipeline import Prefill
from conformance.protocol.preprocessing import Options, Work
from conformance.protocol.processors import Module
from conformance.protocol.scheduling import DecoderPart
from conformance.world.checkpoint import Checkpoint
from reference.items import Chunk, Format, Item, Modality, MropeLayout, Request, Size, Span


class SglangEngine(parallel.Parallel):
    """SGLang's multimodal input pipeline. Making one imports SGLang, which takes some ten seconds.

    Raises EngineNotLoaded, with what to install, when it is missing.
    """

    name = "sglang"
    traits = Traits(
        largest_vocabulary=1_000_000,
        surplus_rows="keep last",
        caller_hashes="trust",
        planned_families=planning.FAMILIES,
        processed_families=processing.PROCESSED,
        bound_families=processing.BOUND,
        numbered_families=("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v", "qwen3_omni_moe"),
        backgrounds="engine",
        frame_multiple=2,
        layouts=parallel.LAYOUTS,
        routing_policies=parallel.POLICIES,
        report_order="kept",
        repeated_parts="fail",
        caller_chooses=("ids",),
        interleaved_items="films",
        **transport.TRAITS,
        profile=Profile.SGLANG,
    )

    def __init__(self) -> None:
        self._sglang = cpu.prepare()
        self.version = self._sglang.version

    # media

    def decode_image(self, data: bytes, background: Colour, max_pixels: int) -> NDArray[np.uint8]:
        """`load_image`, and the conversion that `_load_single_item` makes for most models: no background, no limit."""
        picture, _ = cpu.module("sglang.srt.utils.common").load_image(data, False)
        return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))

    def fetch_media(self, reference: str, policy: FetchPolicy) -> bytes:
        """`_load_single_item` up to the decoder: `load_image`, `get_image_bytes` and `download_remote_media`."""
        return media.fetch(reference, policy)

    def sample_frames(self, clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
        """`preprocess_video` of the Qwen-VL processor."""
        return processors.sample_frames(clip, rate, max_frames)

    def decode_video(self, data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> DecodedVideo:
        """`load_video`, through decord, and `preprocess_video`, which have no limits."""
        return media.decode_video(data, rate, max_frames)

    def decode_audio(self, data: bytes, target_rate: int, max_duration_s: float) -> NDArray[np.float32]:
        """`load_audio`, through PyAV, or soundfile and torchaudio; it has no limit."""
        return media.decode_audio(data, target_rate)

    # planning

    def count_image_tokens(self, family: str, settings: Mapping[str, Any], size: Size) -> int:
        """The model's or the processor's own count."""
        return planning.image_tokens(self._sglang, family, settings, size)

    # identity

    def identify(self, item: Item) -> bytes:
        """`MultimodalDataItem.set_pad_value`, and the 8 bytes of the hash that it sets; of raw media `snapshot_media`."""
        if item.format is Format.RAW or isinstance(item.feature, Image):
            content = cpu.module("sglang.srt.multimodal.cache.identity").snapshot_media(item.feature)
            return bytes.fromhex(content.content_digest.removeprefix("sha256:"))
        made = translate.unnamed_item(self._sglang, item)
        made.set_pad_value()
        return translate.octets(made.hash)

    def combine_identities(self, identities: Sequence[bytes]) -> bytes | None:
        """`MultiModalStaticCache.combine_hashes`."""
        hashes = [translate.cache_key(self._sglang, identity) for identity in identities]
        combined = self._sglang.caches.MultiModalStaticCache.combine_hashes(hashes)
        return None if combined is None else translate.octets(combined)

    def adopt_caller_hashes(
        self, items: Sequence[Item], hashes: Mapping[Modality, Sequence[str]]
    ) -> tuple[list[int | None], list[str]]:
        """`TokenizerManager._tokenize_one_request`, which takes one list of hashes for all items of a request."""
        left = {kind: list(values) for kind, values in hashes.items()}
        taken = [left[item.modality].pop(0) for item in items if left.get(item.modality)]
        surplus = [value for values in left.values() for value in values]
        return steps.adopt_caller_hashes(self._sglang, items, taken + surplus)

    def data_hash(self, data: bytes) -> int:
        """`data_hash`."""
        return int(self._sglang.utils.data_hash(data))

    def tensor_hash(self, tensors: torch.Tensor | Sequence[Any]) -> int:
        """`tensor_hash`."""
        return int(self._sglang.utils.tensor_hash(tensors))

    def hash_feature(self, feature: Any) -> int:
        """`hash_feature`."""
        return int(self._sglang.utils.hash_feature(feature))

    # sentinels

    def sentinels(self, identity: bytes) -> Sequence[int]:
        """`MultimodalDataItem.set_identity`."""
        item = self._sglang.batch.MultimodalDataItem(modality=self._sglang.batch.Modality.IMAGE)
        item.set_identity(identity)
        return list(item.padding_values())

    def sentinels_from_hash(self, value: int) -> Sequence[int]:
        """`MultimodalDataItem.set_hash`."""
        item = self._sglang.batch.MultimodalDataItem(modality=self._sglang.batch.Modality.IMAGE)
        item.set_hash(value)
        return list(item.padding_values())

    def check_vocabulary(self, size: int) -> None:
        """`sanity_check_mm_pad_shift_value`."""
        self._sglang.batch.sanity_check_mm_pad_shift_value(size)

    # placeholders

    def find_spans(self, input_ids: NDArray[np.int64], token_id: int) -> Sequence[tuple[int, int]]:
        """`BaseMultimodalProcessor.get_mm_items_offset`."""
        processors = cpu.module("sglang.srt.multimodal.processors.base_processor")
        return list(processors.BaseMultimodalProcessor.get_mm_items_offset(torch.from_numpy(input_ids), token_id))

    def pad_spans(self, input_ids: NDArray[np.int64], items: Sequence[Item]) -> "array[int]":
        """`pad_mm_tokens`."""
        return translate.padded(self._sglang, input_ids, translate.inputs(self._sglang, items))

    def pad_pairs(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        pairs: Sequence[tuple[int, int]],
        item_starts: Collection[int],
    ) -> "array[int]":
        """`pad_mm_token_pairs`."""
        padded: array[int] = self._sglang.utils.pad_mm_token_pairs(
            array("q", input_ids.tobytes()),
            translate.inputs(self._sglang, items),
            data_token_pairs=list(pairs),
            data_start_token_ids=list(item_starts),
        )
        return padded

    def token_modalities(self, length: int, items: Sequence[Item]) -> Sequence[int]:
        """`MultimodalProcessorOutput.build_token_modalities`; its None is what the forward batch reads as all text."""
        made = [translate.data_item(self._sglang, item) for item in items]
        modalities = self._sglang.batch.MultimodalProcessorOutput.build_token_modalities([0] * length, made)
        return [0] * length if modalities is None else list(modalities)

    # processors

    def find_processor(self, modules: Sequence[Module], architectures: Sequence[str]) -> Any:
        """`import_processors` and `get_mm_processor`."""
        return processors.find_processor(modules, architectures)

    def process(
        self, architecture: str, processor: Any, parts: Sequence[processing.Part]
    ) -> tuple[NDArray[np.int64], list[Item]]:
        """`process_mm_data_async` of the processor that `get_mm_processor` finds."""
        return processing.process(self._sglang, architecture, processor, parts)

    def bind_output(
        self, architecture: str, processor: Any, input_ids: NDArray[np.int64], output: Mapping[str, Any]
    ) -> list[Item]:
        """`process_mm_data_async` in the formats "processor_output" and "precomputed_embedding"."""
        return processing.bind_output(self._sglang, architecture, processor, input_ids, output)

    # preprocessing

    def preprocessing_key(self, item: Item, processor: str, options: Options) -> bytes:
        """`snapshot_media`, `media_preprocess_kwargs` and `build_artifact_key`."""
        return processors.preprocessing_key(item, processor, options)

    def open_preprocessor(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> preprocessing.Preprocessor:
        """`MultimodalPreprocessCache` and `MultimodalProcessorExecutor`, for which there are always places."""
        return preprocessing.Preprocessor(work, workers, capacity_bytes)

    # positions

    def positions(self, input_ids: NDArray[np.int64], items: Sequence[Item], layout: MropeLayout) -> tuple[torch.Tensor, int]:
        """`get_rope_index` and `get_rope_index_glm4v`."""
        return positions.positions(input_ids, items, layout)

    def extend_positions(self, triples: NDArray[np.int64], length: int) -> torch.Tensor:
        """`extend_mrope_positions_for_retracted_request`, which takes a number of further positions."""
        extend = self._sglang.utils.extend_mrope_positions_for_retracted_request
        extended: torch.Tensor = extend(torch.from_numpy(triples), length - triples.shape[1])
        return extended

    def retracted_positions(self, triples: NDArray[np.int64], replies: Sequence[int]) -> list[torch.Tensor]:
        """`Req.reset_for_retract`, and at each attempt `Req.init_next_round_input`."""
        return positions.retracted(self._sglang, triples, replies)

    def stitch_positions(self, previous: NDArray[np.int64], turn: NDArray[np.int64]) -> torch.Tensor:
        """`Req._extend_session_image_inputs`."""
        return positions.stitch(self._sglang, previous, turn)

    def chunk_positions(self, triples: NDArray[np.int64], chunk: Chunk) -> torch.Tensor:
        """`ForwardBatch._compute_mrope_positions_extend`."""
        return positions.chunk(triples, chunk)

    def rotary_axes(self, sections: tuple[int, int, int], interleaved: bool) -> torch.Tensor:
        """`MRotaryEmbedding._build_axis_map`."""
        return positions.rotary_axes(sections, interleaved)

    # prefix_cache

    def open_prefix_cache(self, page: int) -> prefixes.PrefixCache:
        """`RadixCache`."""
        return prefixes.PrefixCache(self._sglang, page)

    # scheduling

    def encoder_lengths(self, batch: Sequence[tuple[NDArray[np.int64], Chunk, int]]) -> Sequence[DecoderPart]:
        """`ScheduleBatch.prepare_encoder_info_extend`."""
        return steps.encoder_lengths(self._sglang, batch)

    # encoder_cache

    def open_encoder_cache(self, capacity_bytes: int) -> steps.EncoderCache:
        """`MultiModalStaticCache`."""
        return steps.EncoderCache(self._sglang, capacity_bytes)

    # encoding

    def count_in_chunk(self, spans: Sequence[Span], chunk: Chunk) -> int:
        """`_count_mm_tokens_in_extend`."""
        count = self._sglang.schedule._count_mm_tokens_in_extend
        return int(count([chunk.prefix], [chunk.length], [translate.offsets(spans)]))

    def slice_chunk(self, embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """`get_embedding_chunk`."""
        cut = self._sglang.schedule.get_embedding_chunk
        rows: torch.Tensor = cut(embedding, chunk.prefix, chunk.length, translate.offsets(spans))[0]
        return rows

    def find_encoder(self, modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
        """`embed_mm_inputs`, its beginning."""
        return steps.find_encoder(self._sglang, modality, registered, model)

    def encode(
        self,
        batch: Sequence[tuple[Request, Chunk]],
        encoders: Mapping[Modality, Encoder],
        cache: steps.EncoderCache | None,
    ) -> Sequence[torch.Tensor]:
        """`embed_mm_inputs` up to its scatter; without a cache it has one of no bytes."""
        return steps.encode(self._sglang, batch, encoders, (cache or self.open_encoder_cache(0)).cache)

    # pruning

    def retained_count(self, tokens_per_frame: int, frames: int, rate: float) -> int:
        """`compute_retained_tokens_count`, for the rate of an `EVSConfig`."""
        rate = pruning.config(rate).video_pruning_rate
        return int(pruning.core().compute_retained_tokens_count(tokens_per_frame, frames, rate))

    def retention_mask(self, embeddings: torch.Tensor, grid: tuple[int, int, int], rate: float) -> NDArray[np.bool_]:
        """`compute_retention_mask`."""
        rate = pruning.config(rate).video_pruning_rate
        mask: NDArray[np.bool_] = pruning.core().compute_retention_mask(embeddings, grid, 1, rate).numpy()
        return mask

    def encode_pruned(
        self,
        batch: Sequence[tuple[Request, Chunk]],
        encoders: Mapping[Modality, Encoder],
        cache: steps.EncoderCache | None,
        rate: float,
    ) -> Sequence[tuple[NDArray[np.int64], torch.Tensor]]:
        """`EVSProcessor`, `EVS.evs_video` and `embed_mm_inputs`; without a cache it has one of no bytes."""
        return pruning.encode_pruned(self._sglang, batch, encoders, (cache or self.open_encoder_cache(0)).cache, rate)

    # merging

    def fit_length(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """`_adjust_embedding_length`."""
        fitted: torch.Tensor = self._sglang.schedule._adjust_embedding_length(rows, count, self._sglang.schedule.logger)
        return fitted

    def merge(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> torch.Tensor:
        """`embed_mm_inputs`, with the rows in the place of what it would encode. It writes to the ids that it gets."""
        return steps.embed(self._sglang, input_ids, items, rows, table, chunk)[0]

    def merge_deepstack(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`embed_mm_inputs` with Qwen3-VL's `separate_deepstack_embeds` for all modalities."""
        hidden = table.shape[1]
        levels = max(rows.shape[1] // hidden - 1, 0)
        merged, info = steps.embed(
            self._sglang,
            input_ids,
            items,
            rows,
            table,
            chunk,
            multimodal_model=steps.deepstack_model(levels, hidden),
            use_deepstack=translate.by_modality(self._sglang, dict.fromkeys(Modality, True)),
        )
        return merged, info["input_deepstack_embeds"].reshape(len(merged), levels, hidden).transpose(0, 1)

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
        """`EagleDraftWorker._draft_extend_for_prefill`, and what EAGLE-3's `LlamaModel` makes of it."""
        return drafts.embeddings(self._sglang, input_ids, items, rows, table, chunk, next_id)

    def draft_positions(self, positions: NDArray[np.int64], chunk: Chunk, steps: int) -> torch.Tensor:
        """`ForwardBatch._compute_mrope_positions_extend` and `compute_spec_mrope_positions`."""
        return drafts.draft_positions(positions, chunk, steps)

    # transport

    def open_channel(self, transports: Sequence[str], readers: int, capacity_bytes: int) -> transport.Tokenizer:
        """`ShmPointerMMData`, to one scheduler; a tensor has a segment of its own, bounded by the host's memory alone."""
        return transport.open_channel(self._sglang, transports, readers, capacity_bytes)

    # lifecycle

    def join_turn(
        self, history: Request, reply: NDArray[np.int64], turn: Request, keep: int | None, bos: int | None
    ) -> tuple["array[int]", list[Item]]:
        """`Session.create_req`, `SessionController.adjust_mm_offsets` and `Req.extend_image_inputs`."""
        return sessions.join_turn(self._sglang, history, reply, turn, keep, bos)

    def join_positions(
        self, previous: NDArray[np.int64], length: int, turn: NDArray[np.int64], is_stripped: bool
    ) -> tuple[torch.Tensor, int]:
        """`Req._extend_session_image_inputs`."""
        return sessions.join_positions(self._sglang, previous, length, turn, is_stripped)

    def join_modalities(
        self, previous: NDArray[np.int8], length: int, turn: NDArray[np.int8], is_stripped: bool
    ) -> Sequence[int]:
        """`Req._extend_session_image_inputs`."""
        return sessions.join_modalities(self._sglang, previous, length, turn, is_stripped)

    def join_padded(
        self, previous: NDArray[np.int64], turn_ids: NDArray[np.int64], items: Sequence[Item], made: NDArray[np.int64] | None
    ) -> "array[int]":
        """`Scheduler._try_apply_padded_mm_input_ids`, or `pad_mm_tokens`."""
        return sessions.join_padded(self._sglang, previous, turn_ids, items, made)

    def open_lifecycle(
        self, encoders: Mapping[Modality, Encoder], table: torch.Tensor, cache_bytes: int
    ) -> requests.LiveRequests:
        """`TokenizerManager`, `Scheduler`, `SessionController` and `prepare_mm_inputs`: what they do with media."""
        return requests.LiveRequests(self._sglang, encoders, table, cache_bytes)

    # disaggregation

    def assign_parts(
        self, items: Sequence[Item], options: Sequence[Mapping[str, Any]], encoders: int
    ) -> list[tuple[int, list[int], list[dict[str, Any]]]]:
        """`MMReceiverBase._extract_url_data` and `_assign_items_by_modality`, and what `MMReceiverHTTP.encode` posts."""
        return disaggregation.assign(items, options, encoders)

    def open_receiver(self, limit_s: float) -> disaggregation.Receiver:
        """`MMReceiverHTTP._process_waiting_requests`."""
        return disaggregation.Receiver(limit_s)

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

    def placeholder_mask(self, input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
        """`_get_multimodal_mask`."""
        return kernels.placeholder_mask(input_ids, sentinels)

    def scatter_rows(self, destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """`_scatter_mm_embedding`."""
        return kernels.scatter_rows(destination, mask, rows)

    # pipeline

    def prefill(self, checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
        """Its Qwen-VL processor, padding, `embed_mm_inputs` and positions, around the checkpoint's model."""
        return steps.prefill(self._sglang, checkpoint, prompt, images, chunk_length)
