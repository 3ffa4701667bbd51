"""Processes for rules: forks that say what they have seen through a pipe, in JSON, and end without a trace.

Nobody waits for a process for longer than `PATIENCE_S`, and any may be killed at any moment.
"""

import gc
import json
import os
import select
import signal
import struct
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from conformance.compare import Mismatch

PATIENCE_S = 20.0
"""How long a rule waits for a process that must say something: only an engine that hangs takes so long."""

HEAD = struct.Struct("<I")


class Pipe:
    """One end of a conversation of two processes. What is said is JSON, or bytes."""

    def __init__(self, reading: int, writing: int, *, patience_s: float = PATIENCE_S) -> None:
        self._reading, self._writing, self._patience_s = reading, writing, patience_s

    def say(self, value: Any) -> None:
        """Say something. Nothing happens when nobody is there to hear it."""
        data = b"b" + value if isinstance(value, bytes) else b"j" + json.dumps(value).encode()
        left = memoryview(HEAD.pack(len(data)) + data)
        with suppress(BrokenPipeError):
            while left:
                left = left[os.write(self._writing, left) :]

    def hear(self) -> Any:
        """What the other one says. Raises EOFError when it is gone, TimeoutError when it says nothing in time."""
        data = self._read(HEAD.unpack(self._read(HEAD.size))[0])
        return data[1:] if data[:1] == b"b" else json.loads(data[1:])

    def close(self) -> None:
        """Hang up."""
        os.close(self._reading)
        os.close(self._writing)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            if not select.select([self._reading], [], [], self._patience_s)[0]:
                raise TimeoutError
            part = os.read(self._reading, min(count - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return bytes(data)


class Process:
    """Another process, and the line to it: whatever is said to it and heard from it comes in pairs."""

    def __init__(self, name: str, pid: int, pipe: Pipe, *, is_child: bool = True) -> None:
        self.name, self.pid = name, pid
        self._pipe, self._is_child, self._is_alive = pipe, is_child, True

    def say(self, value: Any) -> None:
        """Say something to the process."""
        self._pipe.say(value)

    def hear(self) -> Any:
        """What the process says next. Raises Mismatch for what fails there, for a hang and for an untimely end."""
        try:
            kind, value = self._pipe.hear()
        except TimeoutError:
            raise Mismatch(f"{self.name} has said nothing for {PATIENCE_S:g} s: it hangs") from None
        except EOFError:
            raise Mismatch(f"{self.name} ended before its time") from None
        if kind == "failed":
            raise Mismatch(f"{self.name}: {value}")
        if kind == "fault":
            raise RuntimeError(f"{self.name}:\n{value}")
        return bytes.fromhex(value[6:]) if isinstance(value, str) and value.startswith("bytes ") else value

    def kill(self) -> None:
        """End it at once, as the kernel does when memory runs out. Nothing happens to one that is dead."""
        if self._is_alive:
            self._is_alive = False
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            if self._is_child:
                os.waitpid(self.pid, 0)

    def close(self) -> None:
        """End it, however far it is."""
        self.kill()
        self._pipe.close()


class Voice(Pipe):
    """The conversation as the process itself has it."""

    def say(self, value: Any) -> None:
        """Say something to the rule."""
        super().say(["said", f"bytes {value.hex()}" if isinstance(value, bytes) else value])

    def fail(self, kind: str, words: str) -> None:
        """Say why nothing more will be said."""
        super().say([kind, words])


class Line(NamedTuple):
    """Two pipes between two processes: what each of them reads from and writes to."""

    ours: tuple[int, int]
    theirs: tuple[int, int]

    def let_go(self) -> None:
        """Close the other one's ends here: they are in its process."""
        for end in self.theirs:
            os.close(end)


def line() -> Line:
    """A new line."""
    (down_end, down), (up, up_end) = os.pipe(), os.pipe()
    return Line((up, down), (down_end, up_end))


def fork(body: Callable[[Pipe], Any], between: Line) -> int:
    """Begin a process that runs `body`, and return its number. Nothing of its parent is cleaned up in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads may be there; the fork needs none of them
        pid = os.fork()
    if pid:
        between.let_go()
        return pid
    gc.disable()
    pipe = Voice(*between.theirs)
    try:
        for end in between.ours:
            os.close(end)
        torch.set_num_threads(1)
        body(pipe)
    except AssertionError as error:
        pipe.fail("failed", str(error))
    except EOFError:
        pass  # the rule has hung up
    except BaseException:
        pipe.fail("fault", traceback.format_exc())
    finally:
        os._exit(0)
