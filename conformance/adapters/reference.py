"""The reference, seen as one more engine."""

from collections.abc import Sequence
from dataclasses import asdict, fields

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from conformance.engine import Profile, Traits
from conformance.protocol.disaggregation import Instance, Place
from conformance.protocol.media import Clip, FetchPolicy, VideoLimits
from conformance.protocol.parallel import Layout
from conformance.protocol.pipeline import Prefill
from conformance.protocol.scheduling import Budget, DecoderPart
from conformance.protocol.transport import Device
from conformance.world.checkpoint import Checkpoint
from reference import encoder_cache as _encoder_cache
from reference import encoding as _encoding
from reference import identity as _identity
from reference import merging as _merging
from reference import pipeline as _pipeline
from reference import pipeline_ranks as _pipeline_ranks
from reference import placeholders as _placeholders
from reference import planning as _planning
from reference import positions as _positions
from reference import prefix_cache as _prefix_cache
from reference import processors as _processors
from reference import pruning as _pruning
from reference import scheduling as _scheduling
from reference import sentinels as _sentinels
from reference import speculation as _speculation
from reference.disaggregation import assignment as _assignment
from reference.disaggregation import carriers as _carriers
from reference.disaggregation import decode_side as _decode_side
from reference.disaggregation import encoder_side as _encoder_side
from reference.disaggregation import prefill_side as _prefill_side
from reference.disaggregation import receiver as _receiver
from reference.items import Chunk, Item, Span
from reference.kernels import frames as _frames
from reference.kernels import hashing as _hashing
from reference.kernels import masks as _masks
from reference.kernels import rotation as _rotation
from reference.kernels import rows as _rows
from reference.lifecycle import requests as _requests
from reference.lifecycle import turns as _turns
from reference.media import audio as _audio
from reference.media import decoding as _decoding
from reference.media import fetching as _fetching
from reference.media import sampling as _sampling
from reference.media import video as _video
from reference.media.policy import FetchPolicy as _FetchPolicy
from reference.parallel import encoder_ranks as _encoder_ranks
from reference.parallel import launching as _launching
from reference.parallel import ranks as _ranks
from reference.parallel import routing as _routing
from reference.preprocessing import background as _preprocessing
from reference.preprocessing.mirror import Mirror as _Mirror
from reference.transport import channel as _channel
from reference.transport import wire as _wire


class ReferenceEngine:
    """Every stage of `reference` under the name of its engine method."""

    name = "reference"
    version = "0.1.0"
    traits = Traits(surplus_rows="keep last", caller_hashes="trust", carriers=("memory", "tcp"), profile=Profile.SGLANG)

    # media
    decode_image = staticmethod(_decoding.decode_image)

    @staticmethod
    def fetch_media(reference: str, policy: FetchPolicy) -> bytes:
        """`reference.media.fetching.fetch_media` under the same policy."""
        same = {one.name: getattr(policy, one.name) for one in fields(policy)}
        return _fetching.fetch_media(reference, _FetchPolicy(**same))

    @staticmethod
    def sample_frames(clip: Clip, rate: float | None, max_frames: int) -> tuple[list[int], list[float]]:
        """`reference.media.sampling.sample_frames` of the same clip."""
        return _sampling.sample_frames(_sampling.Clip(clip.first, clip.length, clip.fps), rate, max_frames)

    @staticmethod
    def decode_video(data: bytes, rate: float | None, max_frames: int, limits: VideoLimits) -> _video.DecodedVideo:
        """`reference.media.video.decode_video` within the same limits."""
        same = _video.VideoLimits(limits.max_pixels, limits.max_source_frames, limits.max_duration_s)
        return _video.decode_video(data, rate, max_frames, same)

    decode_audio = staticmethod(_audio.decode_audio)

    # planning
    count_image_tokens = staticmethod(_planning.count_image_tokens)
    count_video_tokens = staticmethod(_planning.count_video_tokens)
    count_audio_tokens = staticmethod(_planning.count_audio_tokens)
    image_grid = staticmethod(_planning.image_grid)
    video_grid = staticmethod(_planning.video_grid)

    # identity
    identify = staticmethod(_identity.identify)
    combine_identities = staticmethod(_identity.combine_identities)
    adopt_caller_hashes = staticmethod(_identity.adopt_caller_hashes)
    data_hash = staticmethod(_identity.data_hash)
    tensor_hash = staticmethod(_identity.tensor_hash)
    hash_feature = staticmethod(_identity.hash_feature)

    # sentinels
    sentinels = staticmethod(_sentinels.sentinels)
    sentinels_from_hash = staticmethod(_sentinels.sentinels_from_hash)
    check_vocabulary = staticmethod(_sentinels.check_vocabulary)

    # preprocessing
    preprocessing_key = staticmethod(_preprocessing.preprocessing_key)
    open_preprocessor = staticmethod(_preprocessing.Preprocessor)
    open_mirror = staticmethod(_Mirror)

    # scheduling
    @staticmethod
    def encoder_lengths(batch: Sequence[tuple[NDArray[np.int64], Chunk, int]]) -> list[DecoderPart]:
        """`reference.scheduling.encoder_lengths`."""
        return [
            DecoderPart(part.encoder_length, part.is_cached, part.chunk, part.input_ids)
            for part in _scheduling.encoder_lengths(batch)
        ]

    @staticmethod
    def plan_chunks(length: int, items: Sequence[Item], budget: Budget, prefix: int) -> list[Chunk]:
        """`reference.scheduling.plan_chunks`."""
        return _scheduling.plan_chunks(length, items, _scheduling.Budget(**asdict(budget)), prefix)

    @staticmethod
    def plan_steps(requests: Sequence[tuple[int, Sequence[Item]]], budget: Budget) -> list[dict[int, Chunk]]:
        """`reference.scheduling.plan_steps`."""
        return _scheduling.plan_steps(requests, _scheduling.Budget(**asdict(budget)))

    # encoder_cache
    encoder_key = staticmethod(_encoder_cache.encoder_key)
    open_encoder_cache = staticmethod(_encoder_cache.EncoderCache)

    # encoding
    count_in_chunk = staticmethod(_encoding.count_in_chunk)
    slice_chunk = staticmethod(_encoding.slice_chunk)
    find_encoder = staticmethod(_encoding.find_encoder)
    encode = staticmethod(_encoding.encode)

    # placeholders
    find_spans = staticmethod(_placeholders.find_spans)
    pad_spans = staticmethod(_placeholders.pad_spans)
    pad_pairs = staticmethod(_placeholders.pad_pairs)
    token_modalities = staticmethod(_placeholders.token_modalities)

    # processors
    find_processor = staticmethod(_processors.find_processor)
    process = staticmethod(_processors.process)
    bind_output = staticmethod(_processors.bind_output)

    # positions
    positions = staticmethod(_positions.positions)
    extend_positions = staticmethod(_positions.extend_positions)
    retracted_positions = staticmethod(_positions.retracted_positions)
    stitch_positions = staticmethod(_positions.stitch_positions)
    chunk_positions = staticmethod(_positions.chunk_positions)
    rotary_axes = staticmethod(_positions.rotary_axes)

    # pruning
    retained_count = staticmethod(_pruning.retained_count)
    retention_mask = staticmethod(_pruning.retention_mask)
    prune_prompt = staticmethod(_pruning.prune_prompt)
    prune_positions = staticmethod(_pruning.prune_positions)
    encode_pruned = staticmethod(_pruning.encode_pruned)

    # prefix_cache
    page_keys = staticmethod(_prefix_cache.block_keys)
    open_prefix_cache = staticmethod(_prefix_cache.PrefixCache)

    # merging
    fit_length = staticmethod(_merging.fit_length)
    merge = staticmethod(_merging.merge)
    merge_deepstack = staticmethod(_merging.merge_deepstack)

    # pipeline_ranks
    rank_input = staticmethod(_pipeline_ranks.rank_input)

    # speculation
    draft_embeddings = staticmethod(_speculation.draft_embeddings)
    draft_positions = staticmethod(_speculation.draft_positions)
    propose_ngram = staticmethod(_speculation.propose_ngram)

    # transport: the wire
    encode_message = encode_wire_v1 = staticmethod(_wire.encode_message)
    decode_message = decode_wire_v1 = staticmethod(_wire.decode_message)

    # transport
    open_channel = staticmethod(_channel.Channel)

    @staticmethod
    def open_device_channel(transports: Sequence[str], readers: int, capacity_bytes: int, device: Device) -> _channel.Channel:
        """`reference.transport.channel.Channel` with a device."""
        return _channel.Channel(transports, readers, capacity_bytes, device=device)

    # lifecycle
    join_turn = staticmethod(_turns.join_turn)
    join_positions = staticmethod(_turns.join_positions)
    join_modalities = staticmethod(_turns.join_modalities)
    join_padded = staticmethod(_turns.join_padded)
    open_lifecycle = staticmethod(_requests.LiveRequests)

    # parallel
    @staticmethod
    def launch_plan(layout: Layout) -> list[_launching.Place]:
        """`reference.parallel.launching.launch_plan` of the same layout."""
        return _launching.launch_plan(_launching.Layout(**asdict(layout)))

    open_rank = staticmethod(_ranks.Rank)
    assign_items = staticmethod(_encoder_ranks.assign_items)
    encode_on_rank = staticmethod(_encoder_ranks.encode_on_rank)
    routed = staticmethod(_routing.routed)
    open_router = staticmethod(_routing.Router)

    # disaggregation
    @staticmethod
    def place_encoding(items: Sequence[Item], instance: Instance) -> Place:
        """`reference.disaggregation.assignment.place_encoding` for the same instance."""
        return _assignment.place_encoding(items, **instance._asdict())

    assign_parts = staticmethod(_assignment.assign_parts)
    encode_part = staticmethod(_assignment.encode_part)
    open_encoder_side = staticmethod(_encoder_side.EncoderSide)
    open_receiver = staticmethod(_receiver.Receiver)
    open_prefill_side = staticmethod(_prefill_side.PrefillSide)
    open_decode_side = staticmethod(_decode_side.DecodeSide)
    open_carrier = staticmethod(_carriers.open_carrier)

    # kernels
    @staticmethod
    def word_hash(tensor: torch.Tensor) -> int:
        """`reference.kernels.hashing.word_hash`, and not how it was computed."""
        return _hashing.word_hash(tensor).value

    @staticmethod
    def content_digest(tensor: torch.Tensor) -> bytes:
        """`reference.kernels.hashing.content_digest`."""
        return _hashing.content_digest(tensor).value

    @staticmethod
    def placeholder_mask(input_ids: torch.Tensor, sentinels: torch.Tensor) -> torch.Tensor:
        """`reference.kernels.masks.placeholder_mask`."""
        return _masks.placeholder_mask(input_ids, sentinels).value

    @staticmethod
    def span_mask(spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """`reference.kernels.masks.span_mask` on a CPU."""
        return _masks.span_mask(spans, chunk).value

    @staticmethod
    def scatter_rows(destination: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """`reference.kernels.rows.scatter_rows`."""
        return _rows.scatter_rows(destination, mask, rows).value

    @staticmethod
    def fused_merge(
        input_ids: torch.Tensor, spans: Sequence[Span], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`reference.kernels.rows.fused_merge`."""
        return _rows.fused_merge(input_ids, spans, rows, table, chunk).value

    @staticmethod
    def apply_mrope(
        query: torch.Tensor,
        key: torch.Tensor,
        positions: torch.Tensor,
        table: torch.Tensor,
        sections: tuple[int, int, int],
        interleaved: bool,
        neighbours: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`reference.kernels.rotation.apply_mrope`."""
        return _rotation.apply_mrope(query, key, positions, table, sections, interleaved, neighbours).value

    @staticmethod
    def dissimilarity(embeddings: torch.Tensor, grid: tuple[int, int, int]) -> torch.Tensor:
        """`reference.kernels.frames.dissimilarity`."""
        return _frames.dissimilarity(embeddings, grid).value

    # pipeline
    @staticmethod
    def prefill(checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
        """`reference.pipeline.prefill` on a checkpoint."""
        made = _pipeline.prefill(checkpoint.processor, checkpoint.model, prompt, images, chunk_length=chunk_length)
        return Prefill(made.input_ids, made.embeddings, made.logits)
