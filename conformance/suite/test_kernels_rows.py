"""KERNELS: rows that kernels move into what enters the language model."""

from conformance.cases import Pair
from conformance.compare import equal, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import kernels as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite import kernels_cases as cases
from conformance.suite.kernels_cases import Merge, Scatter, merge, scatter
from reference.items import Chunk


@requirement(
    "KERNELS-12",
    needs="scatter_rows",
    cases={
        "some": scatter("..##.#."),
        "none": scatter("...."),
        "all": scatter("###"),
        "first-and-last": scatter("#..#"),
        "no-positions": scatter(""),
        "no-columns": scatter(".#.", width=0),
        "edges-of-a-tile": scatter("#......##......##" + "." * 14 + "###", width=130),
        "one-column-more": scatter(".#" * 5, width=129),
        "rows-of-32-kib": scatter("..###.##", width=8192),
        "rows-of-32-kib-first": scatter("##..#", width=8192),
        **{name: scatter(".#.##", dtype=dtype) for name, dtype in cases.DTYPES.items()},
    },
)
def test_rows_go_where_the_mask_is(engine: Engine, case: Scatter) -> None:
    """The k-th True of the mask MUST get the k-th row, bit by bit, and every other position MUST stay as it was."""
    equal(engine.scatter_rows(*case), oracle.scattered(*case), "the scattered rows")


@requirement(
    "KERNELS-13",
    needs="scatter_rows",
    cases={
        "transposed": scatter(".##.")._replace(destination=cases.numbers(3, 4).T),
        "every-second-row": scatter(".##.")._replace(rows=cases.numbers(4, 3)[::2]),
        "a-part-of-wider-rows": scatter(".##.")._replace(rows=cases.numbers(2, 9)[:, 4:7]),
        "one-row-for-all": scatter(".##.")._replace(rows=cases.numbers(1, 3).expand(2, 3)),
    },
)
def test_rows_may_lie_anyhow(engine: Engine, case: Scatter) -> None:
    """Rows and destination MUST be read as the values that they hold, however they lie in memory."""
    equal(engine.scatter_rows(*case), oracle.scattered(*case), "the scattered rows")


@requirement(
    "KERNELS-14",
    needs="scatter_rows",
    cases={
        "one-too-few": scatter(".##.")._replace(rows=cases.numbers(1, 3)),
        "none": scatter(".###")._replace(rows=cases.numbers(0, 3)),
        "one-for-all": scatter(".###")._replace(rows=cases.numbers(1, 3)),
        "one-too-many": scatter(".##.")._replace(rows=cases.numbers(3, 3)),
        "for-no-position": scatter("....")._replace(rows=cases.numbers(1, 3)),
        "wider": scatter(".##.")._replace(rows=cases.numbers(2, 4)),
        "one-column": scatter(".##.")._replace(rows=cases.numbers(2, 1)),
        "a-shorter-mask": scatter(".##.")._replace(destination=cases.numbers(5, 3)),
    },
    bugs=("L01", "L02", "L03"),
)
def test_rows_that_do_not_fit_are_refused(engine: Engine, case: Scatter) -> None:
    """Another number or width of rows than the mask and the destination want MUST be refused."""
    refuses(lambda: engine.scatter_rows(*case), "rows that do not fit")


@requirement("KERNELS-15", needs="scatter_rows", cases={"some": scatter(".##."), "all": scatter("##")})
def test_scattering_does_not_touch_its_arguments(engine: Engine, case: Scatter) -> None:
    """Scattering MUST make a new tensor, and leave the destination and the rows as they were."""
    before = [one.clone() for one in case]
    engine.scatter_rows(*case)
    equal(case.destination, before[0], "the destination afterwards")
    equal(case.rows, before[2], "the rows afterwards")


@requirement("KERNELS-16", needs="fused_merge", cases=cases.MERGES, bugs=("Q01", "Q02", "merge-by-token-id-generated-pad"))
def test_a_fused_merge_is_a_merge(engine: Engine, case: Merge) -> None:
    """A fused merge MUST give each media position the next row, and each text position the embedding of its id."""
    equal(engine.fused_merge(*case)[0], oracle.merged(*case)[0], "the merged chunk")


@requirement(
    "KERNELS-17",
    needs="fused_merge",
    cases={
        "none": merge([(1, 3)], Chunk(0, 6)),
        "one": merge([(1, 3)], Chunk(0, 6), levels=1),
        "three": merge([(1, 3), (5, 5)], Chunk(2, 6), levels=3),
        "text-only": merge([], Chunk(0, 4), levels=0),
        "edges-of-a-tile": merge([(7, 8), (15, 16)], Chunk(0, 18), width=129, levels=2),
    },
)
def test_deeper_layers_get_their_columns_and_zeros_at_text(engine: Engine, case: Merge) -> None:
    """Each level MUST hold its own columns of the rows at positions of media, and zeros at text."""
    by_position = [levels.transpose(0, 1) for levels in (engine.fused_merge(*case)[1], oracle.merged(*case)[1])]
    equal(by_position[0], by_position[1], "the levels")


@requirement(
    "KERNELS-18",
    needs="fused_merge",
    cases={
        "first-beyond": merge([(1, 1)], Chunk(0, 3), ids=[50, 0, 49]),
        "negative": merge([(1, 1)], Chunk(0, 3), ids=[-1, 0, -50]),
        "a-sentinel-in-text": merge([(1, 1)], Chunk(0, 3), ids=[cases.FAR, 0, 2**32]),
        "extremes": merge([], Chunk(0, 2), ids=[-(2**63), 2**63 - 1]),
    },
    bugs=("P03", "P04"),
)
def test_an_id_outside_of_the_table_reads_nothing_else(engine: Engine, case: Merge) -> None:
    """An id outside of the table at a text position MUST be clamped into it or refused; nothing else may be read.

    On a GPU it would be an address outside of the table: another tensor's numbers, or the end of the engine.
    """
    for observed, _ in unless_refused(lambda: engine.fused_merge(*case), "an id outside of the table"):
        equal(observed, oracle.merged(*case)[0], "the merged chunk")


SOME = merge([(1, 3)], Chunk(0, 6))


@requirement(
    "KERNELS-19",
    needs="fused_merge",
    cases={
        "one-too-few": SOME._replace(rows=cases.numbers(2, 3)),
        "none": SOME._replace(rows=cases.numbers(0, 3)),
        "one-for-all": SOME._replace(rows=cases.numbers(1, 3)),
        "one-too-many": SOME._replace(rows=cases.numbers(4, 3)),
        "of-the-whole-picture-for-a-chunk": merge([(1, 9)], Chunk(4, 3))._replace(rows=cases.numbers(9, 3)),
        "a-column-more": SOME._replace(rows=cases.numbers(3, 4)),
        "one-column": SOME._replace(rows=cases.numbers(3, 1)),
        "no-column": SOME._replace(rows=cases.numbers(3, 0)),
        "overlapping-spans": SOME._replace(spans=SOME.spans * 2),
        "overlapping-spans-of-as-many-rows": SOME._replace(spans=SOME.spans * 2, rows=cases.numbers(6, 3)),
        "one-id-too-few": SOME._replace(input_ids=SOME.input_ids[:5]),
    },
    bugs=("L01", "L02", "L03"),
)
def test_what_cannot_be_merged_is_refused(engine: Engine, case: Merge) -> None:
    """Another number or width of rows, other spans and other ids than the chunk can have MUST be refused."""
    refuses(lambda: engine.fused_merge(*case), "what cannot be merged")


@requirement(
    "KERNELS-20", needs="fused_merge", cases={name: cases.MERGES[name] for name in ("text-only", "some", "within-a-span")}
)
def test_a_fused_merge_does_not_touch_its_arguments(engine: Engine, case: Merge) -> None:
    """A fused merge MUST leave the ids, the rows and the table as they were.

    Whoever clamps the ids where they lie, for the gathering, has lost the sentinels that the prefix cache reads.
    """
    before = case._replace(input_ids=case.input_ids.clone(), rows=case.rows.clone(), table=case.table.clone())
    engine.fused_merge(*case)
    equal(case.input_ids, before.input_ids, "the ids afterwards")
    equal(case.rows, before.rows, "the rows afterwards")
    equal(case.table, before.table, "the table afterwards")


@requirement(
    "KERNELS-22",
    needs=("scatter_rows", "fused_merge"),
    level=SHOULD,
    cases={"some": Pair(scatter(".##."), SOME)},
    bugs=("H20",),
)
def test_rows_are_moved_where_they_lie(engine: Engine, case: Pair) -> None:
    """Rows SHOULD be moved on the device where they lie, whatever device is the default one."""
    with cases.elsewhere():
        scattered, (merged, _) = engine.scatter_rows(*case.first), engine.fused_merge(*case.second)
    equal(scattered, oracle.scattered(*case.first), "the scattered rows")
    equal(merged, oracle.merged(*case.second)[0], "the merged chunk")
