"""PARALLEL: where each process runs, what all ranks agree on, and which of them a request goes to.

This module holds the launch plan. In each case the layouts count that the engine launches, by its traits.
"""

from collections import Counter
from itertools import product

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import parallel as oracle
from conformance.protocol.parallel import Layout
from conformance.requirement import SHOULD, requirement
from conformance.suite import parallel_cases as cases
from conformance.suite.parallel_bench import launched
from conformance.suite.parallel_cases import Impossible
from conformance.witness import EngineRaised

Layouts = tuple[Layout, ...]


@requirement("PARALLEL-01", needs="launch_plan", cases=cases.PLANS)
def test_every_rank_is_launched_once(engine: Engine, case: Layouts) -> None:
    """A plan MUST have one process for each replica, pipeline rank and tensor rank."""
    for layout in launched(engine, case):
        observed = sorted((place.dp, place.pp, place.tp) for place in engine.launch_plan(layout))
        equal(observed, sorted((p.dp, p.pp, p.tp) for p in oracle.plan(layout)), f"the (dp, pp, tp) of {layout}")


@requirement(
    "PARALLEL-02", needs="launch_plan", cases=cases.PLANS | {f"step-{name}": case for name, case in cases.STEPS.items()}
)
def test_no_device_is_taken_twice(engine: Engine, case: Layouts) -> None:
    """No two processes MUST share a device, and each MUST have one that its node has."""
    for layout in launched(engine, case):
        counts = Counter((place.node, place.device) for place in engine.launch_plan(layout))
        equal([where for where, count in counts.items() if count > 1], [], f"the (node, device) with two processes of {layout}")
        there = set(product(range(layout.nodes), range(layout.devices)))
        equal(sorted(set(counts) - there), [], f"the (node, device) that there are not, of {layout}")


@requirement("PARALLEL-03", needs="launch_plan", cases=cases.STEPS)
def test_devices_are_the_ones_asked_for(engine: Engine, case: Layouts) -> None:
    """Processes MUST take every so many-th device from the first one on, as the layout says."""
    for layout in launched(engine, case):
        expected = sorted((place.node, place.device) for place in oracle.plan(layout))
        equal(sorted((p.node, p.device) for p in engine.launch_plan(layout)), expected, f"the (node, device) of {layout}")


@requirement("PARALLEL-04", needs="launch_plan", cases=cases.NODES | cases.SMALL)
def test_a_tensor_group_stays_together(engine: Engine, case: Layouts) -> None:
    """A tensor group that fits on a node MUST be on one, and every other one MUST fill the nodes that it is on."""
    for layout in launched(engine, case):
        groups = Counter((place.dp // layout.attention_dp, place.pp, place.node) for place in engine.launch_plan(layout))
        part = min(layout.tp, layout.tp * layout.pp * layout.dp // layout.nodes)
        equal(sorted(set(groups.values())), [part], f"the tensor ranks of one group on one node, of {layout}")


@requirement("PARALLEL-05", level=SHOULD, needs="launch_plan", cases=cases.ORDERED)
def test_neighbours_are_neighbours(engine: Engine, case: Exact) -> None:
    """Devices SHOULD be taken in order, node by node: by the tensor rank, then the pipeline rank, then the replica."""
    for layout in launched(engine, (case.given,)):
        observed = sorted(place[:5] for place in engine.launch_plan(layout))
        equal(observed, case.expected, f"the (node, device, dp, pp, tp) of {layout}")


@requirement("PARALLEL-06", needs="launch_plan", cases=cases.ATTENTION, bugs=("Y03",))
def test_attention_groups_are_tensor_ranks_in_a_row(engine: Engine, case: Layouts) -> None:
    """With attention by groups, each MUST be equally many consecutive tensor ranks."""
    for layout in launched(engine, case):
        observed = sorted((place.pp, place.tp, place.dp) for place in engine.launch_plan(layout))
        equal(observed, sorted((p.pp, p.tp, p.dp) for p in oracle.plan(layout)), f"the (pp, tp, dp) of {layout}")


@requirement("PARALLEL-07", needs="launch_plan", cases=cases.EXPERTS)
def test_experts_are_shared_evenly(engine: Engine, case: Layouts) -> None:
    """The ranks of a stage that share the experts MUST hold all of them, each equally often, in the order of the ranks."""
    for layout in launched(engine, case):
        observed = sorted(
            (place.pp, place.dp // layout.attention_dp, place.tp, place.ep) for place in engine.launch_plan(layout)
        )
        plan = oracle.plan(layout, engine.traits.expert_ranks)
        expected = sorted((place.pp, place.dp // layout.attention_dp, place.tp, place.ep) for place in plan)
        equal(observed, expected, f"the (pp, replica, tp, ep) of {layout}")


@requirement("PARALLEL-08", needs="launch_plan", cases=cases.IMPOSSIBLE)
def test_what_cannot_be_is_refused(engine: Engine, case: Impossible) -> None:
    """A layout that cannot be launched MUST be refused."""
    refuses(lambda: engine.launch_plan(case.layout), str(case.layout))


@requirement("PARALLEL-09", level=SHOULD, needs="launch_plan", cases=cases.IMPOSSIBLE)
def test_a_refusal_names_what_is_wrong(engine: Engine, case: Impossible) -> None:
    """A refusal SHOULD name the number that is wrong."""
    try:
        engine.launch_plan(case.layout)
    except EngineRaised as raised:
        said = str(raised.error).lower()
        holds(any(name in said for name in case.names), f"{case.layout} was refused with {said!r}, without {case.names}")
    else:
        holds(False, f"{case.layout} was not refused")


@requirement("PARALLEL-10", needs="launch_plan", cases=cases.UNEVEN)
def test_no_rank_is_left_out(engine: Engine, case: Layout) -> None:
    """A layout whose stages do not fall evenly on the nodes MUST be refused, or planned with all of its ranks, once each."""
    for places in unless_refused(lambda: engine.launch_plan(case), str(case)):
        observed = sorted((place.pp, place.tp) for place in places)
        equal(observed, sorted(product(range(case.pp), range(case.tp))), f"the (pp, tp) of {case}")
        equal(len({place[:2] for place in places}), len(observed), f"the devices of {case}")


@requirement("PARALLEL-50", level=SHOULD, needs="launch_plan", cases=cases.TOO_FEW)
def test_devices_are_counted_before_anything_starts(engine: Engine, case: Impossible) -> None:
    """A layout for which a node has too few devices SHOULD be refused before any process of it is started."""
    refuses(lambda: engine.launch_plan(case.layout), str(case.layout))
