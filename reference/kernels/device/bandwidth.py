"""What share of the bandwidth of a copy each operation reaches where it runs: `python -m reference.kernels.device.bandwidth`.

Bytes that an operation has to read and write, by the median time of a call with all that belongs to it (launches, and
the number that the host waits for), against those of a copy of the same size that is timed between the calls. Tensors are
larger than caches. It measures and has no verdict.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import torch

from reference.items import Chunk, Span
from reference.kernels.dispatch import Computed, Path
from reference.kernels.frames import dissimilarity
from reference.kernels.hashing import content_digest, word_hash
from reference.kernels.masks import placeholder_mask, span_mask
from reference.kernels.rotation import apply_mrope
from reference.kernels.rows import fused_merge, scatter_rows

HIDDEN, SPAN = 4096, 256
HEAD_DIM, SECTIONS = 128, (24, 20, 20)


class Job(NamedTuple):
    """An operation, its call, and how many bytes it has to read and write."""

    name: str
    call: Callable[[], Computed[Any]]
    moved_bytes: int


def jobs(size_bytes: int, device: torch.device) -> Iterator[Job]:
    """Each operation on tensors of about this size."""
    positions = max(2 * SPAN, size_bytes // (2 * HIDDEN) // (2 * SPAN) * 2 * SPAN)
    chunk, spans = Chunk(0, positions), [Span(first, first + SPAN - 1) for first in range(0, positions, 2 * SPAN)]
    rows = torch.ones(positions // 2, HIDDEN, dtype=torch.bfloat16, device=device)
    table = torch.ones(positions, HIDDEN, dtype=torch.bfloat16, device=device)
    text = torch.arange(positions, device=device)
    mask = text % (2 * SPAN) < SPAN
    many = torch.arange(max(1, size_bytes // 8), device=device)
    sentinels = torch.arange(2**62, 2**62 + 64, device=device)
    layer_bytes = 2 * positions * HIDDEN
    heads = table.reshape(positions, HIDDEN // HEAD_DIM, HEAD_DIM)
    query, key = heads[:, ::2], heads[:, 1::8]
    triples, angles = (text % 1024).repeat(3, 1), torch.ones(1024, HEAD_DIM, device=device)
    turned_bytes = 2 * (query.numel() + key.numel())
    yield Job("word_hash", lambda: word_hash(table), layer_bytes)
    yield Job("content_digest", lambda: content_digest(table), layer_bytes)
    yield Job("placeholder_mask", lambda: placeholder_mask(many, sentinels), 9 * len(many))
    yield Job("span_mask", lambda: span_mask(spans, Chunk(0, size_bytes), device), size_bytes)
    yield Job("scatter_rows", lambda: scatter_rows(table, mask, rows), 2 * layer_bytes)
    yield Job("fused_merge", lambda: fused_merge(text, spans, rows, table, chunk), 2 * layer_bytes)
    yield Job("apply_mrope", lambda: apply_mrope(query, key, triples, angles, SECTIONS, True, False), 2 * turned_bytes)
    yield Job("dissimilarity", lambda: dissimilarity(table, (2, 1, positions // 2)), layer_bytes)


def seconds(call: Callable[[], object], device: torch.device) -> float:
    """How long one call takes, until its device has nothing left to do."""
    _finish(device)
    start = time.perf_counter()
    call()
    _finish(device)
    return time.perf_counter() - start


def shares(size_bytes: int, device: torch.device, rounds: int) -> Iterator[tuple[str, Path, float, float]]:
    """For each operation its name, how it was computed, its bytes a second, and the share that this is of a copy's."""
    source = torch.ones(size_bytes, dtype=torch.uint8, device=device)
    copy = torch.empty_like(source)
    for job in jobs(size_bytes, device):
        path = job.call().path  # compiles
        timed = [(seconds(job.call, device), seconds(lambda: copy.copy_(source), device)) for _ in range(rounds)]
        its, of_copy = (median(times) for times in zip(*timed, strict=True))
        yield job.name, path, job.moved_bytes / its, (job.moved_bytes / its) / (2 * size_bytes / of_copy)


def main() -> None:
    """Print one line an operation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--mib", type=int, default=1024, help="the size of the tensors")
    parser.add_argument("--rounds", type=int, default=30)
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    print(torch.cuda.get_device_name(device) if device.type == "cuda" else device.type, f"tensors of {chosen.mib} MiB")
    for name, path, bytes_per_s, share in shares(chosen.mib * 2**20, device, chosen.rounds):
        print(f"{name:16} {path:6} {bytes_per_s / 1e9:9.1f} GB/s {share:7.1%} of a copy", flush=True)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
