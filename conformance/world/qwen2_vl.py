"""A Qwen2-VL that is real in everything but its size: transformers' processor, tokenizer and model.

1. Pictures go through the processor's Pillow backend, whether torchvision is installed or not: its pixels are the same
   in both cases, and on every CPU.
2. The tokenizer's ids are the 256 bytes and, behind them, Qwen's special tokens. It needs no file.
3. The weights are integers of numpy's PCG64, scaled. torch's own initialisation gives other values on other CPUs.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch

from conformance.world.torchvision_cpu import complete_torchvision

complete_torchvision()
transformers: Any = import_module("transformers")  # by name: it has to come second, and its types are unfinished

PIXELS = {"shortest_edge": 4 * 28**2, "longest_edge": 24 * 28**2}
"""The fewest and the most pixels of a picture (not edges, in spite of the names): 4 to 24 tokens of 28 x 28 pixels."""


def byte_tokenizer(special_tokens: Sequence[str]) -> Any:
    """Qwen2's tokenizer with a vocabulary of the 256 bytes, no merges, and the special tokens."""
    characters = import_module("transformers.convert_slow_tokenizer").bytes_to_unicode()
    vocabulary = {character: byte for byte, character in characters.items()}
    return transformers.Qwen2Tokenizer(vocab=vocabulary, merges=[], extra_special_tokens=list(special_tokens))


def processor(tokenizer: Any) -> Any:
    """Qwen2-VL's processor, without its video part: transformers has that only where torchvision is installed."""
    parts = classmethod(lambda _: ["image_processor", "tokenizer"])
    pictures_only = type("PictureProcessor", (transformers.Qwen2VLProcessor,), {"get_attributes": parts})
    return pictures_only(transformers.Qwen2VLImageProcessorPil(size=PIXELS), tokenizer, None)


def model(tokenizer: Any) -> Any:
    """Two vision layers and three text layers of width 64, in float32."""
    made = transformers.Qwen2VLForConditionalGeneration(
        transformers.Qwen2VLConfig(
            vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 2},
            text_config={
                "vocab_size": len(tokenizer),
                "hidden_size": 64,
                "intermediate_size": 96,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]},
                "bos_token_id": None,
                "eos_token_id": tokenizer.eos_token_id,
            },
            image_token_id=tokenizer.convert_tokens_to_ids("<|image_pad|>"),
            video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
            vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
            vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
        )
    )
    set_weights(made)
    return made.eval()


def set_weights(module: torch.nn.Module) -> None:
    """Give every parameter, in the order of the names, values that depend on nothing but its place and shape.

    Matrices are uniform with the variance 1 / columns; vectors lie within 1/8 of 0, those that scale within 1/8 of 1.
    """
    generator = np.random.Generator(np.random.PCG64(20_250_101))
    for name, parameter in sorted(module.named_parameters()):
        uniform = generator.integers(-1024, 1025, size=tuple(parameter.shape)) / 1024
        vector, matrix = uniform / 8 + name.endswith("weight"), uniform * np.sqrt(3 / uniform[0].size)
        parameter.data = torch.from_numpy((vector if parameter.ndim == 1 else matrix).astype(np.float32))
