"""What happens to a preprocessor, in what order (see `conformance.oracles.preprocessing`)."""

from collections.abc import Sequence

from hypothesis import strategies as st

from conformance.oracles.preprocessing import RunList, Script, Step, units
from conformance.oracles.preprocessing_mirrors import Traffic

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


@st.composite
def traffics(choose: st.DrawFn, in_order: bool = True, together: bool = True) -> Traffic:
    """Up to 24 requests and messages; shrinks to none. in_order: all messages are received, in their order.

    together: whether the results of each request have room together.
    """
    room, on_their_way, lines = choose(st.integers(0, 6)), 0, list[str]()
    for _ in range(choose(st.integers(0, 24))):
        operation = choose(st.sampled_from(("send", "send", "receive", "receive") if in_order else ANYTHING))
        if operation == "restart":
            lines.append(operation)
        elif operation == "send" or not on_their_way:
            word = choose(st.text("abcdAB", min_size=1, max_size=4))
            fits = sum(map(units, set(word))) <= room
            lines.append(f"send {word if fits or not together else word[0]}")
            on_their_way += 1
        else:
            lines.append(operation if in_order else f"{operation} {choose(st.integers(0, on_their_way - 1))}")
            on_their_way -= 1
    return Traffic(room, (*lines, *["receive"] * on_their_way))


ANYTHING = ("send", "send", "send", "receive", "receive", "receive", "drop", "restart")
