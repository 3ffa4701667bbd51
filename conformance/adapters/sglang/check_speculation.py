"""What SGLang 0.5.23 gets wrong as it feeds a draft model: seen without the suite."""

from array import array
from types import SimpleNamespace
from typing import Any

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import column, sg

CHECKS = Checks()
fails = CHECKS.fails


def draft_embeddings(ids: list[int], embeddings: torch.Tensor) -> torch.Tensor:
    """What an EAGLE-3 draft model makes of ids and the rows of the target, all of which its last token replaces."""
    mode = cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardMode.EXTEND
    taken: list[torch.Tensor] = []

    def layer(positions: Any, embeds: torch.Tensor, *_: Any) -> tuple[torch.Tensor, None]:
        taken.append(embeds)
        return embeds, None

    model = SimpleNamespace(
        embed_tokens=torch.nn.Embedding(8, 1, _weight=torch.arange(8.0)[:, None], _freeze=True),
        is_mrope_enabled=False,
        layers=[layer],
        norm=lambda states, residual: (states, states),
        norm_output=False,
    )
    batch = SimpleNamespace(
        forward_mode=mode,
        mm_input_embeds=embeddings,
        contains_mm_inputs=lambda: True,
        extend_start_loc=torch.tensor([0]),
        extend_seq_lens=torch.tensor([len(ids)]),
        spec_info=SimpleNamespace(hidden_states=torch.zeros(1, 1)),
    )
    cpu.module("sglang.srt.models.llama_eagle3").LlamaModel.forward(model, torch.tensor(ids), None, batch)
    return taken[0]


@fails("SPECULATION-04", "SPECULATION-05")
def a_medium_behind_a_chunk_is_not_fed() -> bool:
    """Where a medium's token comes next, the draft takes what the target has sampled in the middle of the prompt."""
    request = SimpleNamespace(extend_end=2, origin_input_ids=array("q", [1, 2, 10**15, 3]))
    batch = SimpleNamespace(
        chunked_req=request,
        reqs=[request],
        input_ids=torch.tensor([1, 2]),
        chunked_req_next_prompt_token=sg().batch._compute_chunked_req_next_prompt_token(request, 8),
    )
    tails = cpu.module("sglang.srt.speculative.eagle_utils")._eagle_prefill_tail_tokens(batch, torch.tensor([7]))
    return bool(tails.tolist() == [7])


@fails("SPECULATION-06")
def a_sampled_sentinel() -> bool:
    """A sampled id outside the draft's vocabulary is an index out of range."""
    return error(lambda: draft_embeddings([1, 10**15], column(1, 2))) == "IndexError"
