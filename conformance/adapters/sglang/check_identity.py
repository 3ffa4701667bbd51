"""What SGLang 0.5.23 gets wrong as it tells contents apart: seen without the suite."""

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import item, named, sg

CHECKS = Checks()
fails = CHECKS.fails


def identity(**parts: Any) -> int:
    made = item(**parts)
    made.set_pad_value()
    return int(made.hash)


@fails("IDENTITY-06")
def shape() -> bool:
    """The hash of a feature leaves out its shape: [4, 6] and [6, 4] are one item."""
    ramp = torch.arange(24.0)
    return identity(feature=ramp.view(4, 6)) == identity(feature=ramp.view(6, 4))


@fails("IDENTITY-07")
def dtype() -> bool:
    """The hash of a feature leaves out its dtype: float32 and int32 of equal bytes are one item."""
    return identity(feature=torch.zeros(4)) == identity(feature=torch.zeros(4, dtype=torch.int32))


@fails("IDENTITY-09")
def framing() -> bool:
    """The hash of a list is that of its tensors joined; a nested list of tensors is a TypeError."""
    ramp = torch.arange(6.0)
    joined = identity(feature=[ramp[:2], ramp[2:]]) == identity(feature=[ramp[:3], ramp[3:]]) == identity(feature=ramp)
    return joined and error(lambda: identity(feature=[[ramp], [ramp]])) == "TypeError"


@fails("IDENTITY-10", "IDENTITY-11", "IDENTITY-12")
def neither_kind_nor_fields() -> bool:
    """The hash leaves out the modality, whether it is a feature or an embedding, and all fields (grids, frame times)."""
    ramp = torch.arange(6.0)
    items: list[dict[str, Any]] = [{"feature": ramp, "kind": "VIDEO"}, {"precomputed_embeddings": ramp}]
    items += [{"feature": ramp, "model_specific_data": {"image_grid_thw": (1, height, 6 // height)}} for height in (2, 3)]
    return {identity(**one) for one in items} == {identity(feature=ramp)}


@fails("IDENTITY-02")
def byte_order() -> bool:
    """An array that is stored big-endian has another hash than an equal one."""
    return identity(feature=np.arange(3, dtype=">f4")) != identity(feature=np.arange(3, dtype="<f4"))


@fails("IDENTITY-18")
def one_element_of_a_column() -> bool:
    """A tensor of one element that was cut out of a column cannot be hashed, nor can a list of arrays."""
    cut = error(lambda: identity(feature=torch.arange(6.0).view(2, 3)[:1, 0]))
    return (cut, error(lambda: identity(feature=[np.zeros(2)]))) == ("RuntimeError", "TypeError")


@fails("IDENTITY-19")
def no_stable_content() -> bool:
    """An array of objects is hashed by their addresses, so equal ones differ; a None in a list is an AttributeError."""
    arrays = [np.array([float(number) for number in (300, 301)], dtype=object) for _ in range(2)]
    one, other = (identity(feature=array) for array in arrays)
    return one != other and error(lambda: identity(feature=[torch.zeros(1), None])) == "AttributeError"


@fails("IDENTITY-20")
def sixty_four_bits() -> bool:
    """An item that is known by its content is known by 64 bits; nothing sets the wider identity."""
    made = item(feature=torch.zeros(1))
    made.set_pad_value()
    return made.identity is None and 0 <= made.hash < 2**64


@fails("IDENTITY-21")
def mersenne() -> bool:
    """Hashes that differ by 2**61 - 1 combine to one key: the key is Python's hash of a tuple."""
    combine = sg().caches.MultiModalStaticCache.combine_hashes
    return bool(combine([5, 1]) == combine([5 + 2**61 - 1, 1]))


def adopted(kinds: list[str], hashes: list[str]) -> tuple[list[int | None], int]:
    """The hashes of items after `_tokenize_one_request`, and how often it warned."""
    manager = cpu.module("sglang.srt.managers.tokenizer_manager")
    items = [item(kind) for kind in kinds]
    warnings: list[Any] = []

    async def process(**_: Any) -> Any:
        return sg().batch.MultimodalProcessorOutput(mm_items=items)

    unused = ("_validate_mm_limits", "_normalize_mm_content_hashes", "_validate_one_request", "_create_tokenized_object")
    tokenizer = SimpleNamespace(
        mm_processor=SimpleNamespace(prefer_tokenized_input=True, process_mm_data_async=process),
        model_config=SimpleNamespace(hf_config=SimpleNamespace(architectures=[])),
        max_req_input_len=None,
        **{name: lambda *arguments: None for name in unused},
    )
    request = cpu.module("sglang.srt.managers.io_struct").GenerateReqInput(input_ids=[0], image_data=[b""], mm_hashes=hashes)
    with patch.object(manager.logger, "warning", lambda *words: warnings.append(words)):
        asyncio.run(manager.TokenizerManager._tokenize_one_request(tokenizer, request))
    return [one.hash for one in items], len(warnings)


@fails("IDENTITY-25")
def hashes_by_modality() -> bool:
    """Caller hashes, documented as one a picture, are counted against the items of all modalities.

    So those of the pictures alone are dropped, and four for two pictures are taken where two recordings stand beside them.
    """
    mixed = ["AUDIO", "IMAGE", "VIDEO", "IMAGE"]
    alone, too_many = adopted(mixed, ["1", "2"]), adopted(mixed, ["1", "2", "3", "4"])
    return (alone, too_many) == (([None] * 4, 1), ([1, 2, 3, 4], 0))


@fails("IDENTITY-26")
def hashes_as_python_reads_them() -> bool:
    """A caller hash is whatever Python's int(text, 16) takes, cut to 64 bits: 0x1f, 1_f, -1, blanks, 64 digits."""
    hashes = ["0x1f", "1_f", " 1f", "-1", "a" * 16 + "0" * 48]
    return adopted(["IMAGE"] * 5, hashes) == ([31, 31, 31, 2**64 - 1, 0], 0)


@fails("SENTINELS-04")
def hash_is_cut() -> bool:
    """`set_hash` keeps the low 64 bits of any number: -1 and 2**64 - 1 are one item."""
    return bool(named(-1).pad_values == named(2**64 - 1).pad_values == named(2**65 - 1).pad_values)
