"""MERGING, deepstack: encoders that also feed deeper layers of the language model."""

import torch

from conformance.cases import Pair
from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.oracles import merging as oracle
from conformance.requirement import requirement
from conformance.suite.merging_feeds import HIDDEN, Feed, chunk_ids, feed, stacked
from conformance.world.prompts import draw
from reference.items import Chunk

FEEDS = {
    "one-level": feed("..iii..", levels=1),
    "three-levels": feed("..iii.jj.", levels=3),
    "interleaved": feed("vvj.vi.", levels=2),
    "chunk-inside-a-picture": feed(".iiii..", Chunk(3, 3), levels=2),
    "listed-in-another-order": feed(draw(".ii.vv.", listed="vi"), levels=2),
    "text-only": feed("...", levels=2),
    "bfloat16-table": feed("..iii..", levels=2, table=torch.bfloat16),
}


@requirement("MERGING-13", needs="merge_deepstack", cases=FEEDS, bugs=("Q02",))
def test_the_first_columns_are_merged_as_usual(engine: Engine, case: Feed) -> None:
    """The input of the first layer MUST be merged from the first `hidden` columns, as without deepstack."""
    observed, _ = stacked(engine, case)
    expected = oracle.merged(*case.prompt, case.rows[:, :HIDDEN], case.table, case.chunk)
    equal(observed, expected, "the input of the first layer")


@requirement("MERGING-14", needs="merge_deepstack", cases=FEEDS, bugs=("Q02", "D01", "modality-attr-lost-on-split"))
def test_each_level_holds_its_own_columns_at_media(engine: Engine, case: Feed) -> None:
    """Level l MUST hold the l-th further `hidden` columns of the k-th row at the k-th position of media."""
    _, levels = stacked(engine, case)
    rows = case.rows.to(case.table.dtype)
    for level, observed in enumerate(levels):
        expected = rows[:, HIDDEN * (level + 1) : HIDDEN * (level + 2)]
        equal(observed[case.media], expected, f"level {level}", where=lambda n: f"position {case.media[n]}")


@requirement("MERGING-15", needs="merge_deepstack", cases=FEEDS, bugs=("K06", "deepstack-buffer-short"))
def test_levels_are_zero_at_text(engine: Engine, case: Feed) -> None:
    """Every level MUST be zero at each text position."""
    levels = stacked(engine, case)[1].transpose(0, 1)
    expected = torch.zeros(len(case.text), *levels.shape[1:], dtype=case.table.dtype)
    equal(levels[case.text], expected, "the levels at text", where=lambda n: f"position {case.text[n]}")


@requirement(
    "MERGING-16",
    needs="merge_deepstack",
    cases={
        "text-after-a-picture": Pair(feed("iiiii", levels=2), feed(".....", levels=2)),
        "fewer-rows": Pair(feed(".iiiiii.", levels=2), feed("..ii..", levels=2)),
        "shorter-chunk": Pair(feed("iiiiiiii", levels=2), feed("..i", levels=2)),
        "longer-chunk": Pair(feed("ii", levels=2), feed("....ii..", levels=2)),
    },
    bugs=("D01", "K06", "deepstack-buffer-short"),
)
def test_nothing_is_left_from_an_earlier_chunk(engine: Engine, case: Pair) -> None:
    """The levels of a chunk MUST NOT depend on the chunk that was merged before it."""
    stacked(engine, case.first)
    _, levels = stacked(engine, case.second)
    prompt, chunk, rows, table = case.second
    expected = oracle.levels(len(prompt.input_ids), prompt.items, rows.to(table.dtype), HIDDEN, chunk)
    equal(levels.transpose(0, 1), expected, "the levels")


@requirement(
    "MERGING-17",
    needs="merge_deepstack",
    cases={"one-column-more": 2 * HIDDEN + 1, "one-column-less": 2 * HIDDEN - 1, "narrower-than-one": HIDDEN - 1},
    bugs=("precomputed-hidden-size", "L11"),
)
def test_a_width_that_does_not_divide_is_refused(engine: Engine, case: int) -> None:
    """Rows whose width is no multiple of the hidden size MUST be refused."""
    given = feed("..iii..")
    ids = chunk_ids(engine, given.prompt, given.chunk)
    rows = torch.ones(len(given.rows), case)
    what = f"rows of {case} columns for levels of {HIDDEN}"
    refuses(lambda: engine.merge_deepstack(ids, given.prompt.items, rows, given.table, given.chunk), what)
