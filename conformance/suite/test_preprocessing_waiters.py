"""PREPROCESSING: who waits for the same work, who leaves, what fails, and what is cleared meanwhile."""

import asyncio
from threading import Thread
from threading import enumerate as threads

from conformance.compare import equal, holds, refuses, same
from conformance.engine import Engine
from conformance.oracles.preprocessing import Script
from conformance.requirement import SHOULD, requirement
from conformance.suite.preprocessing_bench import (
    PATIENCE_S,
    bench,
    error_of,
    follows,
    outcome,
    outcomes,
    preprocessor_with,
    submit,
)
from conformance.suite.preprocessing_cases import (
    ALL_LEAVE,
    BEGUN_AND_LEFT,
    CLEARED,
    FAILED,
    KEPT,
    LATE,
    ONE_LEAVES,
    PLACE_AGAIN,
    SHARED,
    Odd,
)


@requirement("PREPROCESSING-16", level=SHOULD, needs=preprocessor_with(), cases=SHARED)
def test_the_same_at_the_same_time_is_run_once(engine: Engine, case: Script) -> None:
    """Who asks for what is on its way SHOULD share the run."""
    follows(engine, case)


@requirement("PREPROCESSING-17", level=SHOULD, needs=preprocessor_with(), cases=KEPT, bugs=("hash-by-address",))
def test_the_same_again_is_not_run_again(engine: Engine, case: Script) -> None:
    """Who asks for what was made SHOULD be handed that result."""
    follows(engine, case)


@requirement("PREPROCESSING-18", needs=preprocessor_with("cancel"), cases=ONE_LEAVES)
def test_who_leaves_takes_nobody_with_him(engine: Engine, case: Script) -> None:
    """When one of several waiters cancels, the others MUST have their outcome as if he had never come."""
    follows(engine, case)


@requirement("PREPROCESSING-19", needs=preprocessor_with("cancel"), cases={"running": 0, "waiting": 1})
def test_who_leaves_does_not_wait(engine: Engine, case: int) -> None:
    """A cancelled ticket MUST end at once, whether its work has begun or not, and one with an outcome cannot be cancelled."""
    with bench(engine, 1, 1) as (preprocessor, work):
        tickets = [submit(preprocessor, "a"), submit(preprocessor, "b")]
        work.await_begun(1)
        holds(preprocessor.cancel(tickets[case]), "a ticket without an outcome was not cancelled")
        equal(outcome(preprocessor, tickets[case]), "cancelled", "its outcome, while the work is held")
        work.let_go()
        equal(outcome(preprocessor, tickets[1 - case]), "ba"[case] + " 1", "the outcome of the other ticket")
        equal(preprocessor.cancel(tickets[1 - case]), False, "the answer to a cancel that comes too late")


@requirement("PREPROCESSING-20", level=SHOULD, needs=preprocessor_with("cancel"), cases=ALL_LEAVE, bugs=("G04",))
def test_what_nobody_waits_for_does_not_begin(engine: Engine, case: Script) -> None:
    """Work that has not begun when its last waiter cancels SHOULD NOT begin."""
    follows(engine, case)


@requirement("PREPROCESSING-21", level=SHOULD, needs=preprocessor_with("cancel"), cases=PLACE_AGAIN, bugs=("G04",))
def test_who_leaves_frees_his_place(engine: Engine, case: Script) -> None:
    """The place of work that nobody waits for any more SHOULD be free at once."""
    follows(engine, case)


@requirement("PREPROCESSING-22", level=SHOULD, needs=preprocessor_with("cancel"), cases=BEGUN_AND_LEFT)
def test_what_was_begun_is_kept(engine: Engine, case: Script) -> None:
    """Work that has begun when its last waiter cancels SHOULD be kept for who comes later."""
    follows(engine, case)


@requirement(
    "PREPROCESSING-23",
    needs=preprocessor_with("clear"),
    cases=CLEARED,
    bugs=("weights-update-stale-encoder", "p0p1-cache-desync-sleep"),
)
def test_what_was_cleared_is_not_served(engine: Engine, case: Script) -> None:
    """A result that was kept before a `clear` MUST NOT be handed out after it."""
    follows(engine, case)


@requirement("PREPROCESSING-24", needs=preprocessor_with("clear"), cases=LATE, bugs=("weights-update-stale-encoder",))
def test_work_from_before_a_clear_is_not_kept(engine: Engine, case: Script) -> None:
    """Work that was submitted before a `clear` MUST be handed to those who wait for it, and MUST NOT be kept."""
    follows(engine, case)


@requirement(
    "PREPROCESSING-25",
    needs=preprocessor_with("clear"),
    cases={"at-the-same-time": 2, "one-after-the-other": 1},
    bugs=("weights-update-stale-encoder",),
)
def test_work_is_not_shared_across_a_clear(engine: Engine, case: int) -> None:
    """Who submits after a `clear` MUST NOT be handed work that was begun before it."""
    with bench(engine, case, 9) as (preprocessor, work):
        before = submit(preprocessor, "a")
        work.await_begun(1)
        preprocessor.clear()
        after = submit(preprocessor, "a")
        work.let_go()
        observed = [outcome(preprocessor, before), outcome(preprocessor, after)]
    equal(observed, ["a 1", "a 2"], "the outcomes", where=("submitted before", "submitted after").__getitem__)


@requirement("PREPROCESSING-26", needs=preprocessor_with(), cases=FAILED, bugs=("M03", "G13"))
def test_a_failure_is_not_kept(engine: Engine, case: Script) -> None:
    """Who submits after a failure MUST have the work tried again, and no other work MUST be affected."""
    follows(engine, case)


@requirement("PREPROCESSING-27", needs=preprocessor_with(), cases={"one": 1, "three": 3}, bugs=("X01", "G01"))
def test_a_failure_reaches_all_who_wait(engine: Engine, case: int) -> None:
    """Everybody who waits for work that fails MUST have an equal error, and it MUST say what the work said."""
    with bench(engine, 1, case) as (preprocessor, work):
        tickets = [submit(preprocessor, "a") for _ in range(case)]
        work.await_begun(1)
        work.end("a", ValueError("truncated at byte 7"))
        work.let_go()
        observed = [error_of(preprocessor, ticket) for ticket in tickets]
    holds("truncated at byte 7" in observed[0], f"the error is {observed[0]}")
    equal(observed, observed[:1] * case, "the errors of all who wait", where="ticket {}".format)


@requirement(
    "PREPROCESSING-28",
    needs=preprocessor_with(),
    cases={
        "stop-iteration": StopIteration(7),
        "exit": SystemExit(1),
        "cancelled-by-itself": asyncio.CancelledError(),
        "out-of-memory": MemoryError(),
        "of-another-making": Odd(415, reason="no picture"),
    },
    bugs=("M03", "O01", "G07"),
)
def test_no_failure_ends_a_worker(engine: Engine, case: BaseException) -> None:
    """Whatever the work raises, its waiters MUST have an outcome, and the work that comes next MUST be run."""
    with bench(engine, 1, 1) as (preprocessor, work):
        tickets = [submit(preprocessor, "a"), submit(preprocessor, "b")]
        work.await_begun(1)
        work.end("a", case)
        work.let_go()
        observed = outcomes(preprocessor, tickets)
    holds(observed[0] in ("failed", "cancelled"), f"the outcome of work that raised {type(case).__name__}: {observed[0]}")
    equal(observed[1], "b 1", "the outcome of the work that comes next")


@requirement(
    "PREPROCESSING-29", needs=preprocessor_with(), cases={"one-waits": "ab", "several-wait": "abcb"}, bugs=("G01", "L12")
)
def test_closing_leaves_nobody_waiting(engine: Engine, case: str) -> None:
    """After `close`, work that has begun MUST be handed out, all other tickets be ended, and what is submitted be refused."""
    with bench(engine, 1, 9) as (preprocessor, work):
        tickets = [submit(preprocessor, name) for name in case]
        work.await_begun(1)
        closing = Thread(target=preprocessor.close)
        closing.start()
        unbegun = outcomes(preprocessor, tickets[1:])
        work.let_go()
        begun = outcome(preprocessor, tickets[0])
        closing.join(PATIENCE_S)
        holds(not closing.is_alive(), f"close did not return within {PATIENCE_S:g} s")
        refuses(lambda: submit(preprocessor, "z"), "a submission to a closed preprocessor")
    equal(begun, "a 1", "the outcome of the work that had begun")
    holds({*unbegun} <= {"cancelled", "failed"}, f"the outcomes of work that had not begun: {unbegun}")
    equal(work.begun, ("a",), "the work begun in all")


@requirement("PREPROCESSING-30", level=SHOULD, needs=preprocessor_with(), cases={"unused": "", "used": "abc"})
def test_closing_leaves_no_thread(engine: Engine, case: str) -> None:
    """A preprocessor that was closed SHOULD leave no thread."""
    before = {*threads()}
    with bench(engine, 3, 9) as (preprocessor, work):
        tickets = [submit(preprocessor, name) for name in case]
        work.let_go()
        same(
            [outcome(preprocessor, ticket) for ticket in tickets],
            [f"{name} 1" for name in case],
            "the outcomes and the right ones",
        )
    left = [thread.name for thread in threads() if thread not in before]
    equal(left, [], "the threads that are left")
