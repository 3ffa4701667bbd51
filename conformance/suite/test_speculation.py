"""SPECULATION: what a draft model is fed where there are media, and what a drafter may propose."""

import numpy as np
import torch

from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.oracles import speculation as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite.merging_feeds import Chunked, chunk_ids
from conformance.suite.speculation_cases import (
    SAMPLED,
    Draft,
    Placed,
    draft,
    embedded,
    joined,
)
from conformance.world.prompts import VOCABULARY, draw
from reference.items import Chunk

DRAFTS = {
    "one-picture": draft("..iii.."),
    "two-pictures": draft(".ii.jjj."),
    "several-spans": draft(".vv.v.vvv."),
    "interleaved": draft("vvavva.ivi"),
    "listed-in-another-order": draft(draw(".ii.jj.", listed="ji")),
    "begins-with-a-picture": draft("iii.."),
    "ends-with-a-picture": draft("..iii"),
    "text-only": draft("....."),
    "one-position": draft("..iii.", 5),
    "later-chunk": draft("..iii.jj.", 4),
    "ends-before-text": draft("..iii....", 0, 7),
    "ends-with-the-picture": draft("..iii....", 1, 4),
    "literal-placeholder": draft(".ii.#.#"),
    "bfloat16": draft("..iii..", rows=torch.float32, table=torch.bfloat16),
}
BEFORE_MEDIA = {
    "inside-a-picture": draft("..iiii..", 0, 4),
    "one-position-of-a-picture": draft("..iiii..", 3, 1),
    "before-a-picture": draft("....ii..", 0, 4),
    "between-two-pictures": draft(".iijj.", 1, 2),
    "before-the-second-span": draft(".vv.vv.", 0, 4),
}


@requirement(
    "SPECULATION-01", needs="draft_embeddings", cases=DRAFTS | BEFORE_MEDIA, bugs=("P04", "spec-drafter-borrowed-method")
)
def test_text_is_embedded_one_position_earlier(engine: Engine, case: Draft) -> None:
    """For a position before text the draft MUST take the embedding of that text, bit by bit, and of no placeholder."""
    places = case.places(media=False)
    where = [f"position {case.chunk.prefix + place}" for place in places]
    equal(embedded(engine, case)[places], case.expected[places], "the draft's text embeddings", where=where.__getitem__)


@requirement(
    "SPECULATION-02",
    needs="draft_embeddings",
    cases=DRAFTS | BEFORE_MEDIA,
    bugs=("P04", "D05", "spec-shifted-embeds-unshifted-mrope", "spec-drafter-borrowed-method"),
)
def test_rows_of_media_shift_with_the_ids(engine: Engine, case: Draft) -> None:
    """For a position before a medium's the draft MUST take the row of that medium's position, and never a sentinel's.

    What stands behind the chunk itself is not looked at here.
    """
    places = case.places(media=True)
    where = [f"position {case.chunk.prefix + place}" for place in places]
    equal(embedded(engine, case)[places], case.expected[places], "the draft's rows of media", where=where.__getitem__)


@requirement(
    "SPECULATION-03",
    needs="draft_embeddings",
    cases={
        "sentence-goes-on": draft("......", 0, 3),
        "one-position": draft("......", 2, 1),
        "behind-a-picture": draft(".ii...", 1, 2),
        "before-a-literal-placeholder": draft("..#.ii", 0, 2),
        "sampled-a-number-that-is-no-id": draft("......", 0, 3, sampled=-1),
    },
)
def test_behind_a_chunk_stands_the_prompt(engine: Engine, case: Draft) -> None:
    """For the last position of a chunk that is not the last one, the draft MUST take the prompt's next token.

    What the target samples there comes from half a prompt. SGLang's pull request 26800 is about this.
    """
    equal(embedded(engine, case)[-1:], case.expected[-1:], "the embedding behind the chunk")


@requirement("SPECULATION-04", needs="draft_embeddings", level=SHOULD, cases=BEFORE_MEDIA, bugs=("P04",))
def test_behind_a_chunk_stands_the_medium(engine: Engine, case: Draft) -> None:
    """For the last position of a chunk before a medium's position, the draft SHOULD take that medium's row.

    Anything else that is a word is no fault, for the target checks all drafts; it leaves a wrong entry in the draft's cache.
    """
    equal(embedded(engine, case)[-1:], case.expected[-1:], "the embedding behind the chunk")


@requirement(
    "SPECULATION-05",
    needs="draft_embeddings",
    level=SHOULD,
    cases={
        "inside-a-picture": Chunked(draw("..iiii.."), (3, 5)),
        "inside-twice": Chunked(draw(".iiiiiii."), (2, 3, 4)),
        "at-the-edges": Chunked(draw("..iii.."), (2, 3, 2)),
        "one-position-each": Chunked(draw(".vv.v."), (1,) * 6),
        "text-only": Chunked(draw("....."), (2, 3)),
    },
    bugs=("P04",),
)
def test_draft_chunks_add_up_to_the_whole(engine: Engine, case: Chunked) -> None:
    """What the draft takes for the chunks of a prompt, one after another, SHOULD equal what it takes for all at once."""
    whole = embedded(engine, draft(case.prompt))
    equal(joined(engine, case.prompt, case.lengths), whole, "the draft's embeddings of the chunks")


@requirement(
    "SPECULATION-06",
    needs="draft_embeddings",
    level=SHOULD,
    cases={"first-beyond-the-table": VOCABULARY, "a-sentinel": 10**15, "not-yet-known": -1},
    bugs=("P04",),
)
def test_a_sampled_id_outside_the_table_is_refused(engine: Engine, case: int) -> None:
    """A sampled id outside the draft's vocabulary SHOULD be refused: clamped into it, it would be read as another word."""
    refuses(lambda: embedded(engine, draft("..iii..", sampled=case)), f"the sampled id {case}")


@requirement("SPECULATION-07", needs="draft_embeddings", cases={name: DRAFTS[name] for name in ("one-picture", "text-only")})
def test_drafting_does_not_touch_its_arguments(engine: Engine, case: Draft) -> None:
    """The draft's first pass MUST leave ids, rows and table as they were: target and draft share them."""
    ids = chunk_ids(engine, case.prompt, case.chunk)
    given, rows, table = ids.copy(), case.rows_behind, case.whole.table
    engine.draft_embeddings(given, case.prompt.items, rows, table, case.chunk, SAMPLED)
    equal(given, ids, "the ids after drafting")
    equal(rows, case.rows_behind, "the rows after drafting", where="row {}".format)
    equal(table, case.whole.table, "the table after drafting", where="row {}".format)


SHIFTS = {"hidden state": 0, "token": 1}
PICTURE = np.array([[0, 1, 1, 1, 1, 3, 4], [0, 1, 1, 2, 2, 3, 4], [0, 1, 2, 1, 2, 3, 4]], dtype=np.int64)
"""Text, a picture of two rows and columns, text."""

LAST_WIDE = np.array([[0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 2, 3]], dtype=np.int64)
"""Text, and a picture of one row and three columns."""

PLACED = {
    "whole": Placed(PICTURE, Chunk(0, 7)),
    "inside-the-picture": Placed(PICTURE, Chunk(1, 3)),
    "up-to-the-picture": Placed(PICTURE, Chunk(0, 1)),
    "behind-the-picture": Placed(PICTURE, Chunk(5, 2)),
    "text-only": Placed(np.tile(np.arange(5), (3, 1)), Chunk(1, 4)),
    "ends-with-the-picture": Placed(LAST_WIDE, Chunk(0, 4)),
}


@requirement(
    "SPECULATION-08",
    needs="draft_positions",
    cases=PLACED,
    bugs=("spec-shifted-embeds-unshifted-mrope", "llamacpp-ntokens-vs-npos"),
)
def test_drafts_stand_where_the_engine_says(engine: Engine, case: Placed) -> None:
    """In its pass over a chunk the draft MUST stand at the positions of the hidden states, or by trait of the tokens.

    EAGLE, SGLang and vLLM shift the ids and leave the positions. With M-RoPE the two differ at each border of a medium,
    so that a draft model has to be served as it was trained.
    """
    expected = oracle.standing(case.positions, case.chunk, case.steps, SHIFTS[engine.traits.draft_positions])
    observed = engine.draft_positions(case.positions.copy(), case.chunk, case.steps)
    equal(observed.T, expected.T, "the draft's positions")


@requirement(
    "SPECULATION-09",
    needs="draft_positions",
    cases={
        "behind-text": Placed(PICTURE, Chunk(0, 7), 3),
        "behind-the-last-chunk": Placed(PICTURE, Chunk(5, 2), 5),
        "behind-a-wide-picture": Placed(LAST_WIDE, Chunk(0, 4), 3),
        "behind-a-tall-picture": Placed(LAST_WIDE[[0, 2, 1]].copy(), Chunk(1, 3), 2),
    },
    bugs=("llamacpp-ntokens-vs-npos",),
)
def test_drafts_go_on_as_text(engine: Engine, case: Placed) -> None:
    """Behind the prompt drafts MUST stand at the largest position on any axis + 1, and so on, alike on all three."""
    expected = oracle.standing(case.positions, case.chunk, case.steps, SHIFTS[engine.traits.draft_positions])
    observed = engine.draft_positions(case.positions.copy(), case.chunk, case.steps)
    equal(observed.T, expected.T, "the draft's positions")


@requirement(
    "SPECULATION-10",
    needs="draft_positions",
    cases={"whole": Placed(PICTURE, Chunk(0, 7)), "with-steps": Placed(PICTURE, Chunk(2, 5), 3)},
    bugs=("spec-shifted-embeds-unshifted-mrope",),
)
def test_the_positions_of_the_target_stay(engine: Engine, case: Placed) -> None:
    """The positions of the target MUST stay as they were, also when those of the draft are written to afterwards."""
    given = case.positions.copy()
    observed = engine.draft_positions(given, case.chunk, case.steps)
    equal(given.T, case.positions.T, "the target's positions")
    observed = observed if observed.flags.writeable else observed.copy()
    observed += 1
    equal(given.T, case.positions.T, "the target's positions after the draft wrote to its own")
