"""Owners: which process a segment belongs to, and whether it is still there.

Shared memory outlives its process. A server that is killed leaves its segments behind, and so does its successor, until
nothing is left of /dev/shm and no server starts any more. So a name says whose segment it is, and whoever opens a
channel first removes those whose owner is dead.

1. A pid alone is no name: it is given out again, and then a stranger's life protects the segment. The owner is the pid
   and the moment at which its process began.
2. A process that was killed and not yet waited for is dead (a zombie), though its pid still exists.
3. Containers may share a /dev/shm and not their pids. A segment of another pid namespace is judged by the lock that its
   owner holds on it as long as it lives; that of our own by the pid, for a lock also lives on in forks.

Sources: proc(5), flock(2). Known disagreements: SGLang 0.5.23 has the pid in the name, and sweeps only in its own CI.
"""

import fcntl
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

NAME = re.compile(r"mmproof-(\d+)-(\d+)-(\d+)-[0-9a-f]{16}")

PID_BITS = 22
"""A pid on Linux is below 2 ** 22."""


class Owner(NamedTuple):
    """A process: the namespace of its pid, the pid, and the clock tick after boot at which it began."""

    namespace: int
    pid: int
    began: int

    @property
    def word(self) -> int:
        """Pid and beginning in 63 bits, never 0: a word of shared memory is written in one go."""
        return (self.began << PID_BITS | self.pid) & (1 << 63) - 1


def this_process() -> Owner:
    """Who runs this."""
    pid = os.getpid()
    began = _began(pid)
    if began is None:
        raise OSError(f"/proc does not show process {pid}")
    return Owner(_namespace(pid), pid, began)


def is_alive(word: int) -> bool:
    """Whether the process of this word, of our own namespace, is there and can still run."""
    pid = word & (1 << PID_BITS) - 1
    began = _began(pid)
    return began is not None and Owner(0, pid, began).word == word


def new_name() -> str:
    """A name for a segment of this process that nobody else gives."""
    return f"mmproof-{'-'.join(map(str, this_process()))}-{token_hex(8)}"


def sweep(folder: Path) -> list[str]:
    """Remove the segments of this folder whose owners are dead, and return their names. Foreign files stay."""
    swept = []
    for name in sorted(os.listdir(folder)):
        match = NAME.fullmatch(name)
        if match and _is_orphan(folder / name, Owner(*map(int, match.groups()))):
            with suppress(FileNotFoundError, PermissionError):  # another one sweeps, too; or another user's, who will
                os.unlink(folder / name)
                swept.append(name)
    return swept


def _is_orphan(path: Path, owner: Owner) -> bool:
    if owner.namespace == _namespace(os.getpid()):
        return not is_alive(owner.word)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # swept meanwhile, or not ours to judge
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _began(pid: int) -> int | None:
    """The clock tick at which a process began; None when there is none of this pid that can still run."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    state, *rest = line[line.rindex(")") + 2 :].split()  # a process may be called anything, with parentheses and blanks
    return None if state in "ZXx" else int(rest[18])


@cache
def _namespace(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/pid").st_ino
