"""Layouts, requests that come to ranks, shares of encoder ranks, and traffic for routers."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.protocol.parallel import Layout, Load, Routed
from conformance.suite.parallel_cases import Arrivals, Fault, Impossible, Shares
from conformance.suite.parallel_routing_cases import Step, Traffic, keyed

DRAWINGS = ("..", ".ii.", "jj", "i.k", ".vv.v", "aaa", "ii.jj", "jj.ii")


@st.composite
def layouts(choose: st.DrawFn, *, nodes: bool = True, steps: bool = False) -> tuple[Layout, ...]:
    """One layout that can be launched; shrinks to one process."""
    tp, pp, dp = choose(st.integers(1, 12)), choose(st.integers(1, 6)), choose(st.integers(1, 4))
    total = tp * pp * dp
    fitting = [n for n in divisors(total) if (total // n) % tp == 0 or tp % (total // n) == 0]
    count = choose(st.sampled_from(fitting)) if nodes else 1
    first, step = choose(st.integers(0, 3)), choose(st.integers(1, 3)) if steps else 1
    return (
        Layout(
            tp=tp,
            pp=pp,
            dp=dp,
            attention_dp=choose(st.sampled_from(divisors(tp))),
            ep=choose(st.sampled_from(divisors(tp))),
            nodes=count,
            devices=first + (total // count) * step,
            first_device=first,
            device_step=step,
        ),
    )


@st.composite
def impossible(choose: st.DrawFn) -> Impossible:
    """A layout that cannot be launched, for one reason."""
    tp, pp, dp = choose(st.integers(1, 8)), choose(st.integers(1, 3)), choose(st.integers(1, 3))
    uneven = choose(st.integers(2, 9).filter(lambda n: tp % n))
    total = tp * pp * dp
    wrong = (
        (Layout(tp=tp, pp=pp, dp=dp, attention_dp=uneven, devices=total), ("attention", "attn", "dp")),
        (Layout(tp=tp, pp=pp, dp=dp, ep=uneven if uneven != tp * dp else uneven + tp * dp, devices=total), ("ep", "expert")),
        (Layout(tp=tp, pp=pp, dp=dp, nodes=total + 1, devices=total), ("node",)),
        (Layout(tp=tp, pp=pp, dp=dp, devices=total, first_device=1), ("device", "gpu", "world")),
        (Layout(tp=-tp, devices=total), ("tp", "tensor")),
    )
    return Impossible(*choose(st.sampled_from(wrong)))


def divisors(number: int) -> list[int]:
    """All divisors, in order."""
    return [n for n in range(1, number + 1) if number % n == 0]


@st.composite
def arrivals(choose: st.DrawFn, *, failing: bool = False, grouped: bool = False) -> Arrivals:
    """Steps of up to four ranks; shrinks to one rank to which nothing comes."""
    ranks = choose(st.sampled_from((4, 2) if grouped else (1, 2, 3, 4)))
    groups = choose(st.sampled_from([n for n in divisors(ranks) if n > 1])) if grouped else 1
    to_group = st.lists(st.sampled_from(DRAWINGS), max_size=3).map(tuple)
    steps = choose(st.lists(st.tuples(*[to_group] * groups), min_size=1, max_size=3))
    fault = st.builds(
        Fault,
        st.sampled_from(("build", "upload")),
        st.integers(0, ranks - 1),
        st.sampled_from(("i", "j", "ik", "jv")),
        st.integers(0, len(steps) - 1),
    )
    return Arrivals(ranks, tuple(steps), groups, tuple(choose(st.lists(fault, max_size=3))) if failing else ())


def shares(*, most: int = 9, failing: bool = False) -> SearchStrategy[Shares]:
    """Items of any sizes for up to five ranks; shrink to none for one."""

    def drawn(sizes: tuple[int, ...]) -> SearchStrategy[Shares]:
        bad = st.sets(st.integers(0, len(sizes) - 1)) if failing and sizes else st.just(set())
        return st.builds(Shares, st.integers(1, 5), st.just(sizes), bad.map(lambda one: tuple(sorted(one))))

    return st.lists(st.integers(0, 12), max_size=most).map(tuple).flatmap(drawn)


@st.composite
def traffic(choose: st.DrawFn, *, reports: bool = False, deaths: bool = False) -> Traffic:
    """A router and what happens to it; at least one rank stays alive. Reports are of any age."""
    ranks = choose(st.integers(1, 5))
    dead: set[int] = set()
    steps: list[Step] = []
    for _ in range(choose(st.integers(0, 20))):
        rank, number = choose(st.integers(0, ranks - 1)), choose(st.integers(0, 6))
        what = choose(st.sampled_from(["route", "route", *["report"] * reports, *["dead"] * deaths]))
        if what == "route":
            steps.append(Step("route", Routed((), choose(st.integers(0, 30)))))
        elif what == "report":
            steps.append(Step("report", Routed(), rank, Load(choose(st.integers(0, 3)), choose(st.integers(0, 90)), 0), number))
        elif len(dead | {rank}) < ranks:
            dead.add(rank)
            steps.append(Step("dead", rank=rank))
    return Traffic(ranks, tuple(steps))


def circles() -> SearchStrategy[Traffic]:
    """Traffic of which some ranks die before it begins."""
    return st.integers(1, 9).flatmap(
        lambda ranks: st.builds(
            lambda dead, count: Traffic(ranks, (*[Step("dead", rank=one) for one in sorted(dead)], *[Step("route")] * count)),
            st.sets(st.integers(1, ranks - 1) if ranks > 1 else st.nothing(), max_size=ranks - 1),
            st.integers(0, 3 * ranks),
        )
    )


def repeated() -> SearchStrategy[tuple[Routed, Routed]]:
    """A request, and one that shares with it more than it does not."""
    words = st.text("abcdef", min_size=3, max_size=12)
    return st.builds(lambda word, tail: (keyed(word), keyed(word + tail)), words, st.text("abcdef", max_size=3))
