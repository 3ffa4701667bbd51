"""Preprocessing of media: asynchronous, bounded, cancellable and cached."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import torch

from conformance import returns as answer
from conformance.returns import Opens, WrongAnswer, returns
from reference.items import Item, Modality

Options: TypeAlias = Mapping[Modality, Mapping[str, Any]]
"""For each modality the options of its media, by name: numbers, strings, None, and lists and mappings of these."""

Work: TypeAlias = Callable[[Item, str, Mapping[str, Any]], Any]
"""Makes of a raw item, by a processor, with the options for its modality, what the encoder takes: plain data (tensors,
arrays, numbers, strings, bytes, None) in lists, tuples and mappings. It is slow, blocks its thread, and may raise anything."""


class Preprocessor(Protocol):
    """What `open_preprocessor` returns. All methods may be called from any thread; none but `result` and `close` waits."""

    @returns(answer.anything)
    def submit(self, item: Item, processor: str, options: Options) -> Any:
        """Ask for what `processor` makes of a raw `item`, and return a ticket, anything that `result` and `cancel` take.

        Work begins in the order of submission, as soon as a worker is free. What is kept is handed out again, and what is
        on its way is waited for, under the same `preprocessing_key`; neither needs a place. The caller may change the
        item and the options as soon as it has the ticket: the outcome is that of what was submitted.

        Raises an error of its own choice when as much waits as may wait, and after `close`; nothing is left of a refusal.
        """

    @returns(answer.anything)
    def result(self, ticket: Any, limit_s: float) -> Any:
        """What came of a ticket: what the work returned, as the caller's own, or the error that it raised.

        Waits up to `limit_s` seconds (0: not at all) and raises TimeoutError when there is nothing by then. Raises
        CancelledError (asyncio's or concurrent.futures') when the ticket was cancelled. Asked until there is an outcome,
        and not again. When an outcome can be had, it is kept already, and its worker is free. A failure is not kept.
        """

    @returns(answer.boolean)
    def cancel(self, ticket: Any) -> bool:
        """Give up a ticket: its outcome is CancelledError from now on. Returns False when it had an outcome before.

        Nobody else's ticket is affected. Work that nobody waits for any more does not begin, and its place is free. Work
        that has begun goes on to its end, and its result is kept.
        """

    @returns(answer.nothing)
    def clear(self) -> None:
        """Forget every result. Work that was submitted before is handed to those who wait for it, but it is not kept, and
        who submits the same afterwards does not share it."""

    @returns(answer.integer)
    def used_bytes(self) -> int:
        """The bytes of the results that are kept; an engine may count more than their payload, but not less."""

    @returns(answer.nothing)
    def close(self) -> None:
        """Cancel what has not begun, wait for what has, and leave no thread behind."""


def results(value: Any) -> tuple[torch.Tensor | None, ...]:
    """For each key a tensor or None."""
    if not isinstance(value, Sequence) or not all(one is None or isinstance(one, torch.Tensor) for one in value):
        raise WrongAnswer("for each key a tensor or None")
    return tuple(value)


class Mirror(Protocol):
    """What `open_mirror` returns: results of preprocessing that one process makes and another one keeps.

    The sender, a frontend, does not ask what the receiver, an engine process, keeps: it forgets by the same rule. `send` and
    `forget` are the sender's, `receive`, `restart` and `used_bytes` the receiver's.
    """

    @returns(answer.anything)
    def send(self, keys: Sequence[bytes], adapter: str | None, make: Callable[[bytes], torch.Tensor]) -> Any:
        """The message of one request: the results under these keys, in this order; a key may come more than once.

        make: gives the result of a key, a tensor of any shape. It is called for what the receiver does not keep, as far as
        the sender knows, and that alone is in the message; the rest is named.
        adapter: the adapter (LoRA) of the request, by name. It comes in after preprocessing, so that requests with different
        adapters share results.
        """

    @returns(results)
    def receive(self, message: Any) -> Sequence[torch.Tensor | None]:
        """The results that a message speaks of, in the order of its keys; None for one that is neither in it nor kept.

        Each message is received at most once. Where all are received in the order in which they were made, nothing is
        missing. Some may overtake others, and some never arrive.
        """

    @returns(answer.nothing)
    def forget(self, keys: Sequence[bytes]) -> None:
        """The receiver lacked these: the next message that speaks of one contains it. No error for a key that is not known."""

    @returns(answer.nothing)
    def restart(self) -> None:
        """The receiver begins with nothing. The sender is not told."""

    @returns(answer.integer)
    def used_bytes(self) -> int:
        """The bytes of the results that the receiver keeps."""


def _specimen(item: Item, processor: str, options: Mapping[str, Any]) -> None:
    """Work that is never begun."""


class Preprocessing(Protocol):
    """Preprocessing of media: asynchronous, bounded, cancellable and cached."""

    @returns(answer.octets)
    def preprocessing_key(self, item: Item, processor: str, options: Options) -> bytes:
        """The key under which what `processor` makes of a raw `item` is kept, of any width.

        It covers the content, the processor (a string that tells it from others: its name and version) and the options
        for the item's modality, and nothing else: not where the item stands, not the options of other modalities, and no
        adapter (LoRA), which comes in after preprocessing. The order of options says nothing.
        """

    @returns(Opens(Preprocessor, specimen=(_specimen, 1, 1, 1024)))
    def open_preprocessor(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> Preprocessor:
        """Runs `work` for at most `workers` media at once; at most `queued` more wait until it begins.

        work: may be called from any thread; no two calls of it are for the same thing, unless there was a `clear` between.
        capacity_bytes: never more bytes of results than this are kept, those that were used longest ago go first. Using a
        result means keeping it or handing it out again. One that is larger is handed out and not kept.

        Raises ValueError or TypeError for a number of workers below 1, and for a negative number of places or bytes.
        """

    @returns(Opens(Mirror, specimen=(1024,)))
    def open_mirror(self, capacity_bytes: int) -> Mirror:
        """A sender that knows of nothing, and a receiver that keeps at most `capacity_bytes` of results.

        Those that were used longest ago go first. Using a result means sending it or naming it in a message. One that is
        larger than the capacity is sent each time, and not kept.
        """
