"""MERGING: what enters the language model, text embeddings and the rows of media in one tensor."""

from collections.abc import Sequence

import torch

from conformance.cases import Exact, Pair
from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import merging as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite.merging_feeds import HIDDEN, Chunked, Feed, Fit, chunk_ids, feed, merged
from conformance.world.prompts import VOCABULARY, draw
from reference.items import Chunk

FEEDS = {
    "one-picture": feed("..iii.."),
    "two-pictures": feed(".iii.jjj."),
    "side-by-side": feed("iijjj"),
    "several-spans": feed(".vv.v.vvv."),
    "video-before-picture": feed(".vvv.iii."),
    "all-modalities": feed("aa.vv.ii."),
    "interleaved": feed("vvavva.ivi"),
    "listed-in-another-order": feed(draw(".ii.jj.", listed="ji")),
    "nothing-but-media": feed("iiii"),
    "text-only": feed("....."),
    "empty-chunk": feed("..ii..", Chunk(3, 0)),
    "bfloat16": feed("..iii..", rows=torch.bfloat16, table=torch.bfloat16),
    "rows-of-another-type": feed("..iii..", rows=torch.bfloat16),
}


@requirement("MERGING-01", needs="merge", cases=FEEDS)
def test_text_gets_its_own_embedding(engine: Engine, case: Feed) -> None:
    """Each text position MUST get the row of the table that its id names, bit by bit."""
    expected = case.table[torch.from_numpy(case.text_ids)]
    equal(merged(engine, case)[case.text], expected, "the text embeddings", where=lambda n: f"position {case.text[n]}")


@requirement(
    "MERGING-02",
    needs="merge",
    cases=FEEDS,
    bugs=("Q01", "Q02", "omni-interleaved-scatter-misalign", "mlx-gemma3-where-instead-of-scatter"),
)
def test_media_get_their_rows_in_the_order_of_positions(engine: Engine, case: Feed) -> None:
    """The k-th media position of a chunk MUST get the k-th row, bit by bit, whatever the order of items or modalities."""
    expected = case.rows.to(case.table.dtype)
    equal(merged(engine, case)[case.media], expected, "the rows of media", where=lambda n: f"position {case.media[n]}")


@requirement(
    "MERGING-03",
    needs="merge",
    cases={
        "inside-a-picture": Chunked(draw("..iiii.."), (3, 5)),
        "inside-twice": Chunked(draw(".iiiiiii."), (2, 3, 4)),
        "at-the-edges": Chunked(draw("..iii.."), (2, 3, 2)),
        "inside-the-second-span": Chunked(draw(".vv.vvv.vv"), (5, 5)),
        "one-position-each": Chunked(draw(".vv.v."), (1,) * 6),
        "empty-chunk-between": Chunked(draw(".iii."), (2, 0, 3)),
    },
    bugs=("E03", "chunked-prefill-old-merge-shape", "N03", "R08", "ollama-image-split-batches"),
)
def test_chunks_add_up_to_the_whole(engine: Engine, case: Chunked) -> None:
    """The merged chunks of a prompt, one after another, MUST equal the prompt merged at once, wherever it is cut."""
    starts = [sum(case.lengths[:n]) for n in range(len(case.lengths))]
    chunks = [Chunk(start, length) for start, length in zip(starts, case.lengths, strict=True)]
    observed = torch.cat([merged(engine, feed(case.prompt, chunk)) for chunk in chunks])
    equal(observed, merged(engine, feed(case.prompt)), "the merged chunks")


@requirement(
    "MERGING-04",
    needs="merge",
    cases={
        "after-the-picture": feed(".ii..#"),
        "before-the-picture": feed(".#.ii."),
        "beside-the-picture": feed("#ii#."),
        "no-picture-at-all": feed(".#.#."),
        "sampled-in-a-later-chunk": feed(".ii...#.", Chunk(5, 3)),
        "one-token-step": feed(".ii...#", Chunk(6, 1)),
    },
    bugs=(
        "merge-by-token-id-generated-pad",
        "generated-pad-desync",
        "W04",
        "P03",
        "text-literal-placeholder-steals-binding",
    ),
)
def test_a_placeholder_outside_the_spans_is_text(engine: Engine, case: Feed) -> None:
    """A placeholder id outside the recorded spans MUST be embedded as text, and MUST NOT shift the rows of media."""
    equal(merged(engine, case), oracle.merged(*case.prompt, case.rows, case.table, case.chunk), "the merged chunk")


@requirement("MERGING-05", needs="merge", cases={name: FEEDS[name] for name in ("one-picture", "interleaved", "text-only")})
def test_merging_does_not_touch_its_arguments(engine: Engine, case: Feed) -> None:
    """Merging MUST leave the caller's ids, rows and table as they were.

    Whoever reads the ids after the merge (a prefix cache, a penalty, a draft model) would read others.
    """
    ids = chunk_ids(engine, case.prompt, case.chunk)
    given, rows, table = ids.copy(), case.rows.clone(), case.table.clone()
    engine.merge(given, case.prompt.items, rows, table, case.chunk)
    equal(given, ids, "the caller's ids after merging")
    equal(rows, case.rows, "the caller's rows after merging", where="row {}".format)
    equal(table, case.table, "the caller's table after merging", where="row {}".format)


@requirement(
    "MERGING-06",
    needs="merge",
    cases={
        "one-too-few": Pair(feed("..iii.j."), 3),
        "one-for-all": Pair(feed("..iii.j."), 1),
        "none": Pair(feed("..iii.j."), 0),
        "of-the-picture-before": Pair(feed("..iiii..jj", Chunk(4, 6)), 2),
    },
    bugs=("L01", "L02", "L03", "L11", "chunk-mm-mask-vocab-heuristic"),
)
def test_too_few_rows_are_refused(engine: Engine, case: Pair) -> None:
    """Fewer rows than the chunk has media positions MUST be refused: nothing can stand in for the missing ones."""
    given, count = case
    ids = chunk_ids(engine, given.prompt, given.chunk)
    rows = torch.ones(count, HIDDEN)
    what = f"{count} rows for {len(given.media)} positions of media"
    refuses(lambda: engine.merge(ids, given.prompt.items, rows, given.table, given.chunk), what)


@requirement(
    "MERGING-18",
    needs="merge",
    cases={
        "one-too-many": Pair(feed("..iii.j."), 5),
        "for-text-only": Pair(feed("....."), 1),
        "for-one-token-of-text": Pair(feed("."), 1),
        "for-a-recording": Pair(feed("..aa."), 3),
        "of-the-whole-picture-for-a-chunk": Pair(feed("..iiii..", Chunk(4, 4)), 4),
    },
    bugs=("L03", "L11"),
)
def test_surplus_rows_are_refused_or_cut_as_the_engine_says(engine: Engine, case: Pair) -> None:
    """More rows than the chunk has media positions MUST be refused; by the trait `keep last` the last ones may be used.

    Which picture the surplus belongs to is not known here, so that an engine that takes any but the last is guessing.
    """
    (prompt, chunk, _, table), count = case
    rows = torch.arange(1, 1 + count, dtype=torch.float32).reshape(-1, 1).repeat(1, HIDDEN)
    ids, what = chunk_ids(engine, prompt, chunk), f"{count} rows for {len(case.first.media)} positions of media"
    for observed in unless_refused(lambda: engine.merge(ids, prompt.items, rows, table, chunk), what):
        holds(engine.traits.surplus_rows == "keep last", f"{what} must be refused, but were merged")
        last = rows[count - len(case.first.media) :]
        equal(observed, oracle.merged(prompt.input_ids, prompt.items, last, table, chunk), "the merged chunk")


@requirement(
    "MERGING-07",
    needs="merge",
    cases={"narrower": HIDDEN - 1, "wider": HIDDEN + 1, "twice-as-wide": 2 * HIDDEN, "one-column": 1, "no-column": 0},
    bugs=("precomputed-hidden-size", "merge-argument-order"),
)
def test_rows_of_another_width_are_refused(engine: Engine, case: int) -> None:
    """Rows of another width than the text embeddings MUST be refused, a single column that could be broadcast as well."""
    given = feed("..iii..")
    ids = chunk_ids(engine, given.prompt, given.chunk)
    rows = torch.ones(len(given.rows), case)
    what = f"rows of {case} columns for a model of {HIDDEN}"
    refuses(lambda: engine.merge(ids, given.prompt.items, rows, given.table, given.chunk), what)


@requirement(
    "MERGING-08",
    needs="merge",
    cases={
        "float32-to-bfloat16": feed(".iiiiii.", table=torch.bfloat16),
        "float32-to-float16": feed(".iiiiii.", table=torch.float16),
        "float16-to-bfloat16": feed(".iiiiii.", rows=torch.float16, table=torch.bfloat16),
        "bfloat16-to-float32": feed(".iiiiii.", rows=torch.bfloat16),
        "float64-to-float32": feed(".iiiiii.", rows=torch.float64),
        "float64-to-bfloat16": feed(".iiiiii.", rows=torch.float64, table=torch.bfloat16),
    },
)
def test_rows_are_cast_to_the_type_of_the_table(engine: Engine, case: Feed) -> None:
    """Rows of another floating type MUST be cast to the table's type, once, and the result MUST have that type."""
    equal(merged(engine, case)[case.media], case.rows.to(case.table.dtype), "the rows of media", where="row {}".format)


@requirement(
    "MERGING-09",
    needs="merge",
    level=SHOULD,
    cases={"first-beyond-the-table": VOCABULARY, "a-sentinel": 10**15, "negative": -1, "below-the-table": -VOCABULARY - 1},
    bugs=("P03", "P04"),
)
def test_a_text_id_outside_the_table_is_refused(engine: Engine, case: int) -> None:
    """An id outside the table at a text position SHOULD be refused: clamped into it, it would be read as another word."""
    given = feed("..iii..")
    ids = chunk_ids(engine, given.prompt, given.chunk)
    ids[1] = case
    refuses(lambda: engine.merge(ids, given.prompt.items, given.rows, given.table, given.chunk), f"the id {case} at position 1")


@requirement(
    "MERGING-10",
    needs="fit_length",
    cases={"none": Exact(Fit(0, 0), []), "one": Exact(Fit(1, 1), [0]), "several": Exact(Fit(3, 3), [0, 1, 2])},
)
def test_as_many_rows_as_wanted_stay_as_they_are(engine: Engine, case: Exact) -> None:
    """As many rows as wanted MUST be returned unchanged, none of none included."""
    _kept(engine, case)


def _kept(engine: Engine, case: Exact) -> None:
    observed = engine.fit_length(_rows(range(case.given.there)), case.given.wanted)
    equal(observed, _rows(case.expected), "the rows", where="row {}".format)


def _refused(engine: Engine, case: Exact) -> None:
    there, wanted = case.given
    refuses(lambda: engine.fit_length(_rows(range(there)), wanted), f"{there} rows where {wanted} are wanted")


SURPLUS = {"keep last": _kept, "reject": _refused}


@requirement(
    "MERGING-11",
    needs="fit_length",
    cases={"one": Exact(Fit(4, 3), [1, 2, 3]), "most": Exact(Fit(5, 1), [4]), "all": Exact(Fit(3, 0), [])},
    bugs=("L11",),
)
def test_surplus_rows_are_refused_or_the_last_ones_stay(engine: Engine, case: Exact) -> None:
    """Of more rows than wanted the last ones MUST stay, none when none are wanted, or they are refused by trait.

    What comes first in an embedding belongs to chunks that were computed before.
    """
    SURPLUS[engine.traits.surplus_rows](engine, case)


@requirement(
    "MERGING-12",
    needs="fit_length",
    cases={"one": Exact(Fit(3, 4), None), "most": Exact(Fit(1, 5), None), "all": Exact(Fit(0, 3), None)},
    bugs=("L01", "L02", "L03", "audio-short-tail-zero-embeds"),
)
def test_missing_rows_are_refused(engine: Engine, case: Exact) -> None:
    """Fewer rows than wanted MUST be refused: nothing can stand in for the missing ones."""
    _refused(engine, case)


def _rows(numbers: Sequence[int]) -> torch.Tensor:
    """Rows that tell their number."""
    return torch.tensor([[float(number)] * HIDDEN for number in numbers]).reshape(-1, HIDDEN)
