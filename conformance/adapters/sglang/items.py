"""The vocabulary of the suite in SGLang's terms."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.adapters.sglang.cpu import Sglang
from reference.items import IDENTITY_BYTES, Chunk, Item, Modality, Span


def modality(sglang: Sglang, kind: Modality) -> Any:
    """SGLang's `Modality`."""
    return sglang.batch.Modality[kind.name]


def by_modality(sglang: Sglang, values: Mapping[Modality, Any]) -> dict[Any, Any]:
    """A mapping with SGLang's modalities for keys."""
    return {modality(sglang, kind): value for kind, value in values.items()}


def unnamed_item(sglang: Sglang, item: Item) -> Any:
    """A `MultimodalDataItem` as a processor makes it: content, offsets and fields, and no hash yet."""
    return sglang.batch.MultimodalDataItem(
        modality=modality(sglang, item.modality),
        offsets=offsets(item.spans),
        feature=item.feature,
        precomputed_embeddings=item.embedding,
        model_specific_data=dict(item.fields),
    )


def data_item(sglang: Sglang, item: Item) -> Any:
    """A `MultimodalDataItem`, by the caller's hash where there is one, else by identity where there is one."""
    made = unnamed_item(sglang, item)
    if item.caller_hash is not None:
        made.set_hash(item.caller_hash)
    elif item.identity is not None:
        made.set_identity(item.identity)
    return made


def inputs(sglang: Sglang, items: Sequence[Item]) -> Any:
    """The `MultimodalInputs` that the scheduler makes of a processor's output; here items without a hash get one."""
    output = sglang.batch.MultimodalProcessorOutput(
        mm_items=[data_item(sglang, item) for item in items], im_token_id=0, video_token_id=0, audio_token_id=0
    )
    return sglang.batch.MultimodalInputs.from_processor_output(output)


def padded(sglang: Sglang, input_ids: NDArray[np.int64], inputs: Any) -> "array[int]":
    """The ids of a prompt, padded as the scheduler has them padded by most models."""
    ids: array[int] = sglang.utils.pad_mm_tokens(array("q", input_ids.tobytes()), inputs)
    return ids


def cache_key(sglang: Sglang, identity: bytes) -> int:
    """The hash by which the embedding cache knows an item: what `set_identity` keeps of a digest, or the number itself."""
    item = sglang.batch.MultimodalDataItem(modality=sglang.batch.Modality.IMAGE)
    if len(identity) == IDENTITY_BYTES:
        item.set_identity(identity)
    else:
        item.set_hash(int.from_bytes(identity, "big"))
    return int(item.hash)


def octets(value: int) -> bytes:
    """A 64-bit hash as bytes."""
    return (value % 2**64).to_bytes(8, "big")


def offsets(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """SGLang's spans: pairs, inclusive at both ends."""
    return [(span.first, span.last) for span in spans]


def media(items: Sequence[Item], chunk: Chunk) -> dict[int, Modality]:
    """The positions of media in a chunk, in ascending order, and whose they are."""
    owners = {position: item.modality for item in items for span in item.spans for position in range(span.first, span.stop)}
    return {position: owners[position] for position in sorted(owners) if chunk.prefix <= position < chunk.stop}
