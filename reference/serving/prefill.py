"""Prefill: the process that computes prompts, from an encoder's rows, for a decode that goes on.

A request comes without its media; their rows come from the encoder, and what was computed goes to the decode, in the room of
this request, chunk by chunk as it comes into being.
"""

import time
from typing import Any

from reference.disaggregation.assignment import assign_parts
from reference.disaggregation.carriers import TcpCarrier
from reference.disaggregation.prefill_side import PrefillSide
from reference.disaggregation.receiver import Receiver
from reference.serving.post import Message, Post
from reference.serving.running import Sequence, begin, compute, rows
from reference.transport.wire import decode_message

IDLE_S, LIMIT_S = 0.1, 60.0


class Prefill:
    """The prefill's work, message by message. chunk_length: None for no limit."""

    def __init__(self, model: Any, post: Post, chunk_length: int | None) -> None:
        self._model, self._post, self._chunk_length = model, post, chunk_length
        self._receiver, self._side, self._carrier = Receiver(LIMIT_S), PrefillSide(LIMIT_S), TcpCarrier()
        self._told: dict[str, Message] = {}
        self._alive: dict[str, Sequence] = {}

    def serve(self) -> None:
        """Compute until told to stop."""
        while True:
            for message in self._post.drain(0 if self._alive else IDLE_S):
                if message["kind"] == "stop":
                    self._carrier.close()
                    return
                self._take(message)
            for id, items in self._receiver.poll(time.monotonic()).items():
                self._begin(id, items)
            for id in [*self._alive]:
                self._step(id)
            for room, error in self._side.poll(time.monotonic()).items():
                for id in [id for id, told in self._told.items() if told["room"] == room]:
                    self._over(id, error)

    def _take(self, message: Message) -> None:
        match message["kind"]:
            case "request":
                request = decode_message(message["request"])
                self._told[request.id] = {**message, "request": request}
                try:
                    parts = [part.items for part in assign_parts(request.items, [{}] * len(request.items), 1)]
                    self._receiver.expect(request, parts, time.monotonic())
                except ValueError as error:
                    self._over(request.id, error)
                self._post.send("encoder", "want", {"id": request.id})
            case "rows":
                self._arrive(message)
            case "failed":
                self._over(message["id"], RuntimeError(message["error"]))
            case "room":
                self._tell(self._side.receive(message["data"]))
            case "abort":
                self._over(message["id"], RuntimeError("the request was aborted"))

    def _arrive(self, message: Message) -> None:
        """Fetch the rows of a part, and say that they are here."""
        id, part, error = message["id"], message["part"], message.get("error")
        try:
            if error:
                raise RuntimeError(error)
            self._receiver.arrive(id, part, message["parts"], self._carrier.fetch(message["ticket"]))
        except Exception as failure:
            error = str(failure)
            self._receiver.fail(id, failure)
        self._post.send("encoder", "have", {"id": id, "part": part, "error": error})

    def _begin(self, id: str, items: Any) -> None:
        told = self._told.get(id)
        if told is None:
            return
        try:
            if isinstance(items, Exception):
                raise items
            request = type(told["request"])(id=id, input_ids=told["request"].input_ids, items=items)
            self._alive[id] = begin(self._model, request, told["limit"])
            self._side.begin(request, told["room"], time.monotonic())
        except Exception as error:
            self._over(id, error)

    def _step(self, id: str) -> None:
        """Compute a chunk of a prompt, and hand over what has become of it."""
        sequence, room = self._alive[id], self._told[id]["room"]
        chunk = sequence.next_chunk(self._chunk_length)
        try:
            token = compute(self._model, sequence, chunk)
            self._tell(self._side.store(room, chunk.prefix, rows(sequence, chunk)))
            if token is not None:
                self._tell(self._side.finish(room, token, sequence.delta))
                del self._alive[id]
        except Exception as error:
            self._over(id, error)

    def _over(self, id: str, error: Exception | None) -> None:
        """A request has ended here: it was handed over, or has failed for everybody."""
        self._alive.pop(id, None)
        self._receiver.cancel(id)
        told = self._told.pop(id, None)
        if error is None or told is None:
            return
        self._post.send("service", "failed", {"id": id, "error": f"{type(error).__name__}: {error}"})
        self._tell(self._side.abort(told["room"]))
        for name in ("encoder", "decode"):
            self._post.send(name, "abort", {"id": id})

    def _tell(self, messages: list[bytes]) -> None:
        for data in messages:
            self._post.send("decode", "room", {"data": data})
