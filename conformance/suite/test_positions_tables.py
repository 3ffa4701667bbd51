"""POSITIONS: what becomes of the positions of a prompt: chunks, replies, further turns."""

import numpy as np

from conformance.cases import Exact
from conformance.compare import equal
from conformance.engine import Engine
from conformance.oracles import positions as oracle
from conformance.requirement import requirement
from conformance.suite import positions_cases as cases
from conformance.suite.positions_cases import Chunked, Conversation, Extension, Retractions, Turns
from conformance.world.mrope import Script
from reference.items import Chunk

WHAT = "the positions (time, height, width)"


@requirement(
    "POSITIONS-16",
    needs="extend_positions",
    cases={name: Exact(case, oracle.extended(*case)) for name, case in cases.EXTENSIONS.items()},
    bugs=("R01", "R02"),
)
def test_a_reply_goes_on_behind_the_largest_number(engine: Engine, case: Exact) -> None:
    """A reply that is computed again MUST go on, on all three axes, at the largest number of the prompt plus 1.

    The largest on any axis: where a prompt ends with a picture, its last token is not the one with the largest time.
    """
    table, length = case.given
    equal(engine.extend_positions(table.copy(), length).T, case.expected.T, WHAT)


@requirement("POSITIONS-17", needs="extend_positions", cases=cases.EXTENSIONS | cases.BY_NOTHING, bugs=("R01",))
def test_a_second_attempt_adds_nothing(engine: Engine, case: Extension) -> None:
    """Positions that have been extended MUST stay as they are when the same request is scheduled once more."""
    once = engine.extend_positions(case.table.copy(), case.length)
    equal(engine.extend_positions(once.copy(), case.length).T, once.T, "the positions after a second attempt")


@requirement(
    "POSITIONS-18",
    needs=("positions", "extend_positions"),
    cases=cases.EVERYTHING,
    bugs=("R01", "llamacpp-ntokens-vs-npos", "mlx-mrope-chunk-offset-delta"),
)
def test_a_reply_lies_where_it_was_generated(engine: Engine, case: Script) -> None:
    """The j-th token of a reply to n positions MUST lie at n + j + delta, computed again as it was when generated."""
    table, delta = engine.positions(*case)
    n = table.shape[1]
    observed = engine.extend_positions(table.copy(), n + 4)[:, n:]
    expected = np.array([[n + j + delta] * 3 for j in range(4)], dtype=np.int64)
    equal(observed.T, expected, f"{WHAT} of a reply", where="token {} of the reply".format)


@requirement("POSITIONS-28", needs="retracted_positions", cases=cases.RETRACTIONS, bugs=("R01",))
def test_every_attempt_finds_the_same_positions(engine: Engine, case: Retractions) -> None:
    """A retracted request MUST have each position of prompt and reply once, at every attempt to schedule it again.

    A scheduler asks again whenever there was no room, and the positions are not to grow by that.
    """
    observed = engine.retracted_positions(case.table.copy(), case.replies)
    equal(len(observed), len(case.replies), "the number of tables")
    for number, (table, reply) in enumerate(zip(observed, case.replies, strict=True), 1):
        expected = oracle.extended(case.table, case.table.shape[1] + reply)
        equal(table.T, expected.T, f"{WHAT} at attempt {number}")


@requirement("POSITIONS-19", needs="stitch_positions", cases=cases.TURNS)
def test_a_turn_is_shifted_behind_what_was_before(engine: Engine, case: Turns) -> None:
    """A further turn MUST be shifted, on all three axes alike, by the largest number before it plus 1; the rest stays."""
    observed = engine.stitch_positions(case.previous.copy(), case.turn.copy())
    shift = max((int(value) for value in case.previous.flatten()), default=-1) + 1
    equal(observed.T, np.concatenate([case.previous.T, case.turn.T + shift]), WHAT)


@requirement("POSITIONS-20", needs=("positions", "stitch_positions"), cases=cases.CONVERSATIONS)
def test_turns_are_numbered_as_one_prompt(engine: Engine, case: Conversation) -> None:
    """Turns that are stitched together MUST have the positions of one prompt that says the same."""
    first, second, whole = (engine.positions(*script)[0] for script in case)
    equal(engine.stitch_positions(first.copy(), second.copy()).T, whole.T, WHAT, where=oracle.where(case.whole.items))


@requirement(
    "POSITIONS-21",
    needs="chunk_positions",
    cases=cases.CHUNKS,
    bugs=("R08", "mlx-mrope-chunk-offset-delta", "llamacpp-batch-view-mrope"),
)
def test_a_chunk_has_its_own_columns(engine: Engine, case: Chunked) -> None:
    """The positions of a chunk MUST be the columns of its own positions, on each axis."""
    observed = engine.chunk_positions(case.table.copy(), case.chunk)
    expected = [column for place, column in enumerate(case.table.T) if case.chunk.prefix <= place < case.chunk.stop]
    equal(observed.T, np.array(expected, dtype=np.int64).reshape(-1, 3), WHAT, where="position {} of the chunk".format)


@requirement("POSITIONS-22", needs="chunk_positions", cases=cases.TABLES, bugs=("R08",))
def test_chunks_of_every_length_make_up_the_whole(engine: Engine, case: np.ndarray) -> None:
    """The positions of the chunks of a prompt MUST make up those of the whole, for every chunk length from 1 up."""
    n = case.shape[1]
    for length in range(1, n + 2):
        chunks = [Chunk(first, min(length, n - first)) for first in range(0, n, length)]
        cut = [case[:, :0], *(engine.chunk_positions(case.copy(), chunk) for chunk in chunks)]
        equal(np.concatenate(cut, axis=1).T, case.T, f"{WHAT} of chunks of {length}")
