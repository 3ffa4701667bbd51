"""What vLLM 0.33.0 gets wrong about processors and prompts.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from types import SimpleNamespace

import torch

from conformance.adapters.checks import Checks
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails


@fails("PROCESSORS-03")
def tiles_of_neighbours() -> bool:
    """A picture of LLaVA-OneVision has as many tiles as the one of its prompt with the most, and is cached with them."""
    owner = named("model_executor.models.llava_onevision:LlavaOnevisionMultiModalProcessor")
    given = {"pixel_values": torch.zeros(2, 5, 3, 1, 1), "image_sizes": torch.zeros(2, 2)}  # as it is padded by transformers
    items = named("multimodal.inputs:MultiModalKwargsItems").from_hf_inputs(given, owner._get_mm_fields_config(None, given, {}))
    return [len(one["pixel_values"].data) for one in items["image"]] == [5, 5]


@fails("PROCESSORS-06", "PROCESSORS-07")
def first_of_two_placeholders() -> bool:
    """A picture goes to the first placeholder of a prompt, and if a user wrote that one, the picture's own stays behind."""
    update = named("multimodal.processing.processor:PromptReplacement")("image", target=[7], replacement=[7, 7, 7])
    put = named("multimodal.processing.processor:_apply_token_matches_with_placeholders")
    ids, _, placeholders = put([7, 65, 7], {"image": [[update.resolve(0)]]})
    return bool(ids == [7, 7, 7, 65, 7] and placeholders["image"][0].start_idx == 0)


@fails("PROCESSORS-24")
def models_that_fail_to_load() -> bool:
    """Which module failed to be imported, and why, stands in the log, and not in the error."""
    registry = named("model_executor.models.registry:_ModelRegistry")()
    registry.register_model("AlphaForCausalLM", "nowhere_to_be_found:Model")
    try:
        registry.resolve_model_cls(["AlphaForCausalLM"], SimpleNamespace(model_impl="vllm"))
    except ValueError as raised:
        return "AlphaForCausalLM" in str(raised) and "nowhere_to_be_found" not in str(raised)
    return False
