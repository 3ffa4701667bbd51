"""A million messages that are nearly right, in one process that has little else in its memory.

    python -m fuzz.wire                                   # 1,000,000 messages for the reference
    python -m fuzz.wire --times 10000 --seed 3 acme.py:Engine

Each is one of a few messages in mmproof's format with one to three mutations: of its bytes (flipped, cut, doubled, replaced
by heads of MessagePack that name huge lengths, spliced with another message), or of its parts (another value in the place of
one, parts left out, twice, or in another order). The engine reads it (`decode_wire_v1`): what it takes, written again, must
be the same bytes; what it refuses, it must refuse with an error that was meant. On Linux the process cannot have more than
256 MiB beyond what it has before the first message.

Exit status: 0 all held, 1 one did not (it is printed in hex), 2 a wrong call.
"""

import argparse
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from conformance.compare import ACCIDENTS
from conformance.loading import load
from conformance.oracles.transport_wire import message, pack
from conformance.suite import transport_wire_cases as cases

HEADS = tuple(bytes.fromhex(head) for head in (
    "ddffffffff", "dcffff", "c6ffffffff", "c5ffff", "dbffffffff", "dfffffffff", "deffff", "c9ffffffff01", "d40101", "c1", "c0",
    "c3", "cb7ff8000000000001", "cbfff0000000000000", "ca7fc00000", "cfffffffffffffffff", "d38000000000000000", "cc01", "ff",
    "a2fffe", "92a46c697374" * 30, "90", "80", "c400", "94a67465" + "6e736f72a7666c6f61743332",
))  # fmt: skip
MEMORY_BYTES, SECONDS = 256 << 20, 5.0

Mutation = Callable[[random.Random, bytearray, bytes], None]


def flip(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Change a bit."""
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def overwrite(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Write a head over what is there."""
    place, head = chance.randrange(len(data)), chance.choice(HEADS)
    data[place : place + len(head)] = head


def insert(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Put a head in between."""
    place = chance.randrange(len(data))
    data[place:place] = chance.choice(HEADS)


def cut(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Take some bytes out."""
    place = chance.randrange(len(data))
    del data[place : place + chance.choice((1, 2, 8, 1000))]


def double(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Put a part in twice."""
    place, length = chance.randrange(len(data)), chance.randrange(1, 65)
    data[place:place] = data[place : place + length]


def splice(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Go on with the rest of another message."""
    data[chance.randrange(len(data)) :] = other[chance.randrange(len(other)) :]


def renumber(chance: random.Random, data: bytearray, other: bytes) -> None:
    """Write a number of 64 bits over what is there: a position, an id, a size."""
    place = chance.randrange(len(data))
    data[place : place + 8] = chance.choice((-1, 0, 1, 2**31, 2**62, -(2**63))).to_bytes(8, "little", signed=True)


MUTATIONS: tuple[Mutation, ...] = (flip, overwrite, insert, cut, double, splice, renumber)


VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3, 2**31, 2**63, 2**64 - 1, float("nan"), float("inf"), 1.0, "", "x", "bool", "float32", "uint8", b"",
    b"x", bytes(8), bytes(12), bytes(32), b"\xff" * 16, [], ["list"], ["map"], ["map", "a", 1], ["handle", b"x"], ["tensor"],
    [1, 2, 3],
    ["tensor", "uint8", [8], bytes(8)], ["array", "int16", [2, 2], bytes(8)], ["tensor", "uint8", [2**32, 2**32], b""],
    ["tensor", "float32", [-1, -1], bytes(4)], ["tensor", "bool", [1], b"\2"], [None] * 20,
)  # fmt: skip
"""What stands in the place of a part."""


def replanted(chance: random.Random, plain: list[Any]) -> list[Any]:
    """Plain lists with one change, at any depth."""
    changed, place = [*plain], chance.randrange(len(plain) + 1)
    if place < len(plain) and isinstance(plain[place], list) and plain[place] and chance.random() < 0.8:
        changed[place] = replanted(chance, plain[place])
    else:
        new = (chance.choice(VALUES), chance.choice([*plain, None]))[chance.random() < 0.3]
        changed[place : place + chance.choice((0, 1, 1, 1))] = [new] * chance.choice((0, 1, 1, 1, 1, 2))
    return changed


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    """One of the seeds with one to three mutations."""
    if chance.random() < 0.5:
        plain = msgspec.msgpack.decode(chance.choice(seeds))
        body = plain[3]
        for _ in range(chance.randint(1, 3)):
            body = replanted(chance, body) if body else body
        return pack([*plain[:3], body])
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 3)):
        if data:
            chance.choice(MUTATIONS)(chance, data, chance.choice(seeds))
    return bytes(data)


def verdict(engine: Any, data: bytes) -> str:
    """How the engine reads a message: "read", "refused", or what is wrong with its answer."""
    try:
        request = engine.decode_wire_v1(data)
    except ACCIDENTS as error:
        return f"it ran into {type(error).__name__}"
    except Exception:
        return "refused"
    try:
        return "read" if engine.encode_wire_v1(request) == data else "it read what it would write otherwise"
    except Exception as error:
        return f"it read what it cannot write ({type(error).__name__})"


def memory_bytes(name: str) -> int:
    """A line of Linux's account of this process: `VmHWM`, the most memory that it has had, or `VmSize`; elsewhere 0."""
    status = Path("/proc/self/status")
    return int(status.read_text().split(f"{name}:")[1].split()[0]) << 10 if status.exists() else 0


def limit_memory() -> None:
    """From now on, allow so much memory more, and count the most that is had from here."""
    if sys.platform == "linux":
        most = memory_bytes("VmSize") + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        Path("/proc/self/clear_refs").write_text("5")


def search(engine: Any, times: int, seed: int, *, limited: bool = True) -> tuple[Counter[str], str]:
    """How many messages were read and refused, and the first thing that is wrong, or nothing.

    limited: whether the memory of this process may be limited from now on.
    """
    some = (cases.REQUESTS, cases.HOLES, cases.FIELDS, cases.HANDLES, cases.SHAPES)
    seeds = [data for table in some for data in map(message, table.values()) if len(data) < 2000]
    seeds += [message(cases.TENSORS[name]) for name in ("bool", "bfloat16")]
    chance, counts = random.Random(seed), Counter[str]()
    for data in seeds:
        verdict(engine, data)
    if limited:
        limit_memory()
    before = memory_bytes("VmHWM")
    for _ in range(times):
        data = mutated(chance, seeds)
        started = time.perf_counter()
        counts[how := verdict(engine, data)] += 1
        if how not in ("read", "refused"):
            return counts, f"{how}: {data.hex()}"
        if time.perf_counter() - started > SECONDS:
            return counts, f"it took more than {SECONDS} s: {data.hex()}"
    counts["KiB"] = (memory_bytes("VmHWM") - before) >> 10
    return counts, ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.wire", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("engine", nargs="?", default="reference")
    parser.add_argument("--times", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    counts, wrong = search(load(options.engine), options.times, options.seed)
    print(f"{counts['read']} read, {counts['refused']} refused in {time.perf_counter() - started:.0f} s; "
          f"memory grew by {counts['KiB'] / 1024:.1f} MiB")  # fmt: skip
    if wrong:
        print(wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
