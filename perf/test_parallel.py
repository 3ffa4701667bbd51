"""What many ranks cost: a plan of 1,024 processes, 256 media for 8 encoder ranks, and routes among 1,000 ranks."""

from itertools import count, cycle

import numpy as np
import torch

from conformance.engine import Engine
from conformance.protocol.parallel import Layout, Load, LoneRank, Routed
from conformance.protocol.prefix_cache import Namespace
from conformance.world.doubles import image, request
from perf.counters import tallied
from perf.sized import Job, sized

RANKS = 1_000
LONG = request("long", 32_768, *[image(n, (n * 512 + 1, n * 512 + 256)) for n in range(64)])


@sized("launch_plan")
def test_plan_a_thousand_processes(engine: Engine) -> Job:
    layout = Layout(tp=8, pp=4, dp=32, nodes=128)
    return lambda: engine.launch_plan(layout)


@sized("assign_items")
def test_assign_256_items(engine: Engine) -> Job:
    sizes = [int(size) for size in np.random.default_rng(1).integers(64, 16_384, 256)]
    return lambda: engine.assign_items(sizes, 8)


@sized("encode_on_rank")
def test_encode_alone(engine: Engine) -> Job:
    """64 items of 256 rows: what the sharing itself costs."""
    rows = {n: torch.zeros(256, 64) for n in range(64)}
    return lambda: engine.encode_on_rank(LONG.items, tallied(lambda item: rows[int(item.feature.item())]), LoneRank())


@sized("open_rank", "open_rank.step")
def test_take_in_64_pictures(engine: Engine) -> Job:
    """A prompt of 32,768 positions and 64 pictures of 256 KiB each, on one rank."""
    rank, picture = engine.open_rank(LoneRank(), 1), torch.zeros(256, 256)
    return lambda: rank.step([LONG], tallied(lambda item: picture), lambda tensor, device: tensor)


@sized("routed")
def test_keys_of_64_pictures(engine: Engine) -> Job:
    return lambda: engine.routed(LONG, Namespace(), 64)


@sized("open_router", "open_router.route", "open_router.report", "open_router.total-tokens")
def test_route_by_tokens(engine: Engine) -> Job:
    """A request and a report."""
    router, numbers, ranks = engine.open_router("total tokens", RANKS), count(1), cycle(range(RANKS))
    received = [0] * RANKS

    def job() -> None:
        received[router.route(Routed((), 500))] += 1
        rank = next(ranks)
        router.report(rank, Load(1, 500, received[rank]), next(numbers))

    return job


@sized("open_router", "open_router.route", "open_router.report", "open_router.prefix")
def test_route_by_prefix(engine: Engine) -> Job:
    """A request of 32 pages, every fourth of a new picture, and a report."""
    router, numbers, ranks = engine.open_router("prefix", RANKS), count(1), cycle(range(RANKS))
    received = [0] * RANKS

    def job() -> None:
        number = next(numbers)
        received[router.route(Routed(tuple(range(number // 4 * 32, number // 4 * 32 + 32)), 2_048))] += 1
        rank = next(ranks)
        router.report(rank, Load(1, 500, received[rank]), number)

    return job
