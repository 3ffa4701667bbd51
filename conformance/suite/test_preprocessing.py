"""PREPROCESSING: what the processor makes of media, in the background, bounded, cancellable and kept."""

from collections.abc import Sequence

from conformance.cases import Pair
from conformance.compare import differ, equal, holds, refuses, same
from conformance.engine import Engine
from conformance.oracles.preprocessing import Script
from conformance.requirement import SHOULD, requirement
from conformance.suite.preprocessing_bench import (
    PATIENCE_S,
    PROCESSOR,
    ROOM,
    Bench,
    bench,
    follows,
    given_to,
    keys_of,
    labelled,
    medium,
    plain,
    preprocessor_with,
    seen,
    submit,
)
from conformance.suite.preprocessing_cases import (
    ALIKE,
    AT_ONCE,
    BOUNDARIES,
    CONTENTS,
    FULL,
    IN_ORDER,
    LONG,
    NO_PLACE_NEEDED,
    OPTIONS,
    OTHER_MODALITIES,
    PROCESSORS,
    SEVERAL,
    SNAPSHOTS,
    Asked,
    Rewrites,
)


@requirement(
    "PREPROCESSING-01",
    needs="preprocessing_key",
    cases=CONTENTS,
    bugs=("H11", "url-keyed-embedding-cache", "video-audio-not-in-hash"),
)
def test_the_content_is_part_of_the_key(engine: Engine, case: Pair) -> None:
    """Media of different content MUST have different keys: pixels, shape, type, modality and fields."""
    differ(*keys_of(engine, case), "the keys of different content")


@requirement("PREPROCESSING-02", needs="preprocessing_key", cases=PROCESSORS)
def test_the_processor_is_part_of_the_key(engine: Engine, case: Pair) -> None:
    """One medium under two processors MUST have two keys."""
    differ(*keys_of(engine, case), "the keys under two processors")


@requirement(
    "PREPROCESSING-03",
    needs="preprocessing_key",
    cases=OPTIONS,
    bugs=("video-per-item-options-hash", "hash-decode-config-ignored", "mm-kwargs-ignored"),
)
def test_the_options_are_part_of_the_key(engine: Engine, case: Pair) -> None:
    """One medium with different options for its modality MUST have different keys."""
    differ(*keys_of(engine, case), "the keys with different options")


@requirement(
    "PREPROCESSING-04",
    needs="preprocessing_key",
    cases=BOUNDARIES,
    bugs=("hash-suffix-domain-confusion", "hash-noncanonical-dict-metadata"),
)
def test_the_parts_of_a_key_have_bounds(engine: Engine, case: Pair) -> None:
    """What is moved from one part of a key to the next MUST change the key: content, processor, names and values."""
    differ(*keys_of(engine, case), "the keys of parts with other bounds")


@requirement(
    "PREPROCESSING-05", level=SHOULD, needs="preprocessing_key", cases=OTHER_MODALITIES, bugs=("hash-kwargs-cross-modality",)
)
def test_options_of_other_modalities_are_not(engine: Engine, case: Pair) -> None:
    """Options for another modality SHOULD NOT change the key: nothing of the medium depends on them."""
    same(*keys_of(engine, case), "the keys with other options for other modalities")


@requirement("PREPROCESSING-06", level=SHOULD, needs="preprocessing_key", cases=ALIKE, bugs=("hash-by-address", "H05"))
def test_equal_questions_have_equal_keys(engine: Engine, case: Pair) -> None:
    """The order of options, the place in memory and the place in the prompt SHOULD NOT change the key."""
    same(*keys_of(engine, case), "the keys of equal questions")


@requirement("PREPROCESSING-07", needs=preprocessor_with(), cases=SEVERAL, bugs=("video-per-item-options-hash", "Q03", "Q06"))
def test_each_ticket_has_the_outcome_of_its_own(engine: Engine, case: Sequence[Asked]) -> None:
    """A result MUST be what the work made of this very item, by its processor and with the options for its modality."""
    with bench(engine, 2, len(case), make=seen) as (preprocessor, work):
        tickets = [preprocessor.submit(*asked) for asked in case]
        work.let_go()
        observed = [preprocessor.result(ticket, PATIENCE_S) for ticket in reversed(tickets)]
    equal(observed[::-1], [given_to(asked) for asked in case], "what the work was given", where="ticket {}".format)


@requirement("PREPROCESSING-08", needs=preprocessor_with(), cases=AT_ONCE, bugs=("G02",))
def test_no_more_run_than_there_are_workers(engine: Engine, case: Script) -> None:
    """There MUST NOT be more runs at once than workers, and as many as there are workers where enough is asked for."""
    follows(engine, case)


@requirement("PREPROCESSING-09", needs=preprocessor_with(), cases=FULL, bugs=("G02", "L12"))
def test_no_more_wait_than_there_are_places(engine: Engine, case: Script) -> None:
    """A submission that finds every worker and every place taken MUST be refused at once, and nothing of it be left."""
    follows(engine, case)


@requirement("PREPROCESSING-10", level=SHOULD, needs=preprocessor_with(), cases=NO_PLACE_NEEDED)
def test_what_needs_no_run_needs_no_place(engine: Engine, case: Script) -> None:
    """What is kept or on its way SHOULD be had even when every place is taken."""
    follows(engine, case)


@requirement("PREPROCESSING-11", needs=preprocessor_with(), cases=IN_ORDER)
def test_work_begins_in_order(engine: Engine, case: Script) -> None:
    """Work MUST begin in the order of submission, so that nobody waits for ever."""
    follows(engine, case)


@requirement(
    "PREPROCESSING-12",
    level=SHOULD,
    needs=preprocessor_with("cancel", "clear"),
    cases=LONG,
    bugs=("omni-cached-prompt-executor",),
)
def test_whatever_comes_together(engine: Engine, case: Script) -> None:
    """Whatever is submitted, ended, cancelled and cleared in whatever order, there SHOULD be the right outcomes and runs.

    This is all that is asked of waiters, clears and bounds in one. What of it is a MUST has a rule of its own.
    """
    follows(engine, case)


@requirement("PREPROCESSING-13", needs=preprocessor_with(), cases=SNAPSHOTS, bugs=("L09", "L08"))
def test_work_is_on_what_was_submitted(engine: Engine, case: Rewrites) -> None:
    """A result MUST be of the item and the options as they were submitted, whatever their caller writes to them since."""
    rewritten, fresh = case(), case().asked
    with bench(engine, 1, 2, make=seen) as (preprocessor, work):
        preprocessor.submit(medium("x"), PROCESSOR, {})
        ticket = preprocessor.submit(*rewritten.asked)
        rewritten.rewrite(rewritten.asked)
        work.let_go()
        observed = [preprocessor.result(ticket, PATIENCE_S), preprocessor.result(preprocessor.submit(*fresh), PATIENCE_S)]
    equal(observed, [given_to(fresh)] * 2, "what the work was given", where=("at first", "when it was asked again").__getitem__)


@requirement(
    "PREPROCESSING-14",
    needs=preprocessor_with(),
    cases={
        "no-worker": (0, 1, ROOM),
        "fewer-than-no-place": (1, -1, ROOM),
        "fewer-than-no-byte": (1, 1, -1),
        "half-a-worker": (1.5, 1, ROOM),
        "any-number-of-places": (1, None, ROOM),
    },
)
def test_bounds_are_numbers(engine: Engine, case: tuple[int, int, int]) -> None:
    """Fewer than one worker, and a negative or missing number of places or bytes, MUST be refused."""
    work = Bench(labelled).work
    refuses(lambda: plain(engine.open_preprocessor(work, *case)), f"{case[0]} workers, {case[1]} places, {case[2]} bytes")


@requirement("PREPROCESSING-15", needs=preprocessor_with(), cases={"one": 1, "twenty": 20})
def test_asking_does_not_wait(engine: Engine, case: int) -> None:
    """A submission MUST NOT wait for its work, nor run it itself."""
    with bench(engine, 1, case) as (preprocessor, work):
        for number in range(case):
            submit(preprocessor, chr(97 + number))
        begun = work.begun
    holds(not work.in_place, "the work was run by whoever submitted it")
    holds(len(begun) <= 1, f"{len(begun)} runs were begun by one worker whose first run had not ended")
