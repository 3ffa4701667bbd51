"""What SGLang feeds an EAGLE draft model for a prompt: `EagleDraftWorker`, up to the first layer of an EAGLE-3 model.

The draft runs behind the target, and takes over the rows that the target has put together for its chunk.
"""

from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu, positions, steps
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from reference.items import Chunk, Item


class _Fed(Exception):
    """The draft model is about to run; what it is given."""


def embeddings(
    sglang: Sglang,
    input_ids: NDArray[np.int64],
    items: Sequence[Item],
    rows: torch.Tensor,
    table: torch.Tensor,
    chunk: Chunk,
    next_id: int,
) -> torch.Tensor:
    """`_draft_extend_for_prefill` of a batch of one request, and the embeddings that EAGLE-3's `LlamaModel` makes of it.

    Of the rows, SGLang has those of its chunk: not the one behind it. It has the first one too, which no draft needs.
    """
    worker = cpu.module("sglang.srt.speculative.eagle_worker_v2")
    mode = cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardMode.EXTEND
    ids = input_ids[chunk.prefix : chunk.stop].copy()
    merged = None
    if items:
        known = dict(zip(translate.media(items, Chunk(chunk.prefix + 1, chunk.length)), rows, strict=True))
        own = [known.get(place, torch.zeros_like(table[0], dtype=rows.dtype)) for place in translate.media(items, chunk)]
        merged, _ = steps.embed(sglang, ids, items, torch.stack(own) if own else rows[:0], table, chunk)
    request = SimpleNamespace(extend_end=chunk.stop, origin_input_ids=array("q", input_ids.tobytes()))
    is_last = chunk.stop == len(input_ids)
    following = sglang.batch._compute_chunked_req_next_prompt_token(None if is_last else request, len(table))
    batch = SimpleNamespace(
        forward_mode=mode,
        input_ids=torch.from_numpy(ids),
        extend_lens=[chunk.length],
        reqs=[request],
        chunked_req=None if is_last else request,
        chunked_req_next_prompt_token=following,
    )
    forward = SimpleNamespace(
        forward_mode=mode,
        mm_input_embeds=None,
        contains_mm_inputs=lambda: bool(items),
        extend_start_loc=torch.tensor([0]),
        extend_seq_lens=torch.tensor([chunk.length]),
        spec_info=SimpleNamespace(hidden_states=torch.zeros(1, table.shape[1])),
        mrope_positions=None,
    )
    words = torch.nn.Embedding(table.shape[0], table.shape[1], _weight=table, _freeze=True)
    draft = SimpleNamespace(embed_tokens=words, is_mrope_enabled=False, layers=[_feed])

    def run(given: Any) -> None:
        model = cpu.module("sglang.srt.models.llama_eagle3").LlamaModel
        model.forward(draft, batch.input_ids, None, given)

    itself = SimpleNamespace(
        speculative_algorithm=worker.SpeculativeAlgorithm.EAGLE3,
        draft_runner=SimpleNamespace(forward=run, canary_manager=None),
        seed_dsa_topk_from_draft_extend=False,
    )
    with patch.object(worker.ForwardBatch, "init_new", lambda *_, **__: forward):
        try:
            worker.EagleDraftWorker._draft_extend_for_prefill(itself, batch, None, torch.tensor([next_id]), merged)
        except _Fed as fed:
            taken: torch.Tensor = fed.args[0]
    return taken


def draft_positions(triples: NDArray[np.int64], chunk: Chunk, steps: int) -> torch.Tensor:
    """The positions of the target for the chunk, and `ForwardBatch.compute_spec_mrope_positions` for each further pass."""
    forward = cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardBatch
    length = triples.shape[1]
    inputs = SimpleNamespace(mrope_position_delta=torch.tensor([[int(triples.max()) + 1 - length]]))
    found = [positions.chunk(triples, chunk)]
    for step in range(steps):
        itself = SimpleNamespace(seq_lens=torch.tensor([length]))
        batch = SimpleNamespace(multimodal_inputs=[inputs], spec_info=SimpleNamespace(positions=torch.tensor([length + step])))
        forward.compute_spec_mrope_positions(itself, SimpleNamespace(device="cpu"), batch)
        found.append(itself.mrope_positions)
    return torch.cat(found, dim=1)


def _feed(positions: Any, embeddings: torch.Tensor, *_: Any) -> None:
    raise _Fed(embeddings)
