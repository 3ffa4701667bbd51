"""What stands for the content of an item."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from conformance import returns as answer
from conformance.returns import returns
from reference.items import Item, Modality


class Identity(Protocol):
    """What stands for the content of an item."""

    @returns(answer.octets)
    def identify(self, item: Item) -> bytes:
        """The identity of an item's content: equal for equal content, different for different content.

        It covers the modality, the type, dtype, shape and bytes of the feature or embedding, how lists are framed, the
        fields, and of a picture its mode, palette and transparency. Where and how the same values are stored is no
        content, nor are spans, a caller hash, an identity given already, or metadata of a picture. Of any width; 16 bytes
        or more are wanted. Raises an error for an empty item and for what has no stable content, such as an object array.
        """

    @returns(answer.octets)
    def combine_identities(self, identities: Sequence[bytes]) -> bytes:
        """One identity for a sequence of them, each as `identify` gives it: order and repetition matter."""

    @returns(answer.adopted)
    def adopt_caller_hashes(
        self, items: Sequence[Item], hashes: Mapping[Modality, Sequence[str]]
    ) -> tuple[Sequence[int | None], Sequence[str]]:
        """Hashes that the caller supplied, by modality, one hex string of 1 to 16 digits an item in item order.

        Returns, for each item, its unsigned 64-bit hash or None (identify it by content), and one sentence for each
        problem. A wrong number of hashes for any modality drops those of the whole request; a malformed entry only its own.
        """

    @returns(answer.integer)
    def data_hash(self, data: bytes) -> int:
        """SGLang's 64-bit hash of bytes: the first 8 bytes of their SHA-256, big-endian."""

    @returns(answer.integer)
    def tensor_hash(self, tensors: torch.Tensor | Sequence[Any]) -> int:
        """SGLang's 64-bit hash of a tensor, or of the tensors of nested lists in turn, on a CPU."""

    @returns(answer.integer)
    def hash_feature(self, feature: Any) -> int:
        """SGLang's 64-bit hash of a feature: a tensor, an array, bytes, or a list of tensors. Anything else is an error."""
