"""Prompts, budgets and lines of requests for the rules about scheduling."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from conformance.oracles.scheduling import Job, Line, Step
from conformance.protocol.scheduling import Budget
from conformance.witness import EngineRaised
from conformance.world.prompts import draw
from reference.items import Chunk


def step(prefix: int, length: int, encoder_length: int) -> Step:
    """One request of a batch, with ids that tell its positions apart."""
    return np.arange(100 + prefix, 100 + prefix + length, dtype=np.int64), Chunk(prefix, length), encoder_length


def job(drawing: str, prefix: int = 0, *, tokens: int, made: int | None = None, kept: int | None = None, kv: int | None = None,
        align: int = 1, whole: bool = False) -> Job:  # fmt: skip
    """A drawn prompt (see `conformance.world.prompts`) and the budget of a step."""
    budget = Budget(
        tokens_per_step=tokens,
        embeddings_per_step=made,
        embeddings_kept=kept,
        kv_tokens=kv,
        alignment_tokens=align,
        whole_items=whole,
    )
    return Job(len(drawing), draw(drawing).items, budget, prefix)


def line(*drawings: str, tokens: int, made: int | None = None, kept: int | None = None, kv: int | None = None) -> Line:
    """Drawn prompts by arrival, and the budget of a step."""
    budget = Budget(tokens_per_step=tokens, embeddings_per_step=made, embeddings_kept=kept, kv_tokens=kv)
    return Line(tuple((len(drawing), draw(drawing).items) for drawing in drawings), budget)


class Culprit(NamedTuple):
    """A job that one limit alone makes impossible, and that limit."""

    job: Job
    limit: int


BATCHES = {
    "text-only": [step(0, 5, 0)],
    "prefix-of-text": [step(3, 2, 0)],
    "all-new": [step(0, 9, 4)],
    "nothing-but-the-encoder-part": [step(0, 4, 4)],
    "prefix-is-the-encoder-part": [step(4, 3, 4)],
    "prefix-goes-further": [step(6, 3, 4)],
    "new-then-cached": [step(0, 9, 4), step(6, 3, 4)],
    "cached-then-new": [step(6, 3, 4), step(0, 9, 4)],
    "text-between-pictures": [step(0, 7, 3), step(2, 5, 0), step(0, 6, 5), step(8, 1, 3)],
}
DIVIDED_PREFIXES = {
    "its-first-position": [step(1, 8, 4)],
    "all-but-its-last": [step(3, 8, 4)],
    "second-of-a-batch": [step(0, 9, 4), step(2, 7, 4)],
}
DIVIDED_CHUNKS = {
    "all-but-its-last": [step(0, 3, 4)],
    "its-first-position": [step(0, 1, 4)],
    "second-of-a-batch": [step(0, 9, 4), step(0, 3, 4)],
}

TOKENS = {
    "text-only": job("." * 10, tokens=4),
    "exactly-one-step": job("..iii", tokens=5),
    "one-position-a-step": job(".iii.", tokens=1),
    "one-picture": job("..iiiiii..", tokens=4),
    "several-spans": job(".vv.vv.vv.", tokens=4),
    "nothing-but-media": job("iiiijjjj", tokens=3),
    "prefix": job("..iiiiii..", 1, tokens=4),
    "prefix-inside-an-item": job("..iiiiii..", 4, tokens=4),
    "kv-with-room-for-a-reply": job("..iiiiii..", tokens=4, kv=11),
}
MADE = {
    "one-item-of-exactly-the-budget": job("..iiii..", tokens=8, made=4),
    "one-item-in-several-steps": job(".iiiiii.", tokens=3, made=6),
    "two-items-in-two-steps": job(".iiii.jjjj.", tokens=11, made=4),
    "side-by-side": job("iiijjjkkk", tokens=9, made=6),
    "of-three-spans": job(".vv.vv.vv..ii", tokens=13, made=6),
    "sparse-in-a-long-span": job("v...v...v...v...v", tokens=17, made=5),
    "separators-inside": job("iiii.iiii.iiii.iiii.", tokens=20, made=16),
    "prefix-inside-an-item": job("iiii.jj", 2, tokens=7, made=4),
    "prefix-between-the-spans-of-an-item": job("vv....vv.ii.", 3, tokens=5, made=4),
}
KEPT = {
    "one-item-of-exactly-the-budget": job("..iiii..", tokens=8, kept=4),
    "two-items-in-two-steps": job(".iiii.jjjj.", tokens=11, kept=4),
    "side-by-side": job("iiiijjjj", tokens=3, kept=4),
    "kept-while-it-is-read": job(".iiiiii.jjjj.", tokens=5, kept=8),
    "kept-between-its-spans": job("vv....vv.ii.", tokens=3, kept=4),
    "both-budgets": job(".iii.jjj.kkk.", tokens=13, made=6, kept=3),
    "the-longer-one-first": job("i" * 80 + "." * 10 + "j" * 90, tokens=64, kept=100),
    "many-one-after-the-other": job(".ii.jj.kk.vv.ww.aa.", tokens=6, kept=2),
}
ALIGNED = {
    "text-only": job("." * 11, tokens=5, align=4),
    "tail-shorter-than-a-block": job("." * 5, tokens=4, align=4),
    "prefix-between-blocks": job("." * 11, 3, tokens=4, align=4),
    "ends-before-an-item": job("......iiii..", tokens=12, kept=4, made=4, align=3),
    "two-items-and-room-between": job("iiiiii......jjjjjj....", tokens=22, kept=6, align=4),
    "whole-items-too": job("..iii....jjj..", tokens=8, align=2, whole=True),
}
WHOLE = {
    "one-item": job("...iiii...", tokens=5, whole=True),
    "as-long-as-a-step": job("..iiiii..", tokens=5, whole=True),
    "side-by-side": job("iiijjjkkk", tokens=7, whole=True),
    "several-spans": job("...vv.vv.vv", tokens=8, whole=True),
    "at-the-end": job("...iii", tokens=4, whole=True),
    "one-within-another": job("..v.ii.v..", tokens=7, whole=True),
    "prefix-inside-an-item": job("..iiiiii..jjj.", 4, tokens=3, whole=True),
}
PLANS = {
    f"{kind}-{name}": case
    for kind, jobs in {"tokens": TOKENS, "made": MADE, "kept": KEPT, "aligned": ALIGNED, "whole": WHOLE}.items()
    for name, case in jobs.items()
}
"""Every job here has a plan, by an engine that splits items."""

IMPOSSIBLE = {
    "item-larger-than-the-encoders-budget": job(".iiiii.", tokens=7, made=4),
    "item-of-one-more-than-100": job("i" * 101, tokens=50, made=100),
    "second-item-too-large": job(".ii." * 2 + "jjjjj", tokens=3, made=4),
    "item-larger-than-what-is-kept": job(".iiiii.", tokens=7, kept=4),
    "item-longer-than-a-step": job("..iiiii..", tokens=4, whole=True),
    "kv-cache-shorter-than-the-prompt": job("..iiiiii..", tokens=4, kv=9),
    "alignment-longer-than-a-step": job("." * 12, tokens=4, align=6),
    "two-items-and-no-block-between": job("." * 8 + "i" * 60 + "." * 10 + "j" * 60, tokens=200, kept=100, align=16),
    "tail-of-an-item-within-a-block": job("." * 5 + "i" * 80 + "." * 4 + "j" * 90, tokens=64, kept=100, align=16),
    "prefix-inside-an-item-too-large": job("iiiiii...", 3, tokens=9, made=5),
    "interleaved-items-too-large": job("v.iii.v", tokens=7, kept=4),
}
CULPRITS = {
    "embeddings-made": Culprit(job(".iiiii.", tokens=67, made=4), 4),
    "embeddings-kept": Culprit(job(".iiiii.", tokens=67, kept=4), 4),
    "tokens-for-a-whole-item": Culprit(job("..iiiii..", tokens=4, whole=True), 4),
    "kv-tokens": Culprit(job("i" * 43, tokens=4, kv=42), 42),
    "alignment": Culprit(job("." * 40, tokens=19, align=32), 32),
}

LINES = {
    "one-request": line("..iiii..", tokens=3),
    "two-texts": line("....", "....", tokens=3),
    "a-long-one-first": line("..........", "..", "...", tokens=4),
    "a-long-one-last": line("..", "...", "..........", tokens=4),
    "encoder-shared": line(".iii.", ".jjj.", ".kkk.", tokens=20, made=6),
    "cache-shared": line(".iiiiii.", ".jjjjjj.", ".kk.", tokens=20, kept=10),
    "cache-full-while-the-first-is-read": line("iiiiiiiii.", "jjjjjjjjjj", "kkkk", tokens=4, kept=10),
    "each-needs-all-of-the-cache": line(".iiii.jjjj.", ".kkkk.vvvv.", tokens=5, kept=4),
    "room-beside-a-half-done-one": line("iiii.jjjj.", "..........", tokens=9, kept=4),
    "two-items-each": line("iiiiijjjjj", "kkkkkvvvvv", tokens=9, kept=6),
    "kv-cache-shared": line("......", ".....", "...", tokens=4, kv=9),
    "no-kv-slots-for-the-second": line("." * 15, "i" * 10, "jjjj", tokens=5, kept=10, kv=20),
    "all-limits": line(".ii.", "..jjj.", "kk.vv.", "....", tokens=6, made=4, kept=5, kv=11),
}


def refusals(call: Callable[[], Any]) -> list[str]:
    """The words in which the engine refuses, to be checked in a loop; nothing when it does not."""
    try:
        call()
    except EngineRaised as raised:
        return [raised.summary]
    return []
