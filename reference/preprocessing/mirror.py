"""Results of preprocessing, kept by the process that uses them and known to the one that makes them.

A frontend preprocesses a picture, an engine process feeds it to the encoder, and between them lie some megabytes. When the
picture comes again, neither is the work done again nor are the bytes sent again: the sender knows what the receiver keeps,
without asking, for both forget by the same rule. Each of these goes wrong in a way of its own:

1. Both sides are told the same: keys and sizes, request by request. What one side counts as a use, the other does, too; a
   reference is a use like a result.
2. Who makes results decides in one moment what is known and what is sent. Between a look and an update another request may
   have driven out what was looked at.
3. A request's results are looked up before any of them drives out another.
4. Messages get lost (a request is aborted on its way) and overtake one another, and then the two sides differ. That is no
   fault of a request: what the receiver lacks it names, all of it at once, and after a `forget` it is sent again.
5. A result is told by the key of what was preprocessed. An adapter (LoRA) changes what the encoder makes of it, not the
   result itself, so that it is no part of the key.
6. What is larger than the whole capacity is sent each time, drives out nothing, and neither side keeps it.

Source: vLLM 0.33.0, `LruKeyReplicatedSenderCache` and `LruKeyReplicatedReceiverCache`.
Disagreements: vLLM looks a request's results up one by one, after others of it have driven out some, and asserts that what
was known at first is known still.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index

import torch

Make = Callable[[bytes], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Message:
    """The results of one request: their keys, and those results that the receiver may not keep."""

    keys: tuple[bytes, ...]
    results: Mapping[bytes, torch.Tensor]


class _Uses:
    """Keys and sizes, those that were used longest ago first, within a capacity. Both sides have one."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.sizes: OrderedDict[bytes, int] = OrderedDict()
        self.used_bytes = 0

    def use(self, sizes: Iterable[tuple[bytes, int]]) -> None:
        """Each of these was used, in this order; what was used before them goes while there is no room."""
        for key, size in sizes:
            self.forget(key)
            if size <= self.capacity_bytes:
                self.sizes[key] = size
                self.used_bytes += size
        while self.used_bytes > self.capacity_bytes:
            self.forget(next(iter(self.sizes)))

    def forget(self, key: bytes) -> None:
        self.used_bytes -= self.sizes.pop(key, 0)


class Sender:
    """What the receiver keeps, as far as can be known without asking: keys and sizes. Any thread may call any method."""

    def __init__(self, capacity_bytes: int) -> None:
        self._uses = _Uses(capacity_bytes)
        self._lock = threading.Lock()

    def send(self, keys: Sequence[bytes], make: Make) -> Message:
        """The message of one request. Messages are to be sent in the order in which they were made."""
        wanted, made = dict.fromkeys(keys), dict[bytes, torch.Tensor]()
        while True:
            with self._lock:
                known = self._uses.sizes
                if not (lacking := [key for key in wanted if key not in known and key not in made]):
                    self._uses.use([(key, made[key].nbytes if key in made else known[key]) for key in wanted])
                    return Message(tuple(keys), made)
            made |= {key: make(key) for key in lacking}

    def forget(self, keys: Iterable[bytes]) -> None:
        """The receiver said that it lacks these."""
        with self._lock:
            for key in keys:
                self._uses.forget(key)


class Receiver:
    """The results themselves. Any thread may call any method."""

    def __init__(self, capacity_bytes: int) -> None:
        self._uses = _Uses(capacity_bytes)
        self._kept: dict[bytes, torch.Tensor] = {}
        self._lock = threading.Lock()

    def receive(self, message: Message) -> list[torch.Tensor | None]:
        """The results that a message speaks of; None for one that is neither in it nor kept."""
        with self._lock:
            found = {key: message.results.get(key, self._kept.get(key)) for key in message.keys}
            there = {key: result for key, result in found.items() if result is not None}
            self._uses.use([(key, result.nbytes) for key, result in there.items()])
            self._kept = {key: result for key, result in (self._kept | there).items() if key in self._uses.sizes}
        return [found[key] for key in message.keys]

    def used_bytes(self) -> int:
        """The bytes of what is kept, 0 to `capacity_bytes`."""
        with self._lock:
            return self._uses.used_bytes

    def clear(self) -> None:
        """Forget everything, without a word to the sender."""
        with self._lock:
            self._uses, self._kept = _Uses(self._uses.capacity_bytes), {}


class Mirror:
    """Both sides, with as many bytes on the receiver's: what lies between them is up to its user.

    Raises ValueError for a negative capacity, TypeError for one that is no integer.
    """

    def __init__(self, capacity_bytes: int) -> None:
        if index(capacity_bytes) < 0:
            raise ValueError(f"results are kept in at least 0 bytes, not in {capacity_bytes}")
        self.sender, self.receiver = Sender(capacity_bytes), Receiver(capacity_bytes)

    def send(self, keys: Sequence[bytes], adapter: str | None, make: Make) -> Message:
        """See `Sender.send`. The adapter of the request is no part of what was preprocessed."""
        return self.sender.send(keys, make)

    def receive(self, message: Message) -> list[torch.Tensor | None]:
        """See `Receiver.receive`."""
        return self.receiver.receive(message)

    def forget(self, keys: Sequence[bytes]) -> None:
        """See `Sender.forget`."""
        self.sender.forget(keys)

    def restart(self) -> None:
        """The receiver begins anew, and the sender does not know."""
        self.receiver.clear()

    def used_bytes(self) -> int:
        """See `Receiver.used_bytes`."""
        return self.receiver.used_bytes()
