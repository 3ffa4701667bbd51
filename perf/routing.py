"""What routing is worth: a million requests over a thousand ranks, simulated, under each policy of an engine's router.

    python -m perf.routing                                # the reference
    python -m perf.routing --engine acme.py:Engine        # your own router
    python -m perf.routing --requests 100000 --ranks 100  # a smaller world

Everybody asks about pictures, and few pictures are asked about most (Zipf). A rank computes one request after the other and
remembers the prefixes that it computed last; what it finds there costs it nothing. Ranks report what they have to do, and
their reports are old when they arrive. The router sees keys, token counts and reports, as in life. Equal seeds
give equal tables.
"""

from argparse import ArgumentParser
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import simpy
from numpy.typing import NDArray

from conformance.engine import Traits
from conformance.loading import load
from conformance.protocol.parallel import Load, Routed
from conformance.protocol.prefix_cache import Namespace
from conformance.world.doubles import image, request

PAGE = 64
SYSTEM_TOKENS, QUESTION_TOKENS = 64, 48
PICTURE_TOKENS = (64, 128, 256, 512)
"""A prompt is one of `SYSTEMS` system prompts, a picture of one of these sizes, and a question nobody has asked before."""

SYSTEMS = 20

TOKEN_S = 0.000_25
"""What it takes to compute a token that is not cached, the encoder's share included."""

REPLY_S = 0.020
"""What a reply takes on average; it is as long as it happens to be (exponential)."""

TICK_S = 0.002
REPORT_S, DELAY_S = 0.1, 0.02
"""How often a rank reports, and how long a report takes to arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is simulated. load: the share of their time that ranks would work if nothing was ever cached. cached: the
    pictures that a rank remembers. skew: the exponent of Zipf's law."""

    requests: int = 1_000_000
    ranks: int = 1_000
    pictures: int = 100_000
    cached: int = 100
    skew: float = 1.0
    load: float = 1.1
    seed: int = 1


class Arrivals(NamedTuple):
    """When each request comes, about which picture, and how long its reply takes."""

    times: list[float]
    pictures: list[int]
    replies_s: list[float]


class Outcome(NamedTuple):
    """What came of a policy. hits: the share of pictures that were found. peak: the work of the rank that had most, over
    the mean. waits: in seconds, before a request begins: half of them, 99 of 100 and 999 of 1,000 wait no longer. work: the
    share of their time that ranks worked. cpu_s: what the simulation took."""

    policy: str
    hits: float
    peak: float
    waits: tuple[float, float, float]
    work: float
    cpu_s: float


@dataclass(slots=True)
class Rank:
    """A rank: when it is idle, what it has not finished (when, and how many tokens), and the pictures that it remembers."""

    free_at: float = 0.0
    busy_s: float = 0.0
    received: int = 0
    tokens: int = 0
    unfinished: deque[tuple[float, int]] = field(default_factory=deque)
    pictures: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def report(self, now: float) -> Load:
        """What it has to do now."""
        while self.unfinished and self.unfinished[0][0] <= now:
            self.tokens -= self.unfinished.popleft()[1]
        return Load(len(self.unfinished), self.tokens, self.received)


def arrivals(world: World) -> Arrivals:
    """The requests of a world, the same for all policies."""
    random = np.random.default_rng(world.seed)
    mean_s = REPLY_S + TOKEN_S * (sum(PICTURE_TOKENS) / len(PICTURE_TOKENS) + QUESTION_TOKENS)
    weights = 1 / np.arange(1, world.pictures + 1) ** world.skew
    ranked = np.searchsorted(np.cumsum(weights), random.random(world.requests) * weights.sum())
    times = np.cumsum(random.exponential(mean_s / world.load / world.ranks, world.requests))
    replies_s = random.exponential(REPLY_S, world.requests)
    return Arrivals(times.tolist(), ranked.clip(max=world.pictures - 1).tolist(), replies_s.tolist())


def size_of(picture: int) -> int:
    """The tokens of a picture."""
    return PICTURE_TOKENS[picture % len(PICTURE_TOKENS)]


class Prompts:
    """What a router knows of the requests about each picture, as the engine tells it; no keys where it has none."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._known: dict[int, Routed] = {}

    def __getitem__(self, picture: int) -> Routed:
        if picture not in self._known:
            end = SYSTEM_TOKENS + size_of(picture)
            prompt = request(str(picture), end + QUESTION_TOKENS, image(picture, (SYSTEM_TOKENS, end - 1)))
            prompt.input_ids[0] = picture % SYSTEMS
            told = (
                self._engine.routed(prompt, Namespace(), PAGE)
                if hasattr(self._engine, "routed")
                else ((), len(prompt.input_ids))
            )
            self._known[picture] = Routed(tuple(told[0]), told[1])
        return self._known[picture]


def simulate(world: World, router: Any, policy: str, prompts: Sequence[Routed] | Prompts, given: Arrivals) -> Outcome:
    """One policy in a world."""
    began = process_time()
    ranks = [Rank() for _ in range(world.ranks)]
    waits = np.zeros(world.requests)
    environment = simpy.Environment()
    finder = _finder(world, ranks, router, prompts, policy == "bootstrap room")
    if hasattr(router, "report"):
        environment.process(_reports(environment, ranks, router))
    done = environment.process(_clients(environment, given, finder, waits))
    hits: Any = environment.run(done)
    busy = np.array([rank.busy_s for rank in ranks])
    half, most, nearly_all = map(float, np.quantile(waits, (0.5, 0.99, 0.999)))
    share = float(busy.sum() / world.ranks / given.times[-1])
    return Outcome(
        policy, hits / world.requests, float(busy.max() / busy.mean()), (half, most, nearly_all), share, process_time() - began
    )


def _finder(
    world: World, ranks: Sequence[Rank], router: Any, prompts: Sequence[Routed] | Prompts, has_rooms: bool
) -> Callable[[float, int, float], tuple[float, bool]]:
    """Gives a request to the rank that the router chooses; returns how long it waits, and whether its picture was found."""
    room = 0

    def compute(now: float, picture: int, reply_s: float) -> tuple[float, bool]:
        nonlocal room
        asked = prompts[picture]
        if has_rooms:
            room = (room * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**63
            asked = asked._replace(room=room >> 20)
        rank = ranks[router.route(asked)]
        pictures = rank.pictures
        if is_found := picture in pictures:
            pictures.move_to_end(picture)
        else:
            pictures[picture] = None
            if len(pictures) > world.cached:
                pictures.popitem(last=False)
        tokens = QUESTION_TOKENS if is_found else QUESTION_TOKENS + size_of(picture)
        service_s = reply_s + TOKEN_S * tokens
        starts = max(now, rank.free_at)
        rank.free_at = starts + service_s
        rank.busy_s += service_s
        rank.received += 1
        rank.tokens += tokens
        rank.unfinished.append((rank.free_at, tokens))
        return starts - now, is_found

    return compute


def _clients(
    environment: simpy.Environment,
    given: Arrivals,
    compute: Callable[[float, int, float], tuple[float, bool]],
    waits: NDArray[np.float64],
) -> Generator[simpy.Event, None, int]:
    """Requests come, tick by tick; returns how many pictures were found."""
    hits, number, count = 0, 0, len(given.times)
    times, pictures, replies_s = given
    while number < count:
        yield environment.timeout(TICK_S)
        now = environment.now
        while number < count and times[number] <= now:
            waits[number], is_found = compute(times[number], pictures[number], replies_s[number])
            hits += is_found
            number += 1
    return hits


def _reports(environment: simpy.Environment, ranks: Sequence[Rank], router: Any) -> Generator[simpy.Event, None, None]:
    """Ranks report one after the other, so that each does so every `REPORT_S`; what they say is on its way for a while."""
    rounds = round(REPORT_S / TICK_S)
    under_way: deque[tuple[float, int, Load, int]] = deque()
    tick = 0
    while True:
        yield environment.timeout(TICK_S)
        now, tick = environment.now, tick + 1
        while under_way and under_way[0][0] <= now:
            _, number, load, sequence = under_way.popleft()
            router.report(number, load, sequence)
        for number in range(tick % rounds, len(ranks), rounds):
            under_way.append((now + DELAY_S, number, ranks[number].report(now), tick))


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a table in Markdown."""
    lines = [
        "| policy | pictures found | busiest rank / mean | at work | wait, median | 99 % | 99.9 % | CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        waits = " | ".join(f"{1000 * wait:.0f} ms" for wait in one.waits)
        lines.append(f"| {one.policy} | {one.hits:.1%} | {one.peak:.2f} | {one.work:.0%} | {waits} | {one.cpu_s:.1f} s |")
    return "\n".join(lines)


def main() -> None:
    """Simulate every policy of an engine's router, and print the table."""
    parser = ArgumentParser(prog="python -m perf.routing", description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="reference", help="a name, module:object or path.py:object")
    for name, default in ((name, World.__dataclass_fields__[name].default) for name in World.__slots__):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    asked = vars(parser.parse_args())
    engine = load(asked.pop("engine"))
    world = World(**asked)
    traits: Traits = getattr(engine, "traits", None) or Traits()
    given, prompts, began = arrivals(world), Prompts(engine), perf_counter()
    outcomes = [
        simulate(world, engine.open_router(policy, world.ranks), policy, prompts, given) for policy in traits.routing_policies
    ]
    print(table(outcomes))
    print(f"\n{world} in {perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
