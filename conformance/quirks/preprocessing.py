"""Ways in which engines have got the work of preprocessing wrong: its bounds, its order, who waits and what is handed out."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import LifoQueue
from typing import Any

from conformance.protocol.preprocessing import Options, Work
from conformance.quirk import quirk
from reference.items import Item
from reference.preprocessing.background import Preprocessor, QueueFull, Ticket, _Run, preprocessing_key


@quirk(
    "options-of-the-first-item",
    replaces="open_preprocessor",
    bugs=("video-per-item-options-hash",),
    caught_by=("PREPROCESSING-07",),
)
class OptionsOfTheFirst(Preprocessor):
    """Every medium of a batch is processed with the options of its first one."""

    first: Options | None = None

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        self.first = self.first or options
        return super().submit(item, processor, self.first)


@quirk("outcome-of-the-last", replaces="open_preprocessor", bugs=("Q03", "Q06"), caught_by=("PREPROCESSING-07",))
class OutcomeOfTheLast(Preprocessor):
    """There is one place for an outcome, and whoever asks is handed what was put there last."""

    last: Ticket

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        self.last = super().submit(item, processor, options)
        return self.last

    def result(self, ticket: Ticket, limit_s: float | None = None) -> Any:
        return super().result(self.last, limit_s)


@quirk("one-thread-for-each", replaces="open_preprocessor", bugs=("G02",), caught_by=("PREPROCESSING-08",))
class OneThreadForEach(Preprocessor):
    """Each medium gets a thread at once: a burst of pictures takes all processors and all memory."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self._pool = ThreadPoolExecutor(workers + queued)


@quirk("queue-without-end", replaces="open_preprocessor", bugs=("G02", "L12"), caught_by=("PREPROCESSING-09",))
class QueueWithoutEnd(Preprocessor):
    """Whatever comes is queued: under load everybody waits, and pictures fill the memory."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self._most_runs = 1 << 30


@quirk("a-place-for-each-waiter", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-10",))
class PlaceForEachWaiter(Preprocessor):
    """Who would share a run or a result needs a place all the same."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self.tickets: list[Ticket] = []

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        self.tickets = [ticket for ticket in self.tickets if not ticket.done()]
        if len(self.tickets) >= self._most_runs:
            raise QueueFull("as many wait as may wait")
        self.tickets.append(super().submit(item, processor, options))
        return self.tickets[-1]


@quirk("last-picture-first", replaces="open_preprocessor", bugs=("G07",), caught_by=("PREPROCESSING-11",))
class LastComeFirstServed(Preprocessor):
    """The picture that came last is processed first: under load the first one waits for ever."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self._pool._work_queue = LifoQueue()  # type: ignore[assignment]


@quirk("works-on-the-callers-buffer", replaces="open_preprocessor", bugs=("L08", "L09"), caught_by=("PREPROCESSING-13",))
class WorksOnTheCallersBuffer(Preprocessor):
    """A medium is read when its work begins. By then its buffer may hold the next picture, which is kept under this key."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(self.read_late, workers, queued, capacity_bytes)
        self.work, self.callers = work, dict[bytes, tuple[Item, Options]]()

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        self.callers[preprocessing_key(item, processor, options)] = (item, options)
        return super().submit(item, processor, options)

    def read_late(self, item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        """The work, on what the caller's buffer holds now."""
        item, all_options = self.callers[preprocessing_key(item, processor, {item.modality: options})]
        return self.work(item, processor, all_options.get(item.modality, {}))


@quirk("bounds-of-any-kind", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-14",))
class BoundsOfAnyKind(Preprocessor):
    """What is no bound is taken for some other one."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, max(1, int(workers)), max(0, queued or 0), max(0, capacity_bytes))


@quirk("run-where-it-is-asked", replaces="open_preprocessor", bugs=("G02",), caught_by=("PREPROCESSING-15",))
class RunWhereItIsAsked(Preprocessor):
    """The work is run by whoever submits it, in the event loop: nobody else is answered meanwhile."""

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        ticket: Ticket = Future()
        ticket.set_result(self._work(item, processor, options.get(item.modality, {})))
        return ticket


@quirk("a-run-for-each-waiter", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-16",))
class RunForEachWaiter(Preprocessor):
    """Who asks for what is on its way has it run again: one picture in a hundred requests is processed a hundred times."""

    def _begin(self, key: bytes, item: Item, processor: str, options: Mapping[str, Any]) -> _Run:
        run = super()._begin(key, item, processor, options)
        self._shared.clear()
        return run


@quirk("never-kept", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-17", "PREPROCESSING-31"))
class NeverKept(Preprocessor):
    """Nothing is kept."""

    def _keep(self, key: bytes, result: Any, size: int) -> None:
        """Nothing is kept."""


@quirk("the-first-one-owns-the-work", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-12", "PREPROCESSING-18"))
class FirstOneOwnsTheWork(Preprocessor):
    """The work is part of the request that asked first: when that is aborted, all others who wait for it are too."""

    def _leave(self, run: _Run, ticket: Ticket) -> None:
        others = run.waiters[1:] if run.waiters[:1] == [ticket] and ticket.cancelled() else []
        super()._leave(run, ticket)
        for other in others:
            other.cancel()


@quirk("what-runs-cannot-be-cancelled", replaces="open_preprocessor", bugs=("G04",), caught_by=("PREPROCESSING-19",))
class RunningCannotBeCancelled(Preprocessor):
    """Only who waits for work that has not begun can leave; all others stay until it has ended."""

    def cancel(self, ticket: Ticket) -> bool:
        running = any(ticket in run.waiters for run in self._runs if run.handle and run.handle.running())
        return not running and super().cancel(ticket)


@quirk("work-for-nobody", replaces="open_preprocessor", bugs=("G04",), caught_by=("PREPROCESSING-20", "PREPROCESSING-21"))
class WorkForNobody(Preprocessor):
    """Work that nobody waits for any more stays in the queue and is run: aborted requests hold up those that are alive."""

    def _leave(self, run: _Run, ticket: Ticket) -> None:
        with self._lock:
            if ticket.cancelled() and ticket in run.waiters:
                run.waiters.remove(ticket)


@quirk("place-of-the-departed", replaces="open_preprocessor", bugs=("G04",), caught_by=("PREPROCESSING-21",))
class PlaceOfTheDeparted(Preprocessor):
    """The place of cancelled work is never free again: after some aborts everything is refused."""

    def _leave(self, run: _Run, ticket: Ticket) -> None:
        super()._leave(run, ticket)
        with self._lock:
            if run.handle and run.handle.cancelled():
                self._runs.add(run)


@quirk("thrown-away-for-nobody", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-22",))
class ThrownAwayForNobody(Preprocessor):
    """Work that has begun when its last waiter leaves is run to its end and thrown away."""

    def _leave(self, run: _Run, ticket: Ticket) -> None:
        super()._leave(run, ticket)
        with self._lock:
            if ticket.cancelled() and not run.waiters and self._shared.get(run.key) is run:
                run.generation = -1
                del self._shared[run.key]
