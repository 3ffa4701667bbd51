"""Decode: the process that goes on behind prompts which a prefill has computed."""

import time
from typing import Any

from reference.disaggregation.decode_side import DecodeSide
from reference.disaggregation.prefill_side import Aborted
from reference.serving.post import Message, Post
from reference.serving.running import Sequence, adopt, compute
from reference.transport.wire import decode_message

IDLE_S, LIMIT_S = 0.1, 60.0


class Decode:
    """The decode's work, message by message."""

    def __init__(self, model: Any, post: Post) -> None:
        self._model, self._post, self._side = model, post, DecodeSide(LIMIT_S)
        self._told: dict[str, Message] = {}
        self._alive: dict[str, Sequence] = {}
        self._end = model.config.text_config.eos_token_id

    def serve(self) -> None:
        """Go on with requests until told to stop."""
        while True:
            for message in self._post.drain(0 if self._alive else IDLE_S):
                if message["kind"] == "stop":
                    return
                self._take(message)
            for room, handed in self._side.poll(time.monotonic()).items():
                for id in [id for id, told in self._told.items() if told["room"] == room]:
                    self._adopt(id, handed)
            for id in [*self._alive]:
                self._step(id)

    def _take(self, message: Message) -> None:
        match message["kind"]:
            case "request":
                self._told[message["id"]] = message
                try:
                    self._tell(self._side.expect(decode_message(message["request"]), message["room"], time.monotonic()))
                except ValueError as error:
                    self._fail(message["id"], error)
            case "room":
                self._tell(self._side.receive(message["data"]))
            case "abort":
                self._alive.pop(message["id"], None)
                if told := self._told.pop(message["id"], None):
                    self._tell(self._side.abort(told["room"]))

    def _adopt(self, id: str, handed: Any) -> None:
        """Go on with a prompt that was handed over, or say why it was not."""
        try:
            if isinstance(handed, Exception):
                raise handed
            limit = self._told[id]["limit"]
            self._alive[id] = adopt(self._model, handed.request, handed.rows, handed.token, handed.delta, limit)
            self._end_if_over(id)
        except Aborted:
            self._told.pop(id)  # the prefill has told why
        except Exception as error:
            self._fail(id, error)

    def _step(self, id: str) -> None:
        sequence = self._alive[id]
        try:
            compute(self._model, sequence, sequence.next_chunk(None))
            self._end_if_over(id)
        except Exception as error:
            self._fail(id, error)

    def _end_if_over(self, id: str) -> None:
        if self._alive[id].is_over(self._end):
            self._post.send("service", "answer", {"id": id, "tokens": self._alive.pop(id).tokens})
            del self._told[id]

    def _fail(self, id: str, error: Exception) -> None:
        self._alive.pop(id, None)
        self._told.pop(id, None)
        self._post.send("service", "failed", {"id": id, "error": f"{type(error).__name__}: {error}"})

    def _tell(self, messages: list[bytes]) -> None:
        for data in messages:
            self._post.send("prefill", "room", {"data": data})
