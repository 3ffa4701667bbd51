"""The engine protocol: what the suite asks an engine.

An engine is any object with a `name`, a `version` and whichever of these methods it supports. Every method is
optional; what an engine can do is found by looking. No base class is needed. Data crosses as plain values: numpy
arrays, torch tensors, ints, bytes and the vocabulary of `reference.items`.

Rules that hold for every method:
* ids are signed 64-bit integers; spans are inclusive at both ends; positions count from 0 in the whole, expanded prompt;
* arguments are never changed: an engine that needs to write makes a copy;
* input that cannot be right is refused with an error that was meant (a ValueError, a TypeError, an error class of the
  engine's own), not with one that happened (an IndexError, an AttributeError, an AssertionError).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from conformance import returns as answer
from conformance.returns import Opens, returns
from conformance.world.checkpoint import Checkpoint
from reference.items import Chunk, Item, Modality, Request, Span

Encoder: TypeAlias = Callable[[Sequence[Item]], torch.Tensor | Sequence[torch.Tensor]]
"""A model's encoder: items of one modality -> their rows, one tensor [token_count, hidden] an item, or all in one."""


class EngineNotLoaded(Exception):
    """The engine that was named cannot be had; the message says why, and what would be right."""


class Profile(StrEnum):
    """Who is bound: every engine, or those that promise the exact values of one scheme."""

    CORE = "core"
    SGLANG = "sglang"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is a choice of an engine and not a fault. Rules read traits; no rule knows an engine by name.

    largest_vocabulary: ids below this number may be text; sentinels must not be.
    surplus_rows: what happens to more rows than positions: they are refused, or the last ones are kept.
    caller_hashes: what a hash from the caller does: it stands for the item ("trust"), or it is refused ("reject").
    length_conflicts: what happens to an item whose identity is known with another token count: it is encoded like any
        other ("encode"), or its request fails ("fail").
    profile: whose exact values the engine promises beside the core ("core": nobody's).
    """

    largest_vocabulary: int = 1_000_000
    surplus_rows: Literal["reject", "keep last"] = "reject"
    caller_hashes: Literal["trust", "reject"] = "trust"
    length_conflicts: Literal["encode", "fail"] = "encode"
    profile: Profile = Profile.CORE


@dataclass(frozen=True, slots=True, eq=False)
class Prefill:
    """What a model was fed, and what it answered.

    input_ids: int64 [n], as the engine's prefix cache keys them: expanded, and padded where the engine pads.
    embeddings: [n, hidden], what entered the first layer.
    logits: [n, vocabulary].
    """

    input_ids: NDArray[np.int64]
    embeddings: torch.Tensor
    logits: torch.Tensor


def prefilled(value: Any) -> Prefill:
    """A `Prefill`."""
    if not isinstance(value, Prefill):
        raise answer.WrongAnswer("a conformance.engine.Prefill")
    return Prefill(answer.int64_array(value.input_ids), answer.rows(value.embeddings), answer.rows(value.logits))


class EncoderCache(Protocol):
    """What `open_encoder_cache` returns: embeddings of items, bounded in bytes."""

    @returns(answer.boolean)
    def put(self, key: bytes, embedding: torch.Tensor) -> bool:
        """Keep `embedding` [token_count, hidden] under the identity `key`, in place of what was there; pins stay.

        Evicts the unpinned entries that were used longest ago until it fits. Returns False, and evicts nothing, when it
        cannot fit whatever is evicted: what was under `key` is gone all the same. Using an entry means putting it or a
        hit. Raises ValueError or TypeError for anything but a tensor with two dimensions.
        """

    @returns(answer.rows_or_none)
    def get(self, key: bytes, token_count: int) -> torch.Tensor | None:
        """The embedding under `key`, or None. An entry with another number of rows is no hit; it is dropped, unless it
        is pinned."""

    @returns(answer.integer)
    def used_bytes(self) -> int:
        """The memory that the cache keeps alive: the storage behind its tensors, not their visible part."""

    @returns(answer.nothing)
    def clear(self) -> None:
        """Forget everything, pinned entries too, and whatever is still being computed for this cache."""

    @returns(answer.integer)
    def generation(self) -> int:
        """A number that every `clear` raises. Work notes it when it starts and gives it to `put_if_current`."""

    @returns(answer.boolean)
    def put_if_current(self, key: bytes, embedding: torch.Tensor, generation: int) -> bool:
        """`put`, unless the cache was cleared since `generation`: then nothing is kept and the answer is False."""

    @returns(answer.nothing)
    def pin(self, key: bytes) -> None:
        """Protect an entry from eviction until it was unpinned as often as pinned. KeyError when there is none."""

    @returns(answer.nothing)
    def unpin(self, key: bytes) -> None:
        """Take one pin back. KeyError when the entry has none."""


class Engine(Protocol):
    """Everything that the suite can ask. Implement any part of it."""

    name: str
    version: str
    traits: Traits

    def can(self, method: str) -> bool:
        """Whether the engine has a method. The suite answers this itself, by looking: engines need not."""

    # identity

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

    # sentinels

    @returns(answer.integers)
    def sentinels(self, identity: bytes) -> Sequence[int]:
        """The ids that stand for an item with this 32-byte identity, in the order in which a span cycles through them."""

    @returns(answer.integers)
    def sentinels_from_hash(self, value: int) -> Sequence[int]:
        """The ids that stand for an item known by an unsigned 64-bit hash. Raises ValueError for any other number."""

    @returns(answer.nothing)
    def check_vocabulary(self, size: int) -> None:
        """Raise ValueError when a vocabulary of `size` ids, 0 to size - 1, could contain a sentinel."""

    # placeholders

    @returns(answer.spans)
    def find_spans(self, input_ids: NDArray[np.int64], token_id: int) -> Sequence[Span]:
        """The maximal runs of `token_id` in `input_ids` int64 [n], by position."""

    @returns(answer.int64_array)
    def pad_spans(self, input_ids: NDArray[np.int64], items: Sequence[Item]) -> NDArray[np.int64]:
        """A new int64 array [n]: each span filled with its item's sentinels from the first one on, the rest as it was.

        Items have an `identity` or a `caller_hash`. Raises ValueError when spans overlap or end outside the prompt.
        """

    @returns(answer.int64_array)
    def pad_pairs(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        pairs: Sequence[tuple[int, int]],
        item_starts: Collection[int],
    ) -> NDArray[np.int64]:
        """A new int64 array [n]: what lies strictly between a start and an end token filled with an item's sentinels.

        pairs: (start id, end id), all ids different.
        item_starts: the start ids that begin a new item; a pair with another start is a further slice of the item
        before it. The k-th item start in the prompt belongs to items[k]; spans of items are not looked at.
        Each slice is filled from the first sentinel on. Raises ValueError for tokens that do not pair up, cross or
        nest, for a slice before any item start, and unless there are as many item starts as items.
        """

    @returns(answer.integers)
    def token_modalities(self, length: int, items: Sequence[Item]) -> Sequence[int]:
        """For each of `length` positions the number of the modality whose span it lies in, 0 at text.

        Raises ValueError when spans overlap or end outside the prompt.
        """

    # encoder_cache

    @returns(Opens(EncoderCache, specimen=(1024,)))
    def open_encoder_cache(self, capacity_bytes: int) -> EncoderCache:
        """An empty cache of embeddings that never keeps more than `capacity_bytes` alive.

        Raises ValueError or TypeError for a capacity that is negative or no number of bytes.
        """

    # encoding

    @returns(answer.integer)
    def count_in_chunk(self, spans: Sequence[Span], chunk: Chunk) -> int:
        """How many positions of `spans`, which are disjoint, lie in the chunk."""

    @returns(answer.rows)
    def slice_chunk(self, embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
        """The rows of `embedding` [token_count, hidden] whose positions lie in the chunk, in order.

        The k-th row belongs to the k-th position of the spans, which are disjoint and in ascending order. Raises
        ValueError for an embedding with another number of rows.
        """

    @returns(answer.function)
    def find_encoder(self, modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
        """The encoder of a modality: the registered one, else the model's `get_image_feature`, `get_video_feature` or
        `get_audio_feature`. Raises an error that names the modality and what was looked for."""

    @returns(answer.rows_or_error_each)
    def encode(
        self, batch: Sequence[tuple[Request, Chunk]], encoders: Mapping[Modality, Encoder], cache: EncoderCache | None
    ) -> Sequence[torch.Tensor | Exception]:
        """For each request the rows of its chunk, [positions of media in the chunk, hidden], by position.

        Items have an identity. Items outside their chunk are not encoded; items of a modality with the same identity
        and token count are encoded once; all misses of a modality go to its encoder in one call, in order of first
        appearance: by request, then by position. Precomputed embeddings are used as they are. Where the chunk has no
        media there are 0 rows, of any width.

        A request whose rows cannot be had has an exception in its place, and other requests are served: an item whose
        encoder (or precomputed embedding) gives another number of rows than the item has tokens, a modality without an
        encoder, an encoder that raises. When one tensor for all items has a wrong total, or a list a wrong length, no
        item of that call has rows. Nothing of such an item is cached, and nothing at all where the cache was cleared
        meanwhile.
        """

    # merging

    @returns(answer.rows)
    def fit_length(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """`rows` [m, hidden] made `count` long, 0 included. Fewer rows than `count` are an error; for more see
        `Traits.surplus_rows`."""

    @returns(answer.rows)
    def merge(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
    ) -> torch.Tensor:
        """What enters the language model for one chunk: a tensor [chunk.length, hidden] of the table's dtype.

        input_ids: the ids of the chunk, int64 [chunk.length], as this engine's `pad_spans` made them; placeholder ids
        where it has no such method.
        rows: [positions of media in the chunk, hidden], by position. Fewer are an error; for more see
        `Traits.surplus_rows`. Another width is an error.
        table: the text embeddings [vocabulary, hidden].
        """

    @returns(answer.rows_and_levels)
    def merge_deepstack(
        self,
        input_ids: NDArray[np.int64],
        items: Sequence[Item],
        rows: torch.Tensor,
        table: torch.Tensor,
        chunk: Chunk,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`merge` for encoders that also feed deeper layers: rows are [media, hidden * (1 + levels)].

        Returns what `merge` would for the first `hidden` columns, and [levels, chunk.length, hidden] for the others:
        level l holds the l-th further `hidden` columns at the positions of media and zeros at text.
        """

    # pipeline

    @returns(prefilled)
    def prefill(self, checkpoint: Checkpoint, prompt: str, images: Sequence[Image], chunk_length: int | None) -> Prefill:
        """The whole path: a prompt and its pictures through the checkpoint, `chunk_length` positions a step (None: all).

        prompt: with `checkpoint.placeholder` for each picture, in order. Raises ValueError when it has more or fewer of
        them than there are pictures. A token of the placeholder that stands for no picture is refused or read as text.

        The checkpoint is an instrument here and not what is tested. That its numbers can be compared to the last bit, it
        is used in one way: its vision tower runs each picture by itself (`get_image_features`), and its language model
        runs one prompt at a time, one call a step, with the keys and values of the steps before.
        """


METHODS = [name for name, member in vars(Engine).items() if hasattr(member, "reader")]
"""The names of all methods of the protocol, in its order."""
