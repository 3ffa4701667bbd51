"""Qwen2-Audio: spectrograms of one length, with a mask that says how much of each is sound.

Source: transformers 5.24, `Qwen2AudioProcessor`; two convolutions halve the length twice.
"""

from collections.abc import Mapping
from typing import Any

from reference.processors.family import Ids, Part, filling


class Qwen2Audio:
    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, name) if name == "audio" else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        if name != "audio" or "input_features" not in output:
            return []
        masks = output["feature_attention_mask"]
        counts = [((length - 1) // 2 + 1 - 2) // 2 + 1 for length in masks.sum(dim=1).tolist()]
        return [
            Part(count, 1, output["input_features"][n : n + 1], {"feature_attention_mask": masks[n : n + 1]})
            for n, count in enumerate(counts)
        ]
