"""Steps of SGLang that are pieces of larger functions.

The larger function runs, and only its neighbours on either side are exchanged for what the question gives: rows in the
place of an encoder, a recorder in the place of a scatter. What is asked about is always SGLang's own code.
"""

import asyncio
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from conformance.protocol.encoding import Encoder
from conformance.protocol.pipeline import Prefill
from conformance.protocol.scheduling import DecoderPart
from conformance.world.checkpoint import Checkpoint
from reference.items import Chunk, Item, Modality, Request, Span


def adopt_caller_hashes(sglang: Sglang, items: Sequence[Item], hashes: Sequence[str]) -> tuple[list[int | None], list[str]]:
    """`TokenizerManager._tokenize_one_request`, with a processor that has made these items; and what it warns of."""
    manager = cpu.module("sglang.srt.managers.tokenizer_manager")
    made = [translate.unnamed_item(sglang, item) for item in items]
    problems: list[str] = []

    async def process_mm_data_async(**_: Any) -> Any:
        return sglang.batch.MultimodalProcessorOutput(mm_items=made)

    tokenizer = SimpleNamespace(
        mm_processor=SimpleNamespace(prefer_tokenized_input=True, process_mm_data_async=process_mm_data_async),
        model_config=SimpleNamespace(hf_config=SimpleNamespace(architectures=[])),
        max_req_input_len=None,
        _validate_mm_limits=lambda request: None,
        _normalize_mm_content_hashes=lambda request: None,
        _validate_one_request=lambda request, input_ids: None,
        _create_tokenized_object=lambda *arguments: None,
    )
    request = cpu.module("sglang.srt.managers.io_struct").GenerateReqInput(
        input_ids=[0], image_data=[b""], mm_hashes=list(hashes)
    )
    with patch.object(manager.logger, "warning", lambda text, *values: problems.append(text % values)):
        asyncio.run(manager.TokenizerManager._tokenize_one_request(tokenizer, request))
    return [item.hash for item in made], problems


def find_encoder(sglang: Sglang, kind: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
    """`embed_mm_inputs`, stopped where it has found the encoder of its one item and is about to use it."""
    found: list[Encoder] = []

    def stop(*, data_embedding_func: Encoder, input_ids: torch.Tensor, **_: Any) -> tuple[None, None, torch.Tensor]:
        found.append(data_embedding_func)
        return None, None, input_ids

    item = Item(modality=kind, spans=(Span(0, 0),), caller_hash=0)
    with patch.object(sglang.utils, "get_embedding_and_mask", stop):
        sglang.utils.embed_mm_inputs(
            [translate.inputs(sglang, [item])],
            [0],
            [1],
            torch.zeros(1, dtype=torch.int64),
            torch.nn.Embedding(1, 1),
            multimodal_model=model,
            data_embedding_func_mapping=translate.by_modality(sglang, registered),
        )
    return found[0]


def encode(
    sglang: Sglang, batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder], cache: Any
) -> list[torch.Tensor]:
    """`embed_mm_inputs` for the whole batch, scattered into an empty tensor instead of a text embedding.

    SGLang has no rows of one request: it concatenates those of a batch, and its mask says which goes where. So each
    request is answered with what was put to its positions of media, or the call raises for all of them.
    """
    translated = [translate.inputs(sglang, request.items) for request, _ in batch]
    originals = {
        id(made): item
        for inputs, (request, _) in zip(translated, batch, strict=True)
        for made, item in zip(inputs.mm_items, request.items, strict=True)
    }
    ids = [
        np.array(translate.padded(sglang, request.input_ids, inputs), dtype=np.int64)[chunk.prefix : chunk.stop]
        for inputs, (request, chunk) in zip(translated, batch, strict=True)
    ]
    scatter, scattered = sglang.utils._scatter_mm_embedding, torch.empty(0, 0)

    def scatter_into_nothing(dest: torch.Tensor, mask: torch.Tensor, src: torch.Tensor) -> None:
        nonlocal scattered
        if not scattered.numel():
            scattered = src.new_zeros(len(mask), src.shape[1])
        scatter(dest=scattered, mask=mask, src=src)

    def encoder_of_originals(encoder: Encoder) -> Any:
        def encode(made: Sequence[Any]) -> Any:
            result = encoder([originals[id(one)] for one in made])
            return list(result) if isinstance(result, tuple) else result

        return encode

    with cache_in_place(sglang, cache), patch.object(sglang.utils, "_scatter_mm_embedding", scatter_into_nothing):
        sglang.utils.embed_mm_inputs(
            translated,
            [chunk.prefix for _, chunk in batch],
            [chunk.length for _, chunk in batch],
            torch.from_numpy(np.concatenate([*ids, np.empty(0, dtype=np.int64)])),
            torch.nn.Embedding(1, 1),
            data_embedding_func_mapping=translate.by_modality(
                sglang, {kind: encoder_of_originals(encoder) for kind, encoder in encoders.items()}
            ),
        )
    rows, first = [], 0
    for request, chunk in batch:
        places = [first + position - chunk.prefix for position in translate.media(request.items, chunk)]
        rows.append(scattered[places] if places else scattered[:0])
        first += chunk.length
    return rows


def embed(
    sglang: Sglang,
    input_ids: NDArray[np.int64],
    items: Sequence[Item],
    rows: torch.Tensor,
    table: torch.Tensor,
    chunk: Chunk,
    **deepstack: Any,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """`embed_mm_inputs` for one request, with the rows in the place of what it would encode.

    rows: by position; each modality gets its own, and the last one whatever is left over.
    """
    owners = list(translate.media(items, chunk).values())
    last = max((item.modality for item in items), default=Modality.IMAGE)

    def rows_of(encoder: Any, made: Sequence[Any], *arguments: Any) -> tuple[torch.Tensor | None, torch.Tensor]:
        kind = Modality[made[0].modality.name]
        own = [n for n in range(len(rows)) if (owners[n] if n < len(owners) else last) is kind]
        return (rows[own] if own or kind in owners else None), arguments[-1]

    bare = [Item(modality=i.modality, spans=i.spans, identity=i.identity, caller_hash=i.caller_hash) for i in items]
    with patch.object(sglang.schedule, "_get_chunked_prefill_embedding", rows_of):
        embedded: tuple[torch.Tensor, dict[str, Any]] = sglang.utils.embed_mm_inputs(
            [translate.inputs(sglang, bare)],
            [chunk.prefix],
            [chunk.length],
            torch.from_numpy(input_ids),
            torch.nn.Embedding(table.shape[0], table.shape[1], _weight=table, _freeze=True),
            data_embedding_func_mapping=translate.by_modality(sglang, dict.fromkeys(Modality, rows_of)),
            **deepstack,
        )
    return embedded


def deepstack_model(levels: int, hidden: int) -> Any:
    """As much of a Qwen3-VL as splits the columns of an embedding."""
    owner = cpu.module("sglang.srt.models.qwen3_vl").Qwen3VLForConditionalGeneration
    model = SimpleNamespace(
        deepstack_visual_indexes=list(range(levels)),
        num_deepstack_embeddings=levels,
        config=SimpleNamespace(hidden_size=hidden),
    )
    model.separate_deepstack_embeds = lambda embedding: owner.separate_deepstack_embeds(model, embedding)
    return model


class EncoderCache:
    """`MultiModalStaticCache`, whose keys are 64-bit hashes."""

    def __init__(self, sglang: Sglang, capacity_bytes: int) -> None:
        self.cache = sglang.caches.MultiModalStaticCache(capacity_bytes)
        self._sglang = sglang

    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        """`set`."""
        result = self._sglang.caches.EmbeddingResult(embedding=embedding)
        return bool(self.cache.set(translate.cache_key(self._sglang, key), result))

    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        """What `_get_chunked_prefill_embedding` finds for an item of `token_count` tokens before it would encode it.

        The cache itself does not look at lengths; this is where SGLang does.
        """
        item = translate.data_item(self._sglang, Item(modality=Modality.IMAGE, spans=(Span(0, token_count - 1),)))
        item.set_hash(translate.cache_key(self._sglang, key))

        def miss(items: Sequence[Any]) -> Any:
            raise _Missed

        with cache_in_place(self._sglang, self.cache):
            try:
                rows, _ = self._sglang.schedule._get_chunked_prefill_embedding(
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


@contextmanager
def cache_in_place(sglang: Sglang, cache: Any) -> Iterator[None]:
    """SGLang has one embedding cache a process; for a while it is this one."""
    with patch.object(sglang.schedule, "embedding_cache", cache):
        yield


@torch.no_grad()
def prefill(sglang: Sglang, checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
    """SGLang's Qwen-VL processor, its padding, `embed_mm_inputs` and its M-RoPE positions, around the checkpoint's model."""
    inputs, ids, positions = _processed(sglang, checkpoint, prompt, images)
    model, cache = checkpoint.model, None
    fed, answered = [], []
    step = chunk_length or len(ids)
    for first in range(0, len(ids), step):
        chunk = torch.from_numpy(ids[first : first + step].copy())
        embeddings = _embedded(sglang, model, inputs, chunk, first)
        said = model.model.language_model(
            inputs_embeds=embeddings[None], position_ids=positions[:, None, first : first + step], cache=cache, use_cache=True
        )
        cache = said.cache
        fed.append(embeddings)
        answered.append(model.lm_head(said.last_hidden_state)[0])
    return Prefill(ids, torch.cat(fed), torch.cat(answered))


def _processed(
    sglang: Sglang, checkpoint: Checkpoint, prompt: str, images: Sequence[Image]
) -> tuple[Any, NDArray[np.int64], torch.Tensor]:
    """The scheduler's view of a request: its inputs (None for text alone), padded ids, and positions [3, n]."""
    if not images:  # the tokenizer manager calls no processor then
        ids = np.array(checkpoint.processor.tokenizer(prompt)["input_ids"], dtype=np.int64)
        return None, ids, torch.arange(len(ids)).expand(3, -1)
    processors = cpu.module("sglang.srt.multimodal.processors.qwen_vl")
    arguments = cpu.module("sglang.srt.runtime_context").get_server_args()
    processor = processors.QwenVLImageProcessor(
        checkpoint.model.config, arguments, checkpoint.processor, "default", skip_mm_pool=True
    )
    request = SimpleNamespace(video_data=None, audio_data=None)
    try:
        output = asyncio.run(processor.process_mm_data_async(image_data=list(images), input_text=prompt, request_obj=request))
    finally:
        processor.shutdown()
    inputs = sglang.batch.MultimodalInputs.from_processor_output(output)
    padded: array[int] = translate.padded(sglang, np.array(output.input_ids, dtype=np.int64), inputs)
    return inputs, np.array(padded, dtype=np.int64), output.mrope_positions


def _embedded(sglang: Sglang, model: Any, inputs: Any, chunk: torch.Tensor, prefix: int) -> torch.Tensor:
    """What enters the language model for the ids of one chunk."""
    table = model.get_input_embeddings()
    if inputs is None:
        plain: torch.Tensor = table(chunk)
        return plain

    def encode(items: Sequence[Any]) -> list[torch.Tensor]:
        return [torch.cat(model.get_image_features(item.feature, item.image_grid_thw).pooler_output) for item in items]

    embedded: torch.Tensor = sglang.utils.embed_mm_inputs(
        [inputs],
        [prefix],
        [len(chunk)],
        chunk,
        table,
        data_embedding_func_mapping=translate.by_modality(sglang, {Modality.IMAGE: encode}),
    )[0]
    return embedded


def encoder_lengths(sglang: Sglang, batch: Sequence[tuple[NDArray[np.int64], Chunk, int]]) -> list[DecoderPart]:
    """`ScheduleBatch.prepare_encoder_info_extend` on a batch that has what it reads, one KV slot a position."""
    requests = [
        SimpleNamespace(
            multimodal_inputs=SimpleNamespace(num_image_tokens=encoder_length) if encoder_length else None,
            prefix_len=chunk.prefix,
            extend_len=chunk.length,
            logprob_start_len=-1,
        )
        for _, chunk, encoder_length in batch
    ]
    total = sum(chunk.length for _, chunk, _ in batch)
    running = SimpleNamespace(
        reqs=requests,
        device="cpu",
        forward_mode=cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardMode.EXTEND,
        prefix_lens=[chunk.prefix for _, chunk, _ in batch],
        extend_lens=[chunk.length for _, chunk, _ in batch],
        extend_num_tokens=total,
        out_cache_loc=torch.arange(total),
        extend_input_logprob_token_ids=None,
    )
    ids = [array("q", ids.tobytes()) for ids, _, _ in batch]
    sglang.batch.ScheduleBatch.prepare_encoder_info_extend(running, ids, [chunk.stop for _, chunk, _ in batch])
    chunks = map(Chunk, running.prefix_lens, running.extend_lens)
    stripped = torch.split(running.prefill_input_ids_cpu, running.extend_lens)
    answers = zip(running.encoder_lens_cpu, running.encoder_cached, chunks, stripped, strict=True)
    return [DecoderPart(length, cached, chunk, ids.numpy()) for length, cached, chunk, ids in answers]
