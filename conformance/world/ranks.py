"""Ranks on threads: collectives that meet for certain, and devices that count.

One rank runs at a time, the lowest that can go on, until it enters a collective or ends; so every run is the same. When
all members of a group have entered the same call, they go on. When they have entered different ones, or when nobody can go
on, the ranks have parted: every rank that waits, or ever waits again, is told at once which rank called what.
"""

import gc
import weakref
from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Any, TypeVar

import torch

from conformance.time_limit import LIMIT_S, TookTooLong, time_limit
from conformance.witness import EngineRaised

T = TypeVar("T")


class RanksParted(RuntimeError):
    """The ranks of a group do not enter the same collectives."""


class Rendezvous:
    """A group of ranks, each on a thread of its own.

    parted: which rank called what, when they parted; "" as long as they have not.
    received: for each rank the bytes that reached it from others.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.parted = ""
        self.received = [0] * size
        self.calls: list[str] = []
        self._go_on = [Semaphore(0) for _ in range(size)]
        self._stopped = Semaphore(0)
        self._waiting: dict[int, _Call] = {}
        self._doing = ["has not begun"] * size
        self._left = set(range(size))

    def run(self, of_rank: Callable[["Member"], T]) -> list[T | BaseException]:
        """What the function returns on each rank, or the exception that it ended with there."""
        results: list[Any] = [None] * self.size

        def one(rank: int) -> None:
            self._go_on[rank].acquire()
            try:
                results[rank] = of_rank(Member(self, tuple(range(self.size)), rank))
                self._doing[rank] = "has returned"
            except BaseException as error:
                results[rank] = error
                self._doing[rank] = f"has raised {type(getattr(error, 'error', error)).__name__}"
            self._left.discard(rank)
            self._stopped.release()

        for rank in range(self.size):
            Thread(target=one, args=(rank,), daemon=True, name=f"rank {rank}").start()
        while self._left:
            rank = self._next()
            self._doing[rank] = "is running"
            self._go_on[rank].release()
            try:
                with time_limit(LIMIT_S):
                    self._stopped.acquire()
            except TookTooLong as error:
                raise EngineRaised(f"rank {rank}", error) from error
        return results

    def enter(self, call: "_Call") -> Any:
        """Enter a collective, on the thread of its rank, and wait for the others. Raises RanksParted."""
        if not self.parted:
            rank = call.member
            self._waiting[rank] = call
            self._doing[rank] = f"waits in {call.words}"
            self._meet(call)
            self._stopped.release()
            self._go_on[rank].acquire()
        if self.parted:
            raise RanksParted(self.parted)
        return call.result

    def _meet(self, call: "_Call") -> None:
        """Let a group go on that is complete, or part."""
        group = {rank: one for rank, one in self._waiting.items() if one.group == call.group}
        if len({one.words for one in group.values()}) > 1:
            self._part()
        elif len(group) == len(call.group):
            self.calls.append(call.words)
            results = call.meet([group[rank] for rank in call.group])
            for rank, result in zip(call.group, results, strict=True):
                group[rank].result = result
                self.received[rank] += sum(_bytes(group[other].sent) for other in call.group if other != rank)
                del self._waiting[rank]

    def _next(self) -> int:
        """The lowest rank that can go on; when there is none, the ranks part, and all can."""
        ready = sorted(self._left - set(self._waiting))
        if not ready:
            self._part()
            return self._next()
        return ready[0]

    def _part(self) -> None:
        self.parted = "the ranks have parted: " + ", ".join(f"rank {n} {what}" for n, what in enumerate(self._doing))
        self._waiting.clear()


class _Call:
    """A collective that a rank has entered. words: what must be the same on all ranks. sent: what others get of it."""

    def __init__(self, member: int, group: tuple[int, ...], words: str, sent: Any, meet: Callable[[Any], list[Any]]) -> None:
        self.member, self.group, self.words, self.sent, self.meet = member, group, words, sent, meet
        self.result: Any = None


class Member:
    """The collectives of a group, as one of its ranks sees them; see `conformance.protocol.parallel.Collectives`."""

    def __init__(self, world: Rendezvous, group: tuple[int, ...], member: int) -> None:
        self._world, self._group, self._member = world, group, member
        self.rank, self.size = group.index(member), len(group)

    def broadcast(self, data: bytes, source: int) -> bytes:
        """The bytes of rank `source`, on every rank."""
        sent = bytes(data) if self.rank == source else b""
        result: bytes = self._enter(f"broadcast from {source}", sent, lambda calls: [calls[source].sent] * len(calls))
        return result

    def all_gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank."""
        result: list[bytes] = self._enter("all_gather", bytes(data), _everything)
        return result

    def all_gather_tensor(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensor of every rank; all have one shape and one dtype, or the ranks part."""
        kind = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
        sent = tensor.detach().clone(memory_format=torch.contiguous_format)
        result: list[torch.Tensor] = self._enter(f"all_gather_tensor of {kind}", sent, _everything)
        return [one.clone() for one in result]

    def barrier(self) -> None:
        """Nobody goes on before everybody is here."""
        self._enter("barrier", b"", lambda calls: [None] * len(calls))

    def split(self, colour: int) -> "Member":
        """The ranks that give the same colour."""
        found: list[tuple[int, int]] = self._enter("split", (colour, self._member), _everything)
        return Member(self._world, tuple(rank for its, rank in found if its == colour), self._member)

    def _enter(self, words: str, sent: Any, meet: Callable[[list[_Call]], list[Any]]) -> Any:
        return self._world.enter(_Call(self._member, self._group, words, sent, meet))


def _everything(calls: list[_Call]) -> list[Any]:
    return [[call.sent for call in calls]] * len(calls)


def _bytes(sent: Any) -> int:
    return sent.nbytes if isinstance(sent, torch.Tensor) else len(sent)


class Devices:
    """The memory of so many devices: what was put there, by whom, and what of it is still there."""

    def __init__(self, count: int) -> None:
        self.put: list[list[int]] = [[0] * count for _ in range(count)]
        self._alive: list[list[weakref.ref[torch.Tensor]]] = [[] for _ in range(count)]

    def copy(self, rank: int, tensor: torch.Tensor, device: int) -> torch.Tensor:
        """A copy of the tensor on a device. `put[rank][device]` are the bytes that a rank has put there so far."""
        copied = tensor.clone()
        self.put[rank][device] += copied.nbytes
        self._alive[device].append(weakref.ref(copied))
        return copied

    def alive_bytes(self, device: int, expected: int) -> int:
        """The bytes on a device that somebody still holds; looked at twice where they are more than expected."""
        found = self._held(device)
        if found > expected:
            gc.collect()  # what hangs in circles is held by nobody
            found = self._held(device)
        return found

    def _held(self, device: int) -> int:
        return sum(one.nbytes for known in self._alive[device] if (one := known()) is not None)
