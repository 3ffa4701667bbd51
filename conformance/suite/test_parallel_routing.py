"""PARALLEL: where each process runs, what all ranks agree on, and which of them a request goes to.

This module holds routers. Rules about a policy are asked of engines that have it, by their traits.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from conformance.cases import Exact
from conformance.compare import differ, equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.parallel import RouterModel
from conformance.oracles.prefix_cache import NOBODY, common, copied, semantics
from conformance.protocol.parallel import Policy, Routed
from conformance.requirement import SHOULD, requirement
from conformance.suite import parallel_routing_cases as cases
from conformance.suite.parallel_routing_cases import Asked, Step, Traffic
from conformance.suite.prefix_cache_cases import DIFFERENCES, HASHES, SHARED, TENANTS, Meeting, Tenants
from reference.items import Request

PAGE = 4
ROUTER = ("open_router", "open_router.route")


def policy(name: str) -> tuple[str, ...]:
    """The engine methods that a rule about this policy needs."""
    return (*ROUTER, f"open_router.{name.replace(' ', '-')}")


def drive(engine: Engine, policy: Policy, case: Traffic, without: Sequence[Step] = ()) -> list[tuple[int, RouterModel]]:
    """For each request of the traffic the rank that it went to, and what was known before it went."""
    router, model, routes = engine.open_router(policy, case.ranks), RouterModel(case.ranks), []
    for step in case.steps:
        if step.what == "route":
            rank = router.route(step.request)
            routes.append((rank, model.copy()))
            model.took(rank, step.request)
        elif not any(step is one for one in without):
            tell(router, step)
            model.hears(step)
    return routes


def tell(router: Any, step: Step) -> None:
    """Tell a router what has happened to a rank."""
    match step.what:
        case "report":
            router.report(step.rank, step.load, step.number)
        case "dead":
            router.mark_dead(step.rank)
        case "alive":
            router.mark_alive(step.rank)


def overtaken(case: Traffic, *, or_repeated: bool) -> list[Step]:
    """The reports that come after a later one of their rank, or after the same one."""
    found: list[Step] = []
    newest: dict[int, int] = {}
    for step in (step for step in case.steps if step.what == "report"):
        last = newest.get(step.rank, -1)
        found += [step] if step.number < last or (or_repeated and step.number == last) else []
        newest[step.rank] = max(step.number, last)
    return found


def possible(engine: Engine, case: Traffic) -> Traffic:
    """The traffic, where no report can be overtaken without those that are."""
    late = overtaken(case, or_repeated=False) if engine.traits.report_order == "kept" else []
    return case._replace(steps=tuple(step for step in case.steps if not any(step is one for one in late)))


def has(engine: Engine, asked: Asked) -> list[Asked]:
    """What is asked, if the engine has the policy."""
    return [asked] if asked.policy in engine.traits.routing_policies else []


def expect_least(engine: Engine, policy: Policy, case: Traffic) -> None:
    """Every request went to one of the ranks with the least, as far as was known."""
    for number, (rank, model) in enumerate(drive(engine, policy, case)):
        loads = model.loads("total requests" if policy == "total requests" else "total tokens")
        holds(loads.get(rank) == min(loads.values()), f"request {number} went to rank {rank}; the loads were {loads}")


@requirement("PARALLEL-27", needs=(*policy("round robin"), "open_router.mark_dead"), cases=cases.CIRCLES)
def test_everybody_has_his_turn(engine: Engine, case: Traffic) -> None:
    """Round robin MUST give as many requests in a row as ranks are alive to as many different ranks, again and again."""
    ranks = [rank for rank, _ in drive(engine, "round robin", case)]
    count = case.ranks - sum(step.what == "dead" for step in case.steps)
    rows = [ranks[first : first + count] for first in range(len(ranks) - count + 1)]
    equal([len(set(row)) for row in rows], [count] * len(rows), f"the different ranks in each {count} of {ranks}")


@requirement("PARALLEL-28", needs=(*policy("total requests"), "open_router.mark_dead"), cases=cases.BURSTS)
def test_the_fewest_requests(engine: Engine, case: Traffic) -> None:
    """By total requests, where nothing was reported, a request MUST go to a rank that was sent the fewest."""
    expect_least(engine, "total requests", case)


@requirement("PARALLEL-29", needs=(*policy("total tokens"), "open_router.mark_dead"), cases=cases.BURSTS)
def test_the_fewest_tokens(engine: Engine, case: Traffic) -> None:
    """By total tokens, where nothing was reported, a request MUST go to a rank that was sent the fewest."""
    expect_least(engine, "total tokens", case)


@requirement("PARALLEL-30", level=SHOULD, needs=(*policy("total requests"), "open_router.report"), cases=cases.REPORTED)
def test_reports_count_with_what_is_under_way(engine: Engine, case: Traffic) -> None:
    """By total requests, a request SHOULD go to a rank with the fewest: those reported, and those sent and not yet received."""
    expect_least(engine, "total requests", case)


@requirement("PARALLEL-31", level=SHOULD, needs=(*policy("total tokens"), "open_router.report"), cases=cases.REPORTED)
def test_reported_tokens_count(engine: Engine, case: Traffic) -> None:
    """By total tokens, a request SHOULD go to a rank with the fewest: those reported, and those sent and not yet received."""
    expect_least(engine, "total tokens", case)


@requirement("PARALLEL-32", needs=(*policy("total requests"), "open_router.report"), cases=cases.MEMORY)
def test_what_is_late_does_no_harm(engine: Engine, case: Traffic) -> None:
    """A report that is late, or comes twice, MUST NOT change where requests go."""
    case = possible(engine, case)
    observed, expected = (drive(engine, "total requests", case, without) for without in ([], overtaken(case, or_repeated=True)))
    equal([rank for rank, _ in observed], [rank for rank, _ in expected], "the ranks", where="request {}".format)


@requirement("PARALLEL-33", needs=(*policy("total requests"), "open_router.report"), cases=cases.STALE)
def test_a_report_forgets_nothing(engine: Engine, case: Traffic) -> None:
    """A report from before requests were sent MUST NOT undo them: a burst goes to all ranks alike."""
    counts = Counter(rank for rank, _ in drive(engine, "total requests", case))
    spread = [counts[rank] for rank in range(case.ranks)]
    holds(max(spread) - min(spread) <= 1, f"requests went to the ranks as often as {spread}")


@requirement("PARALLEL-34", needs=(*policy("bootstrap room"), "open_router.mark_dead"), cases=cases.ROOMS)
def test_a_room_has_one_rank(engine: Engine, case: Exact) -> None:
    """By bootstrap room, the rank MUST be the room modulo the number of ranks: the other side computes the same."""
    ranks, room, dead = case.given
    router = engine.open_router("bootstrap room", ranks)
    for rank in dead:
        router.mark_dead(rank)
    equal(router.route(Routed((), 5, room=room)), case.expected, f"the rank of room {room}")


@requirement("PARALLEL-35", needs=ROUTER, cases=cases.EXPLICIT)
def test_who_is_asked_for_is_taken(engine: Engine, case: Asked) -> None:
    """A rank that the caller asks for MUST be the one, whatever the policy."""
    for asked in has(engine, case):
        router = engine.open_router(asked.policy, 3)
        equal([router.route(asked.request) for _ in range(4)], [2] * 4, "the ranks")


@requirement("PARALLEL-36", needs=(*ROUTER, "open_router.mark_dead"), cases=cases.DEATHS)
def test_the_dead_are_left_alone(engine: Engine, case: Asked) -> None:
    """A dead rank MUST NOT be chosen, by any policy; where it was asked for, the request may be refused."""
    for asked in has(engine, case):
        router = engine.open_router(asked.policy, 3)
        router.mark_dead(1)
        for _ in range(7):
            ranks = unless_refused(lambda: router.route(asked.request), f"{asked.request} with rank 1 dead")  # noqa: B023
            holds(1 not in ranks and (bool(ranks) or asked.request[2:] != (None, None)), f"{asked} went to {ranks}")


@requirement("PARALLEL-37", needs=(*ROUTER, "open_router.mark_dead"), cases=cases.ANY)
def test_nobody_is_left(engine: Engine, case: Asked) -> None:
    """When all ranks are dead, a request MUST be refused."""
    for asked in has(engine, case):
        router = engine.open_router(asked.policy, 3)
        router.route(asked.request)
        for rank in range(3):
            router.mark_dead(rank)
        refuses(lambda: router.route(asked.request), "a request when all ranks are dead")  # noqa: B023


@requirement("PARALLEL-38", needs=(*ROUTER, "open_router.mark_dead", "open_router.mark_alive"), cases=cases.ANY)
def test_who_comes_back_is_there(engine: Engine, case: Asked) -> None:
    """A rank that is alive again MUST be chosen again, and so MUST the only one that is."""
    for asked in has(engine, case):
        router = engine.open_router(asked.policy, 3)
        for rank in range(3):
            router.mark_dead(rank)
        router.mark_alive(1)
        equal([router.route(asked.request) for _ in range(4)], [1] * 4, "the ranks when rank 1 alone is alive again")


@requirement("PARALLEL-39", needs=ROUTER, cases=cases.WRONG)
def test_what_cannot_be_routed_is_refused(engine: Engine, case: Asked) -> None:
    """A rank that there is not MUST be refused, and so MUST a request without the room by which it is to be routed."""
    for asked in has(engine, case):
        refuses(lambda: engine.open_router(asked.policy, 3).route(asked.request), str(asked))  # noqa: B023


@requirement("PARALLEL-40", level=SHOULD, needs=policy("prefix"), cases=cases.AGAIN, bugs=("H17",))
def test_a_prefix_is_found_again(engine: Engine, case: tuple[Routed, Routed]) -> None:
    """By prefix, a request SHOULD go to the rank that has most of it, where others have less to do, but not by that much."""
    router = engine.open_router("prefix", 4)
    first = router.route(case[0])
    for rank in {0, 1, 2, 3} - {first}:
        router.route(Routed(("x",), case[0].token_count - 50, rank=rank))
    equal(router.route(case[1]), first, "the rank of a prefix, while all others have 50 tokens less")


@requirement("PARALLEL-41", level=SHOULD, needs=("routed", *policy("prefix")), cases=cases.SPREAD, bugs=("C01", "C06", "H17"))
def test_another_picture_is_another_prefix(engine: Engine, case: Sequence[Request]) -> None:
    """By prefix, a request that has no page in common with another SHOULD go where nothing is to do, and not after it."""
    for other in case[1:]:
        router = engine.open_router("prefix", 2)
        ranks = [router.route(engine.routed(copied(request), NOBODY, PAGE)) for request in (case[0], other)]
        equal(sorted(ranks), [0, 1], "the ranks of two requests that share nothing")


@requirement("PARALLEL-42", level=SHOULD, needs=policy("prefix"), cases={"two-ranks": 2, "four-ranks": 4})
def test_what_all_ask_for_is_on_many_ranks(engine: Engine, case: int) -> None:
    """By prefix, one request that comes again and again SHOULD NOT stay on one rank while others have nothing to do."""
    router = engine.open_router("prefix", case)
    ranks = {router.route(cases.keyed("abcd", 450)) for _ in range(200)}
    equal(sorted(ranks), list(range(case)), "the ranks of a request that came 200 times")


@requirement("PARALLEL-43", needs=(*policy("prefix"), "open_router.mark_dead"), cases=cases.AGAIN)
def test_the_dead_are_known_for_nothing(engine: Engine, case: tuple[Routed, Routed]) -> None:
    """By prefix, a request whose prefix went to a rank that died MUST go to another."""
    router = engine.open_router("prefix", 3)
    first = router.route(case[0])
    router.mark_dead(first)
    differ(router.route(case[1]), first, "the rank that died, and the one that is chosen now")


@requirement("PARALLEL-44", needs="routed", cases=DIFFERENCES | SHARED | HASHES | cases.SHORT, bugs=("H17", "C01", "C06"))
def test_routers_know_pages_by_their_content(engine: Engine, case: Meeting) -> None:
    """Of two requests, a router MUST be given the same keys for the full pages that they share, and for no others."""
    first, second = (engine.routed(copied(one), NOBODY, case.page).keys for one in (case.kept[-1], case.asked))
    lengths = [len(one.input_ids) // case.page for one in (case.kept[-1], case.asked)]
    equal([len(first), len(second)], lengths, "the numbers of keys of two requests")
    equal(common(first, second), common(semantics(case.kept[-1]), semantics(case.asked)) // case.page, "the keys in common")


@requirement("PARALLEL-45", needs="routed", cases=TENANTS, bugs=("cache-salt-isolation",))
def test_routers_know_namespaces(engine: Engine, case: Tenants) -> None:
    """Keys of another salt or another adapter MUST be others."""
    first, second = (engine.routed(copied(case.request), namespace, 2).keys for namespace in (case.first, case.second))
    equal(sorted(map(str, set(first) & set(second))), [], "the keys that two namespaces share")


@requirement(
    "PARALLEL-46", level=SHOULD, needs=("page_keys", "routed"), cases=DIFFERENCES | HASHES | cases.SHORT, bugs=("H17", "C06")
)
def test_router_and_cache_have_the_same_keys(engine: Engine, case: Meeting) -> None:
    """A router SHOULD know a request by the keys of the prefix cache, page by page."""
    expected = engine.page_keys(copied(case.asked), NOBODY, case.page)
    equal(engine.routed(copied(case.asked), NOBODY, case.page).keys, expected, "the keys", where="page {}".format)


@requirement("PARALLEL-47", needs="routed", cases={"one": "ij", "three": "ijk"}, bugs=("C07",))
def test_what_has_no_place_is_no_affinity(engine: Engine, case: str) -> None:
    """Requests whose pictures have no place in the prompt MUST NOT have keys in common, or MUST be refused."""
    found = [unless_refused(lambda: engine.routed(cases.unplaced(letter), NOBODY, PAGE), "a picture") for letter in case]  # noqa: B023
    keys = [key for answers in found for routed in answers for key in routed.keys]
    equal(len(set(keys)), len(keys), "the different keys of requests with different pictures")


@requirement("PARALLEL-48", needs="routed", cases=DIFFERENCES, bugs=("tgi-slot-alloc-mismatch",))
def test_media_have_weight(engine: Engine, case: Meeting) -> None:
    """A router MUST be told all positions of a request, those of media included."""
    observed = engine.routed(copied(case.asked), NOBODY, case.page).token_count
    equal(observed, len(case.asked.input_ids), "the number of positions")


@requirement("PARALLEL-49", needs="open_router", cases={"unknown": ("fastest", 2), "no-ranks": ("round robin", 0)})
def test_a_router_that_cannot_be_is_refused(engine: Engine, case: tuple[Any, int]) -> None:
    """A policy that the engine does not know MUST be refused, and so MUST a router without ranks."""
    refuses(lambda: engine.open_router(*case), f"a router {case}")
