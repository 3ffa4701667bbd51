"""vLLM's drafters: where a draft model stands.

A drafter's steps move positions by a kernel of Triton, for which a CPU has no compiler. What it says of positions stands
here as it does there: one more than the last one, on the first axis, and 0 where the model's length is reached.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.vllm import cpu
from reference.items import Chunk

LONGEST = 2**30


def draft_positions(positions: NDArray[np.int64], chunk: Chunk, steps: int) -> NDArray[np.int64]:
    """The first pass of `SpecDecodeBaseProposer`, and its `_update_positions_dependent_metadata` for each further one."""
    module = cpu.module("vllm.v1.spec_decode.llm_base_proposer")
    proposer: Any = module.SpecDecodeBaseProposer.__new__(module.SpecDecodeBaseProposer)
    proposer.use_heterogeneous_vocab = proposer.needs_extra_input_slots = False
    proposer.uses_mrope, proposer.max_model_len = True, LONGEST
    proposer.vllm_config = SimpleNamespace(model_config=SimpleNamespace(uses_mrope=True))
    proposer.input_ids, proposer.hidden_states = torch.zeros(2, chunk.length, dtype=torch.int32)
    proposer.mrope_positions = torch.zeros(3, chunk.length + 1, dtype=torch.int64)
    proposer._slot_mapping_buffer = torch.zeros(1, dtype=torch.int64)
    ids = torch.zeros(chunk.length, dtype=torch.int32)
    last = torch.tensor([chunk.length - 1])
    here = torch.from_numpy(positions[:, chunk.prefix : chunk.stop].copy())
    proposer.set_inputs_first_pass(ids, ids[:1], here, proposer.hidden_states, last, None, None)
    passes = [proposer._get_positions(chunk.length).clone()]
    at = proposer.mrope_positions[:, last]
    about = SimpleNamespace(block_table_tensor=None, seq_lens=None, max_seq_len=0, seq_lens_cpu_upper_bound=None)
    with patch.object(module, "eagle_step_update_slot_mapping_and_metadata", _moved):
        for _ in range(steps):
            at = proposer._update_positions_dependent_metadata(at, about, 1, 1, 1)
            passes.append(at.clone())
    return torch.cat(passes, dim=1).numpy()


def _moved(*, positions_1d: torch.Tensor, max_model_len: int, out_clamped_positions: torch.Tensor, **others: Any) -> None:
    """`eagle_step_slot_mapping_metadata_kernel`, as far as it moves positions."""
    following = positions_1d + 1
    out_clamped_positions.copy_(torch.where(following >= max_model_len, 0, following))
