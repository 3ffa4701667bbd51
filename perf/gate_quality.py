"""How good the gate is: on recorded noise, and live.

    python -m perf.gate_quality [--runs 10000]
    python -m perf.gate_quality --live [--stage STAGE]

On recorded noise each run draws five recorded blocks of one cell (a machine, a true slowdown) and judges them. Live, the whole
gate compares the reference with itself, on all sized cases: as it is, and with so many per cent added to each sample. A change
is stopped when two runs find it slower. The table says how often each verdict came, of 100 runs, and how many were stopped.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from conformance.loading import WORKER
from perf.arm import STAGES
from perf.gate import Finding, gate
from perf.verdict import Block, Logs, Round, Verdict, is_red, judge, of_block

NOISE = Path(__file__).parent / "noise"
MACHINES = ("quiet", "busy")
SLOWER_BY = (0, 5, 10, 20)
LIVE = (0, 5, 10)
BLOCKS = 5


def recorded(machine: str, slower: int) -> list[Logs]:
    """The recorded blocks of a machine on which B was so many per cent slower."""
    found: list[dict[str, Any]] = json.loads((NOISE / f"{machine}.json").read_text(encoding="utf-8"))
    cell = [one["rounds"] for one in found if one["slower"] == slower]
    return [of_block(Block([Round(*cpu) for _, cpu in rounds], [Round(*wall) for wall, _ in rounds])) for rounds in cell]


def resampled(blocks: list[Logs], runs: int, seed: int) -> list[Verdict]:
    """The verdicts of so many runs, each of five blocks drawn from these."""
    chosen = np.random.default_rng(seed).integers(len(blocks), size=(runs, BLOCKS))
    return [judge([blocks[one] for one in run])[0] for run in chosen.tolist()]


def live(slower: int, stages: list[str]) -> list[Finding]:
    """What the gate finds here and now when the reference is so many per cent slower than itself."""
    return gate("reference", f"{WORKER}{sys.executable} -m perf.arm reference {slower}", stages=stages)


def row(first: list[Verdict], stopped: int) -> list[str]:
    """The share of each verdict in per cent, and how many were stopped."""
    counts = Counter(first)
    return [*(f"{100 * counts[one] / len(first):.2f}" for one in Verdict), f"{stopped} of {len(first)}"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--runs", type=int, default=10_000, help="how many runs are drawn from recorded noise")
    arguments.add_argument("--live", action="store_true", help="measure here and now")
    arguments.add_argument("--stage", action="append", choices=STAGES, help="live, only this stage; may be repeated")
    given = arguments.parse_args()
    table = Table("machine", "truly slower", *Verdict, "stopped", box=None)
    if given.live:
        table.add_column("seconds a case")
        for slower in LIVE:
            began = perf_counter()
            found = live(slower, given.stage or STAGES)
            each = (perf_counter() - began) / len(found)
            table.add_row(
                "here",
                f"{slower} %",
                *row([one.first.verdict for one in found], sum(one.is_red for one in found)),
                f"{each:.1f}",
            )
    for machine in () if given.live else MACHINES:
        for slower in SLOWER_BY:
            blocks = recorded(machine, slower)
            first, second = (resampled(blocks, given.runs, seed) for seed in (1, 2))
            table.add_row(machine, f"{slower} %", *row(first, sum(map(is_red, first, second))))
    Console().print(table)


if __name__ == "__main__":
    main()
