"""What vLLM 0.33.0 gets wrong about drafts.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm import cpu
from conformance.adapters.vllm.parts import column, feature, merged, named, runner

CHECKS = Checks()
fails = CHECKS.fails


def proposed(*ids: int) -> list[int]:
    """What is proposed behind these ids: up to four that followed one to three of the last ones."""
    lookup = named("v1.spec_decode.ngram_proposer:_find_longest_matched_ngram_and_propose_tokens")
    proposals: list[int] = lookup(np.array(ids, dtype=np.int32), 1, 3, 100, 4).tolist()
    return proposals


@fails("SPECULATION-02")
def items_that_interleave() -> bool:
    """Rows of two items that interleave are gathered item by item; by position only the Omni models merge them."""
    one, masks = runner(), ([True, False, True, False], [False, True, False, True])
    both = [feature(0, 4, name) for name in "ab"]
    for item, mask in zip(both, masks, strict=True):
        item.mm_position = named("multimodal.inputs:PlaceholderRange")(0, 4, is_embed=torch.tensor(mask))
    one.encoder_cache.add_request("request", both)
    one.encoder_cache.encoder_outputs.update(a=column(1.0, 3.0), b=column(2.0, 4.0))
    four, none = np.array([4]), np.array([0])
    rows, places = one.gather_mm_embeddings(["request"], 4, four, none, four, none)
    return merged(rows, places.tolist()) == [[1.0], [3.0], [2.0], [4.0]]


@fails("SPECULATION-06")
def any_sampled_id() -> bool:
    """A drafter takes whatever was sampled, -1 as well, and the look-up in its table runs into an IndexError."""
    owner = named("v1.spec_decode.llm_base_proposer:SpecDecodeBaseProposer")
    proposer = owner.__new__(owner)
    proposer.input_ids = torch.zeros(1, dtype=torch.int32)
    ids = proposer.prepare_next_token_ids_cpu([[-1]], {}, SimpleNamespace(req_ids=["request"]), {})
    return ids.tolist() == [-1] and error(lambda: nn.Embedding(2, 1)(ids)) == "IndexError"


@fails("SPECULATION-09")
def drafts_behind_a_picture() -> bool:
    """Behind a picture at the end of a prompt drafts stand one after its time, on all axes, and not behind its rows."""
    owner = named("v1.spec_decode.llm_base_proposer:SpecDecodeBaseProposer")
    one = owner.__new__(owner)
    one.uses_mrope, one.max_model_len, one._slot_mapping_buffer = True, 100, torch.zeros(1)
    one.mrope_positions = torch.tensor([[5], [7], [5]])  # a picture of three rows that begins at 5; the next text is at 8
    about = SimpleNamespace(block_table_tensor=None, seq_lens=None, max_seq_len=0, seq_lens_cpu_upper_bound=None)

    def kernel(positions_1d: Any, out_clamped_positions: Any, **others: Any) -> None:
        out_clamped_positions.copy_(positions_1d + 1)  # as eagle_step_slot_mapping_metadata_kernel does it, in Triton

    module = cpu.module("vllm.v1.spec_decode.llm_base_proposer")
    with patch.object(module, "eagle_step_update_slot_mapping_and_metadata", kernel):
        moved = one._update_positions_dependent_metadata(one.mrope_positions.clone(), about, 1, 1, 1)
    return bool(moved.flatten().tolist() == [6, 6, 6])


@fails("SPECULATION-13", "SPECULATION-14")
def placeholders_are_proposed() -> bool:
    """Placeholders that followed the last words are proposed like words."""
    return proposed(60, 61, 62, 5, 5, 5, 99, 60, 61) == [62, 5, 5, 5]


@fails("SPECULATION-15")
def pictures_are_looked_up() -> bool:
    """Words around one picture are found around another, for the placeholders are alike."""
    return proposed(60, 5, 5, 61, 62, 99, 60, 5, 5, 61) == [62, 99, 60, 5]


@fails("SPECULATION-16")
def a_picture_behind_the_match() -> bool:
    """The longest match counts, though a picture stands behind it, and not the shorter one that has text behind it."""
    return proposed(60, 61, 5, 5, 61, 83, 99, 60, 61)[0] == 5
