"""PARALLEL: where each process runs, what all ranks agree on, and which of them a request goes to.

This module holds what ranks do together. Each rank runs on a thread, and collectives meet for certain: when ranks enter
different ones, or one has returned while another waits, all of them are told.
"""

from collections.abc import Mapping

import torch

from conformance.cases import Exact
from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles.parallel import best_peak
from conformance.protocol.parallel import RankInput
from conformance.requirement import SHOULD, requirement
from conformance.suite import parallel_cases as cases
from conformance.suite.parallel_bench import Bench, Sharing, agreed, built, shared, together
from conformance.suite.parallel_cases import Arrivals, Shares

RANK = ("open_rank", "open_rank.step")


def media_of(answers: Mapping[str, RankInput | Exception]) -> list[torch.Tensor]:
    """The media of all requests that were taken in."""
    return [tensor for one in answers.values() if not isinstance(one, Exception) for tensor in one.media]


@requirement("PARALLEL-11", needs=RANK, cases=cases.ARRIVALS)
def test_all_ranks_have_the_same(engine: Engine, case: Arrivals) -> None:
    """Every rank MUST have the ids of each request, and each of its media bit for bit as it was built."""
    agreed(Bench(engine, case))


@requirement("PARALLEL-12", needs=RANK, cases=cases.NOTHING, bugs=("X01",))
def test_nothing_is_said_together_too(engine: Engine, case: Arrivals) -> None:
    """Every rank MUST enter the same collectives in each step, be there media, text alone, or no request at all."""
    agreed(Bench(engine, case))


@requirement("PARALLEL-13", needs=RANK, cases=cases.BUILD_FAULTS, bugs=("X01", "L01"))
def test_what_cannot_be_built_fails_everywhere(engine: Engine, case: Arrivals) -> None:
    """A medium that cannot be built MUST fail its requests, with the same error on every rank, and no others."""
    agreed(Bench(engine, case))


@requirement("PARALLEL-14", needs=RANK, cases=cases.RANK_FAULTS, bugs=("X02", "L02"))
def test_what_fails_on_one_rank_fails_everywhere(engine: Engine, case: Arrivals) -> None:
    """What fails on one rank alone MUST fail that request, with the same error on every rank, and no others."""
    agreed(Bench(engine, case))


@requirement("PARALLEL-15", needs=RANK, cases=cases.RANK_FAULTS | cases.BUILD_FAULTS, bugs=("X02",))
def test_who_fails_leaves_nothing_behind(engine: Engine, case: Arrivals) -> None:
    """Of a request that failed, nothing MUST stay on any device."""
    bench = Bench(engine, case)
    together(bench)
    for rank, steps in enumerate(bench.answers):
        held = sum(one.nbytes for step in steps for one in media_of(step))
        holds(bench.devices.alive_bytes(rank, held) <= held, f"device {rank} holds more than the {held} bytes of its requests")


@requirement("PARALLEL-16", needs=RANK, cases=cases.HOLLOW, bugs=("G09",))
def test_what_is_malformed_ends_at_the_entrance(engine: Engine, case: Arrivals) -> None:
    """A request with an item without content MUST fail on every rank, and no rank MUST be asked to build that item."""
    bench = Bench(engine, case)
    agreed(bench)
    equal(bench.hollow, [], "the ranks that were to build of nothing")


@requirement("PARALLEL-17", needs=RANK, cases=cases.GROUPED, bugs=("Y03",))
def test_a_group_has_its_own_requests(engine: Engine, case: Arrivals) -> None:
    """With attention by groups, every rank of a group MUST have what comes to that group, and nothing else."""
    agreed(Bench(engine, case))


@requirement("PARALLEL-18", needs=RANK, cases=cases.SOUND, bugs=("T05", "I02", "cuda-ipc-rank0-duplication", "Y03"))
def test_a_rank_uses_its_own_device(engine: Engine, case: Arrivals) -> None:
    """A rank MUST put the media of its group's requests on its own device, once, and nothing on any other."""
    bench = Bench(engine, case)
    agreed(bench)
    for rank, (put, steps) in enumerate(zip(bench.devices.put, bench.answers, strict=True)):
        needed = sum(tensor.nbytes for step in steps for tensor in media_of(step))
        expected = [needed if device == rank else 0 for device in range(case.ranks)]
        equal(put, expected, f"the bytes that rank {rank} put on the devices", where="device {}".format)


@requirement("PARALLEL-19", level=SHOULD, needs=RANK, cases=cases.SOUND)
def test_media_are_built_as_often_as_said(engine: Engine, case: Arrivals) -> None:
    """A medium of a request SHOULD be built once for its group, or once on each of its ranks, as the engine says."""
    bench = Bench(engine, case)
    size = case.ranks // case.groups
    times = {"once": 1, "every rank": size}[engine.traits.media_built]
    asked = [len(one.items) for step in range(len(case.steps)) for g in range(case.groups) for one in bench.requests(step, g)]
    equal(len(bench.builds), times * sum(asked), "how often media were built")


@requirement(
    "PARALLEL-20", level=SHOULD, needs=RANK, cases={"one-group-of-four": 1, "two-groups": 2, "a-rank-each": 4}, bugs=("Y03",)
)
def test_nobody_is_sent_what_others_need(engine: Engine, case: int) -> None:
    """What comes to a group SHOULD NOT be sent to ranks of other groups, and not twice to those of its own."""
    bench = Bench(engine, Arrivals(4, ((("j" * 100,) * 20, *[()] * (case - 1)),), groups=case))
    together(bench)
    once = sum(built(one.items[0]).nbytes + one.input_ids.nbytes for one in bench.requests(0, 0))
    limits = [3 * once // 2 * (rank > 0 and bench.group(rank) == 0) for rank in range(4)]
    over = [rank for rank in range(4) if bench.world.received[rank] > limits[rank] + 4096]
    equal(over, [], f"the ranks that were sent too much ({bench.world.received} bytes, of which 4096 are free)")


@requirement("PARALLEL-21", needs="assign_items", cases=cases.SHARES | cases.FEW)
def test_every_item_has_one_rank(engine: Engine, case: Shares) -> None:
    """Every item MUST be assigned to exactly one rank, the same whenever it is asked, with ranks left empty if need be."""
    first = engine.assign_items(list(case.sizes), case.ranks)
    equal(len(first), case.ranks, "the number of ranks")
    equal(sorted(number for share in first for number in share), list(range(len(case.sizes))), "the items that have a rank")
    equal(engine.assign_items(list(case.sizes), case.ranks), first, "the assignment when it is asked again")


@requirement("PARALLEL-22", level=SHOULD, needs="assign_items", cases=cases.TIGHT | cases.FEW)
def test_shares_are_balanced(engine: Engine, case: Shares) -> None:
    """The largest share SHOULD NOT be more than 4/3 - 1/(3 ranks) of what it is in the best assignment."""
    shares = engine.assign_items(list(case.sizes), case.ranks)
    most, best = max(sum(case.sizes[n] for n in share) for share in shares), best_peak(case.sizes, case.ranks)
    holds(
        3 * case.ranks * most <= (4 * case.ranks - 1) * best, f"the largest share is {most}, and {best} is possible: {shares}"
    )


@requirement("PARALLEL-23", needs="encode_on_rank", cases=cases.SHARES)
def test_shared_work_is_the_same_work(engine: Engine, case: Shares) -> None:
    """Every rank MUST have the rows of all items in order, as the encoder gives them for each, whatever the number of ranks."""
    shared(Sharing(engine, case))


@requirement("PARALLEL-24", needs="encode_on_rank", cases=cases.FEW, bugs=("Y04",))
def test_who_has_no_item_is_there_too(engine: Engine, case: Shares) -> None:
    """A rank without an item MUST enter the same collectives as all others, and have the same rows."""
    shared(Sharing(engine, case))


@requirement("PARALLEL-25", level=SHOULD, needs="encode_on_rank", cases=cases.SHARES | cases.FEW)
def test_an_item_is_encoded_once(engine: Engine, case: Shares) -> None:
    """Every item that has positions SHOULD be encoded by one rank, once, and by no other."""
    sharing = Sharing(engine, case)
    encoded = sorted(number for _, number in sharing.encoded if case.sizes[number])
    equal(encoded, [number for number, size in enumerate(case.sizes) if size], "the items as often as they were encoded")


@requirement("PARALLEL-26", needs="encode_on_rank", cases=cases.FAILING, bugs=("X02", "G01"))
def test_an_encoder_fails_for_one_item(engine: Engine, case: Shares) -> None:
    """An item whose encoder raised on its rank MUST have the same error on every rank, and all others MUST have their rows."""
    shared(Sharing(engine, case))


@requirement("PARALLEL-51", level=SHOULD, needs="assign_items", cases=cases.GREEDY)
def test_shares_are_as_small_as_greed_makes_them(engine: Engine, case: Exact) -> None:
    """The largest share SHOULD NOT be larger than where the largest item that is left goes to the rank with least."""
    ranks, sizes, _ = case.given
    most = max(sum(sizes[n] for n in share) for share in engine.assign_items(list(sizes), ranks))
    holds(most <= case.expected, f"the largest share is {most}, and {case.expected} is simple")
