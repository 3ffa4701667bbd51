"""Layouts, requests that come to many ranks, what fails on them, and items for encoder ranks."""

from typing import NamedTuple

from conformance.cases import Exact
from conformance.oracles.parallel import greedy_peak, plan
from conformance.protocol.parallel import Layout

SMALL = {
    "one-process": (Layout(),),
    "tensor": (Layout(tp=2), Layout(tp=4), Layout(tp=8)),
    "pipeline": (Layout(pp=2), Layout(tp=2, pp=3), Layout(tp=4, pp=2)),
    "replicas": (Layout(dp=4), Layout(tp=2, dp=4), Layout(tp=2, pp=2, dp=2)),
    "first-device": (Layout(tp=2, first_device=6), Layout(pp=2, dp=2, first_device=3)),
}

ATTENTION = {
    "a-rank-each": (Layout(tp=4), Layout(tp=4, attention_dp=4)),
    "two-ranks-each": (Layout(tp=4), Layout(tp=4, attention_dp=2), Layout(tp=8, attention_dp=4)),
    "two-stages": (Layout(tp=4, pp=2), Layout(tp=4, pp=2, attention_dp=2)),
    "two-nodes": (Layout(tp=8, nodes=2), Layout(tp=8, attention_dp=4, nodes=2), Layout(tp=8, attention_dp=1, nodes=2)),
}

NODES = {
    "a-group-over-nodes": (Layout(tp=8, nodes=2), Layout(tp=16, nodes=4)),
    "a-stage-on-each": (Layout(tp=4, pp=2, nodes=2), Layout(tp=2, pp=4, nodes=2)),
    "a-stage-over-nodes": (Layout(tp=4, pp=2, nodes=4),),
    "replicas-on-each": (Layout(tp=2), Layout(tp=2, dp=4, nodes=2), Layout(tp=4, pp=2, dp=2, nodes=2)),
    "full": (Layout(tp=8, pp=2, nodes=2), Layout(tp=8, pp=4, nodes=4)),
}

STEPS = {
    "tensor": (Layout(), Layout(tp=4, device_step=2)),
    "pipeline": (Layout(), Layout(pp=4, device_step=2)),
    "both": (Layout(), Layout(tp=2, pp=2, device_step=2)),
    "replicas": (Layout(), Layout(tp=2, dp=2, device_step=2)),
    "from-the-second": (Layout(), Layout(tp=2, pp=2, first_device=1, device_step=2)),
}

EXPERTS = {
    "none": (Layout(tp=4), Layout(tp=2, dp=2)),
    "one-each": (Layout(tp=4, ep=4), Layout(tp=8, ep=8, pp=1)),
    "two-ranks-each": (Layout(tp=4, ep=4), Layout(tp=4, ep=2), Layout(tp=8, ep=2)),
    "with-stages": (Layout(tp=4, pp=2, ep=4),),
    "with-attention": (Layout(tp=4, ep=4), Layout(tp=4, attention_dp=4, ep=4), Layout(tp=8, attention_dp=2, ep=4)),
    "with-replicas": (Layout(tp=4, ep=4), Layout(tp=2, dp=2, ep=2), Layout(tp=2, dp=2, ep=4)),
}

PLANS = SMALL | {f"attention-{name}": case for name, case in ATTENTION.items()} | NODES


ORDERED = {
    f"{name}-{number}": Exact(layout, sorted(place[:5] for place in plan(layout)))
    for name, layouts in PLANS.items()
    for number, layout in enumerate(layouts, 1)
}
"""A layout, and for each process where it runs and its ranks (node, device, dp, pp, tp)."""


class Impossible(NamedTuple):
    """A layout that cannot be, and the words of which its refusal has one."""

    layout: Layout
    names: tuple[str, ...]


TENSOR, PIPELINE = ("tp", "tensor"), ("pp", "pipeline")
DEVICES = ("device", "gpu", "world")

IMPOSSIBLE = {
    "no-tensor-rank": Impossible(Layout(tp=0), TENSOR),
    "no-pipeline-rank": Impossible(Layout(pp=0), PIPELINE),
    "no-replica": Impossible(Layout(dp=0), ("dp", "data")),
    "fewer-than-none": Impossible(Layout(tp=-2), TENSOR),
    "attention-does-not-divide": Impossible(Layout(tp=4, attention_dp=3), ("attention", "attn", "dp")),
    "more-attention-than-ranks": Impossible(Layout(tp=2, attention_dp=4), ("attention", "attn", "dp")),
    "experts-do-not-divide": Impossible(Layout(tp=4, ep=3), ("ep", "expert")),
    "more-experts-than-ranks": Impossible(Layout(tp=2, ep=16), ("ep", "expert")),
    "nodes-do-not-divide": Impossible(Layout(tp=4, nodes=3), ("node",)),
    "more-nodes-than-processes": Impossible(Layout(tp=2, nodes=4), ("node",)),
    "before-the-first": Impossible(Layout(first_device=-1), DEVICES),
    "no-step": Impossible(Layout(tp=2, device_step=0), ("step",)),
}

TOO_FEW = {
    "a-node-short": Impossible(Layout(tp=8, devices=4), DEVICES),
    "steps-beyond-the-last": Impossible(Layout(tp=8, device_step=2), DEVICES),
    "beyond-the-last": Impossible(Layout(tp=4, first_device=6), DEVICES),
}
"""Layouts for which a node has too few devices."""

UNEVEN = {
    "three-stages-on-two-nodes": Layout(tp=2, pp=3, nodes=2),
    "two-stages-on-three-nodes": Layout(tp=3, pp=2, nodes=3),
    "five-stages-on-two-nodes": Layout(tp=2, pp=5, nodes=2),
}


class Fault(NamedTuple):
    """What fails: "build" or "upload", on which rank, of the pictures of which letters; in which step, from 0 on."""

    what: str
    rank: int
    letters: str
    step: int = 0


class Arrivals(NamedTuple):
    """Steps of a tensor-parallel group.

    ranks, groups: how many ranks there are, and into how many groups they fall. steps: in each step, for each group, the
    drawings of the requests that come to it. faults: what fails.
    """

    ranks: int
    steps: tuple[tuple[tuple[str, ...], ...], ...]
    groups: int = 1
    faults: tuple[Fault, ...] = ()


def _alone(*steps: tuple[str, ...], ranks: int = 2, faults: tuple[Fault, ...] = ()) -> Arrivals:
    return Arrivals(ranks, tuple((step,) for step in steps), faults=faults)


ARRIVALS = {
    "one-rank": _alone((".ii.",), ranks=1),
    "a-picture": _alone((".ii.",)),
    "four-ranks": _alone((".ii.", "jjj", "..."), ranks=4),
    "every-modality": _alone((".ii.vv.v.aaa",), ranks=2),
    "the-same-picture-twice": _alone((".ii.ii", "ii."), ranks=2),
    "many-steps": _alone((".ii.",), ("..", "jj"), ("ii",), ranks=3),
}

NOTHING = {
    "no-request": _alone(
        (),
    ),
    "text": _alone(("...",)),
    "text-then-a-picture": _alone(("...",), (".ii.",)),
    "a-pause": _alone((".ii.",), (), (".jj.",), ranks=4),
    "pauses": _alone((), (), ("i",), ranks=3),
}

BUILD_FAULTS = {
    "alone": _alone((".ii.",), faults=(Fault("build", 0, "i"),)),
    "beside-others": _alone((".ii.", ".jj.", "..."), ranks=4, faults=(Fault("build", 0, "i"),)),
    "the-second-of-its-pictures": _alone((".jj.ii", "jj."), faults=(Fault("build", 0, "i"),)),
    "all": _alone((".ii.", "jj"), ranks=3, faults=(Fault("build", 0, "ij"),)),
    "then-it-comes-again": _alone((".ii.",), (".ii.", "jj"), faults=(Fault("build", 0, "i"),)),
    "on-every-rank": _alone((".ii.", "jj"), faults=(Fault("build", 0, "i"), Fault("build", 1, "i"))),
}

RANK_FAULTS = {
    "the-second-rank": _alone((".ii.",), faults=(Fault("upload", 1, "i"),)),
    "the-first-rank": _alone((".ii.", "jj"), faults=(Fault("upload", 0, "i"),)),
    "the-last-of-four": _alone((".ii.", ".jj.", "..."), ranks=4, faults=(Fault("upload", 3, "j"),)),
    "two-ranks-two-requests": _alone((".ii.", "jj", "kk"), ranks=3, faults=(Fault("upload", 1, "i"), Fault("upload", 2, "j"))),
    "two-ranks-one-request": _alone((".ii.kk", "jj"), ranks=3, faults=(Fault("upload", 2, "i"), Fault("upload", 1, "k"))),
    "then-it-comes-again": _alone((".ii.",), (".ii.", "jj"), faults=(Fault("upload", 1, "i"),)),
    "built-on-that-rank": _alone((".ii.", "jj"), faults=(Fault("build", 1, "i"),)),
}

GROUPED = {
    "the-second-group": Arrivals(4, (((), (".ii.",)),), groups=2),
    "both-groups": Arrivals(4, (((".ii.",), ("jj", "...")),), groups=2),
    "a-rank-each": Arrivals(4, ((("ii",), (), ("jj",), ("..",)),), groups=4),
    "one-after-the-other": Arrivals(4, (((".ii.",), ()), ((), (".ii.",)), (("jj",), ("ii",))), groups=2),
    "a-fault-in-one": Arrivals(4, (((".ii.",), ("jj", "ii")),), groups=2, faults=(Fault("upload", 3, "i"),)),
}

SOUND = ARRIVALS | NOTHING | {f"grouped-{name}": case for name, case in GROUPED.items() if not case.faults}

HOLLOW = {
    "alone": _alone((".??.",)),
    "beside-others": _alone((".??.", ".ii.", "..."), ranks=4),
    "behind-a-picture": _alone((".ii.??", "jj"), ranks=2),
    "then-others": _alone((".??.",), (".ii.",), ranks=2),
}
"""Pictures without content are drawn as question marks."""


class Shares(NamedTuple):
    """Items for encoder ranks: how many ranks, the sizes of the items, and the numbers of those whose encoder fails."""

    ranks: int
    sizes: tuple[int, ...]
    failing: tuple[int, ...] = ()


SHARES = {
    "one-rank": Shares(1, (3, 1, 2)),
    "one-each": Shares(3, (2, 2, 2)),
    "largest-last": Shares(2, (1, 2, 3, 9)),
    "one-is-most": Shares(2, (1000, 100, 200, 50)),
    "equal": Shares(4, (5,) * 10),
    "many": Shares(3, (7, 1, 4, 4, 9, 2, 2, 8, 3)),
}

FEW = {
    "no-item": Shares(2, ()),
    "no-item-one-rank": Shares(1, ()),
    "one-item-two-ranks": Shares(2, (4,)),
    "two-items-four-ranks": Shares(4, (1, 3)),
    "an-item-of-nothing": Shares(2, (0, 3)),
    "only-items-of-nothing": Shares(3, (0, 0)),
}

TIGHT = {
    "two-ranks": Shares(2, (3, 3, 2, 2, 2)),
    "three-ranks": Shares(3, (5, 5, 4, 4, 3, 3, 3)),
    "ascending": Shares(2, (1, 2, 3, 4, 5, 6)),
    "one-is-most": Shares(3, (90, 1, 2, 3, 4)),
    "one-large-last": Shares(2, (1, 1, 1, 1, 4)),
    "few": Shares(4, (2, 7)),
}

GREEDY = {name: Exact(case, greedy_peak(case.sizes, case.ranks)) for name, case in (TIGHT | SHARES | FEW).items()}
"""Items for encoder ranks, and the largest share when the largest item that is left goes to the rank with least."""

FAILING = {
    "one-of-two": Shares(2, (2, 3), (1,)),
    "all": Shares(2, (2, 3), (0, 1)),
    "the-only-one": Shares(2, (4,), (0,)),
    "beside-others-on-its-rank": Shares(2, (5, 4, 3, 2, 1), (3,)),
    "one-rank": Shares(1, (2, 3, 1), (1,)),
}
