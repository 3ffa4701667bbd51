"""The life of requests in vLLM: its scheduler, and as much of a model runner as has to do with media.

The caller says which chunks are computed, which in vLLM the scheduler does. So `Scheduler.schedule` is not asked, but what
it asks itself of each request, in its order: `_try_schedule_encoder_inputs`, `_allocate_encoder_inputs`, and behind the
step `_free_encoder_inputs`. What a step tells the worker is done as `GPUModelRunner.execute_model` does it
(`finish_requests`, `free_states`, `add_requests`), with the real `EncoderCache` and `EncoderRunner`.

vLLM raises the encoder cache to the largest item as it starts; here it is raised to all items that are alive, for steps are
not planned by what there is room for. There are no sessions of turns: vLLM keeps what a further turn needs in its caches.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.vllm import prompts, scheduling, steps
from conformance.adapters.vllm.cpu import Vllm
from conformance.protocol.lifecycle import Encoder
from conformance.protocol.scheduling import Budget
from reference.items import Chunk, Modality, Request


class LiveRequests:
    """Requests from their admission to their end."""

    def __init__(self, vllm: Vllm, encoders: Mapping[Modality, Encoder], table: torch.Tensor, cache_bytes: int) -> None:
        room = cache_bytes // (table.shape[1] * table.element_size())
        self._vllm, self._status = vllm, vllm.request.RequestStatus
        self._scheduler = scheduling._scheduler(vllm, Budget(tokens_per_step=scheduling.BLOCKS), scheduling.UNLIMITED, room)
        self._runner = steps._runner(vllm, steps.EncoderModel(encoders))
        self._model = steps.model(vllm, table)
        self._lengths: dict[str, int] = {}

    def admit(self, request: Request, session: str | None, triples: NDArray[np.int64] | None) -> None:
        """`Scheduler.add_request`. A request whose embedding the data parser refuses is not taken in."""
        self._scheduler.add_request(prompts.request(self._vllm, request.id, request))
        manager = self._scheduler.encoder_cache_manager
        needed = sum(one.mm_position.get_num_embeds() for one in self._features())
        if (more := needed - manager.cache_size) > 0:
            manager.cache_size += more
            manager.num_free_slots += more
            manager.num_freeable_slots += more

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor | Exception]:
        """One step of the engine, for these requests and chunks."""
        answers: dict[str, torch.Tensor | Exception] = {}
        inputs: dict[str, list[int]] = {}
        for id, chunk in chunks.items():
            request = self._scheduler.requests[id]
            starts = request.status != self._status.RUNNING
            done = chunk.prefix if starts else request.num_computed_tokens
            chosen, _, _, external, duplicates = self._scheduler._try_schedule_encoder_inputs(
                request, done, chunk.length, scheduling.UNLIMITED
            )
            if id in self._scheduler.encoder_cache_mismatch_reqs:
                answers[id] = ValueError("its item is known with another number of embeddings, so the scheduler fails it")
                self._end(id, self._status.FINISHED_ERROR)
                continue
            self._scheduler._allocate_encoder_inputs(request, chosen + external, duplicates)
            if starts:
                self._start(request, done)
            inputs[id] = chosen
        self._free()
        hashes, arguments = self._runner.prepare_mm_inputs(inputs)
        self._runner.encoder_cache.encoder_outputs.update(zip(hashes, self._runner.execute_mm_encoder(arguments), strict=True))
        answers |= self._embedded({id: chunks[id] for id in inputs if chunks[id].length})
        for id in inputs:
            request = self._scheduler.requests[id]
            request.num_computed_tokens += chunks[id].length
            self._scheduler._free_encoder_inputs(request)
        return answers

    def reply(self, id: str, token_ids: Sequence[int]) -> None:
        """`Request.append_output_token_ids`."""
        self._scheduler.requests[id].append_output_token_ids(list(token_ids))

    def retract(self, id: str) -> None:
        """`Scheduler._preempt_request`, for one that runs; the worker forgets it."""
        request = self._scheduler.requests[id]
        if request.status == self._status.RUNNING:
            self._scheduler.running.remove(request)
            self._scheduler._preempt_request(request, 0.0)
            self._runner.encoder_cache.remove_request(id)

    def finish(self, id: str) -> None:
        """`Scheduler.finish_requests`."""
        self._end(id, self._status.FINISHED_STOPPED)

    def abort(self, id: str) -> None:
        """`Scheduler.finish_requests`."""
        self._end(id, self._status.FINISHED_ABORTED)

    def held_bytes(self) -> int:
        """What the requests of the scheduler and of the worker hold of features."""
        parts = [one.data for one in self._features()]
        parts += [one.data for features in self._runner.encoder_cache.mm_features.values() for one in features]
        items = [element.data for part in parts if part is not None for element in part.values()]
        tensors = [one if isinstance(one, torch.Tensor) else one.feature for one in items]
        return sum({one.data_ptr(): one.nbytes for one in tensors}.values())

    def _features(self) -> list[Any]:
        return [one for request in self._scheduler.requests.values() for one in request.mm_features]

    def _start(self, request: Any, done: int) -> None:
        """What `schedule` and the worker do with a request that begins, or begins again."""
        request.status, request.num_computed_tokens = self._status.RUNNING, done
        self._scheduler.waiting.remove_requests([request])
        self._scheduler.running.append(request)
        features = self._vllm.utils.strip_covered_mm_data(request.mm_features, done)
        self._runner.encoder_cache.add_request(request.request_id, features)
        self._lengths[request.request_id] = request.num_tokens

    def _end(self, id: str, status: Any) -> None:
        """`finish_requests`, and the empty step with which the engine tells the worker."""
        self._scheduler.finish_requests(id, status)
        self._scheduler.encoder_cache_mismatch_reqs.discard(id)
        self._runner.encoder_cache.remove_request(id)
        self._free()

    def _free(self) -> None:
        """`free_states`."""
        for hash in self._scheduler.encoder_cache_manager.get_freed_mm_hashes():
            self._runner.encoder_cache.free_encoder_cache(hash)

    def _embedded(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor]:
        """`gather_mm_embeddings` and `embed_input_ids` for the whole step."""
        if not chunks:
            return {}
        rows, mask = steps._gather(self._runner, chunks, [self._lengths[id] for id in chunks])
        ids = [self._scheduler.requests[id].all_token_ids[chunk.prefix : chunk.stop] for id, chunk in chunks.items()]
        merged = self._model.embed_input_ids(
            torch.tensor([id for part in ids for id in part]), multimodal_embeddings=rows, is_multimodal=mask
        )
        return dict(zip(chunks, torch.split(merged, [chunk.length for chunk in chunks.values()]), strict=True))
