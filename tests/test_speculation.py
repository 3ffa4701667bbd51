"""What the reference promises beyond the requirements: errors that say where, and the earliest of the longest matches."""

import numpy as np
import pytest

from conformance.suite.merging_feeds import feed
from conformance.suite.speculation_cases import spoken
from reference.items import Chunk
from reference.speculation import draft_embeddings, draft_positions, propose_ngram

POSITIONS = np.tile(np.arange(7), (3, 1))


def test_a_chunk_behind_the_prompt_is_refused() -> None:
    given = feed("..iii..")
    with pytest.raises(ValueError, match="ends behind the last of 7 positions"):
        draft_embeddings(*given.prompt, given.rows, given.table, Chunk(3, 5), 1)
    with pytest.raises(ValueError, match="ends behind the last of 7 positions"):
        draft_positions(POSITIONS, Chunk(3, 5))


def test_rows_of_the_target_s_chunk_are_refused_where_they_are_too_few() -> None:
    given = feed("..iii..")
    with pytest.raises(ValueError, match="1 rows for 2 positions of media"):
        draft_embeddings(*given.prompt, given.rows[:1], given.table, Chunk(0, 3), 1)


def test_a_sampled_id_outside_the_vocabulary_is_named_with_its_position() -> None:
    given = feed("..iii..")
    with pytest.raises(ValueError, match="text position 7 holds the id 500"):
        draft_embeddings(*given.prompt, given.rows, given.table, Chunk(0, 7), 500)


@pytest.mark.parametrize(("chunk", "steps"), [(Chunk(0, 3), 1), (Chunk(0, 7), -1)])
def test_steps_are_behind_the_prompt(chunk: Chunk, steps: int) -> None:
    with pytest.raises(ValueError, match=f"{steps} steps behind"):
        draft_positions(POSITIONS, chunk, steps)


def test_the_positions_are_new() -> None:
    assert not np.shares_memory(draft_positions(POSITIONS, Chunk(0, 7)), POSITIONS)


@pytest.mark.parametrize(("shortest", "longest", "count"), [(0, 1, 1), (2, 1, 1), (1, 1, 0)])
def test_limits_that_cannot_be_are_refused(shortest: int, longest: int, count: int) -> None:
    with pytest.raises(ValueError, match="1 <= shortest <= longest and count >= 1"):
        propose_ngram(*spoken("ABAB"), shortest, longest, count)


def test_the_earliest_of_the_longest_matches_is_taken() -> None:
    assert propose_ngram(*spoken("BX.ABY.ABZ.AB"), 1, 3, 1) == tuple(spoken("Y").input_ids.tolist())


def test_a_medium_within_a_proposal_ends_it_for_good() -> None:
    assert propose_ngram(*spoken("ABCiiDE.AB"), 1, 3, 6) == tuple(spoken("C").input_ids.tolist())


def test_the_longest_match_is_bounded() -> None:
    assert propose_ngram(*spoken("BX.ABY.AB"), 1, 1, 1) == tuple(spoken("X").input_ids.tolist())
