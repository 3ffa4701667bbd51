"""Preprocessing: what the model's processor makes of a medium, made in the background and kept.

Resizing and normalising a picture takes longer than anything else before the encoder, and the same picture comes again.
So preprocessing is asynchronous (a submission returns at once), bounded (in threads, in what waits, in bytes kept),
cancellable, and cached. Each of these goes wrong in a way of its own:

1. The key covers all that the work is given and nothing else: the content, the processor, and those options that are
   for this modality. An option that is missing from it serves a picture of the wrong size; one too many costs a hit.
2. What is worked on is what the key was taken of. A submission takes a snapshot: the caller may reuse its buffer at once.
3. What is handed out belongs to who asked for it. Each waiter gets a copy, so that nobody writes into the cache.
4. Whoever asks for the same at the same time shares one run. A waiter who leaves takes nobody with it; when the last one
   has left, a run that has not begun never does. One that has begun is finished, and its result kept.
5. `clear` is for when results are no longer true. It raises the generation: work from before is still handed to those who
   waited for it, but it is not kept, and nobody who comes after the clear shares it.
6. A failure is handed to all who wait, and is not kept: the next one tries again.
7. When an outcome can be had, everything else is settled: its result is kept, its thread and its place are free.

Tickets are futures: `await asyncio.wrap_future(ticket)` waits in an event loop, and cancelling that task cancels the ticket.

Source: SGLang 0.5.23, `MultimodalPreprocessCache` (single flight, generations), `snapshot_media` and
`build_artifact_key`; vLLM 0.33.0, `MultiModalHasher` (options scoped by modality).
Disagreements: both queue without a bound and hand out their cached tensors themselves; SGLang finishes work that nobody
waits for, begun or not.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import index
from typing import Any, TypeAlias

import numpy as np
import torch
from PIL.Image import Image

from reference.identity import combine_identities, identify
from reference.items import Format, Item, Modality

Options: TypeAlias = Mapping[Modality, Mapping[str, Any]]
Work: TypeAlias = Callable[[Item, str, Mapping[str, Any]], Any]
Ticket: TypeAlias = Future[Any]


class QueueFull(RuntimeError):
    """As much work waits as may wait; try again when some of it is done."""


def preprocessing_key(item: Item, processor: str, options: Options) -> bytes:
    """The 32 bytes under which what `processor` makes of `item` is kept.

    processor: its name and version, and whatever else tells it from other processors.
    options: for each modality the options of its media. Those of other modalities are no part of the key.
    The identity of the item is taken as given where it is.

    Raises ValueError for an item that is not raw, TypeError for content or options that have no stable encoding.
    """
    if item.format is not Format.RAW:
        form = Format(item.format).value
        raise ValueError(f"only a raw medium is preprocessed, and this {item.modality.name.lower()} is {form}")
    if not isinstance(processor, str):
        raise TypeError(f"a processor is named by a string, not by {type(processor).__name__}")
    mine = _options_for(item.modality, options)
    recipe = Item(modality=item.modality, feature=processor.encode(), fields=mine)
    return combine_identities([item.identity or identify(item), identify(recipe)])


@dataclass(slots=True, eq=False)
class _Run:
    """One run of the work, of which `waiters` want the result; `handle` is its place in the pool."""

    key: bytes
    generation: int
    waiters: list[Ticket] = field(default_factory=list)
    handle: Future[None] | None = None


class Preprocessor:
    """Runs `work(item, processor, options)` in at most `workers` threads; at most `queued` more wait for one.

    work: is given the item, the name of the processor and the options for the item's modality. It returns tensors,
    arrays, pictures, numbers, strings, bytes and None, in lists, tuples and mappings.
    capacity_bytes: how many bytes of results are kept, least recently used first out.

    All methods may be called from any thread but those of its own pool.
    Raises ValueError for fewer than 1 worker, or for a negative number of places or bytes; TypeError for what is no number.
    """

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        if not callable(work):
            raise TypeError(f"work is something to call, not {type(work).__name__}")
        if index(workers) < 1 or index(queued) < 0 or index(capacity_bytes) < 0:
            raise ValueError(
                f"at least 1 worker, 0 places and 0 bytes are needed, not {workers}, {queued} and {capacity_bytes}"
            )
        self._work = work
        self._most_runs, self._capacity_bytes = workers + queued, capacity_bytes
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="preprocessing")
        self._runs: set[_Run] = set()  # waiting and running
        self._shared: dict[bytes, _Run] = {}  # those of this generation, which others may join
        self._kept: OrderedDict[bytes, Any] = OrderedDict()  # the least recently used result comes first
        self._used_bytes = 0
        self._generation = 0
        self._closed = False
        self._lock = threading.Lock()

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        """Ask for what `processor` makes of `item`, in the order of submission, and return at once.

        What is kept or on its way is shared, and needs no place. The item and the options may be changed afterwards.
        Raises QueueFull when there is no place left, RuntimeError after `close`, and what `preprocessing_key` raises.
        """
        mine = _copy(_options_for(item.modality, options))
        item = replace(item, feature=_copy(item.feature), fields=_copy(item.fields))
        key = preprocessing_key(item, processor, {item.modality: mine})
        ticket: Ticket = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("this preprocessor is closed")
            hit = key in self._kept
            if hit:
                self._kept.move_to_end(key)
                result = self._kept[key]
            else:
                run = self._shared.get(key) or self._begin(key, item, processor, mine)
                run.waiters.append(ticket)
        if hit:
            _deliver(ticket, result)
        else:
            ticket.add_done_callback(partial(self._leave, run))
        return ticket

    def result(self, ticket: Ticket, limit_s: float | None = None) -> Any:
        """What came of a ticket: the result, the caller's own, or the error that the work raised.

        Raises TimeoutError when neither is there within `limit_s`, CancelledError when the ticket was cancelled.
        """
        return ticket.result(limit_s)

    def cancel(self, ticket: Ticket) -> bool:
        """Give up a ticket; nobody else's is affected. Returns False when its outcome was there before."""
        return ticket.cancel()

    def clear(self) -> None:
        """Forget all results, and those that are still being computed as soon as they have been handed out."""
        with self._lock:
            self._kept.clear()
            self._shared.clear()
            self._used_bytes = 0
            self._generation += 1

    def used_bytes(self) -> int:
        """The bytes of the tensors, arrays, pictures, strings and bytes that are kept, 0 to `capacity_bytes`."""
        with self._lock:
            return self._used_bytes

    def close(self) -> None:
        """Cancel what has not begun, wait for what has, and leave no thread. Nothing can be submitted any more."""
        with self._lock:
            self._closed = True
            unbegun = [run for run in self._runs if run.handle and run.handle.cancel()]
            abandoned = [ticket for run in unbegun for ticket in run.waiters]
            self._runs.difference_update(unbegun)
        for ticket in abandoned:
            ticket.cancel()
        self._pool.shutdown()
        self.clear()

    def _begin(self, key: bytes, item: Item, processor: str, options: Mapping[str, Any]) -> _Run:
        if len(self._runs) >= self._most_runs:
            raise QueueFull(f"{len(self._runs)} media are being preprocessed or wait for it, which is the limit")
        run = _Run(key, self._generation)
        run.handle = self._pool.submit(self._run, run, item, processor, options)
        self._runs.add(run)
        self._shared[key] = run
        return run

    def _run(self, run: _Run, item: Item, processor: str, options: Mapping[str, Any]) -> None:
        result, size, error = None, 0, None
        try:
            result = _copy(self._work(item, processor, options))
            size = _bytes_of(result)
        except BaseException as raised:  # whatever it is, somebody waits, and this thread has other work to do
            error = _portable(raised)
        with self._lock:
            self._forget(run)
            if error is None and size <= self._capacity_bytes and run.generation == self._generation:
                self._keep(run.key, result, size)
            waiters, run.waiters = run.waiters, []
        for ticket in waiters:
            _deliver(ticket, result, error)

    def _keep(self, key: bytes, result: Any, size: int) -> None:
        while self._used_bytes + size > self._capacity_bytes:
            self._used_bytes -= _bytes_of(self._kept.popitem(last=False)[1])
        self._kept[key] = result
        self._used_bytes += size

    def _leave(self, run: _Run, ticket: Ticket) -> None:
        with self._lock:
            if not ticket.cancelled() or ticket not in run.waiters:
                return
            run.waiters.remove(ticket)
            if not run.waiters and run.handle and run.handle.cancel():
                self._forget(run)

    def _forget(self, run: _Run) -> None:
        self._runs.discard(run)
        if self._shared.get(run.key) is run:
            del self._shared[run.key]


def _options_for(modality: Modality, options: Options) -> Mapping[str, Any]:
    for name, values in options.items():
        if not isinstance(name, Modality) or not isinstance(values, Mapping):
            raise TypeError(f"options are mappings by modality, and {name!r} has {type(values).__name__}")
    return options.get(modality, {})


def _deliver(ticket: Ticket, result: Any, error: BaseException | None = None) -> None:
    if not ticket.set_running_or_notify_cancel():
        return
    try:
        own = _copy(result)
    except BaseException as raised:  # there may be no memory for a copy
        error = raised
    if error is not None:
        ticket.set_exception(error)
    else:
        ticket.set_result(own)


def _portable(error: BaseException) -> BaseException:
    """The error in a form that any future can carry, and that does not keep the picture that this thread works on."""
    if isinstance(error, StopIteration):  # no future of an event loop takes one
        return RuntimeError("the work raised StopIteration")
    return error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)


def _copy(value: Any) -> Any:
    """Plain data of the same values, in memory of its own: a view does not keep what it is a view of."""
    try:
        return _copy_parts(value)
    except RecursionError:
        raise ValueError("the data is nested too deep, or contains itself") from None


def _copy_parts(value: Any) -> Any:
    match value:
        case torch.Tensor() if value.layout is torch.strided:
            return value.detach().clone()
        case np.ndarray() if not value.dtype.hasobject:
            return value.copy()
        case Image():
            return value.copy()
        case bytearray() | memoryview():
            return bytes(value)
        case list():
            return [_copy_parts(one) for one in value]
        case tuple():
            return tuple(_copy_parts(one) for one in value)
        case Mapping():
            return {name: _copy_parts(one) for name, one in value.items()}
        case None | bool() | int() | float() | complex() | str() | bytes() | np.generic():
            return value
    raise TypeError(f"{type(value).__name__} is no plain data: only that can be copied and kept")


def _bytes_of(value: Any) -> int:
    match value:
        case torch.Tensor() | np.ndarray():
            return int(value.nbytes)
        case Image():
            return len(value.tobytes())
        case bytes():
            return len(value)
        case str():
            return len(value.encode("utf-8", "surrogatepass"))
        case list() | tuple():
            return sum(map(_bytes_of, value))
        case dict():
            return sum(map(_bytes_of, value.values()))
    return 0
