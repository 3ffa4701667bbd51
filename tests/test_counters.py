"""Counters: each one sees what it is for, and counts the same in any process."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
import torch
from blake3 import blake3

from perf import counters, sized
from perf.counters import count, grown, tallied
from perf.sized import Sized, declare

SEEDS = ("0", "1", "4294967295")
STAGES = ("merging", "encoding", "prefix_cache", "pruning")

DATA = bytes(100_000)
ROWS = torch.ones(1000, 100)
PIXELS = np.ones((100, 100, 3), dtype=np.uint8)


def hashed_in_parts() -> bytes:
    one = blake3()
    one.update(DATA).update(memoryview(DATA)[:50])
    return one.copy().digest() + hashlib.new("sha1", DATA).digest() + sha256(string=DATA).digest()


def hashed_by_a_thread() -> None:
    worker = threading.Thread(target=lambda: sha256(DATA))
    worker.start()
    worker.join()


def looped() -> list[int]:
    return [abs(n) for n in range(1000)]


@pytest.mark.parametrize(
    ("counter", "number", "job"),
    [
        ("hash calls", 5, hashed_in_parts),
        ("hashed bytes", 300_050, hashed_in_parts),
        ("hashed bytes", 100_000, hashed_by_a_thread),
        ("Python calls", 1002, looped),
        ("bytes of tensors", 800_000, lambda: ROWS.neg().abs()),
        ("bytes of tensors at peak", 800_000, lambda: ROWS.neg().abs()),
        ("copied bytes", 400_000, lambda: ROWS.clone()),
        ("copied bytes", 400_000, lambda: ROWS.t().contiguous()),
        ("copied bytes", 40_000, lambda: torch.empty(1000, 100).index_copy_(0, torch.arange(100), ROWS[:100])),
        ("copied bytes", 30_000, lambda: PIXELS.copy()),
        ("operators of torch", 2, lambda: ROWS.neg().abs()),
        ("operators of torch", 1, lambda: ROWS[3:]),
    ],
)
def test_a_counter_counts(counter: str, number: int, job: Callable[[], object]) -> None:
    assert count(job)[counter] == number


@pytest.mark.parametrize("counter", ["bytes of objects", "bytes of objects at peak"])
def test_bytes_of_numpy_are_counted(counter: str) -> None:
    once, twice = (count(lambda n=n: [PIXELS.astype(np.float64) for _ in range(n)])[counter] for n in (1, 2))
    assert abs(once - 240_000) < counters.SMALL
    assert abs(twice - 480_000) < counters.SMALL


def test_what_is_freed_again_is_counted_and_not_held() -> None:
    found = count(lambda: [PIXELS.astype(np.float64).sum() for _ in range(5)])
    assert abs(found["bytes of objects"] - 5 * 240_000) < counters.SMALL
    assert abs(found["bytes of objects at peak"] - 240_000) < counters.SMALL


def test_encoders_are_counted() -> None:
    many, one = tallied(lambda items: items), tallied(lambda item: item)
    found = count(lambda: (many([1, 2, 3]), one(torch.ones(4)), many([])))
    assert (found["encoder calls"], found["encoded items"]) == (3, 4)


def test_hash_functions_are_what_they_were() -> None:
    before = hashlib.sha256, sha256, blake3
    with pytest.raises(ZeroDivisionError):
        count(lambda: 1 // 0)
    assert (hashlib.sha256, sha256, blake3) == before


def test_what_has_threads_counts_only_hashes_and_encoders() -> None:
    assert set(count(hashed_by_a_thread, uncounted="a thread")) == {
        "encoder calls",
        "encoded items",
        "hash calls",
        "hashed bytes",
    }


def test_more_is_more_by_one() -> None:
    base = {"hashed bytes": 10, "bytes of objects": 10, "only the base": 1}
    assert grown(base, {"hashed bytes": 10, "bytes of objects": 10 + 4 * counters.SMALL}) == {}
    assert grown(base, {"bytes of objects": 11 + 4 * counters.SMALL}) == {"bytes of objects": (10, 11 + 4 * counters.SMALL)}
    assert grown(base, {"hashed bytes": 11, "bytes of objects": 9}) == {"hashed bytes": (10, 11)}
    assert grown(base, {"hashed bytes": 11}, {"hashed bytes": 1}) == {}


COUNTING = """
import gc, importlib, json, os, sys
os.dup2(2, 1)
from conformance.loading import load
from perf.sized import Asked
from perf.counters import count
from perf.sized import SIZED
engine, found = Asked(load("reference")), {}
for stage in sys.argv[2:]:
    importlib.import_module(f"perf.test_{stage}")
gc.freeze()
for name, case in SIZED.items():
    job = case.prepare(engine)
    job()
    found[name] = count(job, uncounted=case.uncounted)
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
"""


def test_counts_are_the_same_in_any_process(tmp_path: Any) -> None:
    """Processes with other hash seeds agree, beyond what is allowed."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING, tmp_path / seed, *STAGES],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": seed},
            stderr=subprocess.DEVNULL,
        )
        for seed in SEEDS
    ]
    assert [one.wait() for one in running] == [0, 0, 0]
    found = [json.loads((tmp_path / seed).read_text()) for seed in SEEDS]
    assert len(found[0]) > 10
    for name, counts in found[0].items():
        for other in found[1:]:
            assert not grown(counts, other[name]), name
            assert not grown(other[name], counts), name


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"margin": 0.02, "because": "it waits"}, "only ever more than 0.03"),
        ({"margin": 0.05}, "say in `because`"),
        ({"allowed": {"hashed bytes": 1}}, "say in `because`"),
        ({"allowed": {"hashed bytes": -1}, "because": "it may"}, "0 or more"),
    ],
)
def test_more_is_allowed_only_upward_and_with_a_reason(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare("a case", Sized("merging", (), lambda engine: looped, **more))
    assert "a case" not in sized.SIZED


def test_a_reason_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized, "SIZED", {})
    declare("a case", Sized("merging", (), lambda engine: looped, margin=0.05, because="it waits for a thread"))
    assert sized.SIZED["a case"].margin == 0.05
