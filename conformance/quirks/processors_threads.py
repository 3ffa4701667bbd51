"""Ways in which engines have let prompts that are processed at the same time disturb one another."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import sleep
from typing import Any

import numpy as np

from conformance.quirk import quirk
from conformance.quirks.processors import Parts, Processed
from reference import processors as right

TOKENIZER = Lock()
PADDED: list[int] = []


@contextmanager
def borrowed() -> Iterator[None]:
    """The tokenizer, for a while; whoever comes meanwhile is turned away."""
    if not TOKENIZER.acquire(blocking=False):
        raise RuntimeError("Already borrowed")
    try:
        sleep(0.002)
        yield
    finally:
        TOKENIZER.release()


@quirk("tokenizer-lent-twice", replaces="process", bugs=("tokenizer-already-borrowed",), caught_by=("PROCESSORS-26",))
def lent_twice(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Every thread uses the same tokenizer, which lets itself be used by one, and nobody waits for the other."""
    with borrowed():
        return right.process(architecture, processor, parts)


@quirk("padding-of-another-thread", replaces="process", bugs=("tokenizer-already-borrowed",), caught_by=("PROCESSORS-26",))
def padded_by_another(architecture: str, processor: Any, parts: Parts) -> Processed:
    """A tokenizer is told how to pad before it is used: what another thread told it meanwhile is done to this prompt."""
    ids, items = right.process(architecture, processor, parts)
    PADDED.append(len(ids))
    sleep(0.002)
    filled = np.zeros(max(0, PADDED[-1] - len(ids)), dtype=np.int64)
    return np.concatenate([ids, filled]), items
