"""Ways in which routers have sent requests to the dead, or all of them to one rank."""

from typing import Any, get_args

from conformance.protocol.parallel import Policy
from conformance.quirk import quirk
from reference.parallel.routing import Load, Routed, Router


@quirk("room-of-a-dead-rank", replaces="open_router", bugs=(), caught_by=("PARALLEL-36",))
class RoomOfADeadRank(Router):
    """A room leads to its rank, whether that is alive or not."""

    def _alive(self, rank: int, why: str) -> int:
        return rank if "room" in why else super()._alive(rank, why)


@quirk("asked-for-and-dead", replaces="open_router", bugs=(), caught_by=("PARALLEL-36",))
class AskedForAndDead(Router):
    """A rank that the caller asks for is taken, whether it is alive or not."""

    def _alive(self, rank: int, why: str) -> int:
        return self._checked(rank) if "asked" in why else super()._alive(rank, why)


@quirk(
    "dead-with-nothing-to-do",
    replaces="open_router",
    bugs=(),
    caught_by=("PARALLEL-28", "PARALLEL-29", "PARALLEL-36", "PARALLEL-37", "PARALLEL-38"),
)
class DeadWithNothingToDo(Router):
    """A dead rank has nothing to do, and is therefore the one with the least."""

    def mark_dead(self, rank: int) -> None:
        super().mark_dead(rank)
        self._enter(rank)

    def _turn(self) -> int:
        while True:
            rank = super()._turn()
            if self._ranks[rank].is_alive:
                return rank


@quirk("next-one-for-the-dead", replaces="open_router", bugs=(), caught_by=("PARALLEL-27",))
class NextOneForTheDead(Router):
    """The turn of a dead rank goes to its neighbour, who has two."""

    def _turn(self) -> int:
        turn = self._next
        rank = super()._turn()
        self._next = (turn + 1) % len(self._ranks)
        return rank


@quirk("always-the-first", replaces="open_router", bugs=(), caught_by=("PARALLEL-27",))
class AlwaysTheFirst(Router):
    """Round robin does not count on: the first rank that is alive has every turn."""

    def _turn(self) -> int:
        self._next = 0
        return super()._turn()


@quirk(
    "own-choices-not-counted",
    replaces="open_router",
    bugs=(),
    caught_by=("PARALLEL-28", "PARALLEL-29", "PARALLEL-30", "PARALLEL-31", "PARALLEL-33", "PARALLEL-41", "PARALLEL-42"),
)
class OwnChoicesNotCounted(Router):
    """A rank's load is what it reports; what was sent to it since does not count, and the lowest of equals is taken."""

    def _enter(self, rank: int) -> None:
        replica = self._ranks[rank]
        replica.requests -= len(replica.under_way)
        replica.tokens -= sum(replica.under_way)
        self._choices = rank - 1
        super()._enter(rank)
        replica.requests += len(replica.under_way)
        replica.tokens += sum(replica.under_way)


@quirk("requests-for-tokens", replaces="open_router", bugs=("tgi-slot-alloc-mismatch",), caught_by=("PARALLEL-29",))
class RequestsForTokens(Router):
    """By total tokens, requests are counted, and a long one is as good as a short one."""

    def __init__(self, policy: Policy, ranks: int) -> None:
        super().__init__("total requests" if policy == "total tokens" else policy, ranks)


@quirk(
    "report-is-everything",
    replaces="open_router",
    bugs=(),
    caught_by=("PARALLEL-30", "PARALLEL-31", "PARALLEL-33"),
)
class ReportIsEverything(Router):
    """A report overwrites what is known, and with it what is on the way to the rank."""

    def report(self, rank: int, load: Load, sequence: int) -> bool:
        is_news = super().report(rank, load, sequence)
        if is_news:
            self._ranks[rank].requests, self._ranks[rank].tokens = load.requests, load.tokens
            self._enter(rank)
        return is_news


@quirk("late-report-believed", replaces="open_router", bugs=(), caught_by=("PARALLEL-32",))
class LateReportBelieved(Router):
    """A report that is not the last one known counts as news, be it newer or older."""

    def report(self, rank: int, load: Load, sequence: int) -> bool:
        if self._ranks[rank].last != sequence:
            self._ranks[rank].last = None
        return super().report(rank, load, sequence)


@quirk("report-counted-twice", replaces="open_router", bugs=(), caught_by=("PARALLEL-30", "PARALLEL-31", "PARALLEL-32"))
class ReportCountedTwice(Router):
    """Reports are added up, so that one that comes twice counts twice."""

    def report(self, rank: int, load: Load, sequence: int) -> bool:
        replica = self._ranks[rank]
        replica.requests += load.requests
        replica.tokens += load.tokens
        self._enter(rank)
        return True


@quirk("reports-unread", replaces="open_router", bugs=(), caught_by=("PARALLEL-30", "PARALLEL-31"))
class ReportsUnread(Router):
    """What ranks say of themselves is not read."""

    def report(self, rank: int, load: Load, sequence: int) -> bool:
        return False


@quirk("room-among-the-living", replaces="open_router", bugs=(), caught_by=("PARALLEL-34",))
class RoomAmongTheLiving(Router):
    """Rooms are dealt out to the ranks that are alive, and the other side, which counts all, looks for them elsewhere."""

    def _choose(self, request: Routed) -> tuple[int, int]:
        if self._policy != "bootstrap room" or request.rank is not None or request.room is None:
            return super()._choose(request)
        living = [rank for rank, one in enumerate(self._ranks) if one.is_alive]
        return living[request.room % len(living)], request.token_count


@quirk("wish-unheard", replaces="open_router", bugs=(), caught_by=("PARALLEL-35", "PARALLEL-39", "PARALLEL-40"))
class WishUnheard(Router):
    """The policy decides, whatever rank the caller wants."""

    def route(self, request: Routed) -> int:
        return super().route(request._replace(rank=None))


@quirk("nobody-is-an-accident", replaces="open_router", bugs=(), caught_by=("PARALLEL-37",))
class NobodyIsAnAccident(Router):
    """When all ranks are dead, the router runs into an empty list."""

    def _nobody(self) -> ValueError:
        ranks: list[ValueError] = []
        return ranks[0]


@quirk("dead-for-ever", replaces="open_router", bugs=(), caught_by=("PARALLEL-38",))
class DeadForEver(Router):
    """A rank that is there again is not seen."""

    def mark_alive(self, rank: int) -> None:
        """Nobody listens."""


@quirk("no-room-is-room-zero", replaces="open_router", bugs=(), caught_by=("PARALLEL-39",))
class NoRoomIsRoomZero(Router):
    """A request without a room is in room 0, like all others without one."""

    def route(self, request: Routed) -> int:
        return super().route(request._replace(room=request.room or 0))


@quirk("rank-modulo-ranks", replaces="open_router", bugs=(), caught_by=("PARALLEL-39",))
class RankModuloRanks(Router):
    """A rank that there is not is taken for another one."""

    def _checked(self, rank: int) -> int:
        return rank % len(self._ranks)

    def route(self, request: Routed) -> int:
        return super().route(request if request.rank is None else request._replace(rank=self._checked(request.rank)))


@quirk("prefixes-forgotten", replaces="open_router", bugs=("H17",), caught_by=("PARALLEL-40",))
class PrefixesForgotten(Router):
    """Keys are looked up under one name and kept under another, and requests with media are routed at random."""

    def _longest(self, keys: Any) -> tuple[int, tuple[int, ...]]:
        return super()._longest([("looked up", key) for key in keys])


@quirk("prefix-before-all", replaces="open_router", bugs=(), caught_by=("PARALLEL-42",))
class PrefixBeforeAll(Router):
    """Where a prefix was once, there it goes, however much there is to do."""

    def _by_prefix(self, request: Routed) -> tuple[int, int]:
        _, holders = self._longest(request.keys)
        if not holders:
            return super()._by_prefix(request)
        return holders[-1], 1


@quirk("dead-and-known", replaces="open_router", bugs=(), caught_by=("PARALLEL-37", "PARALLEL-43"))
class DeadAndKnown(Router):
    """A rank is known for its prefixes beyond its death."""

    def mark_dead(self, rank: int) -> None:
        known = self._holders.copy()
        super().mark_dead(rank)
        self._holders = known

    def _by_prefix(self, request: Routed) -> tuple[int, int]:
        _, holders = self._longest(request.keys)
        dead = [rank for rank in holders if not self._ranks[rank].is_alive]
        return (dead[0], 1) if dead else super()._by_prefix(request)


@quirk("unknown-policy-is-round-robin", replaces="open_router", bugs=(), caught_by=("PARALLEL-49",))
def unknown_policy_is_round_robin(policy: Any, ranks: int) -> Router:
    """A policy that there is not is taken for round robin."""
    return Router(policy if policy in get_args(Policy) else "round robin", ranks)
