"""Requests: what they need while they are alive, and who gives it back.

From its admission to its end a request needs the content of its media: to encode them, and to encode them again. An
engine that forgets it too early breaks on the next cache miss; one that forgets it too late runs out of memory.

1. A retraction can come at any time before the end, and takes all that was computed. So content is kept on the host until
   the request is finished or aborted, and whatever is recomputed is the same as if nothing had happened. What was
   generated stays, once.
2. On the device, content is only while the encoder reads it. Rows are kept there by the encoder cache, in its budget; a
   miss costs another encoder run and nothing else.
3. Content belongs to everyone who needs it: it is kept once, with the set of its owners, and goes with the last of them.
   An owner that leaves twice changes nothing. Counting in place of a set is how the same picture twice in a request is
   given back once too often.
4. A session owns the content of its last finished turn, until it is closed. An aborted turn gives back what it brought,
   and nothing of the turns before. A close does not wait for turns that are still running: they own what they need.
5. A step fails for single requests only. Who fails is aborted, with an error; whoever shares its step does not notice.

Source: SGLang 0.5.23, `Req.reset_for_retract`, `release_mm_inputs_on_abort`, `MultimodalInputs.release_features`,
`SessionController._close`; vLLM 0.33, `Scheduler._preempt_request` and `EncoderCacheManager.free`.
Disagreements: SGLang defers a close until running turns end, and keeps the content of each turn until then; it extends
the table of positions anew whenever a retracted request is scheduled.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from reference.encoder_cache import EncoderCache
from reference.encoding import Encoder, encode
from reference.items import Chunk, Format, Item, Modality, Request
from reference.merging import merge
from reference.positions import Triples, extend_positions

Owner: TypeAlias = tuple[str, str]
"""What kind of owner it is, and its name."""


class Medium(NamedTuple):
    """What tells one content from another. rows: those of an embedding, None for a feature."""

    modality: Modality
    format: Format | None
    identity: bytes
    rows: int | None


@dataclass(slots=True)
class _Life:
    """One request that is alive.

    request: without the content of its items. media: which content they have. computed: the positions that are done, None
    before its first step.
    """

    request: Request
    media: tuple[Medium, ...]
    session: str | None
    triples: Triples | None
    reply: list[int] = field(default_factory=list)
    computed: int | None = None

    @property
    def length(self) -> int:
        return len(self.request.input_ids) + len(self.reply)

    def ids(self, chunk: Chunk) -> NDArray[np.int64]:
        prompt = self.request.input_ids
        first, stop = (max(0, position - len(prompt)) for position in (chunk.prefix, chunk.stop))
        return np.concatenate([prompt[chunk.prefix : chunk.stop], np.array(self.reply[first:stop], dtype=np.int64)])


class Device:
    """The memory of an accelerator: copies of content, while they are there."""

    def __init__(self) -> None:
        self._copies: list[Any] = []

    def upload(self, content: Any) -> Any:
        """A copy of the content on the device."""
        self._copies.append(deepcopy(content))
        return self._copies[-1]

    def release(self) -> None:
        """Forget all copies."""
        self._copies.clear()

    def used_bytes(self) -> int:
        """The bytes of all copies."""
        return sum(map(content_bytes, self._copies))


class LiveRequests:
    """Requests from their admission to their end, computed together in steps.

    encoders: by modality. table: the text embeddings [vocabulary, hidden]. cache_bytes: how many bytes of rows are kept
    from step to step.
    """

    def __init__(self, encoders: Mapping[Modality, Encoder], table: torch.Tensor, cache_bytes: int) -> None:
        self._encoders = {modality: partial(self._on_device, encoder) for modality, encoder in encoders.items()}
        self._table = table
        self._cache = EncoderCache(cache_bytes)
        self._device = Device()
        self._alive: dict[str, _Life] = {}
        self._content: dict[Medium, Any] = {}
        self._owners: dict[Medium, set[Owner]] = {}
        self._owned: dict[Owner, tuple[Medium, ...]] = {}

    def admit(self, request: Request, session: str | None = None, triples: Triples | None = None) -> None:
        """Take a request in, with the content of its media. What `step` needs of it is kept; the caller may forget it.

        session: to which this turn belongs. An item without content has that which the session has kept of it. triples:
        int64 [3, n], the M-RoPE positions of the prompt.

        Raises ValueError, and keeps nothing, when the id is taken, for an item without identity, for one without content
        that the session does not know, for an embedding of another length than its spans, and for a table of another
        length than the prompt.
        """
        if request.id in self._alive:
            raise ValueError(f"there is a request {request.id} already")
        if triples is not None and triples.shape != (3, len(request.input_ids)):
            raise ValueError(f"positions of {len(request.input_ids)} tokens are [3, n], not {list(triples.shape)}")
        known = self._owned.get(("session", session), ()) if session is not None else ()
        places = (f"request {request.id}, item {number}" for number in range(len(request.items)))
        media = tuple(_medium(item, known, place) for item, place in zip(request.items, places, strict=False))
        bare = replace(request, items=tuple(replace(item, feature=None, embedding=None, format=None) for item in request.items))
        self._alive[request.id] = _Life(bare, media, session, triples)
        for medium, item in zip(media, request.items, strict=True):
            if medium not in self._content:
                self._content[medium] = item.feature if item.embedding is None else item.embedding
        self._own(("request", request.id), media)

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor | Exception]:
        """Compute a chunk of each of these requests: what enters the language model, [chunk.length, hidden].

        The first chunk after admission or retraction begins anywhere, behind a prefix that is cached elsewhere; each
        further one where the one before ended. A request that cannot be computed has an exception in its place, and is
        aborted. Raises ValueError, and computes nothing, for a request that is not alive, or a chunk that begins
        elsewhere or ends behind the last token.
        """
        for id, chunk in chunks.items():
            self._check(id, chunk)
        batch = [(self._whole(self._alive[id], chunk), chunk) for id, chunk in chunks.items()]
        made = encode(batch, self._encoders, self._cache)
        return {one.id: self._entered(one, chunk, rows) for (one, chunk), rows in zip(batch, made, strict=True)}

    def reply(self, id: str, token_ids: Sequence[int]) -> None:
        """Add generated tokens behind the request; they are text. Raises ValueError for a request that is not alive."""
        self._life(id).reply.extend(token_ids)

    def retract(self, id: str) -> None:
        """Take back all that was computed; the tokens stay. Raises ValueError for a request that is not alive."""
        self._life(id).computed = None

    def positions(self, id: str) -> Triples:
        """The M-RoPE positions int64 [3, n] of prompt and reply. Raises ValueError for a request without."""
        life = self._life(id)
        if life.triples is None:
            raise ValueError(f"request {id} was admitted without positions")
        return extend_positions(life.triples, life.length)

    def finish(self, id: str) -> None:
        """End a request; its session now keeps the content of this turn. Raises ValueError for one that is not alive."""
        life = self._life(id)
        if life.session is not None:
            self._own(("session", life.session), life.media)
        self.abort(id)

    def abort(self, id: str) -> None:
        """End a request, whatever has become of it. One that is not alive has ended already."""
        self._alive.pop(id, None)
        self._own(("request", id), ())

    def close(self, session: str) -> None:
        """Forget a session. Its turns that are still running go on by themselves."""
        for life in self._alive.values():
            if life.session == session:
                life.session = None
        self._own(("session", session), ())

    def held_bytes(self) -> int:
        """The bytes of content that is kept for requests and sessions, each medium once."""
        return sum(map(content_bytes, self._content.values()))

    def device_bytes(self) -> int:
        """The bytes on the device: content, and the rows in the encoder cache."""
        return self._device.used_bytes() + self._cache.used_bytes()

    def _own(self, owner: Owner, media: Iterable[Medium]) -> None:
        """From now on this owner needs these media, and no others. What nobody needs is forgotten."""
        now = tuple(dict.fromkeys(media))
        for medium in now:
            self._owners.setdefault(medium, set()).add(owner)
        for medium in set(self._owned.pop(owner, ())) - set(now):
            self._owners[medium].discard(owner)
            if not self._owners[medium]:
                del self._owners[medium], self._content[medium]
        if now:
            self._owned[owner] = now

    def _life(self, id: str) -> _Life:
        if id not in self._alive:
            raise ValueError(f"there is no request {id}, or no longer; alive: {', '.join(self._alive) or 'none'}")
        return self._alive[id]

    def _check(self, id: str, chunk: Chunk) -> None:
        life = self._life(id)
        if life.computed is not None and chunk.prefix != life.computed:
            raise ValueError(f"request {id} goes on at position {life.computed}, but {chunk} begins elsewhere")
        if chunk.stop > life.length:
            raise ValueError(f"request {id} has {life.length} tokens, but {chunk} ends behind them")

    def _whole(self, life: _Life, chunk: Chunk) -> Request:
        """The request with the content of the items in this chunk."""
        items = [
            _filled(item, medium, self._content[medium])
            for item, medium in zip(life.request.items, life.media, strict=True)
            if any(span.first < chunk.stop and span.last >= chunk.prefix for span in item.spans)
        ]
        return replace(life.request, items=tuple(items))

    def _on_device(self, encoder: Encoder, items: Sequence[Item]) -> Any:
        try:
            return encoder([replace(item, feature=self._device.upload(item.feature)) for item in items])
        finally:
            self._device.release()

    def _entered(self, request: Request, chunk: Chunk, rows: torch.Tensor | Exception) -> torch.Tensor | Exception:
        life = self._alive[request.id]
        try:
            if isinstance(rows, Exception):
                raise rows
            fitting = rows if len(rows) else self._table.new_empty(0, self._table.shape[1])
            entered = merge(life.ids(chunk), request.items, fitting, self._table, chunk)
        except ValueError as error:
            self.abort(request.id)
            return error
        life.computed = chunk.stop
        return entered


def content_bytes(content: Any) -> int:
    """The memory of a feature: a tensor, an array, bytes, a picture, or nested lists of these."""
    if isinstance(content, torch.Tensor | np.ndarray):
        return int(content.nbytes)
    if isinstance(content, list | tuple):
        return sum(map(content_bytes, content))
    if hasattr(content, "tobytes"):
        return len(content.tobytes())
    return len(content) if isinstance(content, bytes | bytearray) else 8


def _medium(item: Item, known: Iterable[Medium], where: str) -> Medium:
    """What an item has for content. known: where to look for one that comes without."""
    if item.identity is None:
        raise ValueError(f"{where} has no identity; identify items before they are admitted")
    if item.is_empty:
        for medium in known:
            if (medium.modality, medium.identity) == (item.modality, item.identity) and medium.rows in (None, item.token_count):
                return medium
        raise ValueError(f"{where} has neither a feature nor an embedding, nor has a session kept one: it cannot be encoded")
    if item.embedding is not None and len(item.embedding) != item.token_count:
        raise ValueError(f"{where} fills {item.token_count} positions, but its embedding has {len(item.embedding)} rows")
    return Medium(item.modality, item.format, item.identity, None if item.embedding is None else item.token_count)


def _filled(item: Item, medium: Medium, content: Any) -> Item:
    if medium.rows is None:
        return replace(item, format=medium.format, feature=content)
    return replace(item, format=medium.format, embedding=content)
