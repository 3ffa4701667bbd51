"""Ranks of the reference: messages, what is refused, Gloo behind the same collectives, and the rendezvous of the suite."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.oracles.parallel import best_peak, greedy_peak
from conformance.protocol.parallel import LoneRank
from conformance.world.doubles import encoded, image
from conformance.world.ranks import Devices, Member, RanksParted, Rendezvous
from reference.parallel.collectives import pack, unpack
from reference.parallel.encoder_ranks import assign_items, encode_on_rank
from reference.parallel.launching import Layout, launch_plan
from reference.parallel.ranks import Rank
from reference.parallel.routing import KNOWN_KEYS, Load, Routed, Router

TENSORS = (
    torch.arange(6, dtype=torch.bfloat16).reshape(2, 3),
    torch.tensor([float("nan"), -0.0, 1e-45]),
    torch.zeros(0, 7),
    torch.tensor(5),
    torch.tensor([True, False]),
    torch.arange(12, dtype=torch.int64).reshape(3, 4).T,
)


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda tensor: f"{tensor.dtype}-{list(tensor.shape)}")
def test_a_tensor_comes_out_as_it_was(tensor: torch.Tensor) -> None:
    header, (first, second) = unpack(pack({"a": [1, None]}, [tensor, tensor]))
    assert header == {"a": [1, None]}
    for one in (first, second):
        assert (one.dtype, one.shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(one.reshape(-1).view(torch.uint8), tensor.contiguous().reshape(-1).view(torch.uint8))


def test_a_message_is_in_memory_of_its_own() -> None:
    data = pack(None, [torch.zeros(3)])
    _, (first,) = unpack(data)
    first += 1
    assert unpack(data)[1][0].tolist() == [0, 0, 0]


def test_a_message_holds_no_objects() -> None:
    with pytest.raises(TypeError):
        pack(object())


def test_groups_that_do_not_come_out_even_are_refused() -> None:
    with pytest.raises(ValueError, match="1 ranks do not fall into 2 groups"):
        Rank(LoneRank(), 2)


def test_a_split_group_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="tp = 2 would be cut by nodes with 3 processes each"):
        launch_plan(Layout(tp=2, pp=3, nodes=2))


@pytest.mark.parametrize("sizes", [[], [0, 0], [3, 3, 2, 2, 2], [5, 5, 4, 4, 3, 3, 3]])
def test_the_oracle_of_shares_is_at_least_as_good_as_greed(sizes: list[int]) -> None:
    shares = assign_items(sizes, 3)
    peak = max(sum(sizes[n] for n in share) for share in shares)
    assert best_peak(sizes, 3) <= peak == greedy_peak(sizes, 3)


def test_rows_that_do_not_fit_fail_their_item() -> None:
    items = [image(0, (0, 1)), image(1, (2, 4)), image(2, (5, 6))]
    odd = {0: encoded(items[0]), 1: torch.zeros(2, 5), 2: torch.zeros(2, 7)}
    first, short, wide = encode_on_rank(items, lambda item: odd[int(item.feature.item())], LoneRank())
    assert torch.equal(first, odd[0])  # type: ignore[arg-type]
    assert "3 positions, but its rows are [2, 5]" in str(short)
    assert isinstance(wide, ValueError)


def test_the_heap_of_a_router_stays_small() -> None:
    router = Router("total tokens", 4)
    received = [0] * 4
    for number in range(10_000):
        received[router.route(Routed((), 1))] += 1
        router.report(number % 4, Load(0, 0, received[number % 4]), number)
    assert len(router._heap) <= 8 * 4 + 1


def test_the_memory_of_a_router_stays_small() -> None:
    router = Router("prefix", 1)
    for number in range(2 * KNOWN_KEYS):
        router.route(Routed((number,), 1))
    assert len(router._holders) == KNOWN_KEYS


def test_a_report_of_another_life_is_no_news() -> None:
    router = Router("total requests", 2)
    router.route(Routed((), 1, rank=0))
    assert router.report(0, Load(1, 1, 1), 5)
    router.mark_dead(0)
    assert not router.report(0, Load(9, 9, 1), 6)
    router.mark_alive(0)
    assert not router.report(0, Load(9, 9, 1), 7)
    assert not router.report(0, Load(9, 9, 0), 5)
    assert router.report(0, Load(0, 0, 0), 8)


# the suite's own rendezvous


def parted(size: int, *scripts: Any) -> str:
    """What the ranks are told when each runs its script."""
    world = Rendezvous(size)
    ended = world.run(lambda member: scripts[member.rank](member))
    assert all(isinstance(one, RanksParted) for one in ended if isinstance(one, BaseException))
    return world.parted


def test_ranks_that_enter_different_collectives_are_told() -> None:
    told = parted(2, lambda member: member.barrier(), lambda member: member.broadcast(b"", 0))
    assert told == "the ranks have parted: rank 0 waits in barrier, rank 1 waits in broadcast from 0"


def test_ranks_that_name_different_sources_are_told() -> None:
    assert "broadcast from 1" in parted(2, lambda member: member.broadcast(b"", 0), lambda member: member.broadcast(b"", 1))


def test_a_rank_that_waits_for_one_that_has_returned_is_told() -> None:
    told = parted(3, lambda member: None, lambda member: member.barrier(), lambda member: member.barrier())
    assert told == "the ranks have parted: rank 0 has returned, rank 1 waits in barrier, rank 2 waits in barrier"


def test_tensors_of_different_shapes_part_the_ranks() -> None:
    told = parted(2, *[lambda member: member.all_gather_tensor(torch.zeros(member.rank + 1, 2))] * 2)
    assert "rank 0 waits in all_gather_tensor of float32 [1, 2]" in told


def test_ranks_meet() -> None:
    def script(member: Member) -> list[Any]:
        half = member.split(member.rank % 2)
        gathered = half.all_gather(bytes([member.rank]))
        half.barrier()
        return [half.rank, half.size, gathered, member.broadcast(b"x" * member.rank, 2)]

    world = Rendezvous(4)
    assert world.run(script) == [
        [0, 2, [b"\0", b"\2"], b"xx"], [0, 2, [b"\1", b"\3"], b"xx"],
        [1, 2, [b"\0", b"\2"], b"xx"], [1, 2, [b"\1", b"\3"], b"xx"],
    ]  # fmt: skip
    assert not world.parted


def test_devices_count_what_is_held() -> None:
    devices = Devices(2)
    held = devices.copy(0, torch.zeros(4), 1)
    devices.copy(0, torch.zeros(8), 1)
    assert devices.put == [[0, 48], [0, 0]]
    assert devices.alive_bytes(1, 16) == held.nbytes


# the same rank function on real processes

PROCESS = """
import sys, warnings, torch, torch.distributed as dist
from conformance.world.doubles import encoded, image, request
from reference.parallel.collectives import Gloo
from reference.parallel.encoder_ranks import encode_on_rank
from reference.parallel.ranks import Rank
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
world = Gloo()
items = [image(0, (0, 2)), image(1, (3, 3)), image(2, (4, 8))]
rows = encode_on_rank(items, encoded, world)
assert all(torch.equal(one, encoded(item)) for one, item in zip(rows, items))
assert [len(one) for one in encode_on_rank(items[:1], encoded, world)] == [3]
assert encode_on_rank([], encoded, world) == []
def upload(tensor, device):
    if device == 1 and tensor[0, 1] == 2:
        raise OSError("no room")
    return tensor
prompts = [request("a", 12, *items[:2]), request("b", 12, items[2])]
answers = Rank(world).step(prompts if rank == 0 else [], lambda item: encoded(item).to(torch.bfloat16), upload)
assert answers["a"].media[0].dtype == torch.bfloat16 and len(answers["a"].input_ids) == 12
assert str(answers["b"]) == "rank 1: OSError: no room"
alone = Rank(world, 2).step([prompts[rank]], encoded, lambda tensor, device: tensor)
assert list(alone) == ["ab"[rank]], alone
assert world.all_gather(b"x" * (3 * rank)) == [b"", b"xxx"]
assert world.broadcast(b"" if rank else b"from one", 0) == b"from one"
world.barrier()
dist.destroy_process_group()
print("done", flush=True)
"""


def test_the_same_ranks_run_on_gloo(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROCESS]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120) for process in ranks]
    assert [out for out, _ in said] == ["done\n", "done\n"], said
