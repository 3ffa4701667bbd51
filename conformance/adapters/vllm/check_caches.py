"""What vLLM 0.33.0 gets wrong about what it keeps of media: its processor caches, and how it names rows.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from types import SimpleNamespace
from typing import Any

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm.parts import feature, named

CHECKS = Checks()
fails = CHECKS.fails


@fails("PREPROCESSING-39")
def a_new_picture_drives_out_a_known_one() -> bool:
    """A request for a new picture and a known one, that have no room together, is an assertion: one drives out the other."""
    settings = SimpleNamespace(get_multimodal_config=lambda: SimpleNamespace(mm_processor_cache_gb=48 / 2**30))
    cache = named("multimodal.cache.lru:LruKeyReplicatedSenderCache")(settings)
    owner = named("multimodal.processing.processor:BaseMultiModalProcessor")

    def sent(hashes: list[str], cached: list[bool], *made: Any) -> list[Any]:
        merged, _ = owner._merge_mm_kwargs(
            None, cache, {"image": hashes}, {"image": cached}, {"image": made}, {"image": [()] * len(made)}
        )
        return list(merged["image"])

    known, new = (feature(0, 1, pixels=torch.zeros(count, dtype=torch.uint8)).data for count in (16, 48))
    first = sent(["known"], [False], known)
    behind = sent(["known", "new"], cache.is_cached(["known", "new"]), new)  # the known one is looked up before it goes
    cache.clear_cache()
    sent(["known"], [False], known)
    before = error(lambda: sent(["new", "known"], cache.is_cached(["new", "known"]), new))
    return (first, behind, before) == ([known], [None, new], "AssertionError")


@fails("ENCODER_CACHE-24")
def adapters_by_name() -> bool:
    """An adapter of the encoder is known by its name: rows of weights that were loaded under it before are found again."""
    owner, made = named("v1.engine.input_processor:InputProcessor"), named("lora.request:LoRARequest")
    processor = SimpleNamespace(lora_config=SimpleNamespace(enable_tower_connector_lora=True))
    loaded = [made(lora_name="cats", lora_int_id=number, lora_path=f"/adapters/{number}") for number in (1, 2)]
    keys = {owner._get_mm_identifier(processor, "picture", one) for one in loaded}
    return keys == {"cats:picture"}
