"""Rank: one of the processes that compute a model together.

Each step has three parts, the same on every rank: what came to the first rank is spread, requests are taken in, and each
request that is alive is computed by one chunk or one token. After the second and the third all agree on what has failed.
All ranks hold the same requests in the same order, so nobody needs to be told what to compute.

1. Media are encoded by the first rank alone, once, and travel to the others as rows. The others have no vision tower.
2. A step without media, and one without anything new, is the same step.
3. The first rank waits for news when nothing is alive; the others wait for it.

Source: SGLang 0.5.23, `Scheduler.event_loop_normal` and `recv_requests`.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from reference.encoder_cache import EncoderCache
from reference.items import Request
from reference.parallel.collectives import Collectives
from reference.pipeline import vision_rows
from reference.serving.features import unpack
from reference.serving.group import Failed, Outcome, agree, spread
from reference.serving.post import Message, Post
from reference.serving.running import Sequence, begin, compute
from reference.serving.shards import GroupLost, Shards
from reference.transport.reader import Reader
from reference.transport.wire import decode_message, encode_message

IDLE_S = 1.0


@torch.no_grad()
def with_rows(model: Any, request: Request, cache: EncoderCache) -> Request:
    """The request with the encoder's rows in the place of features; what was encoded before is taken from the cache."""
    items = []
    for item in request.items:
        rows = item.embedding
        if rows is None:
            rows = cache.get(item.identity, item.token_count) if item.identity else None
        if rows is None:
            rows = vision_rows(model, item)
            if item.identity:
                cache.put(item.identity, rows)
        items.append(replace(item, feature=None, embedding=rows, format=None))
    return replace(request, items=tuple(items))


class Rank:
    """A rank of a group. post: the way to the others, on the first rank; None elsewhere. chunk_length: None for no limit."""

    def __init__(self, model: Any, group: Collectives, post: Post | None, chunk_length: int | None) -> None:
        self._model, self._group, self._post, self._chunk_length = model, group, post, chunk_length
        self._shards = Shards(model, group.rank, group.size)
        self._alive: dict[str, Sequence] = {}
        self._cache = EncoderCache(64 << 20)
        self._reader: Reader | None = None
        self._end = model.config.text_config.eos_token_id

    def serve(self) -> None:
        """Compute steps until told to stop. Raises GroupLost."""
        while True:
            news = spread(self._group, self._news())
            if any(one["kind"] == "stop" for one in news):
                return
            arrived: dict[str, Message] = {}
            for one in news:
                if one["kind"] == "abort":
                    arrived.pop(one["id"], None)
                    self._alive.pop(one["id"], None)
                else:
                    arrived[one["id"]] = one
            if arrived:
                self._admit(arrived)
            if self._alive:
                self._step()

    def _news(self) -> list[Message]:
        """What has come to the first rank, with the rows of media; it waits if there is nothing else to do."""
        if self._post is None:
            return []
        news = []
        for message in self._post.drain(0 if self._alive else IDLE_S):
            if message["kind"] == "channel":
                self._reader = Reader(message["invitation"], 0)
            else:
                news.append(self._prepared(message) if message["kind"] == "request" else message)
        return news

    def _prepared(self, message: Message) -> Message:
        """A request with its rows, or what has failed it here."""
        try:
            request = unpack(decode_message(message["request"]), self._reader)
            return {**message, "request": encode_message(with_rows(self._model, request, self._cache))}
        except Exception as error:
            return {"kind": "failed", "id": message["id"], "error": f"{type(error).__name__}: {error}"}

    def _admit(self, arrived: dict[str, Message]) -> None:
        outcomes: dict[str, Outcome] = {}
        for id, one in arrived.items():
            try:
                if one["kind"] == "failed":
                    raise Failed(one["error"])
                if id in self._alive:
                    raise ValueError("a request with this id is alive")
                self._alive[id] = begin(self._model, decode_message(one["request"]), one["limit"])
                outcomes[id] = None
            except Exception as error:
                outcomes[id] = error
        for id, outcome in agree(self._group, outcomes).items():
            if isinstance(outcome, Failed):
                self._end_with(id, outcome)

    def _step(self) -> None:
        outcomes: dict[str, Outcome] = {}
        for id, sequence in self._alive.items():
            chunk = sequence.next_chunk(self._chunk_length)
            try:
                outcomes[id] = self._shards.run(partial(compute, self._model, sequence, chunk), chunk.length)
            except GroupLost:
                raise
            except Exception as error:
                outcomes[id] = error
        for id, outcome in agree(self._group, outcomes).items():
            if isinstance(outcome, Failed) or self._alive[id].is_over(self._end):
                self._end_with(id, outcome)

    def _end_with(self, id: str, outcome: object) -> None:
        """A request is over: the first rank says how."""
        sequence = self._alive.pop(id, None)
        if self._post is None:
            return
        if isinstance(outcome, Failed) or sequence is None:
            self._post.send("service", "failed", {"id": id, "error": str(outcome)})
        else:
            self._post.send("service", "answer", {"id": id, "tokens": sequence.tokens})
