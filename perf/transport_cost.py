"""What it costs to hand a feature of 64 MiB to another process, beside one plain copy of it and beside pickling it.

    python -m perf.transport_cost [--engine NAME] [--rounds N]

prints one table. The ways take turns. Of each way it shows the shortest of all rounds and its ratio to the shortest copy: in
wall time, and in time of the processor, that of both processes together, which a busy machine changes less. A way ends when
the other process has the feature, or has read it all.

    copy            into memory that was used before, in one process; read there
    clone           into new memory, in one process; read there
    shared memory   the engine's channel, to a process that was forked before
    inline          the same, with nothing but the packet
    pickle          through a pipe of multiprocessing, as an array

The first rounds are not counted: a channel's pool is new, and the system clears each page of it once.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any, TypeAlias

import torch

from conformance.loading import load
from conformance.oracles.transport import described_all
from conformance.suite.transport_processes import Pipe, Process, fork, line
from conformance.witness import Witness

SIZE_BYTES = 1 << 26
ROOM = SIZE_BYTES + (1 << 20)
WARM_UP = 2

Round: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
"""Handed over, and handed over and read: wall time and time of the processor in seconds."""

Way: TypeAlias = Callable[[bool], float]
"""Hand the feature over; True: and have it read. Returns the time of the processor that the other process took."""


def read(value: Any) -> float:
    """Read every byte."""
    return float(torch.as_tensor(value).view(torch.int64).sum())


@contextmanager
def copy(feature: torch.Tensor) -> Iterator[Way]:
    target = torch.zeros_like(feature)
    yield lambda is_read: 0.0 * read(target.copy_(feature)) if is_read else 0.0 * len(target.copy_(feature))


@contextmanager
def clone(feature: torch.Tensor) -> Iterator[Way]:
    yield lambda is_read: 0.0 * read(feature.clone()) if is_read else 0.0 * len(feature.clone())


@contextmanager
def channel(engine: Any, transport: str, feature: torch.Tensor) -> Iterator[Way]:
    """A channel, and a reader in a process of its own that says when it has received, and read, what it was handed."""
    opened = Witness(engine).open_channel((transport,), 1, ROOM).subject  # its own object: a witness keeps what it sees
    between = line()

    def reads(pipe: Pipe) -> None:
        reader = opened.join(0, None)
        pipe.say(described_all(reader.receive(pipe.hear())))
        while True:
            packet, is_read = pipe.hear(), pipe.hear()
            began = process_time()
            value = reader.receive(packet)[0]
            total = read(value) if is_read else 0
            del value, total
            pipe.say(process_time() - began)

    process = Process("the reader", fork(reads, between), Pipe(*between.ours))

    def ask(*words: Any) -> Any:
        for word in words:
            process.say(word)
        return process.hear()

    try:
        assert ask(opened.send([feature], 1)[0]) == described_all([feature]), "what arrived is not what was sent"
        yield lambda is_read: float(ask(opened.send([feature], 1)[0], is_read))
    finally:
        process.close()
        opened.close()


@contextmanager
def pickled(feature: torch.Tensor) -> Iterator[Way]:
    ours, theirs = multiprocessing.Pipe()
    between = line()

    def reads(pipe: Pipe) -> None:
        while True:
            began = process_time()
            value, is_read = theirs.recv()
            total = read(value) if is_read else 0
            del value, total
            theirs.send(process_time() - began)

    process = Process("the reader", fork(reads, between), Pipe(*between.ours))
    try:
        yield lambda is_read: _exchange(ours, feature, is_read)
    finally:
        process.close()


def _exchange(ours: Connection, feature: torch.Tensor, is_read: bool) -> float:
    ours.send((feature.numpy(), is_read))
    return float(ours.recv())


def measure(engine: Any, rounds: int) -> dict[str, list[Round]]:
    """For each way what each round took: handed over, and handed over and read."""
    feature = torch.randint(0, 256, (SIZE_BYTES,), dtype=torch.uint8)
    transports = [kind for kind in ("shared_memory", "inline") if kind in engine.traits.transports]
    with ExitStack() as open_ways:
        ways = {name: open_ways.enter_context(make(feature)) for name, make in (("copy", copy), ("clone", clone))}
        for kind in transports:
            ways[kind.replace("_", " ")] = open_ways.enter_context(channel(engine, kind, feature))
        ways["pickle"] = open_ways.enter_context(pickled(feature))
        seconds: dict[str, list[Round]] = {name: [] for name in ways}
        for number in range(WARM_UP + rounds):
            for name, way in ways.items():
                took = (_seconds(way, False), _seconds(way, True))
                seconds[name] += [took] if number >= WARM_UP else []
    return seconds


def _seconds(way: Way, is_read: bool) -> tuple[float, float]:
    """Wall time, and time of the processor of both processes."""
    wall, processor = perf_counter(), process_time()
    elsewhere = way(is_read)
    return perf_counter() - wall, process_time() - processor + elsewhere


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What it costs to hand a feature to another process.")
    parser.add_argument("--engine", default="reference")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    seconds = measure(load(options.engine), options.rounds)
    print(f"{SIZE_BYTES >> 20} MiB, {options.engine}, the shortest of {options.rounds} rounds")
    print(f"{'':16}" + "".join(f"{text:>22}" for text in ("handed over", "processor", "and read", "processor")))
    for name, rounds in seconds.items():
        cells = (_cell(rounds, seconds["copy"], part, clock) for part in (0, 1) for clock in (0, 1))
        print(f"{name:16}" + "".join(f"{cell:>22}" for cell in cells))


def _cell(rounds: list[Round], plain: list[Round], part: int, clock: int) -> str:
    shortest, of_plain = (min(one[part][clock] for one in some) for some in (rounds, plain))
    return f"{shortest * 1000:.1f} ms {shortest / of_plain:6.2f} x"


if __name__ == "__main__":
    main()
