"""The life of requests in SGLang: what its tokenizer manager, its scheduler and its model runner do with their media.

`TokenizerManager`, `Scheduler`, `SessionController`, `Req` and `prepare_mm_inputs` run as they are, on what they read of a
server. The caller says which chunks are computed, which in SGLang the scheduler does: so no batch is planned, and there is
no KV cache. Each step of this module that stands for a piece of a larger function names it.

A turn comes with the whole conversation. SGLang takes what is new behind a finished turn: the ids that both have are kept
by `SessionParams.offset`, and what comes behind them is the turn. Features come from another process, so each request has
copies of its own. On a CPU there is no device that they could be moved to.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu, sessions, steps
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from conformance.protocol.lifecycle import Encoder
from reference.items import Chunk, Item, Modality, Request, Span


class LiveRequests:
    """Requests from their admission to their end."""

    def __init__(self, sglang: Sglang, encoders: Mapping[Modality, Encoder], table: torch.Tensor, cache_bytes: int) -> None:
        self._sglang = sglang
        self._structs = cpu.module("sglang.srt.managers.io_struct")
        self._forward = cpu.module("sglang.srt.model_executor.forward_batch_info")
        self._cache = sglang.caches.MultiModalStaticCache(cache_bytes)
        self._encoders = translate.by_modality(sglang, {kind: _of_items(encoder) for kind, encoder in encoders.items()})
        embedding = torch.nn.Embedding(table.shape[0], table.shape[1], _weight=table, _freeze=True)
        self._language_model = SimpleNamespace(get_input_embeddings=lambda: embedding)
        self._tokenizer, self._scheduler = _tokenizer_manager(self._abort), _scheduler()
        self._waiting: list[Any] = self._scheduler.waiting_queue
        self._running: list[Any] = self._scheduler.running_batch.reqs
        self._extended: dict[str, int] = {}
        self._last_turns: dict[str, Any] = {}

    def admit(self, request: Request, session: str | None, triples: NDArray[np.int64] | None) -> None:
        """`TokenizerManager._init_req_state`, and what `Scheduler._handle_generate_request` does."""
        manager = cpu.module("sglang.srt.managers.tokenizer_manager").TokenizerManager
        manager._init_req_state(self._tokenizer, SimpleNamespace(rid=request.id, received_time=0.0))
        self._waiting.append(self._made(request, triples) if session is None else self._turn(request, session, triples))

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor]:
        """`prepare_mm_inputs` of a batch of prompts, and of one of replies. An error of it ends the scheduler's process."""
        alive = {request.rid: request for request in (*self._waiting, *self._running)}
        extends: dict[str, Chunk] = {}
        for id, chunk in chunks.items():
            request = self._alive(id)
            if request in self._waiting or chunk.prefix < self._extended[id]:
                request.init_next_round_input()  # Scheduler._get_new_batch_prefill_raw
                request.is_retracted = False  # ScheduleBatch.prepare_for_extend
                extends[id] = chunk
            if request in self._waiting:  # Scheduler._get_new_batch_prefill_raw and update_running_batch
                self._waiting.remove(request)
                self._running.append(request)
                self._extended[id] = len(request.full_untruncated_fill_ids)
        decodes = {id: chunk for id, chunk in chunks.items() if id not in extends}
        return self._embedded(alive, extends, self._forward.ForwardMode.EXTEND) | self._embedded(
            alive, decodes, self._forward.ForwardMode.DECODE
        )

    def reply(self, id: str, token_ids: Sequence[int]) -> None:
        """The end of `process_batch_result_decode`: tokens are appended to `Req.output_ids`."""
        self._alive(id).output_ids.extend(token_ids)

    def retract(self, id: str) -> None:
        """`Req.reset_for_retract`, which `release_req` calls for one that has begun, and back into the waiting queue."""
        request = self._alive(id)
        if request in self._running or request.output_ids:
            request.reset_for_retract()
        if request in self._running:  # Scheduler.update_running_batch
            self._running.remove(request)
            self._waiting.append(request)

    def positions(self, id: str) -> torch.Tensor:
        """`MultimodalInputs.mrope_positions`."""
        table: torch.Tensor = self._alive(id).multimodal_inputs.mrope_positions
        return table

    def finish(self, id: str) -> None:
        """`Req.update_finish_state` of one that has reached its length, and the end of `process_batch_result_decode`."""
        request = self._alive(id)
        request.to_finish = self._sglang.batch.FINISH_LENGTH(len(request.output_ids))
        session = request.session
        if session is not None and self._scheduler.session_controller.get(session.session_id) is session:
            self._last_turns[session.session_id] = request
        self._end(request)

    def abort(self, id: str) -> None:
        """`TokenizerManager.abort_request` and `Scheduler.abort_request`, which sets `to_finish` of what runs."""
        cpu.module("sglang.srt.managers.tokenizer_manager").TokenizerManager.abort_request(self._tokenizer, id)

    def close(self, session: str) -> None:
        """`SessionController.close`, which does not wait for turns unless they stream."""
        controller = self._scheduler.session_controller
        controller.close(self._structs.CloseSessionReqInput(session_id=session))
        self._last_turns.pop(session, None)

    def held_bytes(self) -> int:
        """What requests in the scheduler's queues, and the turns of its sessions, hold of features and embeddings."""
        open_sessions = self._scheduler.session_controller.sessions.values()
        turns = [node.req for session in open_sessions for node in session.req_nodes.values()]
        inputs = [one.multimodal_inputs for one in (*self._waiting, *self._running, *turns) if one.multimodal_inputs]
        items = [item for one in inputs for item in one.mm_items]
        held = [part for item in items for part in (item.feature, item.precomputed_embeddings) if part is not None]
        return sum({part.data_ptr(): part.nbytes for part in held}.values())

    def _alive(self, id: str) -> Any:
        found = [request for request in (*self._waiting, *self._running) if request.rid == id]
        if not found:
            raise ValueError(f"the scheduler has no request {id} any more")
        return found[0]

    def _made(self, request: Request, triples: NDArray[np.int64] | None) -> Any:
        """A request without a session, as `_handle_generate_request` makes one of what it received."""
        ids = array("q", request.input_ids.tobytes())
        sampling = cpu.module("sglang.srt.sampling.sampling_params").SamplingParams(max_new_tokens=1 << 30)
        made = self._sglang.batch.Req(rid=request.id, origin_input_text="", origin_input_ids=ids, sampling_params=sampling)
        if request.items or triples is not None:
            inputs = translate.inputs(self._sglang, list(map(_copied, request.items)))
            inputs.mrope_positions = None if triples is None else torch.from_numpy(triples)
            sessions._pad(self._sglang, SimpleNamespace(input_ids=ids), made, inputs)
            made.extend_image_inputs(inputs)
        return made

    def _turn(self, request: Request, name: str, triples: NDArray[np.int64] | None) -> Any:
        """A turn behind the last one that was finished: what both have is kept, and what is new is sent."""
        controller = self._scheduler.session_controller
        if name not in controller:
            controller.open(self._structs.OpenSessionReqInput(capacity_of_str_len=1 << 20, session_id=name))
        last = self._last_turns.get(name)
        known = [] if last is None or last.multimodal_inputs is None else last.multimodal_inputs.mm_items
        keep = 0 if last is None else _common(request, last, known)
        kept = {item.identity: item for item in known}
        sent = [_moved(_filled(item, kept), -keep) for item in request.items if item.spans[-1].last >= keep]
        new = Request(id=request.id, input_ids=request.input_ids[keep:], items=tuple(sent))
        whole = last is not None and keep == len(last.origin_input_ids_unpadded) + len(last.output_ids)
        parent = None if last is None or not keep else last.rid
        made = sessions._taken_in(
            self._sglang, controller.get(name), new, None, rid=request.id, parent=parent, offset=None if whole else keep or None
        )
        if triples is not None and made.multimodal_inputs is not None:
            made.multimodal_inputs.mrope_positions = torch.from_numpy(triples)
        return made

    def _embedded(self, alive: Mapping[str, Any], chunks: Mapping[str, Chunk], mode: Any) -> dict[str, torch.Tensor]:
        if not chunks:
            return {}
        requests = [alive[id] for id in chunks]
        ids = [
            (one.origin_input_ids + one.output_ids)[chunk.prefix : chunk.stop]
            for one, chunk in zip(requests, chunks.values(), strict=True)
        ]
        batch = object.__new__(self._forward.ForwardBatch)
        vars(batch).update(
            forward_mode=mode,
            mm_inputs=[one.multimodal_inputs for one in requests],
            extend_prefix_lens_cpu=[chunk.prefix for chunk in chunks.values()],
            extend_seq_lens_cpu=[chunk.length for chunk in chunks.values()],
            spec_algorithm=None,
            input_embeds=None,
        )
        with steps.cache_in_place(self._sglang, self._cache):
            rows = self._sglang.utils.prepare_mm_inputs(
                torch.tensor([id for part in ids for id in part], dtype=torch.int64),
                batch,
                self._language_model,
                {},
                data_embedding_funcs=self._encoders,
            )
        parts = torch.split(rows, [chunk.length for chunk in chunks.values()])
        return dict(zip(chunks, parts, strict=True))

    def _abort(self, message: Any) -> None:
        """What the scheduler makes of the tokenizer manager's message, and of what it finds aborted after the next step."""
        scheduler = cpu.module("sglang.srt.managers.scheduler").Scheduler
        waited = list(self._waiting)
        scheduler.abort_request(self._scheduler, message)
        for request in [one for one in waited if one not in self._waiting]:
            self._tokenizer.rid_to_state.pop(request.rid, None)  # TokenizerManager._handle_abort_req
        for request in [one for one in self._running if one.to_finish]:
            self._end(request)

    def _end(self, request: Any) -> None:
        """`Scheduler._maybe_clear_mm_inputs` of a finished request, which leaves the batch; its id is free again."""
        request.update_finish_state()
        cpu.module("sglang.srt.managers.scheduler").Scheduler._maybe_clear_mm_inputs(
            self._scheduler, SimpleNamespace(reqs=[request])
        )
        for queue in (self._waiting, self._running):
            if request in queue:  # ScheduleBatch.filter_batch
                queue.remove(request)
        self._tokenizer.rid_to_state.pop(request.rid, None)  # TokenizerManager._handle_batch_output


def _tokenizer_manager(dispatch: Any) -> Any:
    """As much of a `TokenizerManager` as knows which ids are taken."""
    return SimpleNamespace(
        rid_to_state={},
        enable_trace=False,
        enable_metrics=False,
        disaggregation_mode=cpu.module("sglang.srt.disaggregation.utils").DisaggregationMode.NULL,
        _dispatch_to_scheduler=dispatch,
    )


def _scheduler() -> Any:
    """As much of a `Scheduler` as aborts requests and has sessions: its queues, and a radix cache."""
    cache = cpu.module("sglang.srt.mem_cache.radix_cache").RadixCache.create_simulated()
    batch = SimpleNamespace(reqs=[])
    scheduler = SimpleNamespace(
        chunked_req=None,
        mm_receiver=None,
        waiting_queue=[],
        running_batch=batch,
        last_batch=None,
        tree_cache=cache,
        session_controller=cpu.module("sglang.srt.session.session_controller").SessionController(cache),
        beam_coordinator=SimpleNamespace(retire_group=lambda request: None),
        grammar_manager=SimpleNamespace(abort_requests=lambda message: None),
        disaggregation_mode=cpu.module("sglang.srt.disaggregation.utils").DisaggregationMode.NULL,
        dllm_config=None,
        enable_continuous_input_polling=False,
        send_abort_output=lambda message, request: None,
    )
    owner = cpu.module("sglang.srt.managers.scheduler").Scheduler
    scheduler._release_aborted_request = lambda request: owner._release_aborted_request(scheduler, request)
    scheduler.collect_inflight_reqs = lambda: set(batch.reqs)
    return scheduler


def _of_items(encoder: Encoder) -> Any:
    """The encoder, for items of SGLang's."""

    def encode(made: Sequence[Any]) -> Any:
        result = encoder([sessions._item(one) for one in made])
        return list(result) if isinstance(result, tuple) else result

    return encode


def _common(request: Request, last: Any, known: Sequence[Any]) -> int:
    """How many positions a turn has in common with the last one and its reply, each item whole and where it was."""
    before = last.origin_input_ids_unpadded + last.output_ids
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(request.input_ids.tolist(), before, strict=False)))
    there = {(one.identity, tuple(one.offsets)) for one in known}
    new = [item for item in request.items if (item.identity, tuple(translate.offsets(item.spans))) not in there]
    return min([alike, *(item.spans[0].first for item in new)])


def _copied(item: Item) -> Item:
    """What another process sends."""
    feature = item.feature.clone() if isinstance(item.feature, torch.Tensor) else item.feature
    return replace(item, feature=feature, embedding=None if item.embedding is None else item.embedding.clone())


def _filled(item: Item, kept: Mapping[bytes | None, Any]) -> Item:
    """An item that is sent, and again where the session has it at another place."""
    if item.is_empty and item.identity in kept:
        again = kept[item.identity]
        item = Item(
            modality=item.modality,
            spans=item.spans,
            identity=item.identity,
            feature=again.feature,
            embedding=again.precomputed_embeddings,
        )
    return _copied(item)


def _moved(item: Item, by: int) -> Item:
    return replace(item, spans=tuple(Span(span.first + by, span.last + by) for span in item.spans))
