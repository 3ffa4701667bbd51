"""How good the gate is, on recorded noise.

    python -m perf.gate_quality [--runs 10000]

Each run draws five recorded blocks of one cell (a machine, a true slowdown) and judges them. A change is stopped when two runs
find it slower. The table says how often each verdict came, of 100 runs, and how many runs of equal code were stopped.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from perf.verdict import Block, Ratios, Round, Verdict, is_red, judge, of_block

NOISE = Path(__file__).parent / "noise"
MACHINES = ("quiet", "busy")
SLOWER_BY = (0, 5, 10, 20)
BLOCKS = 5


def recorded(machine: str, slower: int) -> list[Ratios]:
    """The recorded blocks of a machine on which B was so many per cent slower."""
    found: list[dict[str, Any]] = json.loads((NOISE / f"{machine}.json").read_text(encoding="utf-8"))
    cell = [one["rounds"] for one in found if one["slower"] == slower]
    return [of_block(Block([Round(*cpu) for _, cpu in rounds], [Round(*wall) for wall, _ in rounds])) for rounds in cell]


def resampled(blocks: list[Ratios], runs: int, seed: int) -> list[Verdict]:
    """The verdicts of so many runs, each of five blocks drawn from these."""
    chosen = np.random.default_rng(seed).integers(len(blocks), size=(runs, BLOCKS))
    return [judge([blocks[one] for one in run])[0] for run in chosen.tolist()]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--runs", type=int, default=10_000)
    runs = arguments.parse_args().runs
    table = Table("machine", "truly slower", *Verdict, "stopped", box=None)
    for machine in MACHINES:
        for slower in SLOWER_BY:
            blocks = recorded(machine, slower)
            first, second = (resampled(blocks, runs, seed) for seed in (1, 2))
            counts = Counter(first)
            stopped = sum(map(is_red, first, second))
            shares = [f"{100 * counts[one] / runs:.2f}" for one in Verdict]
            table.add_row(machine, f"{slower} %", *shares, f"{stopped} of {runs}")
    Console().print(table)


if __name__ == "__main__":
    main()
