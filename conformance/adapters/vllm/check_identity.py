"""What vLLM 0.33.0 gets wrong about identities.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

from typing import Any

import numpy as np
import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails


def hashed(content: Any, **options: Any) -> str:
    digest: str = named("multimodal.hasher:MultiModalHasher").hash_kwargs("blake3", model_id="model", image=content, **options)
    return digest


@fails("IDENTITY-01", "IDENTITY-18")
def gradients() -> bool:
    """A tensor with a gradient cannot be hashed, for it is hashed through numpy."""
    return error(lambda: hashed(torch.zeros(2, requires_grad=True))) == "RuntimeError"


@fails("IDENTITY-02")
def byte_order() -> bool:
    """Arrays of equal values have two hashes when one is stored big-endian."""
    return hashed(np.ones(2, dtype="<f4")) != hashed(np.ones(2, dtype=">f4"))


@fails("IDENTITY-07", "IDENTITY-18")
def eight_bit_floats() -> bool:
    """A tensor of float8 cannot be hashed, for numpy does not know it."""
    return error(lambda: hashed(torch.zeros(2).to(torch.float8_e4m3fn))) == "TypeError"


@fails("IDENTITY-11")
def kinds() -> bool:
    """An embedding has the hash of a picture of the same numbers; only their numbers of dimensions keep them apart."""
    parse = named("multimodal.parse:MultiModalDataParser")().parse_mm_data
    inputs = named("multimodal.processing.inputs:ProcessorInputs")
    embedding, picture = torch.ones(2, 2), torch.ones(3, 2, 2)
    items = [parse({"image": [one]}) for one in (embedding, picture)]
    kinds = [type(data["image"]).__name__ for data in items]
    hashes = [inputs([], data).get_mm_hashes("model", "blake3")["image"][0] for data in items]
    return kinds == ["ImageEmbeddingItems", "ImageProcessorItems"] and hashes == [hashed(embedding), hashed(picture)]


@fails("IDENTITY-13", "PREPROCESSING-06")
def option_order() -> bool:
    """The same options in another order have another hash."""
    one, other = ({"fps": 1, "min_pixels": 4}, {"min_pixels": 4, "fps": 1})
    return hashed(b"", mm_processor_kwargs=one) != hashed(b"", mm_processor_kwargs=other)


@fails("IDENTITY-19")
def nothing() -> bool:
    """What is missing has a hash, as an item and as a part of one."""
    return len(hashed(None)) == len(hashed([np.ones(2), None])) == 64
