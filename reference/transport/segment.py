"""Segments: files of shared memory, with every page that is written reserved before.

A write to a page that /dev/shm has no room for kills the process (SIGBUS). So pages are reserved first, which fails with
an error instead; and only as far as they are needed, because reserving costs more than copying.

multiprocessing.shared_memory is not used: up to Python 3.12 it registers what it opens with a tracker that unlinks other
processes' segments when one of them ends. A file and a mapping are all that is needed.

Sources: shm_overview(7), posix_fallocate(3), python/cpython issue 82300 (the tracker).
"""

import fcntl
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from reference.transport.owners import new_name

FOLDER = Path("/dev/shm")


class Segment:
    """A file of `size_bytes` in a folder of shared memory: its owner's, or one that another process owns."""

    def __init__(self, path: Path, descriptor: int, size_bytes: int) -> None:
        self.path, self.size_bytes = path, size_bytes
        self._descriptor = descriptor
        self._reserved_bytes = 0
        self._owner_pid = os.getpid()

    @classmethod
    def create(cls, folder: Path, size_bytes: int) -> "Segment":
        """A new one, under a name that says whose it is. Nothing of it is reserved. Raises OSError."""
        path = folder / new_name()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        made = cls(path, descriptor, size_bytes)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # held until this process is gone, see `owners`
            os.ftruncate(descriptor, size_bytes)
        except BaseException:
            made.remove()
            raise
        return made

    @classmethod
    def open(cls, path: Path, size_bytes: int) -> "Segment":
        """One that another process has made. Raises FileNotFoundError, ValueError when it is shorter than it was."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if os.fstat(descriptor).st_size < size_bytes:
            os.close(descriptor)
            raise ValueError(f"{path.name} has fewer than {size_bytes} bytes: reading it would end this process")
        return cls(path, descriptor, size_bytes)

    def reserve(self, stop: int) -> None:
        """Reserve the pages of all bytes before `stop`. Raises OSError when there is no room for them."""
        if stop > self._reserved_bytes:
            os.posix_fallocate(self._descriptor, self._reserved_bytes, stop - self._reserved_bytes)
            self._reserved_bytes = stop

    def map(self, first: int, size_bytes: int, *, shared: bool) -> mmap.mmap:
        """Some of its bytes, `first` a multiple of a page: shared, or as a copy whose pages are copied when written to."""
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        return mmap.mmap(self._descriptor, size_bytes, flags, mmap.PROT_READ | mmap.PROT_WRITE, offset=first)

    def read(self, first: int, size_bytes: int) -> bytearray:
        """A copy of some of its bytes."""
        copy = bytearray(size_bytes)
        left: Any = memoryview(copy)
        while left:
            count = os.preadv(self._descriptor, [left], first + size_bytes - len(left))
            if not count:
                raise ValueError(f"{self.path.name} ends before byte {first + size_bytes}")
            left = left[count:]
        return copy

    def close(self) -> None:
        """Let go of it. What is mapped stays mapped."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def remove(self) -> None:
        """Let go of it and remove it; a fork of its owner only lets go."""
        if os.getpid() == self._owner_pid:
            with suppress(FileNotFoundError):
                self.path.unlink()
        self.close()
