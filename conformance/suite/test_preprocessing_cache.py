"""PREPROCESSING: which results are kept, in how many bytes, and whose they are."""

from typing import Any

from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles.preprocessing import UNIT, runs_of_uses
from conformance.requirement import SHOULD, requirement
from conformance.suite.preprocessing_bench import PATIENCE_S, Call, bench, plain, preprocessor_with, scribble, submit, unit, use
from conformance.suite.preprocessing_cases import EVICTIONS, OVERSIZED, RESULTS, Result, Uses


@requirement("PREPROCESSING-31", level=SHOULD, needs=preprocessor_with(), cases=EVICTIONS, bugs=("E05",))
def test_what_was_used_longest_ago_goes_first(engine: Engine, case: Uses) -> None:
    """A result SHOULD be kept until room is needed, and then go in the order of last use, oldest first."""
    observed = [runs for runs, _ in use(engine, case)]
    equal(observed, runs_of_uses(case.room, case.order), "the runs so far", where=f"use {{}} of {case.order}".format)


@requirement("PREPROCESSING-32", needs=preprocessor_with("used_bytes"), cases=EVICTIONS | OVERSIZED, bugs=("E04",))
def test_the_budget_is_kept(engine: Engine, case: Uses) -> None:
    """The bytes of the results that are kept MUST NOT exceed the capacity, nor be negative, after any use."""
    budget = case.room * UNIT + UNIT // 2
    beyond = [(number, used) for number, (_, used) in enumerate(use(engine, case)) if not 0 <= used <= budget]
    equal(beyond, [], f"the uses after which the bytes in use are not in 0 to {budget}")


@requirement("PREPROCESSING-33", level=SHOULD, needs=preprocessor_with(), cases=OVERSIZED, bugs=("E04",))
def test_what_can_never_fit_evicts_nothing(engine: Engine, case: Uses) -> None:
    """A result that is larger than the capacity SHOULD be handed out and evict no other."""
    observed = [runs for runs, _ in use(engine, case)]
    equal(observed, runs_of_uses(case.room, case.order), "the runs so far", where=f"use {{}} of {case.order}".format)


@requirement("PREPROCESSING-34", needs=preprocessor_with("used_bytes", "clear"), cases={"one": "a", "several": "abA"})
def test_the_books_are_right(engine: Engine, case: str) -> None:
    """The bytes in use MUST be at least those of the results that are kept, and none after a `clear`."""
    with bench(engine, 1, 9, make=unit) as (preprocessor, work):
        work.let_go()
        sizes = [preprocessor.result(submit(preprocessor, name), PATIENCE_S).nbytes for name in case]
        used = preprocessor.used_bytes()
        preprocessor.clear()
        cleared = preprocessor.used_bytes()
    holds(used >= sum(sizes), f"{used} bytes are said to be in use, and {sum(sizes)} are kept")
    equal(cleared, 0, "the bytes in use after a clear")


@requirement("PREPROCESSING-35", needs=preprocessor_with(), cases=RESULTS, bugs=("Q05", "Q06", "L09"))
def test_a_result_is_its_owners(engine: Engine, case: Result) -> None:
    """What one caller writes into a result MUST NOT be seen by another, nor by who asks later."""
    with bench(engine, 1, 9, make=lambda call, run: case.make()) as (preprocessor, work):
        tickets = [submit(preprocessor, "a") for _ in range(2)]
        work.let_go()
        first, second = (preprocessor.result(ticket, PATIENCE_S) for ticket in tickets)
        scribble(first)
        later = preprocessor.result(submit(preprocessor, "a"), PATIENCE_S)
    equal([plain(second), plain(later)], [plain(case.make())] * 2, "the results", where=("beside", "later").__getitem__)


@requirement("PREPROCESSING-36", needs=preprocessor_with(), cases=RESULTS, bugs=("L09",))
def test_the_work_keeps_no_hold_of_its_result(engine: Engine, case: Result) -> None:
    """What the work writes into a buffer after it has returned it MUST NOT be seen by anyone."""
    made: list[Any] = []

    def make(call: Call, run: int) -> Any:
        made.append(case.make())
        return made[-1]

    with bench(engine, 1, 9, make=make) as (preprocessor, work):
        work.let_go()
        first = preprocessor.result(submit(preprocessor, "a"), PATIENCE_S)
        scribble(made)
        later = preprocessor.result(submit(preprocessor, "a"), PATIENCE_S)
    equal([plain(first), plain(later)], [plain(case.make())] * 2, "the results", where=("at once", "later").__getitem__)
