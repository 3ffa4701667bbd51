"""Ways in which engines have got the results of preprocessing wrong: what is kept, what is cleared, what fails, whose it is."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from conformance.protocol.preprocessing import Options, Work
from conformance.quirk import quirk
from reference.items import Item
from reference.preprocessing.background import Preprocessor, Ticket, _bytes_of, preprocessing_key


@quirk(
    "preprocessed-for-ever",
    replaces="open_preprocessor",
    bugs=("weights-update-stale-encoder", "p0p1-cache-desync-sleep"),
    caught_by=("PREPROCESSING-23", "PREPROCESSING-34"),
)
class NeverCleared(Preprocessor):
    """`clear` reaches another cache than this one."""

    def clear(self) -> None:
        """Nothing is cleared."""


@quirk(
    "late-results-kept",
    replaces="open_preprocessor",
    bugs=("weights-update-stale-encoder",),
    caught_by=("PREPROCESSING-12", "PREPROCESSING-24"),
)
class KeepsLateResults(Preprocessor):
    """Work that was running at a `clear` puts its result into the cleared cache."""

    def clear(self) -> None:
        super().clear()
        self._generation -= 1


@quirk(
    "late-results-shared",
    replaces="open_preprocessor",
    bugs=("weights-update-stale-encoder",),
    caught_by=("PREPROCESSING-25",),
)
class SharesLateResults(Preprocessor):
    """Who comes after a `clear` joins work from before it."""

    def clear(self) -> None:
        shared = dict(self._shared)
        super().clear()
        self._shared.update(shared)


@quirk("failures-kept", replaces="open_preprocessor", bugs=("M03",), caught_by=("PREPROCESSING-26",))
class KeepsFailures(Preprocessor):
    """A failure is kept like a result: a picture that could not be had once never can."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self.failures: dict[bytes, Exception] = {}

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        key = preprocessing_key(item, processor, options)
        if key not in self.failures:
            ticket = super().submit(item, processor, options)
            ticket.add_done_callback(partial(self.note, key))
            return ticket
        failed: Ticket = Future()
        failed.set_exception(self.failures[key])
        return failed

    def note(self, key: bytes, ticket: Ticket) -> None:
        """Keep a failure."""
        error = None if ticket.cancelled() else ticket.exception()
        if isinstance(error, Exception):
            self.failures[key] = error


@quirk("only-the-first-is-told-why", replaces="open_preprocessor", bugs=("X01",), caught_by=("PREPROCESSING-27",))
class OnlyTheFirstIsToldWhy(Preprocessor):
    """Who shares a run that fails is told that it failed, and not why: a damaged picture becomes a server error."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self.told: list[BaseException] = []

    def result(self, ticket: Ticket, limit_s: float | None = None) -> Any:
        try:
            return super().result(ticket, limit_s)
        except ValueError as error:
            if error in self.told:
                raise RuntimeError("the work failed") from None
            self.told.append(error)
            raise


@quirk("broken-for-good", replaces="open_preprocessor", bugs=("M03", "G07"), caught_by=("PREPROCESSING-28",))
class BrokenForGood(Preprocessor):
    """A worker that exits takes its pool with it, and every picture that comes later fails."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(self.exits, workers, queued, capacity_bytes)
        self.work, self.is_broken = work, False

    def exits(self, item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        """The work, of which whatever is no Exception is the last."""
        if self.is_broken:
            raise RuntimeError("a worker of this pool has died")
        try:
            return self.work(item, processor, options)
        except Exception:
            raise
        except BaseException:
            self.is_broken = True
            raise


@quirk("open-after-close", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-29",))
class OpenAfterClose(Preprocessor):
    """What is submitted after `close` is queued, for workers that are gone or come up again."""

    def close(self) -> None:
        super().close()
        self._closed = False
        self._pool = ThreadPoolExecutor(1)


@quirk("threads-left", replaces="open_preprocessor", bugs=(), caught_by=("PREPROCESSING-30",))
class LeavesThreads(Preprocessor):
    """`close` refuses what comes later, and leaves its threads where they are."""

    def close(self) -> None:
        pool, self._pool = self._pool, ThreadPoolExecutor(1)
        super().close()
        self._pool = pool


@quirk("uses-are-not-noted", replaces="open_preprocessor", bugs=("E05",), caught_by=("PREPROCESSING-31",))
class UsesAreNotNoted(Preprocessor):
    """A hit does not count as a use: the picture that everybody asks for goes like any other."""

    def submit(self, item: Item, processor: str, options: Options) -> Ticket:
        order = list(self._kept)
        ticket = super().submit(item, processor, options)
        for key in order:
            if key in self._kept:
                self._kept.move_to_end(key)
        return ticket


@quirk("one-result-for-another", replaces="open_preprocessor", bugs=("E04",), caught_by=("PREPROCESSING-32",))
class OneForAnother(Preprocessor):
    """One result goes for each new one, whatever their sizes, so that the budget is exceeded."""

    def _keep(self, key: bytes, result: Any, size: int) -> None:
        if self._kept and self._used_bytes + size > self._capacity_bytes:
            self._used_bytes -= _bytes_of(self._kept.popitem(last=False)[1])
        self._kept[key] = result
        self._used_bytes += size


@quirk("room-for-what-never-fits", replaces="open_preprocessor", bugs=("E04",), caught_by=("PREPROCESSING-33",))
class RoomForWhatNeverFits(Preprocessor):
    """Everything is evicted for a result before it turns out that it can never fit."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(self.makes_room, workers, queued, capacity_bytes)
        self.work = work

    def makes_room(self, item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        """The work, with room made for its result."""
        result = self.work(item, processor, options)
        with self._lock:
            if _bytes_of(result) > self._capacity_bytes:
                self._kept.clear()
                self._used_bytes = 0
        return result


@quirk(
    "bytes-still-in-the-books", replaces="open_preprocessor", bugs=("p0p1-cache-desync-sleep",), caught_by=("PREPROCESSING-34",)
)
class BytesStillInTheBooks(Preprocessor):
    """`clear` empties one of two books: results are gone, their bytes are still in use."""

    def clear(self) -> None:
        used = self._used_bytes
        super().clear()
        self._used_bytes = used


@quirk(
    "one-result-for-all",
    replaces="open_preprocessor",
    bugs=("Q05", "Q06", "L09"),
    caught_by=("PREPROCESSING-35",),
)
class OneResultForAll(Preprocessor):
    """Everybody is handed the object that is kept: who moves it, wraps it or normalises it in place does so for all."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(work, workers, queued, capacity_bytes)
        self.handed_out: dict[str, Any] = {}

    def result(self, ticket: Ticket, limit_s: float | None = None) -> Any:
        own = super().result(ticket, limit_s)
        return self.handed_out.setdefault(repr(own), own)


@quirk("the-works-own-buffer", replaces="open_preprocessor", bugs=("L09",), caught_by=("PREPROCESSING-36",))
class TheWorksOwnBuffer(Preprocessor):
    """What the work returns is kept as it is, and the work writes its next result into the same buffer."""

    def __init__(self, work: Work, workers: int, queued: int, capacity_bytes: int) -> None:
        super().__init__(self.remember, workers, queued, capacity_bytes)
        self.work, self.buffers = work, dict[str, Any]()

    def remember(self, item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        """The work, whose result is remembered as it is."""
        made = self.work(item, processor, options)
        self.buffers[repr(made)] = made
        return made

    def result(self, ticket: Ticket, limit_s: float | None = None) -> Any:
        own = super().result(ticket, limit_s)
        return self.buffers.get(repr(own), own)
