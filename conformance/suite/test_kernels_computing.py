"""KERNELS: numbers that kernels compute: heads that are turned, tokens that are compared."""

import torch

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses, same
from conformance.engine import Engine
from conformance.oracles import kernels_computing as oracle
from conformance.oracles.kernels_computing import Film, Heads
from conformance.requirement import SHOULD, requirement
from conformance.suite import kernels_computing_cases as cases
from conformance.suite.kernels_cases import elsewhere

QUERY, KEY, UNLIKE = "the queries, turned", "the keys, turned", "the dissimilarity"


@requirement(
    "KERNELS-25",
    needs="apply_mrope",
    cases=cases.ROTATIONS,
    family=lambda case: case.form,
    bugs=("qwen3-interleaved-vs-blocked", "D02"),
)
def test_each_pair_is_turned_by_its_frequency_and_its_axis(engine: Engine, case: Heads) -> None:
    """Each pair of a head MUST be turned by the angle of its frequency at its token's position on the axis of this frequency.

    And nothing else may be. The numbers are such that no product and no sum is rounded, in whatever order they are computed.
    """
    for observed, expected, what in zip(engine.apply_mrope(*case), oracle.rotated(case), (QUERY, KEY), strict=True):
        equal(observed, expected, what)


@requirement("KERNELS-26", needs="apply_mrope", cases=cases.ROUGH, family=lambda case: case.form)
def test_what_is_turned_is_rounded_three_times_at_most(engine: Engine, case: Heads) -> None:
    """A number MUST NOT be further from the exact one than rounding the angle, the products and their sum once can take it."""
    for observed, given, what in zip(engine.apply_mrope(*case), (case.query, case.key), (QUERY, KEY), strict=True):
        same((observed.dtype, observed.shape), (given.dtype, given.shape), f"dtype and shape of {what}")
        equal(oracle.too_far(observed, given, case), [], what)


@requirement(
    "KERNELS-27",
    needs="apply_mrope",
    cases={name: cases.turned(one) for name, one in cases.ROUGH.items()},
    level=SHOULD,
    family=lambda case: case.given.form,
)
def test_what_is_turned_is_rounded_as_the_owner_does(engine: Engine, case: Exact) -> None:
    """Angle, products and sum SHOULD each be rounded to the dtype of the heads, as in the model owner's code: the bits are its.

    A fused multiplication rounds once less, and differs from GPU to GPU.
    """
    for observed, expected, what in zip(engine.apply_mrope(*case.given), case.expected, (QUERY, KEY), strict=True):
        equal(observed, expected, what)


@requirement(
    "KERNELS-28",
    needs="apply_mrope",
    cases=cases.LAYOUTS,
    family=lambda case: case.form,
    bugs=("llamacpp-batch-view-mrope", "mlx-mrope-chunk-offset-delta"),
)
def test_heads_and_positions_may_lie_anyhow(engine: Engine, case: Heads) -> None:
    """Heads, positions and the table MUST be read as the values that they hold, however they lie in memory."""
    for observed, expected, what in zip(engine.apply_mrope(*case), oracle.rotated(case), (QUERY, KEY), strict=True):
        equal(observed, expected, what)


@requirement("KERNELS-29", needs="apply_mrope", cases=cases.MISFITS, family=lambda case: case.form)
def test_what_cannot_be_turned_is_refused(engine: Engine, case: Heads) -> None:
    """Positions, sections, heads and a table that do not fit together MUST be refused."""
    refuses(lambda: engine.apply_mrope(*case), "what cannot be turned")


@requirement("KERNELS-30", needs="apply_mrope.table", cases=cases.OUTSIDE)
def test_a_position_outside_of_the_table_is_refused(engine: Engine, case: Heads) -> None:
    """A position below 0, or as large as the table or larger, MUST be refused: no other row may be taken for its own.

    A negative index counts from the end of a table, and a kernel reads what lies before or behind it.
    """
    refuses(lambda: engine.apply_mrope(*case), "a position outside of the table")


@requirement(
    "KERNELS-31",
    needs="apply_mrope",
    level=SHOULD,
    cases={"picture": cases.PLAIN, "a-part-of-a-head": cases.ROTATIONS["part-contiguous-halves"]},
    family=lambda case: case.form,
    bugs=("H20",),
)
def test_heads_are_turned_where_they_lie(engine: Engine, case: Heads) -> None:
    """Heads SHOULD be turned on the device where they lie, whatever device is the default one."""
    with elsewhere():
        observed = engine.apply_mrope(*case)
    equal(observed[0], oracle.rotated(case)[0], QUERY)
    equal(observed[1], oracle.rotated(case)[1], KEY)


@requirement("KERNELS-42", needs="apply_mrope", cases=cases.NOTHING, family=lambda case: case.form)
def test_no_positions_have_no_heads_to_turn(engine: Engine, case: Heads) -> None:
    """A batch without positions, as an idle rank has, MUST be answered with no heads, of the shapes and the dtype given."""
    for observed, given, what in zip(engine.apply_mrope(*case), (case.query, case.key), (QUERY, KEY), strict=True):
        equal(observed, given, what)


@requirement("KERNELS-32", needs="dissimilarity", cases=cases.FILMS)
def test_a_token_is_compared_with_its_place_in_the_frame_before(engine: Engine, case: Film) -> None:
    """The dissimilarity MUST be 1 - cosine of a token and the one at its place in the previous frame, one number a token.

    The tokens are such that their cosines are exact.
    """
    observed = engine.dissimilarity(*case)
    same(len(observed), len(case.embeddings), "the numbers of tokens and of dissimilarities")
    later = observed[case.grid[1] * case.grid[2] :].to(torch.float64)
    equal(later, torch.tensor([float(one) for one in oracle.unlike(case)], dtype=torch.float64), UNLIKE)


@requirement("KERNELS-33", needs="dissimilarity", cases=cases.ROUGH_FILMS)
def test_tokens_are_compared_in_32_bits_at_least(engine: Engine, case: Film) -> None:
    """The dissimilarity MUST NOT be further from the exact one than arithmetic of 32 bits, in any order, can take it.

    Frames of a quiet video differ by less than half precision can tell.
    """
    observed = engine.dissimilarity(*case)[case.grid[1] * case.grid[2] :]
    most = oracle.likeness_bound(case, observed.dtype)
    found = zip(observed.tolist(), oracle.unlike(case), strict=True)
    equal([f"{value}, not {float(right)}" for value, right in found if not abs(value - right) <= most], [], UNLIKE)


@requirement("KERNELS-34", needs="dissimilarity", cases=cases.FILMS | cases.EMPTY_FILMS)
def test_a_token_of_the_first_frame_is_the_most_unlike(engine: Engine, case: Film) -> None:
    """A token of the first frame MUST have a number above 2, more than any cosine can give: it is like nothing before it."""
    observed = engine.dissimilarity(*case)[: case.grid[1] * case.grid[2]]
    holds(bool((observed > 2).all()), f"the first frame has {observed.tolist()}, and not numbers above 2")


@requirement("KERNELS-35", needs="dissimilarity", cases=cases.EMPTY_FILMS)
def test_a_token_of_zeros_is_like_nothing(engine: Engine, case: Film) -> None:
    """A token of zeros, or one with zeros before it, MUST have the dissimilarity 1: it has no direction, and is no NaN."""
    observed = engine.dissimilarity(*case)[case.grid[1] * case.grid[2] :].to(torch.float64)
    equal(observed, torch.tensor([float(one) for one in oracle.unlike(case)], dtype=torch.float64), UNLIKE)


@requirement("KERNELS-36", needs="dissimilarity", level=SHOULD, cases=cases.COPIES)
def test_a_copy_is_no_different(engine: Engine, case: Film) -> None:
    """A token that equals its predecessor SHOULD have the dissimilarity 0: else rounding ranks what did not move."""
    observed = engine.dissimilarity(*case)[case.grid[1] * case.grid[2] :].to(torch.float64)
    equal(observed, torch.zeros(len(observed), dtype=torch.float64), UNLIKE)


@requirement(
    "KERNELS-37",
    needs="dissimilarity",
    level=SHOULD,
    cases={name: cases.compared(one) for name, one in cases.ROUGH_FILMS.items()},
)
def test_the_dissimilarity_has_the_stated_bits(engine: Engine, case: Exact) -> None:
    """Tokens SHOULD be compared in 64 bits and the stated order, so that a mask is the same wherever it is made."""
    first = case.given.grid[1] * case.given.grid[2]
    equal(engine.dissimilarity(*case.given)[first:], case.expected[first:], UNLIKE)


@requirement("KERNELS-38", needs="dissimilarity", cases=cases.APART)
def test_tokens_may_lie_anyhow(engine: Engine, case: Film) -> None:
    """Tokens MUST be read as the values that they hold, however they lie in memory."""
    dense = case._replace(embeddings=case.embeddings.clone(memory_format=torch.contiguous_format))
    equal(engine.dissimilarity(*case), engine.dissimilarity(*dense), UNLIKE)


@requirement("KERNELS-39", needs="dissimilarity", cases=cases.MISSHAPEN)
def test_tokens_that_are_not_of_the_grid_are_refused(engine: Engine, case: Film) -> None:
    """Another number of tokens than the grid has MUST be refused."""
    refuses(lambda: engine.dissimilarity(*case), "tokens that are not of the grid")


@requirement("KERNELS-40", needs="dissimilarity", level=SHOULD, cases={"some": cases.FILMS["rows"]}, bugs=("H20",))
def test_tokens_are_compared_where_they_lie(engine: Engine, case: Film) -> None:
    """Tokens SHOULD be compared on the device where they lie, whatever device is the default one."""
    with elsewhere():
        observed = engine.dissimilarity(*case)
    equal(observed, engine.dissimilarity(*case), UNLIKE)


@requirement("KERNELS-41", needs="dissimilarity", level=SHOULD, cases=cases.LARGE)
def test_tokens_of_any_length_are_compared(engine: Engine, case: Film) -> None:
    """Tokens of any finite numbers SHOULD be compared by their angle: no square may be too large, or vanish."""
    observed = engine.dissimilarity(*case)[case.grid[1] * case.grid[2] :]
    most = oracle.likeness_bound(case, observed.dtype)
    found = zip(observed.tolist(), oracle.unlike(case), strict=True)
    equal([f"{value}, not {float(right)}" for value, right in found if not abs(value - right) <= most], [], UNLIKE)
