"""The encoder's side: parts that wait, are encoded, and are sent to everyone who asked.

Between the encoder's output and the last transfer of it lies all that leaks: a receiver that went away, a transfer that
broke, a request that nobody wants any more. So a part has one record, and one function decides when it ends.

1. A message is checked as a whole before any rank sees it. A rank that stumbles over one takes its whole group with it.
2. Rows are registered once, when they are staged, and not for each transfer: sibling ranks read the same memory.
3. A part is *over* when it was sent to all, failed, was cancelled or went stale. It *ends* when it is over and nobody
   encodes or reads it. Only then are rows and memory given back, and only once.
4. An encoder's error travels the way that rows would have, to every receiver. Silence would be waited for.
5. A sweep looks at each part by itself. One that is being read is left to its transfer. Memory whose release raises is
   still readable from elsewhere, so its rows stay, and it is tried again.

Source: SGLang 0.5.23, `MMEncoder` (`ReqState`, `send_to_destination`, `release_request`, `_register_shared_mr`),
`EncoderMetaRegistry` and `validate_encode_request`.
Disagreements: SGLang retries failed releases after another stale period; vLLM's producer keeps rows in a cache by identity
and pins them for a transfer.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch

from reference.items import Modality

Name = tuple[str, int]
"""A request's id and the number of a part."""


class Rank(Protocol):
    """A rank of the encoder, to which requests are handed."""

    def __call__(self, message: Mapping[str, Any], /) -> None: ...


class Memory(Protocol):
    """What rows lie in while they are read."""

    def register(self, id: str, part: int) -> None: ...
    def release(self, id: str, part: int) -> None: ...


@dataclass(slots=True, eq=False)
class _Part:
    """state: what is done with it. touched: when something was last heard of it. sending, reached: receivers."""

    receivers: int
    touched: float
    state: Literal["queued", "encoding", "staged"] = "queued"
    is_over: bool = False
    made: torch.Tensor | Exception | None = None
    sending: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)


class EncoderSide:
    """An encoder instance. ranks: who is handed each request. memory: as in `conformance.protocol`."""

    def __init__(self, ranks: Sequence[Rank], memory: Memory | None, stale_after_s: float) -> None:
        if not stale_after_s > 0:
            raise ValueError(f"a part is stale after a positive number of seconds, not {stale_after_s}")
        self._ranks, self._memory, self._stale_after_s = tuple(ranks), memory, stale_after_s
        self._parts: dict[Name, _Part] = {}
        self._queue: deque[Name] = deque()

    def submit(self, message: Mapping[str, Any], now: float) -> None:
        """Queue a part, and hand its request to all ranks. Raises ValueError for one that is malformed or not yet ended."""
        name = check_message(message)
        if name in self._parts:
            raise ValueError(f"part {name[1]} of request {name[0]} has not ended")
        for rank in self._ranks:
            rank(message)
        self._parts[name] = _Part(message["receivers"], now)
        self._queue.append(name)

    def take(self) -> Name | None:
        """The next part to be encoded, in the order of submission."""
        if not self._queue:
            return None
        name = self._queue.popleft()
        self._parts[name].state = "encoding"
        return name

    def encoded(self, id: str, part: int, made: torch.Tensor | Exception, now: float) -> None:
        """The encoder's rows, or its error. Raises ValueError for a part that is not being encoded."""
        one = self._part(id, part, "encoding")
        one.state, one.touched = "staged", now
        if not one.is_over:
            one.made = made
            if isinstance(made, torch.Tensor) and self._memory is not None:
                self._memory.register(id, part)
        self._end_if_over((id, part))

    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        """Begin a transfer: what it carries. Raises ValueError for a part that cannot be sent, or not there, or not again."""
        one = self._part(id, part, "staged")
        if one.is_over or one.made is None:
            raise ValueError(f"part {part} of request {id} was cancelled, has failed or went stale: it is not sent any more")
        if not 0 <= receiver < one.receivers or receiver in one.sending | one.reached:
            raise ValueError(
                f"part {part} of request {id} is sent once to each of {one.receivers} receivers, not to {receiver}"
            )
        one.sending.add(receiver)
        one.touched = now
        return one.made

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        """A transfer has ended. Raises ValueError for one that has not begun."""
        one = self._part(id, part, "staged")
        if receiver not in one.sending:
            raise ValueError(f"part {part} of request {id} is not being sent to receiver {receiver}")
        one.sending.discard(receiver)
        one.touched = now
        if error is None:
            one.reached.add(receiver)
        one.is_over = one.is_over or error is not None or len(one.reached) == one.receivers
        self._end_if_over((id, part))

    def cancel(self, id: str) -> None:
        """End all parts of a request as soon as nobody encodes or reads them."""
        for name in [name for name, one in self._parts.items() if name[0] == id and not one.is_over]:
            self._parts[name].is_over = True
            self._end_if_over(name)

    def sweep(self, now: float) -> None:
        """End what is stale, and what could not be released before."""
        for name, one in list(self._parts.items()):
            if one.state == "staged" and now - one.touched > self._stale_after_s:
                one.is_over = True
            self._end_if_over(name)

    def held_bytes(self) -> int:
        """The bytes of staged rows."""
        return sum(one.made.nbytes for one in self._parts.values() if isinstance(one.made, torch.Tensor))

    def pending(self) -> int:
        """How many parts have not ended."""
        return len(self._parts)

    def _part(self, id: str, part: int, state: str) -> _Part:
        one = self._parts.get((id, part))
        if one is None or one.state != state:
            found = "has ended, or never was" if one is None else f"is {one.state}"
            raise ValueError(f"part {part} of request {id} {found}, and not {state}")
        return one

    def _end_if_over(self, name: Name) -> None:
        one = self._parts[name]
        if not one.is_over or one.state == "encoding" or one.sending:
            return
        if isinstance(one.made, torch.Tensor) and self._memory is not None:
            try:
                self._memory.release(*name)
            except Exception:
                return  # it is asked again by the next sweep; until then others may read it, and the rows must stay
        if one.state == "queued":
            self._queue.remove(name)
        del self._parts[name]


def check_message(message: Mapping[str, Any]) -> Name:
    """The name of the part that a message asks for. Raises ValueError, which says what is wrong, unless it is well-formed."""
    if not isinstance(message, Mapping):
        raise ValueError(f"a request for a part is a mapping, not {type(message).__name__}")
    id, media, options = message.get("id"), message.get("media"), message.get("options")
    if not isinstance(id, str) or not id:
        raise ValueError(f"'id' is a text that is not empty, not {id!r}")
    numbers = {name: message.get(name) for name in ("part", "parts", "modality", "receivers")}
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise ValueError(f"request {id}: {name!r} is an int, not {number!r}")
    if numbers["modality"] not in list(Modality):
        raise ValueError(f"request {id}: 'modality' is one of {[int(one) for one in Modality]}, not {numbers['modality']}")
    if not 0 <= message["part"] < message["parts"]:
        raise ValueError(f"request {id}: 'part' is at least 0 and below 'parts', not {message['part']} of {message['parts']}")
    if message["receivers"] < 1:
        raise ValueError(f"request {id}: at least 1 receiver is needed, not {message['receivers']}")
    if not isinstance(media, list | tuple) or not media or any(one is None for one in media):
        raise ValueError(f"request {id}: 'media' is a sequence of at least one medium, none of them None")
    if not isinstance(options, list | tuple) or [one for one in options if not isinstance(one, Mapping)]:
        raise ValueError(f"request {id}: 'options' is a sequence of mappings")
    if len(options) != len(media):
        raise ValueError(f"request {id}: {len(media)} media have {len(options)} mappings of options: each has one")
    return id, message["part"]
