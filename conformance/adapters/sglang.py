"""SGLang 0.5.23: its own functions, on a CPU, under the engine protocol.

Every method calls SGLang's function and translates types, nothing more: an answer is never repaired, an argument never
protected, an error never softened. What SGLang has no function for is left out. Where a step of SGLang is a piece of a
larger function, the larger function runs, with its neighbours given what the question gives; each such method says so.

Which path: prompts are padded by `pad_mm_tokens`, as the models of the Qwen-VL, GLM-V, Kimi-VL and Gemma families are.
An item is known by its 64-bit `hash` to the embedding cache, and by all of a 32-byte identity to the prefix cache.
"""

import asyncio
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters import sglang_cpu
from conformance.engine import Encoder, Profile, Traits
from reference.items import IDENTITY_BYTES, Chunk, Item, Modality, Request, Span


class SglangEngine:
    """SGLang's multimodal input pipeline. Making one imports SGLang, which takes some ten seconds."""

    name = "sglang"
    traits = Traits(largest_vocabulary=1_000_000, surplus_rows="keep last", caller_hashes="trust", profile=Profile.SGLANG)

    def __init__(self) -> None:
        self.version = sglang_cpu.prepare()
        self._batch = sglang_cpu.module("sglang.srt.managers.schedule_batch")
        self._utils = sglang_cpu.module("sglang.srt.managers.mm_utils")
        self._schedule = sglang_cpu.module("sglang.srt.managers.mm_schedule")
        self._caches = sglang_cpu.module("sglang.srt.mem_cache.multimodal_cache")

    # identity

    def identify(self, item: Item) -> bytes:
        """`MultimodalDataItem.set_pad_value`, and the 8 bytes of the hash that it sets."""
        made = self._batch.MultimodalDataItem(
            modality=self._modality(item.modality),
            feature=item.feature,
            precomputed_embeddings=item.embedding,
            model_specific_data=dict(item.fields),
        )
        made.set_pad_value()
        return _octets(made.hash)

    def combine_identities(self, identities: Sequence[bytes]) -> bytes | None:
        """`MultiModalStaticCache.combine_hashes`."""
        combined = self._caches.MultiModalStaticCache.combine_hashes([self._hash(one) for one in identities])
        return None if combined is None else _octets(combined % 2**64)

    def adopt_caller_hashes(
        self, items: Sequence[Item], hashes: Mapping[Modality, Sequence[str]]
    ) -> tuple[list[int | None], list[str]]:
        """`TokenizerManager._tokenize_one_request`, with a processor that has made these items.

        SGLang takes one list of hashes for all items of a request.
        """
        manager = sglang_cpu.module("sglang.srt.managers.tokenizer_manager")
        made = [self._batch.MultimodalDataItem(modality=self._modality(item.modality)) for item in items]
        output = self._batch.MultimodalProcessorOutput(mm_items=made)
        problems: list[str] = []

        async def process_mm_data_async(**_: Any) -> Any:
            return output

        tokenizer = SimpleNamespace(
            mm_processor=SimpleNamespace(prefer_tokenized_input=True, process_mm_data_async=process_mm_data_async),
            model_config=SimpleNamespace(hf_config=SimpleNamespace(architectures=[])),
            max_req_input_len=None,
            _validate_mm_limits=lambda request: None,
            _normalize_mm_content_hashes=lambda request: None,
            _validate_one_request=lambda request, input_ids: None,
            _create_tokenized_object=lambda *arguments: None,
        )
        request = sglang_cpu.module("sglang.srt.managers.io_struct").GenerateReqInput(
            input_ids=[0], image_data=[None], mm_hashes=_in_item_order(items, hashes)
        )
        with patch.object(manager.logger, "warning", lambda text, *values: problems.append(text % values)):
            asyncio.run(manager.TokenizerManager._tokenize_one_request(tokenizer, request))
        return [item.hash for item in made], problems

    def data_hash(self, data: bytes) -> int:
        """`data_hash`."""
        return int(self._utils.data_hash(data))

    def tensor_hash(self, tensors: torch.Tensor | Sequence[Any]) -> int:
        """`tensor_hash`."""
        return int(self._utils.tensor_hash(tensors))

    def hash_feature(self, feature: Any) -> int:
        """`hash_feature`."""
        return int(self._utils.hash_feature(feature))

    # sentinels

    def sentinels(self, identity: bytes) -> Sequence[int]:
        """`MultimodalDataItem.set_identity`."""
        item = self._batch.MultimodalDataItem(modality=self._batch.Modality.IMAGE)
        item.set_identity(identity)
        return list(item.padding_values())

    def sentinels_from_hash(self, value: int) -> Sequence[int]:
        """`MultimodalDataItem.set_hash`."""
        item = self._batch.MultimodalDataItem(modality=self._batch.Modality.IMAGE)
        item.set_hash(value)
        return list(item.padding_values())

    def check_vocabulary(self, size: int) -> None:
        """`sanity_check_mm_pad_shift_value`."""
        self._batch.sanity_check_mm_pad_shift_value(size)

    # placeholders

    def find_spans(self, input_ids: NDArray[np.int64], token_id: int) -> Sequence[tuple[int, int]]:
        """`BaseMultimodalProcessor.get_mm_items_offset`."""
        processors = sglang_cpu.module("sglang.srt.multimodal.processors.base_processor")
        found = processors.BaseMultimodalProcessor.get_mm_items_offset(torch.from_numpy(input_ids), token_id)
        return list(found)

    def pad_spans(self, input_ids: NDArray[np.int64], items: Sequence[Item]) -> "array[int]":
        """`pad_mm_tokens`."""
        return self._padded(input_ids, self._inputs(items))

    def pad_pairs(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        pairs: Sequence[tuple[int, int]],
        item_starts: Collection[int],
    ) -> "array[int]":
        """`pad_mm_token_pairs`."""
        padded: array[int] = self._utils.pad_mm_token_pairs(
            array("q", input_ids.tobytes()),
            self._inputs(items),
            data_token_pairs=list(pairs),
            data_start_token_ids=list(item_starts),
        )
        return padded

    def token_modalities(self, length: int, items: Sequence[Item]) -> Sequence[int]:
        """`MultimodalProcessorOutput.build_token_modalities`; its None is what the forward batch reads as all text."""
        modalities = self._batch.MultimodalProcessorOutput.build_token_modalities([0] * length, list(map(self._item, items)))
        return [0] * length if modalities is None else list(modalities)

    # encoder_cache

    def open_encoder_cache(self, capacity_bytes: int) -> "SglangEncoderCache":
        """`MultiModalStaticCache`."""
        return SglangEncoderCache(self, capacity_bytes)

    # encoding

    def count_in_chunk(self, spans: Sequence[Span], chunk: Chunk) -> int:
        """`_count_mm_tokens_in_extend`."""
        return int(self._schedule._count_mm_tokens_in_extend([chunk.prefix], [chunk.length], [_offsets(spans)]))

    def slice_chunk(self, embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """`get_embedding_chunk`."""
        rows: torch.Tensor = self._schedule.get_embedding_chunk(embedding, chunk.prefix, chunk.length, _offsets(spans))[0]
        return rows

    def find_encoder(self, modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
        """`embed_mm_inputs`, stopped where it has found the encoder of its one item and begins to use it."""
        found: list[Encoder] = []

        def stop(*, data_embedding_func: Encoder, input_ids: torch.Tensor, **_: Any) -> tuple[None, None, torch.Tensor]:
            found.append(data_embedding_func)
            return None, None, input_ids

        item = Item(modality=modality, spans=(Span(0, 0),), caller_hash=0)
        with patch.object(self._utils, "get_embedding_and_mask", stop):
            self._utils.embed_mm_inputs(
                [self._inputs([item])],
                [0],
                [1],
                torch.zeros(1, dtype=torch.int64),
                torch.nn.Embedding(1, 1),
                multimodal_model=model,
                data_embedding_func_mapping={self._modality(one): encoder for one, encoder in registered.items()},
            )
        return found[0]

    def encode(
        self,
        batch: Sequence[tuple[Request, Chunk]],
        encoders: Mapping[Modality, Encoder],
        cache: "SglangEncoderCache | None",
    ) -> Sequence[torch.Tensor]:
        """`embed_mm_inputs` for the whole batch, scattered into an empty tensor instead of a text embedding.

        SGLang has no rows of one request: it concatenates those of a batch, and its mask says which goes where. So each
        request is answered with what was put to its positions of media, or the call raises for all of them.
        """
        translated = [self._inputs(request.items) for request, _ in batch]
        originals = {
            id(made): item
            for inputs, (request, _) in zip(translated, batch, strict=True)
            for made, item in zip(inputs.mm_items, request.items, strict=True)
        }
        chunks = [
            np.array(self._padded(request.input_ids, inputs), dtype=np.int64)[chunk.prefix : chunk.stop]
            for inputs, (request, chunk) in zip(translated, batch, strict=True)
        ]
        scatter, scattered = self._utils._scatter_mm_embedding, torch.empty(0, 0)

        def scatter_into_nothing(dest: torch.Tensor, mask: torch.Tensor, src: torch.Tensor) -> None:
            nonlocal scattered
            if not scattered.numel():
                scattered = src.new_zeros(len(mask), src.shape[1])
            scatter(dest=scattered, mask=mask, src=src)

        def translate(encoder: Encoder) -> Any:
            def encode(made: Sequence[Any]) -> Any:
                result = encoder([originals[id(one)] for one in made])
                return result if isinstance(result, torch.Tensor) else list(result)

            return encode

        with (
            self._cache_in_place((cache or self.open_encoder_cache(0)).cache),
            patch.object(self._utils, "_scatter_mm_embedding", scatter_into_nothing),
        ):
            self._utils.embed_mm_inputs(
                translated,
                [chunk.prefix for _, chunk in batch],
                [chunk.length for _, chunk in batch],
                torch.from_numpy(np.concatenate(chunks)),
                torch.nn.Embedding(1, 1),
                data_embedding_func_mapping={self._modality(one): translate(encoder) for one, encoder in encoders.items()},
            )
        rows, first = [], 0
        for request, chunk in batch:
            media = [first + position - chunk.prefix for position in _positions(request.items, chunk)]
            rows.append(scattered[media] if media else scattered[:0])
            first += chunk.length
        return rows

    # merging

    def fit_length(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """`_adjust_embedding_length`."""
        fitted: torch.Tensor = self._schedule._adjust_embedding_length(rows, count, self._schedule.logger)
        return fitted

    def merge(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> torch.Tensor:
        """`embed_mm_inputs`, with the rows in the place of what it would encode. It writes to the ids that it gets."""
        merged, _ = self._embed(input_ids, items, rows, table, chunk)
        return merged

    def merge_deepstack(
        self, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, table: torch.Tensor, chunk: Chunk
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`embed_mm_inputs` with Qwen3-VL's `separate_deepstack_embeds`, for all modalities."""
        hidden = table.shape[1]
        levels = rows.shape[1] // hidden - 1
        owner = sglang_cpu.module("sglang.srt.models.qwen3_vl").Qwen3VLForConditionalGeneration
        model = SimpleNamespace(
            deepstack_visual_indexes=list(range(levels)),
            num_deepstack_embeddings=levels,
            config=SimpleNamespace(hidden_size=hidden),
        )
        model.separate_deepstack_embeds = lambda embedding: owner.separate_deepstack_embeds(model, embedding)
        uses = dict.fromkeys(self._batch.Modality.all(), True)
        merged, info = self._embed(input_ids, items, rows, table, chunk, multimodal_model=model, use_deepstack=uses)
        return merged, info["input_deepstack_embeds"].reshape(len(merged), levels, hidden).transpose(0, 1)

    # translation

    def _modality(self, modality: Modality) -> Any:
        return self._batch.Modality[modality.name]

    def _hash(self, identity: bytes) -> int:
        """The hash under which the embedding cache knows an item: of a 32-byte identity, what `set_identity` keeps."""
        item = self._batch.MultimodalDataItem(modality=self._batch.Modality.IMAGE)
        if len(identity) == IDENTITY_BYTES:
            item.set_identity(identity)
        else:
            item.set_hash(int.from_bytes(identity, "big"))
        return int(item.hash)

    def _item(self, item: Item) -> Any:
        made = self._batch.MultimodalDataItem(
            modality=self._modality(item.modality),
            offsets=_offsets(item.spans),
            feature=item.feature,
            precomputed_embeddings=item.embedding,
            model_specific_data=dict(item.fields),
        )
        if item.caller_hash is not None:
            made.set_hash(item.caller_hash)
        elif item.identity is not None:
            made.set_identity(item.identity)
        return made

    def _inputs(self, items: Sequence[Item]) -> Any:
        """What the scheduler makes of a processor's output; items without a hash get theirs here."""
        output = self._batch.MultimodalProcessorOutput(
            mm_items=list(map(self._item, items)), im_token_id=0, video_token_id=0, audio_token_id=0
        )
        return self._batch.MultimodalInputs.from_processor_output(output)

    def _padded(self, input_ids: NDArray[np.int64], inputs: Any) -> "array[int]":
        padded: array[int] = self._utils.pad_mm_tokens(array("q", input_ids.tobytes()), inputs)
        return padded

    def _embed(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
        **deepstack: Any,
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        kinds = [kind for kind in Modality for item in items if item.modality is kind]
        owners = list(_positions(items, chunk).values())

        def rows_of(encoder: Any, made: Sequence[Any], *arguments: Any) -> tuple[torch.Tensor | None, torch.Tensor]:
            kind = Modality[made[0].modality.name]
            chosen = [n for n in range(len(rows)) if (owners[n] if n < len(owners) else kinds[-1]) is kind]
            return (rows[chosen] if chosen or kind in owners else None), arguments[-1]

        bare = [Item(modality=i.modality, spans=i.spans, identity=i.identity, caller_hash=i.caller_hash) for i in items]
        with patch.object(self._schedule, "_get_chunked_prefill_embedding", rows_of):
            embedded: tuple[torch.Tensor, dict[str, Any]] = self._utils.embed_mm_inputs(
                [self._inputs(bare)],
                [chunk.prefix],
                [chunk.length],
                torch.from_numpy(input_ids),
                torch.nn.Embedding(table.shape[0], table.shape[1], _weight=table, _freeze=True),
                data_embedding_func_mapping=dict.fromkeys(self._batch.Modality.all(), rows_of),
                **deepstack,
            )
        return embedded

    @contextmanager
    def _cache_in_place(self, cache: Any) -> Iterator[None]:
        """SGLang has one embedding cache a process; for a while it is this one."""
        with patch.object(self._schedule, "embedding_cache", cache):
            yield


class SglangEncoderCache:
    """`MultiModalStaticCache`, whose keys are 64-bit hashes."""

    def __init__(self, engine: SglangEngine, capacity_bytes: int) -> None:
        self.cache = engine._caches.MultiModalStaticCache(capacity_bytes)
        self._engine = engine

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        """`set`."""
        result = self._engine._caches.EmbeddingResult(embedding=embedding)
        return bool(self.cache.set(self._engine._hash(key), result))

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        """What `_get_chunked_prefill_embedding` finds for an item of `token_count` tokens before it would encode it.

        The cache itself does not look at lengths; this is where SGLang does.
        """
        item = self._engine._item(Item(modality=Modality.IMAGE, spans=(Span(0, token_count - 1),)))
        item.set_hash(self._engine._hash(key))

        def miss(items: Sequence[Any]) -> Any:
            raise _Missed

        with self._engine._cache_in_place(self.cache):
            try:
                rows, _ = self._engine._schedule._get_chunked_prefill_embedding(
                    miss, [item], [0, 1], [0], [token_count], [item.offsets], torch.zeros(token_count, dtype=torch.int64)
                )
            except _Missed:
                return None
        found: torch.Tensor = rows
        return found

    def used_bytes(self) -> int:
        """`current_size`."""
        return int(self.cache.current_size)

    def clear(self) -> None:
        """`clear`."""
        self.cache.clear()


class _Missed(Exception):
    """SGLang turned to the encoder."""


def _octets(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _offsets(spans: Sequence[Span]) -> list[tuple[int, int]]:
    return [(span.first, span.last) for span in spans]


def _positions(items: Sequence[Item], chunk: Chunk) -> dict[int, Modality]:
    """The positions of media in a chunk, in ascending order, and the modality at each."""
    owners = {position: item.modality for item in items for span in item.spans for position in range(span.first, span.stop)}
    return {position: owners[position] for position in sorted(owners) if chunk.prefix <= position < chunk.stop}


def _in_item_order(items: Sequence[Item], hashes: Mapping[Modality, Sequence[str]]) -> list[str]:
    """The hashes in one list: each item's in turn, and those that are left over."""
    left = {modality: list(values) for modality, values in hashes.items()}
    taken = [left[item.modality].pop(0) for item in items if left.get(item.modality)]
    return taken + [value for values in left.values() for value in values]
