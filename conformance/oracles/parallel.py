"""Many ranks by brute force: processes dealt out one by one, assignments tried all, and a router that looks at every rank."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import product
from typing import Any

from conformance.protocol.parallel import Layout, Load, Place, Routed


def plan(layout: Layout, expert_ranks: str = "within tp") -> list[Place]:
    """The places of a layout that can be launched: processes dealt out to nodes and devices like cards."""
    processes = list(product(range(layout.dp), range(layout.pp), range(layout.tp)))
    devices = [
        (node, layout.first_device + n * layout.device_step)
        for node in range(layout.nodes)
        for n in range(len(processes) // layout.nodes)
    ]
    attention_groups = blocks(layout.tp, layout.attention_dp)
    found = []
    for (replica, pp, tp), (node, device) in zip(processes, devices, strict=True):
        dp = replica * layout.attention_dp + attention_groups[tp]
        found.append(Place(node, device, dp, pp, tp, expert_rank(layout, replica, tp, expert_ranks)))
    return found


def expert_rank(layout: Layout, replica: int, tp: int, expert_ranks: str) -> int:
    """Which of the experts a process holds."""
    if expert_ranks == "within tp" or layout.ep == 1:
        return blocks(layout.tp, layout.ep)[tp]
    return list(product(range(layout.dp), range(layout.tp))).index((replica, tp))


def blocks(count: int, parts: int) -> list[int]:
    """For each of `count` in a row the part that it is in, when they are cut into parts of equal length."""
    return [part for part in range(parts) for _ in range(count // parts)]


def best_peak(sizes: Sequence[int], ranks: int) -> int:
    """The load of the rank with most, in the best of all assignments."""
    return min(peak(sizes, owners, ranks) for owners in product(range(ranks), repeat=len(sizes)))


def greedy_peak(sizes: Sequence[int], ranks: int) -> int:
    """The load of the rank with most, when the largest item that is left goes to the rank with least."""
    loads = [0] * ranks
    for size in sorted(sizes, reverse=True):
        loads[loads.index(min(loads))] += size
    return max(loads)


def peak(sizes: Sequence[int], owners: Sequence[int], ranks: int) -> int:
    """The load of the rank with most. owners: for each item its rank."""
    return max(sum(size for size, owner in zip(sizes, owners, strict=True) if owner == rank) for rank in range(ranks))


class RouterModel:
    """What each rank has to do, as the router can know it: its last report, and what it was sent and had not received."""

    def __init__(self, ranks: int) -> None:
        self.alive = [True] * ranks
        self.reports = [Load(0, 0, 0)] * ranks
        self.numbers = [-1] * ranks
        self.sent: list[list[int]] = [[] for _ in range(ranks)]

    def loads(self, what: str) -> dict[int, int]:
        """For each rank that is alive its requests, or its tokens."""
        return {rank: self._load(rank, what) for rank, alive in enumerate(self.alive) if alive}

    def copy(self) -> "RouterModel":
        """What is known now."""
        return deepcopy(self)

    def took(self, rank: int, request: Routed) -> None:
        """A request has gone to a rank."""
        self.sent[rank].append(request.token_count)

    def hears(self, step: Any) -> None:
        """A rank dies, is there again, or reports, which counts only if it is newer than its last report."""
        if step.what in ("dead", "alive"):
            self.alive[step.rank] = step.what == "alive"
        elif step.number > self.numbers[step.rank]:
            self.reports[step.rank], self.numbers[step.rank] = step.load, step.number

    def _load(self, rank: int, what: str) -> int:
        report = self.reports[rank]
        under_way = self.sent[rank][report.received :]
        return report.requests + len(under_way) if what == "total requests" else report.tokens + sum(under_way)
