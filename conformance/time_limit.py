"""A limit for the time that an engine may take to answer: one that hangs fails a case and does not hang the run."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT_S = 60.0
"""How long an engine may take to answer one question, unless the user says otherwise."""


class TookTooLong(BaseException):
    """An engine did not answer in time. No `Exception`, so that an engine that catches these does not swallow it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in what runs here for longer.

    Works in the main thread of a process on a POSIX system, as long as Python code runs or waits there. Elsewhere, and
    where somebody else has set an alarm, there is no limit.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or not hasattr(signal, "setitimer")
        or signal.getitimer(signal.ITIMER_REAL)[0]
    ):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # and again every second, should the first one be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
