"""Ways in which engines have got results wrong that one process makes and another one keeps."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from conformance.quirk import quirk
from reference.preprocessing.mirror import Make, Message, Mirror, Receiver, Sender, _Uses


@quirk(
    "orders-of-use-apart",
    replaces="open_mirror",
    bugs=("p0p1-cache-desync-order",),
    caught_by=("PREPROCESSING-37", "PREPROCESSING-38"),
)
class OrdersApart(Mirror):
    """A reference is a use for the receiver and none for the sender, so that the two forget in different orders."""

    def send(self, keys: Sequence[bytes], adapter: str | None, make: Make) -> Message:
        uses = self.sender._uses
        before = list(uses.sizes)
        message = super().send(keys, adapter, make)
        for key in [key for key in before if key in uses.sizes] + [key for key in message.results if key in uses.sizes]:
            uses.sizes.move_to_end(key)
        return message


@quirk(
    "lacking-is-fatal",
    replaces="open_mirror",
    bugs=("p0p1-cache-desync-order",),
    caught_by=("PREPROCESSING-40", "PREPROCESSING-41"),
)
class LackingIsFatal(Mirror):
    """A receiver asserts that it keeps what a message names: the thread that takes requests in ends."""

    def receive(self, message: Message) -> list[torch.Tensor | None]:
        found = super().receive(message)
        if any(one is None for one in found):
            raise AssertionError("expected a cached item")
        return found


@quirk("first-lacking-alone", replaces="open_mirror", bugs=("p0p1-cache-desync-order",), caught_by=("PREPROCESSING-40",))
class FirstLackingAlone(Mirror):
    """Of what a request lacks the first is told: a request for three pictures fails three times."""

    def forget(self, keys: Sequence[bytes]) -> None:
        super().forget(keys[:1])


@quirk("sender-does-not-forget", replaces="open_mirror", bugs=(), caught_by=("PREPROCESSING-40",))
class DoesNotForget(Mirror):
    """A sender that was told what is lacking goes on naming it."""

    def forget(self, keys: Sequence[bytes]) -> None:
        pass


@quirk(
    "adapter-in-the-processor-key", replaces="open_mirror", bugs=("lora-processor-cache-key",), caught_by=("PREPROCESSING-42",)
)
class AdapterInTheKey(Mirror):
    """Results are kept under the key of the encoder's output, with the adapter in it: each adapter makes them again."""

    def send(self, keys: Sequence[bytes], adapter: str | None, make: Make) -> Message:
        prefix = b"" if adapter is None else f"{adapter}:".encode()
        return super().send([prefix + key for key in keys], None, lambda key: make(key[len(prefix) :]))


@quirk("two-names-of-one-result", replaces="open_mirror", bugs=("lora-processor-cache-key",), caught_by=("PREPROCESSING-42",))
class TwoNames(Mirror):
    """The sender knows a result by its content and the receiver by content and adapter: the second adapter finds nothing."""

    def send(self, keys: Sequence[bytes], adapter: str | None, make: Make) -> Any:
        return adapter, super().send(keys, adapter, make)

    def receive(self, message: Any) -> list[torch.Tensor | None]:
        adapter, plain = message
        prefix = b"" if adapter is None else f"{adapter}:".encode()
        results = {prefix + key: result for key, result in plain.results.items()}
        return super().receive(Message(tuple(prefix + key for key in plain.keys), results))


@quirk("receiver-without-bound", replaces="open_mirror", bugs=("E04",), caught_by=("PREPROCESSING-41",))
class WithoutBound(Mirror):
    """The receiver leaves it to the sender to say what goes, and keeps what nobody speaks of any more."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes)
        self.receiver = Receiver(1 << 60)


@quirk("results-of-the-last-message", replaces="open_mirror", bugs=(), caught_by=("PREPROCESSING-38", "PREPROCESSING-42"))
class LastMessageAlone(Mirror):
    """The sender does not remember what it sent, and sends everything each time."""

    def send(self, keys: Sequence[bytes], adapter: str | None, make: Make) -> Message:
        self.sender.forget(list(self.sender._uses.sizes))
        return super().send(keys, adapter, make)


class _Hasty(Sender):
    def send(self, keys: Sequence[bytes], make: Make) -> Message:
        known, results = set(self._uses.sizes), dict[bytes, torch.Tensor]()
        for key in keys:
            if key in known and key not in self._uses.sizes:
                raise AssertionError("expected a cached item")
            if key not in known:
                results[key] = make(key)
            self._uses.use([(key, results[key].nbytes if key in results else self._uses.sizes[key])])
        return Message(tuple(keys), results)


@quirk("known-at-first", replaces="open_mirror", bugs=(), caught_by=("PREPROCESSING-39",))
class KnownAtFirst(Mirror):
    """What is known is looked up at first and taken one by one: a new picture of the request has driven a known one out."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes)
        self.sender = _Hasty(capacity_bytes)


class _Crowded(_Uses):
    def use(self, sizes: Iterable[tuple[bytes, int]]) -> None:
        for key, size in sizes:
            while self.sizes and size + self.used_bytes > self.capacity_bytes:
                self.forget(next(iter(self.sizes)))
            super().use([(key, size)])


@quirk("too-large-drives-out-all", replaces="open_mirror", bugs=("E04",), caught_by=("PREPROCESSING-38",))
class TooLargeDrivesOut(Mirror):
    """Room is made for a result before anyone looks whether it could ever fit: the cache is empty afterwards."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes)
        self.sender._uses, self.receiver._uses = _Crowded(capacity_bytes), _Crowded(capacity_bytes)


@quirk("result-of-a-neighbour", replaces="open_mirror", bugs=(), caught_by=("PREPROCESSING-37",))
class ResultOfANeighbour(Mirror):
    """Results are put into a request in the order in which they came, and those that were kept behind them."""

    def receive(self, message: Message) -> list[torch.Tensor | None]:
        found = dict(zip(message.keys, super().receive(message), strict=True))
        first = [*message.results, *(key for key in found if key not in message.results)]
        return [found[key] for key in [*first, *message.keys][: len(message.keys)]]


@quirk("any-mirror", replaces="open_mirror", bugs=(), caught_by=("PREPROCESSING-43",))
class AnyMirror(Mirror):
    """A negative capacity is taken for none."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(max(capacity_bytes, 0))
