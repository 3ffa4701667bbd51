"""What the checks of SGLang are made of: its items, and prompts of them."""

from array import array
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.sglang import cpu


def sg() -> cpu.Sglang:
    return cpu.prepare()


def item(kind: str = "IMAGE", **parts: Any) -> Any:
    return sg().batch.MultimodalDataItem(modality=sg().batch.Modality[kind], **parts)


def named(number: int, kind: str = "IMAGE", **parts: Any) -> Any:
    made = item(kind, **parts)
    made.set_hash(number)
    return made


def inputs(*items: Any) -> Any:
    return sg().batch.MultimodalInputs(mm_items=list(items), im_token_id=0, video_token_id=0, audio_token_id=0)


def padded(length: int, *items: Any) -> list[int]:
    return list(sg().utils.pad_mm_tokens(array("q", range(length)), inputs(*items)))


def embedded(
    items: list[Any], encode: Any, length: int, *, requests: int = 1, cache_bytes: int = 1 << 20
) -> tuple[list[float], list[list[Any]]]:
    """What `embed_mm_inputs` makes of one prompt of this length or several alike, and the items of each encoder call."""
    calls: list[list[Any]] = []

    def encoder(made: Any) -> Any:
        calls.append(list(made))
        return encode(made)

    with patch.object(sg().schedule, "embedding_cache", sg().caches.MultiModalStaticCache(cache_bytes)):
        merged, _ = sg().utils.embed_mm_inputs(
            [inputs(*items)] * requests,
            [0] * requests,
            [length] * requests,
            torch.tensor(padded(length, *items) * requests),
            torch.nn.Embedding(200, 1),
            data_embedding_func_mapping={} if encode is None else dict.fromkeys(sg().batch.Modality.all(), encoder),
        )
    return merged.flatten().tolist(), calls


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values)[:, None]
