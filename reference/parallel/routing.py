"""Routing: which of many replicas a request goes to.

Each replica, a data parallel rank, has a queue and a prefix cache of its own. A good router keeps the queues equally long and
sends a request to where its beginning was computed before; the two contradict each other.

1. What a rank has to do is what it last said, and what it was sent since and had not received by then. So a report says how
   many of the requests sent to it had arrived; one that comes late, or twice, is known by its number. A report that is
   taken for the whole truth forgets what is under way, and a burst of requests ends on one rank.
2. The rank with the least to do is on top of a heap. An entry is not changed but overtaken: whoever takes one from the top
   throws those away that are out of date. A choice costs the logarithm of the number of ranks. Of equals, the one that
   was chosen longest ago comes first.
3. A request is known by the keys of its full pages, those of the prefix cache, and each key stands for everything before
   it, media included. Requests that differ in the picture alone have no key in common from its first page on. Who has no
   full page has no key, and goes where there is least to do. An item that has no position in the prompt would be in no
   key: such a request is given none.
4. The longest known prefix is looked for from the end. Of the ranks that are known for it and the one with the least to do,
   that is chosen which has least before it: what is waiting, and the part of the request that it must compute. A prefix
   so is worth what it saves, and one that everybody asks for spreads over as many ranks as it needs.
5. A dead rank is never chosen, and is known for nothing: what it had is gone. Where only this rank would be right, because
   the caller named it, or the other side computes it from the room, the request is refused.

Source: SGLang 0.5.23, `DataParallelController` and `DPBudget`; vLLM 0.33, `DPLBAsyncMPClient`.
Disagreements: SGLang lets a report overwrite what was sent, and reads none for 20 ms after one; vLLM takes the larger of
both. Neither routes by prefix: SGLang leaves that to its router, which knows texts.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from reference.items import Request
from reference.prefix_cache import Namespace, block_keys

Policy: TypeAlias = Literal["round robin", "total requests", "total tokens", "bootstrap room", "prefix"]
POLICIES = ("round robin", "total requests", "total tokens", "bootstrap room", "prefix")

KNOWN_KEYS = 1 << 12
"""How many keys are remembered for each rank, on average."""

HOLDERS = 8
"""How many ranks are remembered for a key: those that it was sent to last."""

HIT_SHARE = 8
"""A prefix that is there is not free: it counts as this fraction of its tokens, at least."""


class Load(NamedTuple):
    """What a rank says of itself. received: how many requests of those sent to it, since it is alive, had reached it."""

    requests: int
    tokens: int
    received: int


class Routed(NamedTuple):
    """What a router knows of a request: its keys, its positions, and the rank or the room that the caller wants."""

    keys: Sequence[Hashable] = ()
    token_count: int = 0
    rank: int | None = None
    room: int | None = None


def routed(request: Request, namespace: Namespace, page: int) -> Routed:
    """What a router knows of a request. Raises ValueError for an item that nothing tells from others."""
    if any(not item.spans for item in request.items):
        return Routed((), len(request.input_ids))
    return Routed(block_keys(request, namespace, page), len(request.input_ids))


@dataclass(slots=True)
class _Replica:
    """A rank as the router sees it. last: the number of its last report. sent: how many requests it was sent since it is
    alive. under_way: the tokens of those that it had not received when it reported. version: of its entry in the heap."""

    is_alive: bool = True
    last: int | None = None
    requests: int = 0
    tokens: int = 0
    sent: int = 0
    under_way: deque[int] = field(default_factory=deque)
    version: int = 0


class Router:
    """A router for ranks that are all alive and empty.

    Raises ValueError for a policy that is not one of `POLICIES`, and unless there is a rank.
    """

    def __init__(self, policy: Policy, ranks: int) -> None:
        if policy not in POLICIES:
            raise ValueError(f"there is no policy {policy!r}; there are: {', '.join(POLICIES)}")
        if ranks < 1:
            raise ValueError(f"there is at least 1 rank to route to, not {ranks}")
        self._policy = policy
        self._ranks = [_Replica() for _ in range(ranks)]
        self._next = 0
        self._choices = 0
        self._heap: list[tuple[Any, ...]] = []
        self._holders: OrderedDict[Hashable, tuple[int, ...]] = OrderedDict()
        for rank in range(ranks):
            self._enter(rank)

    def route(self, request: Routed) -> int:
        """The rank that the request goes to. Raises ValueError where no rank is right."""
        rank, missing = self._choose(request)
        replica = self._ranks[rank]
        replica.sent += 1
        replica.requests += 1
        replica.tokens += missing
        replica.under_way.append(missing)
        self._enter(rank)
        return rank

    def report(self, rank: int, load: Load, sequence: int) -> bool:
        """What a rank says of itself, and whether that was news. sequence: grows with each of its reports."""
        replica = self._ranks[self._checked(rank)]
        received = load.received - replica.sent + len(replica.under_way)
        is_late = replica.last is not None and sequence <= replica.last
        if is_late or not replica.is_alive or not 0 <= received <= len(replica.under_way):
            return False  # what says less than is known, or more than can be, is from another time
        for _ in range(received):
            replica.under_way.popleft()
        replica.last = sequence
        replica.requests = load.requests + len(replica.under_way)
        replica.tokens = load.tokens + sum(replica.under_way)
        self._enter(rank)
        return True

    def mark_dead(self, rank: int) -> None:
        """Send nothing more to this rank."""
        last = self._ranks[self._checked(rank)].last
        self._ranks[rank] = _Replica(False, last, version=self._ranks[rank].version + 1)
        for key in [key for key, holders in self._holders.items() if rank in holders]:
            self._holders[key] = tuple(one for one in self._holders[key] if one != rank)

    def mark_alive(self, rank: int) -> None:
        """This rank is there again, empty."""
        if not self._ranks[self._checked(rank)].is_alive:
            self._ranks[rank].is_alive = True
            self._enter(rank)

    def _choose(self, request: Routed) -> tuple[int, int]:
        """A rank that is alive, and the tokens that it will have to compute."""
        if request.rank is not None:
            return self._alive(request.rank, "was asked for"), request.token_count
        if self._policy == "bootstrap room":
            if request.room is None:
                raise ValueError("a request that is routed by its bootstrap room has one, and this one has none")
            return self._alive(request.room % len(self._ranks), f"is that of room {request.room}"), request.token_count
        if self._policy == "round robin":
            return self._turn(), request.token_count
        if self._policy == "prefix":
            return self._by_prefix(request)
        return self._idlest(), request.token_count

    def _alive(self, rank: int, why: str) -> int:
        if not self._ranks[self._checked(rank)].is_alive:
            raise ValueError(f"rank {rank} {why}, and is dead")
        return rank

    def _checked(self, rank: int) -> int:
        if not 0 <= rank < len(self._ranks):
            raise ValueError(f"there are the ranks 0 to {len(self._ranks) - 1}, and no rank {rank}")
        return rank

    def _turn(self) -> int:
        """The next rank that is alive, in a circle."""
        for _ in self._ranks:
            rank, self._next = self._next, (self._next + 1) % len(self._ranks)
            if self._ranks[rank].is_alive:
                return rank
        raise self._nobody()

    def _idlest(self) -> int:
        """The rank with the least to do, of equals the one chosen longest ago."""
        while self._heap and self._heap[0][-1] != self._ranks[self._heap[0][-2]].version:
            heapq.heappop(self._heap)
        if not self._heap:
            raise self._nobody()
        rank: int = self._heap[0][-2]
        return rank

    def _by_prefix(self, request: Routed) -> tuple[int, int]:
        """The rank that has least before this request is computed, which it is then known for."""
        idlest, count = self._idlest(), request.token_count
        depth, holders = self._longest(request.keys)
        missing = count - depth * count // max(len(request.keys), 1)
        best = min(holders, key=lambda rank: self._ranks[rank].tokens, default=idlest)
        if not holders or self._ranks[idlest].tokens + count < self._ranks[best].tokens + missing:
            best = idlest
        for key in request.keys[-1:] if best in holders and depth == len(request.keys) else request.keys:
            known = self._holders.pop(key, ())
            self._holders[key] = known if best in known else (*known, best)[-HOLDERS:]
        while len(self._holders) > KNOWN_KEYS * len(self._ranks):
            self._holders.popitem(last=False)
        return best, max(missing if best in holders else count, count // HIT_SHARE, 1)

    def _longest(self, keys: Sequence[Hashable]) -> tuple[int, tuple[int, ...]]:
        """How many of the keys are known, and the ranks that are known for all of these."""
        for depth in range(len(keys), 0, -1):
            if holders := self._holders.get(keys[depth - 1]):
                return depth, holders
        return 0, ()

    def _enter(self, rank: int) -> None:
        """Put what a rank has to do now into the heap, if anybody asks for it."""
        if self._policy in ("round robin", "bootstrap room"):
            return
        replica = self._ranks[rank]
        replica.version += 1
        self._choices += 1
        work = (replica.requests, replica.tokens) if self._policy == "total requests" else (replica.tokens, replica.requests)
        heapq.heappush(self._heap, (*work, self._choices, rank, replica.version))
        if len(self._heap) > 8 * len(self._ranks):
            self._heap = [one for one in self._heap if one[-1] == self._ranks[one[-2]].version]
            heapq.heapify(self._heap)

    def _nobody(self) -> ValueError:
        return ValueError(f"no rank is alive of {len(self._ranks)}: there is nobody to route to")
