"""Encoder: the process that turns media into rows, for a prefill that asks for them.

Rows go by a carrier of `disaggregation`; a ticket and what becomes of it go by post. Nothing is sent before the prefill wants
it: messages of two senders come in any order, and rows for which nobody waits yet would be lost.
"""

import time
from typing import Any

import torch

from reference.disaggregation.assignment import assign_parts, encode_part
from reference.disaggregation.carriers import TcpCarrier
from reference.disaggregation.encoder_side import EncoderSide, Name
from reference.encoder_cache import EncoderCache
from reference.items import Item, Request
from reference.pipeline import vision_rows
from reference.serving.features import unpack
from reference.serving.post import Message, Post
from reference.transport.reader import Reader
from reference.transport.wire import decode_message

IDLE_S, STALE_S = 0.2, 120.0


class Encoder:
    """The encoder's work, message by message."""

    def __init__(self, model: Any, post: Post) -> None:
        self._model, self._post = model, post
        self._side, self._carrier, self._cache = EncoderSide([], None, STALE_S), TcpCarrier(), EncoderCache(64 << 20)
        self._reader: Reader | None = None
        self._media: dict[Name, tuple[Item, ...]] = {}
        self._parts: dict[str, int] = {}
        self._wanted: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._staged: dict[Name, float] = {}
        self._tickets: dict[Name, bytes] = {}

    def serve(self) -> None:
        """Encode until told to stop."""
        while True:
            for message in self._post.drain(0 if self._media else IDLE_S):
                if message["kind"] == "stop":
                    self._carrier.close()
                    return
                self._take(message)
            if name := self._side.take():
                self._encode(name)
            for name in [name for name in self._staged if name[0] in self._wanted]:
                self._send(name)
            for id in self._wanted.keys() & self._refused.keys():
                self._post.send("prefill", "failed", {"id": id, "error": self._refused.pop(id)})
            self._forget()

    def _take(self, message: Message) -> None:
        match message["kind"]:
            case "channel":
                self._reader = Reader(message["invitation"], 0)
            case "request":
                try:
                    self._submit(unpack(decode_message(message["request"]), self._reader))
                except Exception as error:
                    self._refused[message["id"]] = f"{type(error).__name__}: {error}"
            case "want":
                self._wanted[message["id"]] = time.monotonic()
            case "have":
                self._done((message["id"], message["part"]), message["error"])
            case "abort":
                self._side.cancel(message["id"])
                for name in [name for name in self._tickets if name[0] == message["id"]]:
                    self._done(name, "the request was aborted")
                for table in (self._wanted, self._refused):
                    table.pop(message["id"], None)
                self._media = {name: items for name, items in self._media.items() if name[0] != message["id"]}

    def _submit(self, request: Request) -> None:
        parts = assign_parts(request.items, [{}] * len(request.items), 1)
        self._parts[request.id] = len(parts)
        for number, part in enumerate(parts):
            items = tuple(request.items[n] for n in part.items)
            told = {"id": request.id, "part": number, "parts": len(parts), "modality": int(items[0].modality)}
            self._side.submit({**told, "media": items, "options": part.options, "receivers": 1}, time.monotonic())
            self._media[request.id, number] = items

    @torch.no_grad()
    def _encode(self, name: Name) -> None:
        items = self._media.pop(name)
        counts = {item.identity: item.token_count for item in items}
        made: torch.Tensor | Exception
        try:
            made = encode_part(items, lambda identity: self._cache.get(identity, counts[identity]), self._rows)
        except Exception as error:
            made = error
        self._side.encoded(*name, made, time.monotonic())
        self._staged[name] = time.monotonic()

    def _rows(self, items: Any) -> list[torch.Tensor]:
        made = [vision_rows(self._model, item) for item in items]
        for item, rows in zip(items, made, strict=True):
            self._cache.put(item.identity, rows)
        return made

    def _send(self, name: Name) -> None:
        """Say where the rows of a part are, or what is wrong with it."""
        del self._staged[name]
        told = {"id": name[0], "part": name[1], "parts": self._parts[name[0]]}
        try:
            made = self._side.send(*name, 0, time.monotonic())
        except ValueError:
            return  # it was cancelled meanwhile
        if isinstance(made, Exception):
            self._post.send("prefill", "rows", {**told, "error": f"{type(made).__name__}: {made}"})
            self._side.sent(*name, 0, made, time.monotonic())
            return
        self._tickets[name] = self._carrier.offer(made)
        self._post.send("prefill", "rows", {**told, "ticket": self._tickets[name]})

    def _done(self, name: Name, error: str | None) -> None:
        """The prefill has the rows of a part, or cannot have them."""
        if ticket := self._tickets.pop(name, None):
            self._carrier.withdraw(ticket)
            self._side.sent(*name, 0, RuntimeError(error) if error else None, time.monotonic())

    def _forget(self) -> None:
        """What nobody has asked for in a long time."""
        now = time.monotonic()
        self._side.sweep(now)
        self._wanted = {id: since for id, since in self._wanted.items() if now - since < STALE_S}
        self._staged = {name: since for name, since in self._staged.items() if now - since < STALE_S}
        alive = {id for id, _ in (*self._media, *self._staged, *self._tickets)}
        self._parts = {id: count for id, count in self._parts.items() if id in alive}
