"""Steps of vLLM that are pieces of larger functions: a request through one step of the engine, and a model around them."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from conformance.adapters.vllm import cpu, prompts
from conformance.adapters.vllm import items as translate
from conformance.adapters.vllm.cpu import Vllm
from conformance.protocol.encoding import Encoder
from reference.items import Chunk, Item, Modality, Request, Span

UNLIMITED = 2**40


def encode(
    vllm: Vllm, batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder]
) -> list[torch.Tensor | Exception]:
    """One step: the scheduler chooses, the encoder runs, its rows are gathered and merged, here into an empty tensor.

    A request whose chunk is empty is not scheduled. One that the data parser refuses, or whose item is known with another
    number of embeddings, fails by itself; an error later on is one of the whole step.
    """
    scheduler, runner = _scheduler(vllm), _runner(vllm, EncoderModel(encoders))
    answers: dict[str, torch.Tensor | Exception] = {str(number): torch.empty(0, 0) for number in range(len(batch))}
    running: dict[str, tuple[Request, Chunk]] = {}
    inputs: dict[str, list[int]] = {}
    for id, (one, chunk) in zip(answers, batch, strict=True):
        try:
            request = prompts.request(vllm, id, one)
        except ValueError as error:
            answers[id] = error
            continue
        chosen, _, _, external, duplicates = scheduler._try_schedule_encoder_inputs(
            request, chunk.prefix, chunk.length, UNLIMITED
        )
        if id in scheduler.encoder_cache_mismatch_reqs:
            answers[id] = ValueError("its item is known with another number of embeddings, so the scheduler fails the request")
        elif chunk.length:
            scheduler._allocate_encoder_inputs(request, chosen + external, duplicates)
            runner.encoder_cache.add_request(id, request.mm_features)
            running[id], inputs[id] = (one, chunk), chosen
    hashes, arguments = runner.prepare_mm_inputs(inputs)
    runner.encoder_cache.encoder_outputs.update(zip(hashes, runner.execute_mm_encoder(arguments), strict=True))
    return list((answers | (_rows(runner, running) if running else {})).values())


def slice_chunk(vllm: Vllm, embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """`EncoderRunner.gather_mm_embeddings` for one request of one item, whose encoder output is there."""
    rows, _ = gathered(vllm, [Item(modality=Modality.IMAGE, spans=tuple(spans), caller_hash=0)], [embedding], chunk)
    return torch.cat(rows) if rows else embedding[:0]


def gathered(
    vllm: Vllm, items: Sequence[Item], outputs: Sequence[torch.Tensor], chunk: Chunk
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The rows and the mask of a chunk, for items whose encoder outputs are there."""
    if not chunk.length:
        return [], torch.zeros(0, dtype=torch.bool)
    runner = _runner(vllm, EncoderModel({}))
    named = [
        Item(modality=item.modality, spans=item.spans, caller_hash=number) for number, item in enumerate(items)
    ]  # by its number, for two items may share a content
    runner.encoder_cache.add_request("0", translate.features(vllm, named))
    runner.encoder_cache.encoder_outputs.update(zip(map(translate.identifier, named), outputs, strict=True))
    return _gather(runner, {"0": chunk}, [chunk.stop])


def merge(
    vllm: Vllm, model: Any, input_ids: NDArray[np.int64], items: Sequence[Item], rows: torch.Tensor, chunk: Chunk
) -> torch.Tensor:
    """The model's `embed_input_ids`, with the mask that `gather_mm_embeddings` makes, behind the check of ids at the door."""
    vocabulary = model.get_language_model().num_embeddings
    door = SimpleNamespace(tokenizer=None, model_config=SimpleNamespace(get_vocab_size=lambda: vocabulary))
    vllm.renderers.BaseRenderer.validate_token_ids(door, input_ids.tolist())
    _, mask = gathered(vllm, items, [torch.zeros(item.token_count, 1) for item in items], chunk)
    ids = torch.from_numpy(input_ids.copy())
    model.configure_mm_token_handling(vocabulary, ids[mask].tolist())
    given = [rows] if len(rows) or mask.any() else []
    merged: torch.Tensor = model.embed_input_ids(ids, multimodal_embeddings=given, is_multimodal=mask)
    return merged


def draft_embeddings(
    vllm: Vllm,
    input_ids: NDArray[np.int64],
    items: Sequence[Item],
    rows: torch.Tensor,
    table: torch.Tensor,
    chunk: Chunk,
    next_id: int,
) -> torch.Tensor:
    """`SpecDecodeBaseProposer`: the token behind the chunk, the ids one position earlier, and both as `merge` has them.

    In the chunk that is the last one a token was sampled. The embeddings of media are gathered one position ahead.
    """
    if not chunk.length:
        return table[:0]
    runner = _runner(vllm, EncoderModel({}))
    named = [Item(modality=item.modality, spans=item.spans, caller_hash=number) for number, item in enumerate(items)]
    features = translate.features(vllm, named)
    runner.encoder_cache.add_request("0", features)
    runner.encoder_cache.encoder_outputs.update(
        zip(map(translate.identifier, named), _outputs(items, rows, chunk), strict=True)
    )
    behind, mask = _gather(runner, {"0": chunk}, [len(input_ids)], draft_lookahead=1)
    owner = cpu.module("vllm.v1.spec_decode.llm_base_proposer").SpecDecodeBaseProposer
    proposer = owner.__new__(owner)
    proposer.use_heterogeneous_vocab = proposer.needs_extra_input_slots = proposer.uses_mrope = False
    proposer.vllm_config = SimpleNamespace(model_config=SimpleNamespace(uses_mrope=False))
    proposer.pass_hidden_states_to_model = False
    proposer.supports_mm_inputs = True
    proposer.model = model(vllm, table)
    proposer.input_ids, proposer.positions = torch.zeros(2, chunk.length, dtype=torch.int32)
    proposer.hidden_states, proposer.inputs_embeds = torch.zeros(2, chunk.length, table.shape[1], dtype=table.dtype)
    state = cpu.module("vllm.v1.worker.gpu_input_batch").CachedRequestState(
        "0", input_ids.tolist(), features, None, None, block_ids=([],), num_computed_tokens=chunk.prefix, output_token_ids=[]
    )
    sampled = [next_id] if chunk.stop == len(input_ids) else []
    batch = SimpleNamespace(req_ids=["0"])
    following = proposer.prepare_next_token_ids_cpu([sampled], {"0": state}, batch, {"0": chunk.length})
    ids = torch.from_numpy(input_ids[chunk.prefix : chunk.stop].astype(np.int32))
    last = torch.tensor([chunk.length - 1])
    proposer.set_inputs_first_pass(ids, following, proposer.positions, proposer.hidden_states, last, None, None)
    proposer.model.configure_mm_token_handling(len(table), proposer.input_ids[mask].tolist())
    fed, _ = proposer.build_model_inputs_first_pass(chunk.length, chunk.length, (behind, mask))
    embeddings: torch.Tensor = fed["inputs_embeds"]
    return embeddings


def _outputs(items: Sequence[Item], rows: torch.Tensor, chunk: Chunk) -> list[torch.Tensor]:
    """What the encoder gave for each item, as far as it is known: the rows one position later than the chunk."""
    filled = [[place for span in item.spans for place in range(span.first, span.stop)] for item in items]
    places = [(position, number, row) for number, own in enumerate(filled) for row, position in enumerate(own)]
    outputs = [rows.new_zeros(item.token_count, rows.shape[1]) for item in items]
    known = [(number, row) for position, number, row in sorted(places) if chunk.prefix < position <= chunk.stop]
    for given, (number, row) in zip(rows, known, strict=True):
        outputs[number][row] = given
    return outputs


def propose_ngram(input_ids: NDArray[np.int64], shortest: int, longest: int, count: int) -> list[int]:
    """The proposals of `NgramProposer` for one request, to whose end a token was sampled, in a model of any length."""
    config = SimpleNamespace(
        speculative_config=SimpleNamespace(prompt_lookup_min=shortest, prompt_lookup_max=longest, num_speculative_tokens=count),
        model_config=SimpleNamespace(max_model_len=len(input_ids) + count),
        scheduler_config=SimpleNamespace(max_num_seqs=1),
        parallel_config=SimpleNamespace(tensor_parallel_size=1),
    )
    proposer = cpu.module("vllm.v1.spec_decode.ngram_proposer").NgramProposer(config)
    ids = input_ids.astype(np.int32)[None]
    (proposed,) = proposer.propose(count, [[0]], np.array([len(input_ids)], dtype=np.int32), ids)
    return list(proposed)


class Words(nn.Embedding):
    """A language model, as far as it embeds ids."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__(table.shape[0], table.shape[1], _weight=table, _freeze=True)

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """The text embeddings."""
        return self.forward(input_ids)


def model(vllm: Vllm, table: torch.Tensor) -> Any:
    """A model with the `embed_input_ids` that nearly all of vLLM's multimodal models inherit."""
    made: Any = type("Model", (nn.Module, vllm.interfaces.SupportsMultiModal), {})()
    made.language_model = Words(table)
    return made


def deepstack_model(vllm: Vllm, levels: int, table: torch.Tensor, tokens: int = 8) -> Any:
    """As much of a Qwen3-VL as merges embeddings; its buffers for the deeper levels have `tokens` positions to begin with."""
    hidden = table.shape[1]
    made = vllm.qwen3_vl.Qwen3VLForConditionalGeneration.__new__(vllm.qwen3_vl.Qwen3VLForConditionalGeneration)
    nn.Module.__init__(made)
    made.config = SimpleNamespace(text_config=SimpleNamespace(hidden_size=hidden))
    made.use_deepstack = levels > 0
    made.deepstack_num_level = levels
    made.visual_dim = hidden
    made.multiscale_dim = hidden * levels
    made.deepstack_input_embeds = [torch.zeros(tokens, hidden, dtype=table.dtype) for _ in range(levels)]
    made.deepstack_input_embeds_num_tokens = 0
    return made


def deepstack(model: Any, tokens: int) -> torch.Tensor:
    """The levels of the step that was merged last, taken and cleared as the model's `forward` does it."""
    buffers = model._get_deepstack_input_embeds(tokens)
    levels = [] if buffers is None else [buffer.clone() for buffer in buffers.tensors.values()]
    model._clear_deepstack_input_embeds(tokens)
    return torch.stack(levels) if levels else torch.empty(0, tokens, model.visual_dim)


class EncoderModel:
    """A model whose `embed_multimodal` calls these encoders."""

    def __init__(self, encoders: Mapping[Modality, Encoder]) -> None:
        self._encoders = encoders

    def embed_multimodal(self, **given: Any) -> Any:
        """One 2-D tensor an item, as models do it: precomputed embeddings as they are, rows in one tensor split by length."""
        ((name, values),) = given.items()
        if name.endswith("_embeds"):
            return values
        rows = self._encoders[Modality[name.upper()]](values)
        if isinstance(rows, torch.Tensor) and rows.ndim == 2:
            return torch.split(rows, [item.token_count for item in values])
        return rows


def _scheduler(vllm: Vllm) -> Any:
    """A scheduler, as far as it chooses what to encode, with room and time for everything."""
    scheduler = vllm.scheduler.Scheduler.__new__(vllm.scheduler.Scheduler)
    scheduler.is_encoder_decoder = False
    scheduler.scheduler_config = SimpleNamespace(disable_chunked_mm_input=False)
    scheduler.ec_connector = None
    scheduler.encoder_cache_manager = vllm.scheduler.EncoderCacheManager(UNLIMITED)
    scheduler.encoder_cache_mismatch_reqs = set()
    return scheduler


def _runner(vllm: Vllm, model: EncoderModel) -> Any:
    cache = vllm.encoder_cache.EncoderCache()
    return vllm.encoder_runner.EncoderRunner(model, 1, 1, cache, torch.float32, torch.device("cpu"))


def _gather(
    runner: Any, chunks: Mapping[str, Chunk], prompt_lengths: Sequence[int], draft_lookahead: int = 0
) -> tuple[list[torch.Tensor], torch.Tensor]:
    lengths = np.array([chunk.length for chunk in chunks.values()], dtype=np.int64)
    rows, mask = runner.gather_mm_embeddings(
        list(chunks),
        int(lengths.sum()),
        lengths,
        np.concatenate([[0], np.cumsum(lengths)]),
        np.array(prompt_lengths, dtype=np.int64),
        np.array([chunk.prefix for chunk in chunks.values()], dtype=np.int64),
        draft_lookahead,
    )
    return rows, mask


def _rows(runner: Any, running: Mapping[str, tuple[Request, Chunk]]) -> dict[str, torch.Tensor]:
    """What an Omni model, which has media of every modality, puts to the positions of media of each request."""
    chunks = {id: chunk for id, (_, chunk) in running.items()}
    rows, mask = _gather(runner, chunks, [len(request.input_ids) for request, _ in running.values()])
    ids = [torch.tensor(translate.modalities(request)[chunk.prefix : chunk.stop]) for request, chunk in running.values()]
    model = _omni_model(rows[0] if rows else torch.empty(0, 0))
    merged = model.embed_input_ids(torch.cat(ids), multimodal_embeddings=rows, is_multimodal=mask)
    lengths = [chunk.length for chunk in chunks.values()]
    return {
        id: part[here] for id, part, here in zip(chunks, torch.split(merged, lengths), torch.split(mask, lengths), strict=True)
    }


def _omni_model(like: torch.Tensor) -> Any:
    """A Qwen2.5-Omni, as far as it merges: its placeholder ids are the numbers of modalities, and all text is zero."""
    owner = cpu.module("vllm.model_executor.models.qwen2_5_omni_thinker").Qwen2_5OmniThinkerForConditionalGeneration
    made = owner.__new__(owner)
    nn.Module.__init__(made)
    made.config = SimpleNamespace(video_token_index=int(Modality.VIDEO), audio_token_index=int(Modality.AUDIO))
    made.language_model = Words(like.new_zeros(len(Modality) + 1, like.shape[-1]))
    return made
