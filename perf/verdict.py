"""Whether one engine takes longer than another: what paired measurements amount to. Pure functions, without a clock.

A *round* times three arms in turns, ABCCBA: the base A, the other B, and C, which is A once more. What C differs from A by
is the noise of the machine, measured in the same moment; B is compared with the mean of the two, which has less of it. A
*block* is some rounds of fresh processes; a *run* is some blocks.

1. Only ratios within a round count, for a machine is never twice the same. Stored times raised false alarms in 38 to 40 % of
   runs of equal code, one engine after the other in 22 to 40 % (`noise/README.md` describes the machine).
2. The middle of the rounds of a block, then the middle of the blocks: a process may be some per cent faster or slower than
   its twin all its life, and no number of rounds within it shows that.
3. Time of the processor decides for what computes, which neighbours disturb least; wall time for what waits.
4. Everything is symmetrical: exchange the two engines, and FASTER and SLOWER are exchanged.
5. `python -m perf.gate_quality` says how often the verdict is right, on recorded noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log, sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

MARGIN = 0.03
"""How much more or less than the base is still the same."""
NOISE = 0.05
"""How much the base may differ from itself."""
AGREEING = 0.8
"""The share of blocks that must point where the middle of all does."""
FEWEST_BLOCKS = 3


class Verdict(StrEnum):
    """How the other engine compares with the base."""

    FASTER = "FASTER"
    SAME = "SAME"
    SLOWER = "SLOWER"
    UNRESOLVED = "UNRESOLVED"

    @property
    def mirrored(self) -> "Verdict":
        """The verdict with the two engines exchanged."""
        return {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}.get(self, self)


class Round(NamedTuple):
    """What the three arms took in one round, in any unit of time: the base, the other, and the base once more."""

    base: float
    other: float
    control: float

    @property
    def ratio(self) -> float:
        """How many times as long the other took as the base did, twice measured."""
        return self.other / sqrt(self.base * self.control)


class Block(NamedTuple):
    """The rounds of one set of processes, by both clocks."""

    processor: Sequence[Round]
    wall: Sequence[Round]


class Logs(NamedTuple):
    """Logarithms of how many times as long as the base the other and the control took; by the clock that decides, and by the
    other one. With the engines exchanged they are the negatives, exactly."""

    other: float
    control: float
    beside: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a run ended.

    ratio: how many times as long as the base the other took; low and high: 95 % of the runs that these blocks could have
    made lie between. control: the same ratio of the base with itself. reason: why it is unresolved, else empty.
    """

    verdict: Verdict
    ratio: float
    low: float
    high: float
    control: float
    reason: str


def of_block(block: Block, *, waits: bool = False) -> Logs:
    """The middle of the rounds of a block. waits: whether wall time decides."""
    deciding, beside = (block.wall, block.processor) if waits else (block.processor, block.wall)
    return Logs(
        median(log(one.ratio) for one in deciding),
        median(log(one.control / one.base) for one in deciding),
        median(log(one.ratio) for one in beside),
    )


def of_run(blocks: Sequence[Logs]) -> Logs:
    """The middle of the blocks of a run."""
    return Logs(*map(median, zip(*blocks, strict=True)))


def judge(blocks: Sequence[Logs], *, margin: float = MARGIN) -> tuple[Verdict, str]:
    """The verdict of a run, and why it is unresolved.

    SLOWER: the middle of the blocks is beyond the margin, and four of five blocks are beyond half of it. FASTER is its
    mirror image. UNRESOLVED: too few blocks; the base differs too much from itself; the two clocks point in opposite
    directions; or the blocks do not agree.
    """
    if len(blocks) < FEWEST_BLOCKS:
        return Verdict.UNRESOLVED, f"{len(blocks)} blocks, where {FEWEST_BLOCKS} are needed"
    run = of_run(blocks)
    limit, half = log(1 + margin), log(1 + margin / 2)
    if abs(run.control) > log(1 + NOISE):
        return Verdict.UNRESOLVED, f"the base differs from itself by {exp(abs(run.control)) - 1:.1%}"
    if abs(run.other) <= limit:
        return Verdict.SAME, ""
    sign = 1 if run.other > 0 else -1
    if sign * run.beside < -limit:
        return Verdict.UNRESOLVED, "the two clocks point in opposite directions"
    if sum(sign * one.other > half for one in blocks) < AGREEING * len(blocks):
        return Verdict.UNRESOLVED, "the blocks do not agree"
    return (Verdict.SLOWER if sign > 0 else Verdict.FASTER), ""


def compare(blocks: Sequence[Block], *, margin: float = MARGIN, waits: bool = False) -> Comparison:
    """What a run amounts to."""
    logs = [of_block(block, waits=waits) for block in blocks]
    verdict, reason = judge(logs, margin=margin)
    if not logs:
        return Comparison(verdict, 1.0, 0.0, float("inf"), 1.0, reason)
    low, high = interval([block.wall if waits else block.processor for block in blocks])
    run = of_run(logs)
    return Comparison(verdict, exp(run.other), low, high, exp(run.control), reason)


def is_red(first: Verdict, second: Verdict | None) -> bool:
    """Whether a subject stops a change: it is slower, and was slower when it was measured once more."""
    return first is second is Verdict.SLOWER


def interval(blocks: Sequence[Sequence[Round]], *, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Between which ratios 95 % of the runs lie that could be made of these blocks: blocks drawn again, then their rounds."""
    random = np.random.default_rng(seed)
    rounds = min(map(len, blocks))
    logs = np.log([[one.ratio for one in block[:rounds]] for block in blocks])
    chosen = random.integers(len(blocks), size=(resamples, len(blocks), 1))
    drawn = logs[chosen, random.integers(rounds, size=(resamples, len(blocks), rounds))]
    low, high = np.exp(np.quantile(np.median(np.median(drawn, axis=2), axis=1), [0.025, 0.975]))
    return float(low), float(high)
