"""What happens to a preprocessor, in what order (see `conformance.oracles.preprocessing`)."""

from collections.abc import Sequence

from hypothesis import strategies as st

from conformance.oracles.preprocessing import RunList, Script, Step

EVERYTHING = ("submit", "submit", "submit", "submit", "finish", "finish", "fail", "cancel", "clear")


@st.composite
def scripts(choose: st.DrawFn, operations: Sequence[str] = EVERYTHING, most_queued: int = 3, all_leave: bool = False) -> Script:
    """Up to 30 of these operations on four media, with 1 to 3 workers; shrinks to few, on the medium a.

    Only what runs is ended. Only tickets without an outcome are cancelled, and not the last one of its work; with
    `all_leave` the last one, too, of work that has not begun.
    """
    workers, queued = choose(st.integers(1, 3)), choose(st.integers(0, most_queued))
    model, steps = RunList(workers, queued), list[Step]()
    for _ in range(choose(st.integers(1, 30))):
        step = Step(choose(st.sampled_from(operations)))
        running = sorted({run.medium for run in model.these("running")})
        alive = [*model.these("waiting"), *model.these("running")]
        leaving = [run for run in alive if len(run.waiters) > 1 or (all_leave and run.stands == "waiting")]
        tickets = sorted(str(ticket) for run in leaving for ticket in run.waiters)
        if step.operation in ("finish", "fail") and running:
            step = step._replace(what=choose(st.sampled_from(running)))
        elif step.operation == "cancel" and tickets:
            step = step._replace(what=choose(st.sampled_from(tickets)))
        elif step.operation != "clear":
            step = Step("submit", choose(st.sampled_from("abcd")))
        model.after(step)
        steps.append(step)
    return Script(workers, queued, tuple(steps))
